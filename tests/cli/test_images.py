"""From pixels to accuracy in three commands, as a person runs them."""

from __future__ import annotations

import json
import sys
from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="train and extract need the extra images")
Image = pytest.importorskip("PIL.Image")

from hotshot.files import read_features
from hotshot.files.atomic import LOCK, locked
from hotshot.images import extraction
from hotshot.images.backbones import create
from hotshot.images.datasets import decoding, glyphs
from hotshot.images.datasets.glyphs import make_glyphs


@pytest.fixture
def few_glyphs(monkeypatch):
    monkeypatch.setattr(glyphs, "make_glyphs", partial(make_glyphs, per_class=20, most_classes=8))


def test_train_extract_and_evaluate_on_synthetic_characters(hotshot, few_glyphs, tmp_path):
    trained = hotshot("train", "--size", "20", "--epochs", "2", "--batch-size", "32")
    assert trained.returncode == 0, trained.stderr
    assert "160 images of 8 base classes, 160 of 8 validation classes" in trained.stdout
    assert "epoch 2 of 2: loss" in trained.stdout
    extracted = hotshot("extract", "--encoder", "backbone/best")
    assert extracted.returncode == 0, extracted.stderr
    assert "of the time in the network" not in " ".join(extracted.stdout.split())
    found = read_features(tmp_path / "features" / "novel.safetensors")
    assert found.about["extractor"] == "conv4"
    assert found.X.min() >= 0
    run = hotshot(
        "evaluate", "--base", "features/base.safetensors", "--novel", "features/novel.safetensors",
        "--methods", "hot,centroid-cl2n", "--tasks", "20", "--shots", "1", "--queries", "5", "--jobs", "1", "--json",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["results"][0]["accuracy"] > 0.25


def test_published_weights_are_matched_and_used(hotshot, few_glyphs, tmp_path):
    state = create("conv4").state_dict()
    theirs = {name.replace("blocks.", "feature.trunk."): x for name, x in state.items()}
    torch.save({"epoch": 1, "state": theirs}, tmp_path / "best_model.tar")
    run = hotshot("extract", "--encoder", "conv4@best_model.tar", "--size", "20")
    assert run.returncode == 0, run.stderr
    assert "24 tensors matched, from feature.trunk.0.conv.bias -> blocks.0.conv.bias" in " ".join(run.stdout.split())
    found = read_features(tmp_path / "features" / "val.safetensors")
    assert found.X.shape == (160, 64)
    assert found.about["network"]["weights"] == "best_model.tar"


def test_an_interrupted_extraction_resumes_with_the_next_split(hotshot, few_glyphs, tmp_path, monkeypatch):
    torch.save(create("conv4", filters=64).state_dict(), tmp_path / "w.pt")
    flags = ["extract", "--encoder", "conv4@w.pt", "--size", "20"]
    with monkeypatch.context() as patched:
        whole = extraction.extract_split

        def interrupted(extractor, split, path, **options):
            if path.name == "val.safetensors":
                raise KeyboardInterrupt
            return whole(extractor, split, path, **options)

        patched.setattr(extraction, "extract_split", interrupted)
        run = hotshot(*flags)
        assert run.returncode == 130
        assert "Rerun the command to resume" in run.stderr
    first = (tmp_path / "features" / "base.safetensors").read_bytes()
    assert not (tmp_path / "features" / "val.safetensors").exists()
    again = hotshot(*flags, "--json")
    assert again.returncode == 0, again.stderr
    rates = {row["split"]: row["images_per_second"] for row in json.loads(again.stdout)}
    assert rates["base"] is None
    assert rates["val"] > 0
    assert (tmp_path / "features" / "base.safetensors").read_bytes() == first
    torch.save(create("conv4").state_dict(), tmp_path / "w.pt")
    other = hotshot(*flags)
    assert other.returncode == 2
    assert "base.safetensors exists, from other images or another encoder: pass --force" in other.stderr
    assert hotshot(*flags, "--force").returncode == 0


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
        patched.setattr(extraction, "extract_texts", None)
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
    assert "own.py:lengths needs a table of texts" in hotshot("extract", "--encoder", "own.py:lengths").stderr


@pytest.fixture
def pictures(tmp_path):
    """A folder of two classes, and a network for it."""
    for name in "ab":
        (tmp_path / "pictures" / name).mkdir(parents=True)
        for i in range(3):
            Image.new("RGB", (24, 24), (40 * i, 0, 0)).save(tmp_path / "pictures" / name / f"{i}.png")
    (tmp_path / "own.py").write_text("def means(images):\n    return images.mean(axis=(1, 2))\n")
    return ["extract", "pictures", "--encoder", "own.py:means", "--size", "20"]


def test_decoded_images_are_removed_when_all_features_are_written(hotshot, pictures, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(extraction, "extract_split", partial(interrupt, KeyboardInterrupt))
        assert hotshot(*pictures).returncode == 130
    assert list(tmp_path.glob("features/.decoded/*/images.npy"))
    with monkeypatch.context() as patched:
        patched.setattr(decoding, "_make", None)
        assert hotshot(*pictures).returncode == 0
    assert sorted(x.name for x in (tmp_path / "features").iterdir()) == [LOCK, "all.safetensors"]
    with monkeypatch.context() as patched:
        patched.setattr(decoding, "_make", None)
        again = hotshot(*pictures)
    assert again.returncode == 0, again.stderr
    assert "all.safetensors: already extracted." in again.stdout
    assert hotshot(*pictures, "--force", "--cache", "kept").returncode == 0
    assert list(tmp_path.glob("kept/*/images.npy"))


def interrupt(error, *_, **__):
    raise error


def test_leftovers_of_a_killed_removal_are_removed(hotshot, pictures, tmp_path):
    for name in (".decoded", ".decoded.old"):
        (tmp_path / "features" / name / "all-20").mkdir(parents=True)
        (tmp_path / "features" / name / "all-20" / "images.npy").write_bytes(b"x")
    assert hotshot(*pictures).returncode == 0
    assert sorted(x.name for x in (tmp_path / "features").iterdir()) == [LOCK, "all.safetensors"]


def test_training_resumes_and_reports_its_history(hotshot, few_glyphs):
    flags = ["train", "--size", "20", "--epochs", "2", "--batch-size", "32", "--json"]
    first = json.loads(hotshot(*flags).stdout)
    assert [epoch["number"] for epoch in first["epochs"]] == [1, 2]
    assert json.loads(hotshot(*flags).stdout)["epochs"] == []


@pytest.mark.parametrize(
    ("flags", "expected"), [([], False), (["--flip"], True), (["--no-flip", "--filters", "4"], False)]
)
def test_characters_are_not_mirrored_unless_asked(hotshot, few_glyphs, tmp_path, flags, expected):
    run = hotshot("train", "--size", "20", "--epochs", "1", *flags)
    assert run.returncode == 0, run.stderr
    recipe = json.loads((tmp_path / "backbone" / "best" / "checkpoint.json").read_text())["recipe"]
    assert recipe["flip"] is expected
    assert recipe["options"] == ({"filters": 4} if "--filters" in flags else {})


def test_a_folder_of_images_is_trained_on(hotshot, tmp_path):
    rng = np.random.default_rng(0)
    for split, classes in (("train", "ab"), ("val", "cd")):
        for name in classes:
            folder = tmp_path / "pictures" / split / name
            folder.mkdir(parents=True)
            for i in range(6):
                pixels = rng.integers(0, 255, size=(24, 30, 3)).astype(np.uint8)
                Image.fromarray(pixels).save(folder / f"{i}.png")
    trained = hotshot("train", "pictures", "--size", "20", "--epochs", "1")
    assert trained.returncode == 0, trained.stderr
    assert "12 images of 2 base classes, 12 of 2 validation classes" in trained.stdout
    assert hotshot("extract", "pictures", "--encoder", "backbone/best").returncode == 0
    assert len(read_features(tmp_path / "features" / "val.safetensors").X) == 12


def test_images_that_are_left_out_are_counted(hotshot, tmp_path):
    for name in "ab":
        (tmp_path / "pictures" / name).mkdir(parents=True)
        for i in range(3):
            Image.new("RGB", (24, 24), (40 * i, 0, 0)).save(tmp_path / "pictures" / name / f"{i}.png")
    (tmp_path / "pictures" / "b" / "1.png").write_bytes(b"<html>")
    flags = ["train", "pictures", "--size", "20", "--epochs", "1"]
    assert "1 corrupt image, b/1.png" in hotshot(*flags).stderr
    run = hotshot(*flags, "--skip-corrupt")
    assert run.returncode == 0, run.stderr
    assert "Note: left out 1 corrupt images of 'all', first b/1.png." in run.stdout


def test_without_pytorch_the_error_says_what_to_install(hotshot, monkeypatch):
    monkeypatch.setitem(sys.modules, "hotshot.images.backbones", None)
    run = hotshot("train")
    assert run.returncode == 2
    assert "This command needs PyTorch and Pillow" in run.stderr
    assert run.stderr.rstrip().endswith("pip install 'hotshot[images]'.")
    run = hotshot("extract", "--encoder", "efficientnet-lite0")
    assert run.returncode == 2
    assert "efficientnet-lite0 needs hotshot.images.backbones: pip install 'hotshot[images]'." in run.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "nowhere"], "nowhere"),
        (["train", "--backbone", "conv5"], "backbone must be one of"),
        (["train", "--filters", "few"], "--filters must be comma-separated whole numbers"),
        (["train", "--filters", "4,5"], "filters must be an integer from 1 to 2,048"),
        (["train", "--backbone", "resnet12", "--filters", "8"], "filters must be 1 to 8 numbers"),
        (["train", "--filters", "-1"], "filters must be an integer from 1 to 2,048"),
        (["train", "--epochs", "0"], "epochs must be an integer from 1 to 1,000,000, got 0"),
        (["train", "--size", "0"], "size must be an integer from 1 to 4,096, got 0"),
        (["train", "--size", "10"], "size is too small for this network, got 10"),
        (["train", "--batch-size", "1"], "batch_size must be an integer from 2 to"),
        (["train", "--device", "abacus"], "device must be available in PyTorch"),
        (["extract"], "Pass --encoder NAME, such as minilm"),
        (["extract", "--encoder", "conv4@w.pt"], "There is no file w.pt"),
        (["extract", "--encoder", "conv4@w.pt", "--size", "0"], "size must be an integer from 1 to 4,096"),
        (["extract", "--encoder", "./nowhere"], "nowhere is not a checkpoint"),
        (["extract", "--encoder", "clip"], "encoder must be one of minilm, efficientnet-lite0, timm:"),
        (["extract", "--encoder", "minlm"], "got 'minlm'. Did you mean 'minilm'?"),
        (["extract", "--encoder", "minilm", "--size", "20"], "minilm has a fixed size, or none"),
    ],
)
def test_mistakes_are_one_sentence_and_exit_code_2(hotshot, few_glyphs, arguments, message):
    run = hotshot(*arguments)
    assert run.returncode == 2
    assert message in " ".join(run.stderr.split())
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize("command", ["train", "extract"])
@pytest.mark.parametrize("name", ["w.pt", "w.pt/below"])
def test_a_folder_that_cannot_be_created_is_reported_first(hotshot, tmp_path, monkeypatch, command, name):
    def decoded(*arguments):
        raise AssertionError("the images were decoded first")

    torch.save(create("conv4", filters=64).state_dict(), tmp_path / "w.pt")
    module = sys.modules[f"hotshot.cli.{command}"]
    monkeypatch.setattr(module, "decoded_splits", decoded)
    weights = ["--encoder", "conv4@w.pt"] if command == "extract" else []
    run = hotshot(command, "--size", "20", *weights, "--out", name)
    assert run.returncode == 2
    assert "is a file, not a folder: name another" in " ".join(run.stderr.split())


@pytest.mark.parametrize("command", ["train", "extract"])
def test_a_folder_that_another_process_writes_to_is_refused(hotshot, few_glyphs, tmp_path, command):
    torch.save(create("conv4", filters=64).state_dict(), tmp_path / "w.pt")
    weights = ["--encoder", "conv4@w.pt"] if command == "extract" else []
    with locked(tmp_path / "out"):
        run = hotshot(command, "--size", "20", *weights, "--out", "out")
    assert run.returncode == 2
    assert "Another process is writing to the folder out: wait for it, or name another." in " ".join(run.stderr.split())


def test_unfinished_files_are_removed_once_the_features_are_complete(hotshot, few_glyphs, tmp_path):
    torch.save(create("conv4", filters=64).state_dict(), tmp_path / "w.pt")
    flags = ["extract", "--encoder", "conv4@w.pt", "--size", "20"]
    assert hotshot(*flags).returncode == 0
    before = sorted(path.name for path in (tmp_path / "features").iterdir())
    (tmp_path / "features" / "base.safetensors.part").write_bytes(b"{}")
    assert hotshot(*flags).returncode == 0
    assert sorted(path.name for path in (tmp_path / "features").iterdir()) == before
