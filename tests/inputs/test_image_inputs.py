"""Images in folders, in archives, in lists or alone: labels are folders, and what is no image is named."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from hotshot import InputClassifier
from hotshot.errors import InputError
from hotshot.inputs.inputs import IMAGES, open_inputs
from sentences import read_table

PIL = pytest.importorskip("PIL.Image")
pytest.importorskip("torch")

ENCODER = """
import numpy as np

def colours(pixels):
    means = pixels.reshape(len(pixels), -1, 3).mean(axis=1)
    return np.concatenate([means, pixels.reshape(len(pixels), -1, 3).std(axis=1)], axis=1).astype(np.float32)

colours.size = 16
"""
COLOURS = {"red": (220, 40, 40), "green": (40, 200, 60), "blue": (50, 60, 220), "yellow": (220, 210, 40)}


def photograph(path, colour, seed):
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(seed).normal(0, 12, (20, 30, 3))
    PIL.fromarray((np.array(colour) + noise).clip(0, 255).astype(np.uint8)).save(path)


@pytest.fixture
def photographs(tmp_path):
    (tmp_path / "eyes.py").write_text(ENCODER, encoding="utf-8")
    for name in ("red", "green"):
        for i in range(12):
            photograph(tmp_path / "old" / name / f"{i:02d}.png", COLOURS[name], [i, len(name)])
    for name in ("blue", "yellow"):
        for i in range(2):
            photograph(tmp_path / "new" / name / f"{i}.jpg", COLOURS[name], [i, 100])
    for i, name in enumerate(COLOURS):
        photograph(tmp_path / "inbox" / f"{i}.png", COLOURS[name], [i, 200])
    return tmp_path


@pytest.fixture
def model(photographs):
    return InputClassifier(f"{photographs}/eyes.py:colours", base=photographs / "old").fit(photographs / "new")


def test_folders_are_classes_and_images_in_a_flat_folder_are_classified(model, photographs):
    assert model.encoding.kind == IMAGES
    assert model.predict(photographs / "inbox").tolist() == list(COLOURS)
    assert model.predict(photographs / "inbox" / "2.png").tolist() == ["blue"]
    assert model.predict([photographs / "inbox" / "3.png"]).tolist() == ["yellow"]


def test_a_list_of_paths_keeps_its_columns_in_the_answers(model, photographs, hotshot):
    (photographs / "list.csv").write_text("taken,path\nMonday,inbox/2.png\nFriday,inbox/0.png\n", encoding="utf-8")
    model.save(photographs / "colours.model")
    found = hotshot("predict", "colours.model", "list.csv")
    assert [line.split(",")[:3] for line in found.stdout.splitlines()] == [
        ["taken", "path", "class"], ["Monday", "inbox/2.png", "blue"], ["Friday", "inbox/0.png", "red"],
    ]  # fmt: skip


def test_support_images_are_kept_as_thumbnails(model, photographs):
    model.save(photographs / "colours.model")
    loaded = InputClassifier.load(photographs / "colours.model", trust=True)
    assert loaded.support.ids == ["blue/0.jpg", "blue/1.jpg", "yellow/0.jpg", "yellow/1.jpg"]
    assert len(loaded.support.thumbnails) == 4
    page = loaded.explain(photographs / "inbox").to_html("Colours")
    # Four images, two examples each of the answers and runners-up that are new, and five of those that are old.
    assert page.count("<img") >= 4 + 4 * 2
    assert "blue/0.jpg" in str(loaded.explain(photographs / "inbox" / "2.png"))


def test_images_beyond_the_thumbnails_of_a_class_are_shown_by_their_path(photographs, monkeypatch):
    monkeypatch.setattr("hotshot.inputs.samples.MOST_THUMBNAILS", 2)
    model = InputClassifier(f"{photographs}/eyes.py:colours", base=photographs / "old").fit(photographs / "new")
    assert [bool(small) for small in model.old.thumbnails] == [*[True] * 2, *[False] * 10] * 2
    explained = model.explain(photographs / "old" / "red" / "11.png")
    assert "`red`: red/11.png (similarity 1.00)" in str(explained)
    page = explained.to_html("Colours")
    assert "red/11.png</span>" in page
    assert 'src="data:image/webp;base64,"' not in page


@pytest.mark.parametrize(
    ("folders", "labels"),
    [
        (["a", "b"], ["a", "b"]),
        (["x/a", "x/b"], ["a", "b"]),
        (["x/a", "y/b"], ["x/a", "y/b"]),
        (["a", "a/b", "c"], ["a", "a/b", "c"]),
        (["a"], ["a"]),
        (["a", ""], None),
        (["a", "a/b"], None),
    ],
)
def test_labels_are_the_folders_of_images_also_in_an_archive_of_the_folder_or_of_its_content(tmp_path, folders, labels):
    for i, folder in enumerate(folders):
        photograph(tmp_path / "around" / "all" / folder / f"{i}.png", (9, 9, 9), i)
    shutil.make_archive(str(tmp_path / "folder"), "zip", tmp_path / "around", "all")
    shutil.make_archive(str(tmp_path / "content"), "tar", tmp_path / "around" / "all")
    for form in ("around/all", "around", "folder.zip", "content.tar"):
        found = next(open_inputs(tmp_path / form, IMAGES).batches(10)).y
        assert (found and sorted(found)) == labels, form


def test_a_flat_folder_of_images_has_no_labels(tmp_path):
    photograph(tmp_path / "all" / "1.png", (9, 9, 9), 1)
    assert next(open_inputs(tmp_path / "all", IMAGES).batches(10)).y is None


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("inbox", r"broken\.png is not a readable image.*repair or remove"),
        ("empty", "contains no images"),
        ("list.txt", r"missing\.png is not a readable image, it cannot be read, No such file"),
        ("eyes.py", "is not an image"),
        ("a.heic", r"is not an image: convert \.heic to \.jpg first"),
    ],
)
def test_a_file_that_is_not_an_image_is_named(model, photographs, name, said):
    (photographs / "inbox" / "broken.png").write_bytes(b"no image")
    (photographs / "empty").mkdir()
    (photographs / "list.txt").write_text("missing.png\n", encoding="utf-8")
    (photographs / "a.heic").write_bytes(b"none")
    with pytest.raises(InputError, match=said):
        model.predict(photographs / name)
    with pytest.raises(InputError, match="has no labels: put images into one folder per class"):
        InputClassifier(model.encoder).fit(photographs / "new" / "blue")


def test_corrupt_and_missing_images_are_rows_with_errors(hotshot, model, photographs):
    model.save(photographs / "colours.model")
    inbox = photographs / "inbox"
    (inbox / "a-broken.png").write_bytes(b"no image")
    (inbox / "notes.txt").write_text("none", encoding="utf-8")
    (inbox / "IMG_1.HEIC").write_bytes(b"none")
    found = hotshot.succeeds("predict", photographs / "colours.model", inbox, "-o", "answers.csv")
    notes = found.noted
    assert "2 files other than images, left out (1 .heic, 1 .txt): convert .heic to .jpg" in notes
    rows = read_table(photographs / "answers.csv")
    assert [row["path"] for row in rows if row["error"]] == ["a-broken.png"]
    assert all(row["class"] for row in rows if not row["error"])
    (photographs / "list.txt").write_text("inbox/gone.png\n" + f"inbox/{rows[0]['path']}\n", encoding="utf-8")
    found = hotshot.succeeds("predict", photographs / "colours.model", photographs / "list.txt", "-o", "listed.csv")
    listed = read_table(photographs / "listed.csv")
    assert ["No such file" in listed[0]["error"], listed[1]["class"]] == [True, rows[0]["class"]]


def test_folders_that_are_no_classes_are_not_compared(hotshot, model, photographs):
    model.save(photographs / "colours.model")
    photograph(photographs / "years" / "2024" / "a.png", (0, 0, 250), 1)
    photograph(photographs / "years" / "2025" / "b.png", (0, 0, 250), 2)
    found = hotshot("predict", photographs / "colours.model", photographs / "years", "-o", "answers.csv")
    assert "agree" not in found.stderr
    assert "agree" in hotshot("predict", photographs / "colours.model", photographs / "new", "-o", "b.csv").stderr
