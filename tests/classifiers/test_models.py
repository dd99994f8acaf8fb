"""Fitted classifiers as folders: they answer as before; what is torn or hostile is refused in one sentence."""

from __future__ import annotations

import json
import pickle
import shutil

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from conftest import make_bank
from few_shot_problems import ragged_bank
from hotshot import BaseClasses, CosineClassifier, FreeLunchClassifier, HOTClassifier, MatchingClassifier, parameter_set
from hotshot.classifiers import METHOD_NAMES, DiscriminantClassifier, named_method, saving
from hotshot.classifiers.saving import UnloadedBase
from hotshot.errors import InputError, ParameterError
from hotshot.files.objects import write_sealed
from hotshot.files.tensors import map_tensors, write_tensors
from spoilt_folders import DELETED, changed_fields, check_sentence, cut_short

WIDTH = 6
BASE = ragged_bank(width=WIDTH)
# Integers would be labels of the tasks too.
NAMED = BaseClasses.from_samples(BASE.samples, BASE.labels + 100)


def task(n_classes=3, shots=3):
    """Support, labels and queries."""
    X, y = make_bank(n_classes, 9, WIDTH, seed=9, spread=0.8)
    support = np.concatenate([np.flatnonzero(y == c)[:shots] for c in range(n_classes)])
    return X[support], y[support], X


ESTIMATORS = {
    **{name: named_method(name, BASE) for name in METHOD_NAMES if name not in ("logistic-raw", "ridge", "svm")},
    "free-lunch": FreeLunchClassifier(BASE, n_generated=30, random_state=0),
    "beside base classes": HOTClassifier(NAMED, include_base=True),
    "lda beside base classes": DiscriminantClassifier(NAMED, include_base=True),
    "per sample": HOTClassifier(BASE, per="sample", head="sampled", random_state=0, alpha=0.1),
    "authors": HOTClassifier(BASE, **{**parameter_set("authors", power=1.0), "n_generated": 30}, random_state=3),
    "mean cosine": HOTClassifier(BASE, cost="mean-cosine", n_retrieved=2, n_components=3),
    "nearest": HOTClassifier(BASE, cost="nearest", covariance="factored"),
    "matching of squares": MatchingClassifier(power=2.0),
    "free lunch without base": FreeLunchClassifier(),
    "discriminant without base": DiscriminantClassifier(),
}


def check_same(model, loaded, queries):
    """Equal answers to the bit, and equal attributes."""
    assert type(loaded) is type(model)
    methods = ["predict", "predict_proba", "decision_function"]
    if model.base is not None:
        methods += [name for name in ("outlier_score", "predict_proba_batch") if hasattr(model, name)]
    for method in methods:
        expected, got = getattr(model, method)(queries), getattr(loaded, method)(queries)
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)
    if hasattr(model, "explain"):
        assert loaded.explain(queries) == model.explain(queries)
    mine = {name for name in vars(model) if name.endswith("_")}
    assert {name for name in vars(loaded) if name.endswith("_")} == mine
    for name in mine:
        expected, got = getattr(model, name), getattr(loaded, name)
        assert type(got) is type(expected)
        if isinstance(expected, np.ndarray):
            assert got.dtype == expected.dtype or (got.dtype.kind == "U" and not got.size)
            np.testing.assert_array_equal(got, expected)
    without_base = [{k: v for k, v in m.get_params().items() if k != "base"} for m in (model, loaded)]
    assert without_base[0] == without_base[1]


def saved(model, path, **how):
    model.save(path)
    return type(model).load(path, **how)


# --- round trips --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "n_classes"), [(np.float32, 2), (np.float64, 3)])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_loaded_classifier_answers_as_the_saved_one(name, dtype, n_classes, tmp_path):
    X, y, queries = task(n_classes)
    model = clone(ESTIMATORS[name]).fit(X.astype(dtype), y)
    loaded = saved(model, tmp_path / "one.model")
    check_same(model, loaded, queries.astype(dtype))
    assert sorted(p.name for p in (tmp_path / "one.model").iterdir()) == ["model.json", "model.safetensors"]
    loaded.save(tmp_path / "two.model")
    one, two = ([p.read_bytes() for p in sorted((tmp_path / name).iterdir())] for name in ("one.model", "two.model"))
    assert one == two
    # Its folder may go.
    shutil.rmtree(tmp_path / "one.model")
    for again in (loaded, pickle.loads(pickle.dumps(model)), pickle.loads(pickle.dumps(loaded))):
        check_same(model, again, queries.astype(dtype))


