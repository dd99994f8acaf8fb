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
from hotshot.encoders.extraction import part_of
from hotshot.files import read_features
from hotshot.files.atomic import LOCK, locked


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


EXTRACT = ["extract", "pictures", "--encoder", "own.py:means", "--size", "20"]


def test_train_extract_and_evaluate(hotshot, pictures, tmp_path):
    trained = hotshot("train", "pictures", "--size", "20", "--epochs", "2", "--batch-size", "16")
    assert trained.returncode == 0, trained.stderr
    assert "32 images of 4 base classes, 32 of 4 validation classes" in trained.stdout
    assert "epoch 2 of 2: loss" in trained.stdout
    assert "Checkpoint: backbone/best" in trained.stdout
    extracted = hotshot("extract", "pictures", "--encoder", "backbone/best")
    assert extracted.returncode == 0, extracted.stderr
    assert "novel.safetensors: 32 images of 4 classes, " in " ".join(extracted.stdout.split())
    features = read_features(tmp_path / "features" / "novel.safetensors")
    assert features.about["extractor"] == "conv4"
    assert features.X.min() >= 0
    run = hotshot(
        "evaluate", "--base", "features/base.safetensors", "--novel", "features/novel.safetensors", "--ways", "3",
        "--methods", "hot,centroid-cl2n", "--tasks", "20", "--shots", "1", "--queries", "5", "--jobs", "1", "--json",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["results"][0]["accuracy"] > 0.4


def test_published_weights_are_matched_and_used(hotshot, pictures, tmp_path):
    state = create("conv4").state_dict()
    theirs = {name.replace("blocks.", "feature.trunk."): x for name, x in state.items()}
    torch.save({"epoch": 1, "state": theirs}, tmp_path / "best_model.tar")
    run = hotshot("extract", "pictures", "--encoder", "conv4@best_model.tar", "--size", "20")
    assert run.returncode == 0, run.stderr
    assert "24 tensors matched, from feature.trunk.0.conv.bias -> blocks.0.conv.bias" in " ".join(run.stdout.split())
    features = read_features(tmp_path / "features" / "val.safetensors")
    assert features.X.shape == (32, 64)
    assert features.about["network"]["weights"] == "best_model.tar"


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
        assert "Rerun the command to resume" in run.stderr
    first = (tmp_path / "features" / "base.safetensors").read_bytes()
    assert not (tmp_path / "features" / "val.safetensors").exists()
    part_of(tmp_path / "features" / "base.safetensors").write_bytes(b"{}")
    again = hotshot(*EXTRACT, "--json")
    assert again.returncode == 0, again.stderr
    rates = {row["split"]: row["images_per_second"] for row in json.loads(again.stdout)}
    assert rates["base"] is None
    assert rates["val"] > 0
    assert (tmp_path / "features" / "base.safetensors").read_bytes() == first
    names = sorted(path.name for path in (tmp_path / "features").iterdir())
    assert names == [LOCK, "base.safetensors", "novel.safetensors", "val.safetensors"]
    (tmp_path / "own.py").write_text("def means(images):\n    return 2 * images.mean(axis=(1, 2))\n")
    other = hotshot(*EXTRACT)
    assert other.returncode == 2
    assert "base.safetensors exists, from other images or another encoder: pass --force" in other.stderr
    assert hotshot(*EXTRACT, "--force").returncode == 0


LENGTHS = """
import numpy as np

def lengths(texts):
    return np.array([[len(text), FACTOR] for text in texts])

lengths.kind = "texts"
"""


def test_texts_are_not_embedded_twice(hotshot, tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text(LENGTHS.replace("FACTOR", "1.0"))
    (tmp_path / "a.csv").write_text("text,label\nhello,x\nyou,y\n")
    flags = ["extract", "a.csv", "--encoder", "own.py:lengths", "--json"]
    first = hotshot(*flags)
    assert first.returncode == 0, first.stderr
    found = read_features(tmp_path / "features" / "a.safetensors")
    assert found.X.tolist() == [[5, 1], [3, 1]]
    assert (found.about["extractor"], found.about["transform"]) == ("own.py:lengths", "none")
    with monkeypatch.context() as patched:
        patched.setattr(extraction, "_extract", None)
        again = hotshot(*flags)
    assert again.returncode == 0, again.stderr
    assert "a.safetensors: already extracted." in again.stderr
    assert again.stdout == first.stdout
    (tmp_path / "own.py").write_text(LENGTHS.replace("FACTOR", "2.0"))
    assert "a.safetensors exists, from other texts or another encoder: pass --force" in hotshot(*flags).stderr
    (tmp_path / "own.py").write_text(LENGTHS.replace("FACTOR", "1.0"))
    (tmp_path / "a.csv").write_text("text,label\nhello,y\nyou,y\n")
    other = hotshot(*flags)
    assert other.returncode == 2
    assert "a.safetensors exists, from other texts or another encoder: pass --force" in other.stderr
    assert "Missing argument 'dataset'" in hotshot("extract", "--encoder", "own.py:lengths").stderr


def test_training_resumes_and_reports_its_history(hotshot, pictures):
    flags = ["train", "pictures", "--size", "20", "--epochs", "2", "--batch-size", "32", "--json"]
    first = json.loads(hotshot(*flags).stdout)
    assert [epoch["number"] for epoch in first["epochs"]] == [1, 2]
    assert json.loads(hotshot(*flags).stdout)["epochs"] == []


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
    run = hotshot("train", "pictures", "--size", "20", "--epochs", "1", "--filters", "4", *flags)
    assert run.returncode == 0, run.stderr
    recipe = json.loads((tmp_path / "backbone" / "best" / "checkpoint.json").read_text())["recipe"]
    assert (recipe["flip"], recipe["options"]) == (expected, {"filters": 4})


def test_images_that_are_left_out_are_counted(hotshot, pictures):
    (pictures / "train" / "train b" / "1.png").write_bytes(b"<html>")
    for flags in (["train", "pictures", "--size", "20", "--epochs", "1"], EXTRACT):
        assert "1 corrupt image, train/train b/1.png" in " ".join(hotshot(*flags).stderr.split())
        run = hotshot(*flags, "--skip-corrupt")
        assert run.returncode == 0, run.stderr
        note = "Note: left out 1 corrupt images of 'base', first train/train b/1.png."
        assert note in " ".join(run.stdout.split())


def test_without_pytorch_the_error_says_what_to_install(hotshot, monkeypatch):
    monkeypatch.setitem(sys.modules, "hotshot.backbones", None)
    run = hotshot("train", "pictures")
    assert run.returncode == 2
    assert "This command needs PyTorch and Pillow" in run.stderr
    assert run.stderr.rstrip().endswith("pip install 'hotshot[images]'.")
    run = hotshot("extract", "pictures", "--encoder", "efficientnet-lite0")
    assert run.returncode == 2
    assert "efficientnet-lite0 needs hotshot.backbones: pip install 'hotshot[images]'." in run.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train"], "Missing argument 'dataset'"),
        (["train", "nowhere"], "There is no folder or archive nowhere"),
        (["train", "pictures", "--backbone", "conv5"], "backbone must be one of"),
        (["train", "pictures", "--filters", "few"], "--filters must be comma-separated whole numbers"),
        (["train", "pictures", "--filters", "4,5"], "filters must be an integer from 1 to 2,048"),
        (["train", "pictures", "--backbone", "resnet12", "--filters", "8"], "filters must be 1 to 8 numbers"),
        (["train", "pictures", "--filters", "-1"], "filters must be an integer from 1 to 2,048"),
        (["train", "pictures", "--epochs", "0"], "epochs must be an integer from 1 to 1,000,000, got 0"),
        (["train", "pictures", "--size", "0"], "size must be an integer from 1 to 4,096, got 0"),
        (["train", "pictures", "--size", "10"], "size is too small for this network, got 10"),
        (["train", "pictures", "--batch-size", "1"], "batch_size must be an integer from 2 to"),
        (["train", "pictures", "--device", "abacus"], "device must be available in PyTorch"),
        (["extract", "pictures"], "Pass --encoder NAME, such as minilm"),
        (["extract", "pictures", "--encoder", "conv4@w.pt"], "There is no file w.pt"),
        (["extract", "pictures", "--encoder", "conv4@w.pt", "--size", "0"], "size must be an integer from 1 to 4,096"),
        (["extract", "pictures", "--encoder", "./nowhere"], "nowhere is not a checkpoint"),
        (["extract", "pictures", "--encoder", "clip"], "encoder must be one of minilm, efficientnet-lite0, timm:"),
        (["extract", "pictures", "--encoder", "minlm"], "got 'minlm'. Did you mean 'minilm'?"),
        (["extract", "pictures", "--encoder", "minilm", "--size", "20"], "minilm has a fixed size, or none"),
    ],
)
def test_mistakes_are_one_sentence_and_exit_code_2(hotshot, pictures, arguments, message):
    run = hotshot(*arguments)
    assert run.returncode == 2
    assert message in " ".join(run.stderr.split())
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize("command", [["train", "pictures", "--size", "20"], EXTRACT])
@pytest.mark.parametrize("name", ["own.py", "own.py/below"])
def test_a_folder_that_cannot_be_created_is_reported_first(hotshot, pictures, tmp_path, command, name):
    run = hotshot(*command, "--out", name)
    assert run.returncode == 2
    assert "is a file, not a folder: name another" in " ".join(run.stderr.split())


