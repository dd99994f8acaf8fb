"""A run folder accepts one method only: whatever may give other numbers is told apart, or refused."""

from __future__ import annotations

import functools
import operator
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.special
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from conftest import make_bank
from hotshot import evaluate
from hotshot.errors import ParameterError, RunError
from hotshot.evaluation.journal import estimator_to_json

X, Y = make_bank(5, 12, 6, seed=1, spread=0.9)
FACTOR = 2


def few(method, **request):
    return evaluate(
        {"m": method}, X, Y, **{"ways": 3, "shots": 1, "queries": 4, "tasks": 3, "n_jobs": 1, **request}
    ).results[0]


def after(function):
    return make_pipeline(FunctionTransformer(function), KNeighborsClassifier(1))


def times(factor):
    return lambda x: x * factor


def by_global(x):
    return x * FACTOR


class Times:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return x * self.factor

    def shifted(self, x):
        return x + self.factor


def two_versions_of_a_class():
    def first(self, X):
        return np.full(len(X), self.classes_[0])

    def last(self, X):
        return np.full(len(X), self.classes_[-1])

    return [type("Own", (KNeighborsClassifier,), {"predict": predict})() for predict in (first, last)]


PAIRS = {
    "constants": (lambda x: x * 2, lambda x: x * 3),
    "operators": (lambda x: x * 2, lambda x: x + 2),
    "methods called": (lambda x: x.round(), lambda x: x.copy()),
    "closures": (times(2), times(3)),
    "defaults": (lambda x, k=1: x * k, lambda x, k=2: x * k),
    "keyword defaults": (lambda x, *, k=1: x * k, lambda x, *, k=2: x * k),
    "nested code": (lambda x: (lambda z: z + 1)(x), lambda x: (lambda z: z + 2)(x)),
    "partials": (functools.partial(np.power, 2), functools.partial(np.power, 3)),
    "functions in partials": (functools.partial(times(2)), functools.partial(times(3))),
    "callable objects": (Times(2), Times(3)),
    "bound methods": (Times(2).shifted, Times(3).shifted),
    "methods of one object": (Times(2), Times(2).shifted),
    "ufuncs": (np.sqrt, np.exp),
    "ufuncs of SciPy": (scipy.special.expit, scipy.special.erf),
    "functions of NumPy": (np.sort, np.cumsum),
    "objects of the library": (operator.itemgetter(0), operator.itemgetter(1)),
    "vectorised": (np.vectorize(lambda x: x + 1), np.vectorize(lambda x: x + 2)),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_functions_that_differ_are_told_apart(pair):
    one, other = map(after, pair)
    assert estimator_to_json(one) == estimator_to_json(one)
    assert estimator_to_json(one) != estimator_to_json(other)


def test_a_folder_refuses_the_same_pipeline_with_another_lambda(tmp_path):
    few(after(lambda x: x * 1.0), out=tmp_path)
    with pytest.raises(RunError, match="methods"):
        few(after(lambda x: x * 0.0), out=tmp_path)


def test_a_folder_accepts_a_lambda_that_is_the_same(tmp_path):
    few(after(times(2)), out=tmp_path)
    few(after(times(2)), out=tmp_path)


def test_a_global_that_a_function_reads_belongs_to_it(monkeypatch):
    before = estimator_to_json(after(by_global))
    monkeypatch.setitem(globals(), "FACTOR", 3)
    assert estimator_to_json(after(by_global)) != before


def test_the_code_of_an_own_class_belongs_to_the_request():
    one, other = two_versions_of_a_class()
    assert estimator_to_json(one) != estimator_to_json(other)


def test_what_an_estimator_has_learned_does_not_count_but_for_a_frozen_one():
    fresh, fitted, other = StandardScaler(), StandardScaler().fit(X), StandardScaler().fit(X + 1)
    assert estimator_to_json(make_pipeline(fresh)) == estimator_to_json(make_pipeline(fitted))
    frozen = [make_pipeline(FrozenEstimator(own), LogisticRegression()) for own in (fitted, other)]
    assert estimator_to_json(frozen[0]) != estimator_to_json(frozen[1])


@pytest.mark.parametrize(
    "nameless", [np.frompyfunc(lambda x: x, 1, 1), threading.Lock().acquire, functools.lru_cache(times(2))]
)
def test_what_cannot_be_told_apart_is_refused_with_a_run_folder_only(tmp_path, nameless):
    method = make_pipeline(FunctionTransformer(lambda x, _=nameless: x), KNeighborsClassifier(1))
    with pytest.raises(ParameterError, match=r"cannot be identified after a restart .*: leave out the run"):
        few(method, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    few(method)


def test_descriptions_are_the_same_in_every_process(capsys):
    code = (
        "from sklearn.preprocessing import FunctionTransformer as F\n"
        "from hotshot.evaluation.journal import estimator_to_json\n"
        "known = {'a', 'b', 'c'}\n"
        "print(estimator_to_json(F(lambda x: [z for z in x if z in {'d', 'e', 'f'} or z in known])))"
    )
    exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
    elsewhere = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
    assert elsewhere == capsys.readouterr().out
