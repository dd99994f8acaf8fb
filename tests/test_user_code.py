"""Methods of one's own, by name: in every table, beside the others, also in other processes and after a change."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from joblib.externals.loky import get_reusable_executor

from conftest import make_bank
from hotshot import BaseClasses, evaluate, named_method
from hotshot.classifiers.named import resolve_methods
from hotshot.errors import HotshotError, InputError, ParameterError
from hotshot.formatting import did_you_mean

CODE = """
from dataclasses import dataclass

import beside
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.naive_bayes import GaussianNB


@dataclass
class Settings:
    power: float = 1.0


class Mine(ClassifierMixin, BaseEstimator):
    def __init__(self, k=1):
        self.k = k

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.means_ = np.stack([beside.scaled(X[y == c]).mean(axis=0) for c in self.classes_])
        return self

    def predict(self, X):
        return self.classes_[((beside.scaled(X)[:, None] - self.means_) ** 2).sum(axis=2).argmin(axis=1)]


class Banked(Mine):
    def __init__(self, base):
        self.base = base


def from_base(base=None):
    return Mine(2 if base is None else 3)


def needs_more(base, depth):
    return Mine()


def fails():
    raise RuntimeError("no such thing")


bayes = GaussianNB()
"""
X, y = make_bank(8, 20, 5, seed=3)
BASE = BaseClasses.from_samples(*make_bank(6, 10, 5))


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A file with a module beside it, in the working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "my_methods.py").write_text(CODE)
    (tmp_path / "beside.py").write_text("def scaled(X):\n    return 2 * X\n")
    np.savez(tmp_path / "novel.npz", X=X, y=y)
    yield tmp_path
    for name in ("beside", "my_methods"):
        sys.modules.pop(name, None)


SMALL = {"ways": 3, "shots": 1, "queries": 5, "tasks": 20, "n_jobs": 1}


@pytest.mark.parametrize("place", ["my_methods.py", "my_methods"])
def test_a_method_of_user_code_is_evaluated_like_the_others(own, place):
    found = evaluate({"centroid": "centroid", "mine": f"{place}:Mine"}, X, y, **SMALL)
    np.testing.assert_array_equal(found["mine", 1].accuracies, found["centroid", 1].accuracies)
    assert list(resolve_methods(["ridge", f"{place}:Mine"], None)) == ["ridge", "Mine"]


def test_user_code_with_a_parameter_base_gets_the_base_classes(own):
    assert named_method("my_methods.py:Banked", BASE).base is BASE
    assert named_method("my_methods.py:from_base", BASE).k == 3
    assert named_method("my_methods.py:from_base", None).k == 2
    assert type(named_method("my_methods.py:bayes", BASE)).__name__ == "GaussianNB"


def test_a_method_of_user_code_works_in_other_processes(own):
    methods = {"file": "my_methods.py:Mine", "module": "my_methods:Mine"}
    # Those that other tests have started know no folder of this one.
    get_reusable_executor().shutdown()
    alone, together = (evaluate(methods, X, y, **{**SMALL, "tasks": 40, "n_jobs": jobs}) for jobs in (1, 2))
    for name in methods:
        np.testing.assert_array_equal(alone[name, 1].accuracies, together[name, 1].accuracies)


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("my_methods.py:Mien", ParameterError, r"my_methods.py has no 'Mien': .* Did you mean 'Mine'\?"),
        ("my_methods.py:", ParameterError, "method must be package.module:name or file.py:name, got 'my_methods.py:'"),
        ("yours.py:Mine", InputError, "There is no file yours.py: name the Python file that defines the method"),
        ("yours:Mine", ParameterError, "There is no module yours: install it, or run the command in its folder"),
        ("my_methods.py:needs_more", ParameterError, "my_methods.py:needs_more needs depth: name a function without"),
        ("my_methods.py:Banked", ParameterError, "my_methods.py:Banked needs base: pass it"),
        ("my_methods.py:fails", InputError, r"fails to create the method \(RuntimeError: no such thing\)"),
        ("broken.py:Mine", InputError, r"broken.py cannot be imported \(SyntaxError"),
        ("leaves.py:Mine", InputError, r"leaves.py cannot be imported \(SystemExit: 3\)"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence(own, name, error, message):
    (own / "broken.py").write_text("class Mine(:")
    (own / "leaves.py").write_text("raise SystemExit(3)")
    with pytest.raises(error, match=message) as caught:
        resolve_methods([name], None)
    assert isinstance(caught.value, HotshotError)


def test_user_code_works_without_base_classes_and_its_changes_are_noticed(hotshot, own):
    arguments = ["evaluate", "--novel", "novel.npz", "--ways", "3", "--queries", "5", "--tasks", "20", "--jobs", "1"]
    arguments += ["--shots", "1", "--methods", "centroid,mine=my_methods.py:Mine,my_methods.py:Mine"]
    first = hotshot(*arguments)
    assert first.returncode == 0, first.stderr
    assert "\nMine " in first.stdout
    assert "\nmine " in first.stdout
    assert "60 tasks were already in" in hotshot(*arguments).stdout
    for file, old, new in (("my_methods.py", "argmin", "argmax"), ("beside.py", "2 * X", "3 * X")):
        (own / file).write_text((own / file).read_text().replace(old, new))
        sys.modules.pop("beside")
        again = hotshot(*arguments)
        assert again.returncode == 0
        assert "tasks were already in" not in again.stdout
    named = hotshot(*arguments, "--out", "here")
    assert named.returncode == 0
    (own / "my_methods.py").write_text((own / "my_methods.py").read_text().replace("argmax", "argmin"))
    refused = hotshot(*arguments, "--out", "here")
    assert refused.returncode == 2
    assert "holds another request (it differs in methods)" in " ".join(refused.stderr.split())


def test_the_closest_name_is_offered_where_one_is_close():
    assert did_you_mean("bankin77", ["banking77", "omniglot"]) == " Did you mean 'banking77'?"
    assert did_you_mean("birds", ["banking77", "omniglot"]) == ""