@pytest.mark.parametrize("command", [["train", "pictures", "--size", "20"], EXTRACT])
def test_a_folder_that_another_process_writes_to_is_refused(hotshot, pictures, tmp_path, command):
    with locked(tmp_path / "out"):
        run = hotshot(*command, "--out", "out")
    assert run.returncode == 2
    assert "Another process is writing to the folder out: wait for it, or name another." in " ".join(run.stderr.split())


def test_weights_go_with_a_module(hotshot, pictures, tmp_path):
    (tmp_path / "own.py").write_text("from torch import nn\nmake = lambda: nn.Conv2d(3, 4, 3)\n")
    state = torch.nn.Conv2d(3, 4, 3).state_dict()
    torch.save({f"module.{name}": x for name, x in state.items()}, tmp_path / "w.pt")
    run = hotshot("extract", "pictures", "--encoder", "own.py:make@w.pt")
    assert run.returncode == 0, run.stderr
    assert "w.pt: 2 tensors matched" in " ".join(run.stdout.split())
    features = read_features(tmp_path / "features" / "base.safetensors")
    assert features.X.shape == (32, 4)
    assert (features.about["network"]["weights"], features.about["network"]["size"]) == ("w.pt", 84)


def test_what_it_reads_is_not_overwritten(hotshot, pictures, tmp_path):
    torch.save(create("conv4").state_dict(), tmp_path / "base.safetensors")
    run = hotshot("extract", "pictures", "--encoder", "conv4@base.safetensors", "--out", ".", "--force")
    assert run.returncode == 2
