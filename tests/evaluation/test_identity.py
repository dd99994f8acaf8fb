"""A run folder accepts one method only: whatever may give other numbers is told apart, or refused."""

from __future__ import annotations

import functools
import importlib.util
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
from few_shot_problems import ragged_bank
from hotshot import HOTClassifier, evaluate, named_method
from hotshot.errors import ParameterError
from hotshot.evaluation.journal import estimator_to_json

X, Y = make_bank(5, 12, 6, seed=1, spread=0.9)


def few(method, **request):
    return evaluate({"m": method}, X, Y, ways=3, shots=1, queries=4, tasks=3, n_jobs=1, **request).results[0]


def after(function):
    return make_pipeline(FunctionTransformer(function), KNeighborsClassifier(1))


def double(x):
    return x * 2


def triple(x):
    return x * 3


class Times:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return x * self.factor

    def shifted(self, x):
        return x + self.factor


PAIRS = {
    "functions": (double, triple),
    "functions in partials": (functools.partial(double), functools.partial(triple)),
    "callable objects": (Times(2), Times(3)),
    "bound methods": (Times(2).shifted, Times(3).shifted),
    "methods of one object": (Times(2), Times(2).shifted),
    "ufuncs of SciPy": (scipy.special.expit, scipy.special.erf),
    "objects of the library": (operator.itemgetter(0), operator.itemgetter(1)),
    "vectorised": (np.vectorize(double), np.vectorize(triple)),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_functions_that_differ_are_told_apart(pair):
    one, other = map(after, pair)
    assert estimator_to_json(one) == estimator_to_json(one)
    assert estimator_to_json(one) != estimator_to_json(other)


def test_a_bank_within_a_pipeline_belongs_to_the_request():
    one, same, other = (
        estimator_to_json(make_pipeline(StandardScaler(), HOTClassifier(ragged_bank(seed=seed)))) for seed in (0, 0, 9)
    )
    assert one == same != other


METHOD = """
from sklearn.neighbors import KNeighborsClassifier

class Base(KNeighborsClassifier):
    pass

class Mine(Base):
    factor = 2
"""


@pytest.mark.parametrize("by_name", [False, True], ids=["imported", "file.py:name"])
def test_the_text_of_a_file_belongs_to_its_classes(tmp_path, monkeypatch, by_name):
    descriptions = []
    for text in (METHOD, METHOD, METHOD.replace("2", "3")):
        (tmp_path / "mine.py").write_text(text + "\n    def shifted(self):\n        pass\n")
        spec = importlib.util.spec_from_file_location("mine", tmp_path / "mine.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "mine", module)
        exec(compile((tmp_path / "mine.py").read_text(), "mine.py", "exec"), vars(module))
        method = named_method(f"{tmp_path / 'mine.py'}:Mine", None) if by_name else module.Mine()
        descriptions.append(estimator_to_json(method))
    assert descriptions[0] == descriptions[1] != descriptions[2]


def test_what_an_estimator_has_learned_does_not_count_but_for_a_frozen_one():
    fresh, fitted, other = StandardScaler(), StandardScaler().fit(X), StandardScaler().fit(X + 1)
    assert estimator_to_json(make_pipeline(fresh)) == estimator_to_json(make_pipeline(fitted))
    frozen = [make_pipeline(FrozenEstimator(own), LogisticRegression()) for own in (fitted, other)]
    assert estimator_to_json(frozen[0]) != estimator_to_json(frozen[1])


def unchanged(x, it):
    return x


def local(x):
    def inner(x):
        return x

    return inner


@pytest.mark.parametrize(
    "nameless",
    [
        lambda x: x,
        local(0),
        functools.partial(local(0)),
        np.frompyfunc(double, 1, 1),
        functools.lru_cache(double),
        threading.Lock().acquire,
        type("Own", (Times,), {"shifted": Times.shifted})(2),
    ],
)
def test_what_cannot_be_told_apart_is_refused_with_a_run_folder_only(tmp_path, nameless):
    method = make_pipeline(FunctionTransformer(unchanged, kw_args={"it": nameless}), KNeighborsClassifier(1))
    with pytest.raises(ParameterError, match=r"cannot be identified after a restart .*: leave out the run folder, or"):
        few(method, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    assert few(method).accuracies.shape == (3,)


def test_descriptions_are_the_same_in_every_process(tmp_path):
    (tmp_path / "script.py").write_text(
        "from functools import partial\n"
        "from sklearn.preprocessing import FunctionTransformer\n"
        "from hotshot.evaluation.journal import estimator_to_json\n"
        "def keep(x, known): return [z for z in x if z in known]\n"
        "print(estimator_to_json(FunctionTransformer(partial(keep, known={'a', 'b', 'c', 'd'}))))"
    )
    one, other = (
        subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, check=True) for _ in range(2)
    )
    assert one.stdout == other.stdout
