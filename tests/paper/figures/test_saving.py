"""Figures as files."""

from __future__ import annotations

import errno
from pathlib import Path

import numpy as np
import pytest

from hotshot.errors import InputError, ParameterError
from hotshot.paper.figures import ranking, save


@pytest.fixture(scope="module")
def figure():
    return ranking(["a", "b"], [1.0, 2.0], label="weight")


def test_svg_and_png_are_written_beside_each_other(figure, tmp_path):
    paths = save(figure, tmp_path / "new" / "folder" / "plan.v2")
    assert [path.name for path in paths] == ["plan.v2.svg", "plan.v2.png"]
    assert paths[0].read_text().startswith("<?xml")
    assert paths[1].read_bytes().startswith(b"\x89PNG")


def test_pdf_is_written_where_asked(figure, tmp_path):
    first, again = (save(figure, tmp_path / name, pdf=True) for name in ("first", "again"))
    assert [path.suffix for path in first] == [".svg", ".png", ".pdf"]
    for one, other in zip(first, again, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_pngs_have_200_dots_per_inch(figure, tmp_path):
    head = save(figure, tmp_path / "a")[1].read_bytes()
    width = int.from_bytes(head[16:20], "big")
    assert width == 3.4 * 200


def test_svgs_hold_no_date(figure, tmp_path):
    assert "date" not in save(figure, str(tmp_path / "a"))[0].read_text().lower()


def test_files_are_replaced(figure, tmp_path):
    (tmp_path / "a.svg").write_text("old")
    save(figure, tmp_path / "a")
    assert "old" not in (tmp_path / "a.svg").read_text()


def test_places_that_cannot_be_written_are_refused(figure, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file.a\.svg cannot be written: Not a directory"):
        save(figure, tmp_path / "file" / "a")


def test_a_file_that_cannot_be_finished_leaves_the_old_one(figure, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "a.svg").write_text("old")
    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(InputError, match=r"a\.svg cannot be written: No space left"):
        save(figure, tmp_path / "a")
    assert (tmp_path / "a.svg").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.svg"]


def test_empty_stems_are_refused(figure):
    with pytest.raises(ParameterError, match="path_stem must end in the name of a file"):
        save(figure, "")


def test_all_pixels_are_opaque(figure, tmp_path):
    image = pytest.importorskip("PIL.Image").open(save(figure, tmp_path / "a")[1])
    pixels = np.asarray(image.convert("RGBA"))
    assert (pixels[..., 3] == 255).all()
    assert (pixels[0, 0, :3] == 255).all()
