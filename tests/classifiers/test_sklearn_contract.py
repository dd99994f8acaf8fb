"""Every estimator keeps scikit-learn's contract: check_estimator passes, with no expected failure."""

from __future__ import annotations

import pickle
from functools import cache

import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import hotshot
from conftest import make_bank
from hotshot import BaseClasses, HOTClassifier, classifiers

KINDS = [kind for name, kind in sorted(vars(classifiers).items()) if name.endswith("Classifier")]


@cache
def bank(width):
    """Classes in so many dimensions; what a bank keeps is there before the check that a fit changes no parameter."""
    base = BaseClasses.from_samples(*make_bank(8, 12, width, seed=1))
    assert base.feature_space is None
    base.centre(1.0)
    base.power("auto")
    return base


def with_banks(kind):
    """An estimator that fits with a bank of the width of its samples, which the checks vary."""

    def learn(self, X, y):
        given, self.base = self.base, bank(X.shape[1])
        kind._learn(self, X, y)
        self.base = given

    name = f"Banked{kind.__name__}"
    # Pickles find it by its name.
    globals()[name] = type(name, (kind,), {"_learn": learn, "__module__": __name__})
    return globals()[name](bank(2))


ESTIMATORS = [
    *(kind() for kind in KINDS),
    hotshot.CentroidClassifier(normalize=None),
    *(with_banks(kind) for kind in KINDS if "base" in kind().get_params()),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
@pytest.mark.filterwarnings("default", "ignore::hotshot.errors.ScaleWarning")
def test_check_estimator_finds_no_failure(estimator):
    results = check_estimator(estimator, on_fail=None, on_skip=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] not in ("passed", "skipped")}
    assert not failed
    # One check needs an environment variable of SciPy's; no other may be skipped.
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= {"check_array_api_input"}


def test_the_repr_without_base_names_logistic_regression():
    assert repr(HOTClassifier(C=2.0)) == "HOTClassifier(C=2.0)  # no base classes: plain logistic regression"
    assert eval(repr(HOTClassifier(C=2.0))).C == 2.0
    assert repr(make_pipeline(HOTClassifier())) == "Pipeline(steps=[('hotclassifier', HOTClassifier())])"


def test_a_bank_is_shared_by_clones_and_pickled_without_what_can_be_prepared_again():
    X, y = make_bank(3, 6, seed=2)
    model = HOTClassifier(BaseClasses.from_samples(*make_bank(seed=1)))
    assert "#" not in repr(model)
    search = GridSearchCV(model, {"mix": [0.3, 0.7], "head": ["bound", "sampled"]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.9
    assert search.best_estimator_.base is clone(model).base is model.base
    assert model.base.prepared
    assert not pickle.loads(pickle.dumps(model)).base.prepared
