"""From pixels to accuracy in three commands, as a person runs them."""

from __future__ import annotations

import json
import shutil
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="train and extract need the extra images")
Image = pytest.importorskip("PIL.Image")


from hotshot.backbones import create
from hotshot.encoders import extraction
from hotshot.files import read_features
from hotshot.files.atomic import locked


@pytest.fixture
def pictures(tmp_path):
    """A dataset of four classes in each of three splits, which differ in colour; a network for it."""
    rng = np.random.default_rng(0)
    for split in ("train", "val", "test"):
        for name in "abcd":
            colour = rng.integers(40, 215, size=3)
            for i in range(8):
                path = tmp_path / "pictures" / split / f"{split} {name}" / f"{i}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                pixels = colour + rng.integers(-20, 20, size=(24, 30, 3))
                Image.fromarray(pixels.astype(np.uint8)).save(path)
    (tmp_path / "own.py").write_text("def means(images):\n    return images.mean(axis=(1, 2))\n")
    return tmp_path / "pictures"


LENGTHS = """
def lengths(texts):
    return [[len(text), 1.0] for text in texts]

lengths.kind = "texts"
"""
EXTRACT = ["extract", "pictures", "--encoder", "own.py:means", "--size", "20"]


def test_train_extract_and_evaluate(hotshot, pictures, tmp_path):
    trained = hotshot.succeeds("train", "pictures", "--size", "20", "--epochs", "2", "--batch-size", "16")
    assert "32 images of 4 base classes, 32 of 4 validation classes" in trained.stdout
    assert "epoch 2 of 2: loss" in trained.stdout
    assert "Checkpoint: backbone/best" in trained.stdout
    extracted = hotshot.succeeds("extract", "pictures", "--encoder", "backbone/best")
    assert "novel.safetensors: 32 images of 4 classes, " in extracted.said
    features = read_features(tmp_path / "features" / "novel.safetensors")
    assert features.about["extractor"] == "conv4"
    assert features.X.min() >= 0
    run = hotshot.succeeds(
        "evaluate", "--base", "features/base.safetensors", "--novel", "features/novel.safetensors", "--ways", "3",
        "--methods", "hot,centroid-cl2n", "--tasks", "20", "--shots", "1", "--queries", "5", "--jobs", "1", "--json",
    )  # fmt: skip
    assert json.loads(run.stdout)["results"][0]["accuracy"] > 0.4


