"""`hotshot export`: what it says, and what it refuses in one sentence."""

from __future__ import annotations

import re

import pytest

from conftest import make_bank
from few_shot_problems import ragged_bank
from hotshot import CentroidClassifier, HOTClassifier

X, Y = make_bank(3, 4, 6, seed=9)


@pytest.fixture
def model(tmp_path):
    HOTClassifier(ragged_bank()).fit(X, Y).save(tmp_path / "one.model")
    # As `fit` of the command line leaves one: with files of its own beside.
    (tmp_path / "one.model" / "encoder.json").write_text("{}")
    return tmp_path / "one.model"


@pytest.mark.parametrize("name", ["one.onnx", "one.ONNX"])
def test_the_output_is_summarised_and_overwritten_only_by_force(hotshot, model, name):
    pytest.importorskip("onnx")
    run = hotshot.succeeds("export", "one.model", name)
    said = run.said
    assert re.fullmatch(rf"Wrote {name}: 3 classes, 6 features, with outlier scores, \S+ kB\.", said)
    written = (model.parent / name).read_bytes()
    run = hotshot("export", "one.model", name)
    assert (run.returncode, run.stderr) == (2, f"hotshot: {name} exists: pass --force to overwrite it.\n")
    hotshot.succeeds("export", "one.model", name, "--force")
    assert (model.parent / name).read_bytes() == written


@pytest.mark.parametrize(
    ("spoil", "out", "message"),
    [
        (lambda folder: CentroidClassifier().fit(X, Y).save(folder, overwrite=True), "a.onnx", "'CentroidClassifier'"),
        (lambda folder: None, "a.pt", "a.pt must end in .onnx, got '.pt'"),
        (lambda folder: None, ".", "must end in .onnx"),
        (lambda folder: (folder / "model.json").unlink(), "a.onnx", "one.model is not a model, it has no model.json"),
    ],
    ids=["another kind", "suffix", "folder", "no model"],
)
def test_mistakes_are_one_sentence(hotshot, model, spoil, out, message):
    spoil(model)
    run = hotshot("export", "one.model", out)
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)
    assert message in run.stderr
    assert [path.name for path in model.parent.iterdir()] == ["one.model"]
