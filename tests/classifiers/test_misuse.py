"""What is used wrongly is said: novel classes that are in the bank already, features of another kind than its own."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hotshot import BaseClasses, CentroidClassifier, FreeLunchClassifier, HOTClassifier, evaluate
from hotshot.bank.embedded import load_bank
from hotshot.errors import FeatureSpaceWarning, HotshotWarning, InputError, ParameterError, SharedClassWarning

BANK = load_bank("banking77")
# Too few samples of each class to choose settings on.
FEW = np.concatenate([np.flatnonzero(BANK.base.labels == c)[:9] for c in range(len(BANK.base.names))])
BASE = BaseClasses.from_samples(
    BANK.base.samples[FEW],
    BANK.base.names[BANK.base.labels[FEW]],
    about={"extractor": "MiniLM", "seen_in_training": False},
)
CLASSES = np.unique(BANK.y_novel)[:5]
SUPPORT = np.concatenate([np.flatnonzero(BANK.y_novel == c)[:2] for c in CLASSES])
X, Y = BANK.X_novel[SUPPORT], BANK.y_novel[SUPPORT]
QUERIES = BANK.X_novel[np.isin(BANK.y_novel, CLASSES)]


def hot(base=BASE):
    return HOTClassifier(base)


def warned(call):
    """The warnings of hotshot in a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [w for w in caught if issubclass(w.category, HotshotWarning)]


# --- class names --------------------------------------------------------------------------------------------


def test_novel_classes_with_names_of_base_classes_are_named():
    names = np.concatenate([BASE.names[:4], ["new"]])
    labels = names[np.searchsorted(CLASSES, Y)]
    (warning,) = warned(lambda: hot().fit(X, labels))
    assert warning.category is SharedClassWarning
    assert warning.filename == __file__
    text = str(warning.message)
    assert text.startswith("4 novel classes have the names of base classes, ")
    assert all(f"'{name}'" in text for name in names[:4])
    assert f"'{names[3]}': leave them out of the bank, or rename them" in text


def test_equal_numbers_are_not_shared_names():
    bank = BaseClasses.from_samples(BASE.samples, BASE.labels)
    assert not warned(lambda: hot(bank).fit(X, np.searchsorted(CLASSES, Y)))
    assert not warned(lambda: hot().fit(X, np.searchsorted(CLASSES, Y)))


CENTROID = CentroidClassifier(BASE, power=1.0)


@pytest.mark.parametrize(
    ("methods", "factor", "is_renamed", "category"),
    [
        ({"hot": hot(), "centroid": CENTROID}, 1, True, SharedClassWarning),
        (make_pipeline(StandardScaler(), hot()), 1, False, FeatureSpaceWarning),
        (CENTROID, 10, False, FeatureSpaceWarning),
        (hot(), 10, False, FeatureSpaceWarning),
    ],
)
def test_an_evaluation_warns_once(methods, factor, is_renamed, category):
    y = np.where((BANK.y_novel == CLASSES[0]) & is_renamed, BASE.names[0], BANK.y_novel)
    (warning,) = warned(lambda: evaluate(methods, factor * BANK.X_novel, y, shots=(1, 5), tasks=20, n_jobs=1))
    assert warning.category is category


# --- feature space ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [hot, FreeLunchClassifier, CentroidClassifier], ids=["hot", "free lunch", "centroid"])
def test_a_scaler_before_a_bank_that_was_not_scaled_warns_in_fit_and_in_prediction(kind):
    model = make_pipeline(StandardScaler(), kind(BASE).set_params(power=1.0))
    for call in (lambda: model.fit(X, Y), lambda: model.predict(QUERIES), lambda: model.predict_proba(QUERIES)):
        found = [w for w in warned(call) if w.category is FeatureSpaceWarning]
        assert len(found) == 1
        assert "transform the bank as well, with base.transform(f)" in str(found[0].message)


def test_the_line_that_is_named_is_the_users():
    model = hot().fit(X, Y)
    for call in (lambda: hot().fit(10 * X, Y), lambda: model.predict(10 * X), lambda: model.decision_function(10 * X)):
        (warning,) = warned(call)
        assert warning.filename == __file__


def test_usual_features_raise_no_warning():
    model = hot()
    assert not warned(lambda: model.fit(X, Y))
    assert not warned(lambda: model.predict(QUERIES))
    assert not warned(lambda: [model.predict(row[None]) for row in QUERIES])
    assert not warned(lambda: HOTClassifier().fit(1000 * X, Y).predict(X))


def test_a_saved_model_knows_the_space_and_the_extractor(tmp_path):
    model = hot().fit(X, Y)
    model.save(tmp_path / "one.model")
    loaded = HOTClassifier.load(tmp_path / "one.model")
    assert loaded.extractor_ == model.extractor_ == "MiniLM"
    assert not warned(lambda: loaded.predict(QUERIES))
    (warning,) = warned(lambda: loaded.predict(10 * QUERIES))
    assert warning.category is FeatureSpaceWarning


# --- the bank is transformed too ----------------------------------------------------------------------------


def test_a_pipeline_with_the_scaler_of_the_bank_is_silent_and_equals_a_bank_made_by_hand():
    scaler = StandardScaler().fit(BASE.samples)
    base = BASE.transform(scaler)
    by_hand = BaseClasses.from_samples(scaler.transform(BASE.samples), BASE.names[BASE.labels])
    model = make_pipeline(FrozenEstimator(scaler), hot(base))
    assert not warned(lambda: model.fit(X, Y).predict(QUERIES))
    expected = hot(by_hand).fit(scaler.transform(X), Y).predict_proba(scaler.transform(QUERIES))
    np.testing.assert_array_equal(model.predict_proba(QUERIES), expected)
    assert base.fingerprint == by_hand.fingerprint
    assert base.about == {**BASE.about, "transform": "StandardScaler"}
    assert base.transform(lambda samples: samples[:, :7]).n_features == 7


@pytest.mark.parametrize(
    ("f", "error", "message"),
    [
        (lambda samples: samples[1:], InputError, r"The result of <lambda> has \d+ rows for \d+ samples: return one"),
        (lambda samples: samples[:, 0], InputError, "The result of <lambda> must be a 2-dimensional"),
        (lambda samples: samples * np.nan, InputError, "The result of <lambda> holds NaN or infinity in"),
        (StandardScaler, ParameterError, "f must be a fitted transformer or a function on arrays, got <class"),
        (3, ParameterError, "f must be a fitted transformer or a function on arrays, got 3"),
    ],
    ids=["rows", "shape", "nan", "class", "number"],
)
def test_what_cannot_be_the_samples_of_a_bank_is_refused(f, error, message):
    with pytest.raises(error, match=message):
        BASE.transform(f)
