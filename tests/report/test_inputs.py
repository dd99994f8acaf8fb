"""Texts, thumbnails and ids on a page: within 2 MB, and only what a browser may safely draw."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from reported_runs import IMAGE, SCRIPT, make_run, read, write_features

from hotshot.cli.report import report
from hotshot.files import Samples, read_features
from hotshot.files import write_features as write_file
from hotshot.report import make_report
from hotshot.report.explorer import LONGEST_ID, LONGEST_TEXT, MOST_BYTES, shown_samples

WEBP, JPEG, PNG = b"RIFF\x10\0\0\0WEBPVP8 ", b"\xff\xd8\xff\xe0", b"\x89PNG\r\n\x1a\n"


def columns(n, ids=None, texts=None, thumbnails=None):
    """Samples of which only ids, texts and thumbnails matter."""
    given = {"id": ids, "text": texts, "thumbnail": thumbnails}
    return Samples(range(n), None, {name: values for name, values in given.items() if values is not None})


def shown(samples, support=(0,), queries=(), room=MOST_BYTES):
    """What is said of the samples in one task with these rows; the queries are (truth, chosen, row)."""
    task = {"support": [[0, 0, 0, row] for row in support], "queries": [[0, 0, *query] for query in queries]}
    return shown_samples(samples, [{"tasks": [task]}], room)


@pytest.mark.parametrize(("content", "kind"), [(WEBP, "webp"), (JPEG, "jpeg"), (PNG, "png")])
def test_images_are_embedded_under_their_own_type(content, kind):
    found = shown(columns(1, ["a"], thumbnails=[content]))
    ((name, text, image),) = found["rows"].values()
    assert (name, text, image.split(",")[0]) == ("a", None, f"data:image/{kind};base64")
    assert found["left_out"] == 0


@pytest.mark.parametrize(
    "content", [b"", b"<svg onload=alert(1)>", b"GIF89a", b"RIFF\0\0\0\0WAVE", b" " + PNG, b"%PDF", b"\xff\xd8"]
)
def test_what_is_no_such_image_is_left_out(content):
    assert shown(columns(1, thumbnails=[content])) == shown(columns(1)) == {"rows": {}, "left_out": 0}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("two  words\n\tand more ", "two words and more"),
        ("a\x00\x1b[31m\x85b\ud800", "a\ufffd\ufffd[31m b\ufffd"),
        ("क्‍ष می‌خواهم", "क्‍ष می‌خواهم"),
        (SCRIPT, SCRIPT),
        (" \n ", None),
        ("x" * LONGEST_TEXT, "x" * LONGEST_TEXT),
        ("x" * 10**7, "x" * (LONGEST_TEXT - 1) + "…"),
        (" " * 10**7 + "x", "…"),
    ],
)
def test_texts_stand_on_one_line_of_bounded_length(text, expected):
    assert shown(columns(1, ["a"], [text]))["rows"] == {0: ["a", expected, None]}


def test_of_a_long_id_the_end_stays():
    name = shown(columns(1, [f"{'folder/' * 10**5}\x07name.png"]))["rows"][0][0]
    assert len(name) == LONGEST_ID
    assert name.startswith("…")
    assert name.endswith("/\ufffdname.png")


def test_room_goes_to_support_then_to_mistakes_and_the_rest_is_counted():
    texts = ["", "small", *[""] * 4]
    samples = columns(6, list("abcdef"), texts, [PNG + bytes([i]) * 400_000 for i in range(6)])
    found = shown(samples, [5], [(0, 0, 0), (1, 0, 3), (0, 0, 1), (1, 0, 4)])
    assert found["left_out"] == 2
    assert [row for row, (_, _, image) in found["rows"].items() if image] == [5, 3, 4]
    # What is small still fits.
    assert found["rows"][1] == ["b", "small", None]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inputs")
    write_features(folder)
    make_run(folder, methods=("hot",), tasks=6, shots=1)
    return folder


def explorers(page):
    return [json.loads(found) for found in re.findall(r'id="part-\d-data">(.*?)</script>', page)]


def test_a_part_holds_2_mb_and_says_what_it_leaves_out(folder):
    n = len(read_features(folder / "novel.npz").X)
    # Each takes six times its length on the page.
    kept = columns(n, None, [f"{i}{'<é&' * 330}" for i in range(n)], [JPEG + bytes(30_000 + i) for i in range(n)])
    page = make_report([folder / "run"], lambda source: (*read(source), kept.columns), tasks=6)
    (rows,) = re.findall(r'"inputs":\{"rows":(.*?\]\})', page)
    assert 0.98 * MOST_BYTES < len(rows) < 1.01 * MOST_BYTES
    (note,) = re.findall(
        r"At most 2 MB of texts and thumbnails are shown: (\d+) samples are shown by their ids only", page
    )
    assert int(note) == explorers(page)[0]["inputs"]["left_out"] > 5


def test_without_inputs_the_page_has_none_and_says_nothing(folder):
    page = make_report([folder / "run"], read, tasks=3)
    assert explorers(page)[0]["inputs"] == {"rows": {}, "left_out": 0}
    assert "2 MB" not in page


def test_ids_of_other_samples_leave_the_explorer_out(folder):
    page = make_report([folder / "run"], lambda source: (*read(source), columns(1, ["a"]).columns), tasks=3)
    assert "returned 90 novel samples and 1 ids" in page


def test_the_command_shows_what_the_file_keeps(folder, tmp_path):
    X, y = read_features(folder / "novel.npz")
    n = len(X)
    kept = columns(n, [f"{IMAGE}{i}" for i in range(n)], [f"{SCRIPT} {i}" for i in range(n)], [PNG] * n)
    novel = tmp_path / "novel.safetensors"
    write_file(novel, Samples(np.asarray(X), y, kept.columns))
    out = tmp_path / "report.html"
    report([folder / "run"], out, novel=novel, base=folder / "base.npz", tasks=3)
    page = out.read_text()
    assert SCRIPT not in page
    assert IMAGE not in page
    rows = explorers(page)[0]["inputs"]["rows"]
    assert rows
    for row, (name, text, image) in rows.items():
        assert (name, text, image[:10]) == (f"{IMAGE}{row}", f"{SCRIPT} {row}", "data:image")