def test_an_interrupted_extraction_resumes_with_the_next_split(hotshot, pictures, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        whole = extraction._extract

        def interrupted(inputs, encoder, path, watch):
            if path.name == "val.safetensors":
                raise KeyboardInterrupt
            return whole(inputs, encoder, path, watch)

        patched.setattr(extraction, "_extract", interrupted)
        run = hotshot(*EXTRACT)
        assert run.returncode == 130
        assert "finished features are in features. Rerun the command to resume" in run.noted
    first = (tmp_path / "features" / "base.safetensors").read_bytes()
    again = hotshot.succeeds(*EXTRACT, "--json")
    rates = {row["split"]: row["images_per_second"] for row in json.loads(again.stdout)}
    assert rates["base"] is None
    assert rates["val"] > 0
    assert (tmp_path / "features" / "base.safetensors").read_bytes() == first
    (tmp_path / "own.py").write_text("def means(images):\n    return 2 * images.mean(axis=(1, 2))\n")
    refused = "base.safetensors exists, from other images or another encoder: pass --force"
    assert refused in hotshot.refuses(*EXTRACT)
    hotshot.succeeds(*EXTRACT, "--force")


def test_a_table_of_texts_is_extracted_once(hotshot, tmp_path):
    (tmp_path / "own.py").write_text(LENGTHS)
    (tmp_path / "a.csv").write_text("text,label,id\nhello,x,7\n,y,8\nyou,y,9\n")
    first, again = (hotshot("extract", "a.csv", "--encoder", "own.py:lengths", "--json") for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert "1 of 3 inputs of a.csv cannot be read: row 2 (it has no text)" in first.noted
    found = read_features(tmp_path / "features" / "a.safetensors")
    assert (found.X.tolist(), found.y.tolist(), list(found.ids)) == ([[5, 1], [3, 1]], ["x", "y"], ["7", "9"])
    assert list(found.texts) == ["hello", "you"]
    assert "a.safetensors: already extracted." in again.stderr
    assert again.stdout == first.stdout
    (tmp_path / "a.csv").write_text("text,label\nhello,x\nyou,\n")
    assert "no label in row 2" in hotshot("extract", "a.csv", "--encoder", "own.py:lengths").stderr


@pytest.mark.parametrize(
    ("kind", "flags", "expected"),
    [("omniglot", [], False), ("omniglot", ["--flip"], True), ("folder", [], True), ("folder", ["--no-flip"], False)],
)
def test_characters_are_not_mirrored_unless_asked(hotshot, pictures, tmp_path, kind, flags, expected):
    if kind == "omniglot":
        (pictures / "train").rename(pictures / "alphabet")
        (tmp_path / "characters").mkdir()
        pictures.rename(tmp_path / "characters" / "images_background")
        for name in ("val", "test"):
            shutil.rmtree(tmp_path / "characters" / "images_background" / name)
        (tmp_path / "characters").rename(pictures)
    hotshot.succeeds("train", "pictures", "--size", "20", "--epochs", "1", "--filters", "4", *flags)
    recipe = json.loads((tmp_path / "backbone" / "best" / "checkpoint.json").read_text())["recipe"]
    assert (recipe["flip"], recipe["options"]) == (expected, {"filters": 4})


def test_images_that_are_left_out_are_counted(hotshot, pictures):
    (pictures / "train" / "train b" / "1.png").write_bytes(b"<html>")
    for flags in (["train", "pictures", "--size", "20", "--epochs", "1"], EXTRACT):
        assert "1 corrupt image, train/train b/1.png" in " ".join(hotshot(*flags).stderr.split())
        run = hotshot.succeeds(*flags, "--skip-corrupt")
        note = "Note: left out 1 corrupt images of 'base', first train/train b/1.png."
        assert note in run.said


def test_without_pytorch_the_error_says_what_to_install(hotshot, monkeypatch):
    monkeypatch.setitem(sys.modules, "hotshot.backbones", None)
    said = hotshot.refuses("train", "pictures")
    assert "This command needs PyTorch and Pillow" in said
    assert said.endswith("pip install 'hotshot[images]'.")
    said = hotshot.refuses("extract", "pictures", "--encoder", "efficientnet-lite0")
    assert "efficientnet-lite0 needs hotshot.backbones: pip install 'hotshot[images]'." in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train"], "Missing argument 'dataset'"),
        (["train", "nowhere"], "There is no folder or archive nowhere"),
        (["train", "pictures", "--backbone", "conv5"], "backbone must be one of"),
        (["train", "pictures", "--filters", "few"], "--filters must be comma-separated whole numbers"),
        (["train", "pictures", "--filters", "4,5"], "filters must be an integer from 1 to 2,048"),
        (["train", "pictures", "--backbone", "resnet12", "--filters", "8"], "filters must be 1 to 8 numbers"),
        (["train", "pictures", "--size", "10"], "size is too small for this network, got 10"),
        (["train", "pictures", "--device", "abacus"], "device must be available in PyTorch"),
        (["extract", "pictures"], "Pass --encoder NAME, such as minilm"),
        (["extract", "pictures", "--encoder", "conv4@w.pt"], "There is no file w.pt"),
        (["extract", "pictures", "--encoder", "./nowhere"], "nowhere is not a checkpoint"),
        (["extract", "pictures", "--encoder", "minlm"], "got 'minlm'. Did you mean 'minilm'?"),
        (["extract", "pictures", "--encoder", "minilm", "--size", "20"], "minilm has a fixed size, or none"),
    ],
)
def test_mistakes_are_one_sentence_and_exit_code_2(hotshot, pictures, arguments, message):
    assert message in hotshot.refuses(*arguments)


def test_what_it_reads_is_not_overwritten(hotshot, pictures, tmp_path):
    torch.save(create("conv4").state_dict(), tmp_path / "base.safetensors")
    hotshot.refuses("extract", "pictures", "--encoder", "conv4@base.safetensors", "--out", ".", "--force")


@pytest.mark.parametrize("command", [["train", "pictures", "--size", "20"], EXTRACT])
def test_a_folder_that_cannot_be_written_is_reported_first(hotshot, pictures, tmp_path, command):
    for name in ("own.py", "own.py/below"):
        assert "is a file, not a folder: name another" in hotshot.refuses(*command, "--out", name)
    with locked(tmp_path / "out"):
        said = hotshot.refuses(*command, "--out", "out")
    assert "Another process is writing to the folder out: wait for it, or name another." in said
