"""Exported files answer as the model does, with the lines that the docs show; what cannot be exported is refused."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from conftest import make_bank
from few_shot_problems import ragged_bank
from hotshot import BaseClasses, CentroidClassifier, FreeLunchClassifier, HOTClassifier
from hotshot.classifiers.export import export_model
from hotshot.errors import InputError, ParameterError, RunError

pytestmark = pytest.mark.filterwarnings("ignore::hotshot.errors.ScaleWarning")

WIDTH = 6
# Rounding of single precision is a tenth of these; of scores, where terms cancel, against their usual size.
CLOSE, CLOSE_SCORE = 1e-5, 1e-4
X, Y = make_bank(3, 12, WIDTH, seed=9, spread=0.8, dtype=np.float32)
NAMES = np.array(["ant", "b\u00ea", "caf\udce9"])[Y]
BASE = ragged_bank(width=WIDTH, dtype=np.float32)
POSITIVE = BaseClasses.from_samples(np.abs(BASE.samples) + 0.01, BASE.labels)


# Enough base classes to measure on how sure answers are; settings that need no choosing.
LARGE = BaseClasses.from_samples(*make_bank(24, 12, WIDTH, seed=5, dtype=np.float32), about={"extractor": "DINO"})
SET = {name: values[-1] for name, values in HOTClassifier._choices.items()}
MODELS = {
    "default": HOTClassifier(BASE),
    "root": HOTClassifier(POSITIVE, power=0.5),
    "logarithm": HOTClassifier(POSITIVE, power=0, power_offset=0.1),
    "square of any sign": HOTClassifier(BASE, power=2),
    "neither centre nor norm": HOTClassifier(BASE, normalize=None, n_components=None, alpha=0.1),
    "few axes": HOTClassifier(BASE, n_components=2),
    "double precision": HOTClassifier(ragged_bank(width=WIDTH)),
    "other scale": HOTClassifier(BaseClasses.from_samples(BASE.samples * 2.0**70, BASE.labels)),
    "without base": HOTClassifier(C=0.1),
    "temperatures": HOTClassifier(LARGE, **SET),
    "beside base": HOTClassifier(LARGE, include_base=True, **SET),
    "Free-Lunch": FreeLunchClassifier(BASE, n_generated=30, random_state=0),
}


def fitted(name):
    """A model and queries that it can answer."""
    model = MODELS[name]
    queries = X * (2.0**70 if name == "other scale" else 1)
    queries = np.abs(queries) + 0.01 if name in ("root", "logarithm") else queries
    labels = Y + 100 if name == "beside base" else NAMES
    return model.fit(queries[::3], labels[::3]), queries


def run(path, queries):
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"features": queries}), strict=True))


@pytest.mark.parametrize("name", MODELS)
def test_a_graph_answers_as_the_model_does(name, tmp_path):
    onnx = pytest.importorskip("onnx")
    model, queries = fitted(name)
    path = tmp_path / "one.onnx"
    export_model(model, path)
    onnx.checker.check_model(str(path), full_check=True)
    made = onnx.load(str(path))
    assert (made.ir_version <= 9, [opset.version for opset in made.opset_import]) == (True, [13])
    # The centre has no direction, and an answer.
    centre = getattr(model.transform_, "centre", None)
    if centre is not None and name in ("default", "few axes"):
        queries = np.concatenate([queries, (centre / model.transform_.scale)[None].astype(np.float32)])
    found = run(path, queries)
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(queries), atol=CLOSE)
    assert model.classes_[found["label"]].tolist() == model.predict(queries).tolist()
    assert ("outlier_score" in found) == (model.base is not None)
    if model.base is not None:
        np.testing.assert_allclose(
            found["outlier_score"], model.outlier_score(queries), rtol=CLOSE_SCORE, atol=CLOSE_SCORE
        )
        assert found["best_fit"].tolist() == model.outliers_.known.best(model._in_space(queries))[0].tolist()
    for rows in (0, 1):
        assert run(path, queries[:rows])["probabilities"].shape == (rows, len(model.classes_))


def blocks(language, section):
    page = (Path(__file__).parents[2] / "docs" / "guides" / "export.md").read_text()
    (own,) = re.findall(rf"## {section}\n(.*?)(?:\n## |$)", page, re.DOTALL)
    return re.findall(rf"```{language}\n(.*?)```", own, re.DOTALL)


@pytest.mark.filterwarnings("ignore::hotshot.errors.FeatureSpaceWarning", "ignore::hotshot.errors.OpenWorldWarning")
def test_the_graph_of_the_docs_rejects_as_the_model_does(tmp_path, monkeypatch):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    model, _ = fitted("temperatures")
    queries = np.concatenate([X, 30 * X[::-1] + 1])
    export_model(model, tmp_path / "intents.onnx")
    monkeypatch.chdir(tmp_path)
    known = {"X": queries}
    exec("\n".join(blocks("python", "ONNX")), known)
    expected = model.predict(queries, reject=0.05).tolist()
    assert known["answers"] == expected
    assert None in expected
    assert set(expected) - {None}
    assert known["about"]["extractor"] == "DINO"
    assert known["about"]["classes"] == ["ant", "b\u00ea", "caf\udce9"]


def tiny():
    """A model of features that are all 0 in single precision."""
    bank = BaseClasses.from_samples(BASE.samples.astype(float) * 1e-200, BASE.labels)
    return HOTClassifier(bank).fit(X.astype(float) * 1e-200, Y)


@pytest.mark.parametrize(
    ("make", "name", "error", "message"),
    [
        (lambda: CentroidClassifier().fit(X, Y), "a.onnx", ParameterError, "CentroidClassifier cannot be exported"),
        (lambda: HOTClassifier(BASE), "a.onnx", NotFittedError, "not fitted"),
        (lambda: fitted("default")[0], "a.pt", ParameterError, r"a\.pt must end in \.onnx, got '\.pt'"),
        (lambda: fitted("default")[0], "a", ParameterError, "must end in .onnx, got ''"),
        (lambda: fitted("default")[0], "old.onnx", InputError, r"old\.onnx exists: overwrite it, or name another"),
        (lambda: fitted("default")[0], "dir.onnx", InputError, "is a folder: name a file"),
        (tiny, "a.onnx", InputError, "beyond the range of float32: rescale"),
        (lambda: HOTClassifier(BASE).fit(X, Y.astype("M8[D]")), "a.onnx", InputError, "classes_ holds datetime64"),
    ],
    ids=["no transform", "not fitted", "suffix", "no suffix", "exists", "folder", "range", "classes"],
)
def test_what_cannot_be_exported_is_refused(make, name, error, message, tmp_path):
    pytest.importorskip("onnx")
    (tmp_path / "old.onnx").write_text("precious")
    (tmp_path / "dir.onnx").mkdir()
    with pytest.raises(error, match=message) as raised:
        export_model(make(), tmp_path / name)
    assert error is NotFittedError or "\n" not in str(raised.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dir.onnx", "old.onnx"]
    assert (tmp_path / "old.onnx").read_text() == "precious"


def test_a_graph_needs_onnx(tmp_path, monkeypatch):
    model, _ = fitted("default")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(RunError, match=r"needs onnx: pip install 'hotshot\[onnx\]'"):
        export_model(model, tmp_path / "one.onnx")