LABELS = {
    "text": np.array(["wren", "auk", "é 日本"]),
    "objects": np.array(["wren", "auk", "é 日本"], dtype=object),
    "undecodable text": np.array(["wren", "caf\udce9", "auk"]),
    "integers": np.array([7, -2, 2**40]),
    "bytes of integers": np.array([7, 2, 200], dtype=np.uint8),
    "floats": np.array([1.0, -2.0, 3.0]),
    "truths": np.array([True, False, True]),
}


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("name", ["hot", "matching"])
def test_labels_of_every_type_come_back(name, kind, tmp_path):
    X, y, queries = task()
    model = clone(ESTIMATORS[name]).fit(X, LABELS[kind][y])
    check_same(model, saved(model, tmp_path / "one.model"), queries)


def test_names_of_features_come_back(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y, queries = task()
    names = [f"feature {i}" for i in range(WIDTH)]
    model = HOTClassifier(BASE).fit(pandas.DataFrame(X, columns=names), y)
    loaded = saved(model, tmp_path / "one.model")
    assert loaded.feature_names_in_.tolist() == names
    assert loaded.feature_names_in_.dtype == object
    table = pandas.DataFrame(queries, columns=names)
    np.testing.assert_array_equal(loaded.predict_proba(table), model.predict_proba(table))
    with pytest.raises(InputError, match="feature names"):
        loaded.predict(table[names[::-1]])


@pytest.mark.parametrize(("power", "scale"), [(0.0, 1), (0.5, 1), (-1.0, 1), (3.0, 1), (1.0, 1e-150), (1.0, 1e150)])
def test_powers_and_features_of_any_magnitude_are_loaded(power, scale, tmp_path):
    X, y, queries = task()
    X, queries, samples = (scale * (np.abs(x) + 0.01) for x in (X, queries, BASE.samples))
    bank = BaseClasses.from_samples(samples, BASE.labels)
    for i, model in enumerate((HOTClassifier(bank, power=power), CosineClassifier(power=power))):
        check_same(model.fit(X, y), saved(model, tmp_path / f"{i}.model"), queries)


# --- with and without the base classes ----------------------------------------------------------------------

WITH_BASE = [name for name in ESTIMATORS if getattr(ESTIMATORS[name], "base", None) is not None]


@pytest.mark.parametrize("name", WITH_BASE)
def test_with_its_base_classes_it_is_fitted_again(name, tmp_path):
    X, y, queries = task()
    model = clone(ESTIMATORS[name]).fit(X, y)
    bank = model.base
    same = BaseClasses.from_samples(bank.samples, bank.names[bank.labels])
    loaded = saved(model, tmp_path / "one.model", base=same)
    assert isinstance(loaded.base, BaseClasses)
    check_same(model, loaded, queries)
    check_same(model, clone(loaded).fit(X, y), queries)
    other_X, other_y, _ = task(2, 1)
    check_same(clone(ESTIMATORS[name]).fit(other_X, other_y), loaded.fit(other_X, other_y), queries)


@pytest.mark.parametrize("name", WITH_BASE)
def test_without_its_base_classes_it_is_not_fitted_and_says_what_to_pass(name, tmp_path):
    X, y, queries = task()
    loaded = saved(clone(ESTIMATORS[name]).fit(X, y), tmp_path / "one.model")
    assert isinstance(loaded.base, UnloadedBase)
    expected = loaded.predict_proba(queries)
    for unfitted in (loaded, clone(loaded), pickle.loads(pickle.dumps(loaded))):
        with pytest.raises(ParameterError, match=r"loaded without its base classes .*: pass base to load"):
            unfitted.fit(X, y)
    np.testing.assert_array_equal(loaded.predict_proba(queries), expected)
    assert "UnloadedBase" in repr(loaded)
    # Whoever has the bank after all may hand it over.
    loaded.set_params(base=ESTIMATORS[name].base).fit(X, y)
    np.testing.assert_array_equal(loaded.predict_proba(queries), expected)


@pytest.mark.parametrize(
    ("name", "base", "kind", "message"),
    [
        ("hot", ragged_bank(seed=1), InputError, "fitted with other base classes: load it without base, or"),
        ("hot", "birds.bank", ParameterError, "base must be a BaseClasses or None, got str"),
        ("logistic", BASE, InputError, "fitted without base classes: load it without base"),
    ],
)
def test_other_base_classes_are_refused(name, base, kind, message, tmp_path):
    X, y, _ = task()
    clone(ESTIMATORS[name]).fit(X, y).save(tmp_path / "one.model")
    with pytest.raises(kind, match=message) as error:
        HOTClassifier.load(tmp_path / "one.model", base=base)
    assert "\n" not in str(error.value)


# --- what cannot be saved, and overwriting ------------------------------------------------------------------


@pytest.mark.parametrize("state", [np.random.RandomState(0), np.random.mtrand._rand])
def test_a_random_state_that_has_moved_on_cannot_be_saved(state, tmp_path):
    X, y, _ = task()
    model = FreeLunchClassifier(BASE, random_state=state, n_generated=30).fit(X, y)
    with pytest.raises(ParameterError, match=r"random_state is .*, which cannot be saved: use") as error:
        model.save(tmp_path / "one.model")
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("what", ["write_tensors", "write_sealed"])
def test_a_model_is_replaced_as_a_whole_if_asked_and_no_other_folder_ever(what, error, tmp_path, monkeypatch):
    X, y, queries = task()
    path = tmp_path / "one.model"
    with pytest.raises(NotFittedError):
        HOTClassifier(BASE).save(path)
    with pytest.raises(InputError, match=r"is not a model, it has no model\.json: write one with save"):
        HOTClassifier.load(path)
    first, second = HOTClassifier(BASE).fit(X, y), HOTClassifier(BASE, C=0.1).fit(X, y)
    first.save(path)
    with pytest.raises(InputError, match="holds a 'HOTClassifier'"):
        CosineClassifier.load(path)
    with pytest.raises(InputError, match="pass overwrite=True"):
        second.save(path)

    def failing(*_):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(saving, what, failing)
        with pytest.raises((InputError, KeyboardInterrupt)):
            second.save(path, overwrite=True)
    assert list(tmp_path.iterdir()) == [path]
    check_same(first, HOTClassifier.load(path), queries)
    second.save(path, overwrite=True)
    check_same(second, HOTClassifier.load(path), queries)
    BASE.save(tmp_path / "one.bank")
    with pytest.raises(InputError, match=r"has no model\.json: choose another name"):
        first.save(tmp_path / "one.bank", overwrite=True)
    assert BaseClasses.load(tmp_path / "one.bank").fingerprint == BASE.fingerprint


# --- torn and hostile ---------------------------------------------------------------------------------------

SPOILT = {
    "hot": ESTIMATORS["hot"],
    "without base": HOTClassifier(),
    "centroid": ESTIMATORS["centroid-cl2n"],
    "matching": ESTIMATORS["matching"],
    "two covariances": ESTIMATORS["plda"],
}


@pytest.fixture(scope="module")
def sound_models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    X, y, _ = task(shots=2)
    for name, estimator in SPOILT.items():
        clone(estimator).fit(X, np.array(["auk", "wren", "owl"])[y]).save(folder / name)
    return folder


@pytest.fixture(params=SPOILT)
def spoilt(request, sound_models, tmp_path):
    """A class, and a fresh copy of a sound model of it to spoil."""
    shutil.copytree(sound_models / request.param, tmp_path / "one.model")
    return type(SPOILT[request.param]), tmp_path / "one.model"


def check_refused(kind, folder, message=None):
    with pytest.raises(InputError, match=message) as error:
        kind.load(folder)
    check_sentence(error.value)


def accepted(kind, folder):
    """False where it is refused with one sentence; else it must predict and explain, with numbers."""
    try:
        model = kind.load(folder)
    except InputError as error:
        check_sentence(error)
        return False
    queries = np.abs(task()[2])
    assert np.isfinite(model.predict_proba(queries)).all()
    assert model.predict(queries).shape == (len(queries),)
    if hasattr(model, "explain"):
        assert str(model.explain(queries))
    return True


def test_every_file_cut_short_anywhere_is_refused(spoilt):
    kind, folder = spoilt
    for _ in cut_short(folder):
        check_refused(kind, folder)
    assert accepted(kind, folder)


def sealed(folder, content):
    """Write the description of a model with digests that fit, as whoever wants to harm would."""
    rest = {key: value for key, value in content.items() if key not in ("files", "digest")}
    write_sealed(folder, "model.json", rest, ["model.safetensors"])


OTHERS = [
    None, True, -1, 2.5, float("nan"), "text", [], {}, {"tensor": "coef_"}, {"type": "FeatureTransform"},
    {"text": ["a", "b", "c"], "objects": False},
]  # fmt: skip
ESSENTIAL = {"class", "coef_", "intercept_", "classes_", "transform_", "n_features_in_"}


def test_every_field_deleted_or_retyped_is_refused_or_harmless(spoilt):
    kind, folder = spoilt
    content = json.loads((folder / "model.json").read_text())
    content = {key: value for key, value in content.items() if key not in ("files", "digest")}
    for path, other, changed in changed_fields(content, OTHERS):
        sealed(folder, changed)
        if not accepted(kind, folder):
            continue
        # Another power, scale or offset, or other labels, make another model, which is as sound.
        labels = "classes_" in path and isinstance(other, (str, dict))
        another = other is not DELETED and (labels or path[-1] in ("power", "offset", "scale", "unit", "objects"))
        assert another or not ESSENTIAL & set(path), f"{path} {other!r} was accepted"
        # No parameter falls back to its default.
        assert not (path[0] == "parameters" and other is DELETED), path


def test_every_tensor_of_another_shape_or_with_bad_numbers_is_refused_or_harmless(spoilt):
    kind, folder = spoilt
    path = folder / "model.safetensors"
    content, tensors = json.loads((folder / "model.json").read_text()), map_tensors(path).tensors
    tensors = {name: np.array(x) for name, x in tensors.items()}

    def with_tensor(name, value):
        rest = {key: x for key, x in tensors.items() if key != name}
        write_tensors(path, rest if value is None else {**rest, name: value}, {})
        sealed(folder, content)

    for name, x in tensors.items():
        if x.dtype.kind == "f" and x.size:
            with_tensor(name, np.where(np.arange(x.size).reshape(x.shape) == x.size - 1, np.nan, x))
            check_refused(kind, folder, "NaN or infinity")
        for other in (x[:-1], x[None], np.concatenate([x, x]), x.reshape(-1)[:0]):
            with_tensor(name, other)
            if accepted(kind, folder):
                assert other.size == x.size or name.split(".")[0] not in ESSENTIAL
        with_tensor(name, None)
        check_refused(kind, folder)


EDITS = {
    **{f"names {names!r}": (("fitted", "feature_names_in_", {"text": names, "objects": True}), None)
       for names in (["a"], ["a"] * 7, [], 6)},
    **{f"width {width}": (("fitted", "n_features_in_", width), None) for width in (10**9, 10**18, 2**63)},
    **{f"version {version!r}": (("version", version), "but this hotshot reads version 3")
       for version in (0, 2, "3", None)},
    **{f"attribute {name}": (("fitted", name, value), None)
       for name, value in (("predict", "x"), ("_logits", None), ("__class__", None), ("__dict__", {}), ("base", None))},
    **{f"parameter {name}": (("parameters", name, value), "is not a valid model")
       for name, value in (("alpha", -1), ("cost", "x"), ("head", None), ("n_generated", 2.5))},
    **{name: (("fitted", name, "text", 0, "gull"), "labels do not match classes_")
       for name in ("support_labels_", "target_labels_")},
    "extractor": (("fitted", "extractor_", ["a"]), "extractor_ is not text"),
    "feature space": (("fitted", "feature_space_", "x"), "is not a valid model"),
}  # fmt: skip


@pytest.mark.parametrize(("edit", "message"), EDITS.values(), ids=EDITS)
def test_a_model_that_is_changed_is_refused(edit, message, sound_models, tmp_path):
    shutil.copytree(sound_models / "hot", tmp_path / "one.model")
    content = json.loads((tmp_path / "one.model" / "model.json").read_text())
    *path, key, value = edit
    place = content
    for name in path:
        place = place[name]
    place[key] = value
    sealed(tmp_path / "one.model", content)
    check_refused(HOTClassifier, tmp_path / "one.model", message)
