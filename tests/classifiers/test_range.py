"""Numbers beyond what their dtype holds become one sentence, never a NaN, and a fit that has not converged says so."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from conftest import make_bank
from hotshot import BaseClasses, FreeLunchClassifier, HOTClassifier, evaluate
from hotshot.classifiers import CentroidClassifier
from hotshot.errors import HotshotError, InputError, ParameterError

pytestmark = pytest.mark.filterwarnings("error", "ignore::hotshot.errors.ScaleWarning")
ANSWERS = ("predict", "predict_proba", "decision_function", "explain")
S, Y = make_bank(3, 4, 8, seed=1)
# A bank of single precision at a scale, and an entry that is finite as it comes and not in the space of that bank.
TOO_LARGE = {"beyond float32": (1.0, 1e39), "beyond it by the scale of the bank": (1e-30, 1e10)}


def bank(scale=1.0, dtype=np.float32):
    X, y = make_bank(6, 20, 8)
    return BaseClasses.from_samples((X * scale).astype(dtype), y)


def with_entry(X, entry):
    changed = X.copy()
    changed[2, 5] = entry
    return changed


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize(("scale", "entry"), TOO_LARGE.values(), ids=TOO_LARGE)
def test_a_sample_out_of_range_is_named(scale, entry, answer):
    model = HOTClassifier(bank(scale)).fit(S * scale, Y)
    with pytest.raises(InputError, match="row 2, column 5"):
        getattr(model, answer)(with_entry(S * scale, entry))
    with pytest.raises(InputError, match="row 2, column 5"):
        model.fit(with_entry(S * scale, entry), Y)


@pytest.mark.parametrize("answer", ANSWERS)
def test_logits_out_of_range_name_the_sample(answer):
    model = FreeLunchClassifier(bank(), random_state=0).fit(S, Y)
    with pytest.raises(InputError, match=r"no finite logits in row 2, .* column 5"):
        getattr(model, answer)(with_entry(S, 3e38))


def test_a_baseline_names_the_sample_too():
    with pytest.raises(InputError, match=r"row 2, .* column 5"):
        CentroidClassifier(normalize=None).fit(S, Y).predict(with_entry(S, 1e200))
    with pytest.raises(InputError, match=r"row 2, .* column 5"):
        CentroidClassifier(normalize=None).fit(with_entry(S, 1e200), Y)


@pytest.mark.parametrize("make", [HOTClassifier, lambda base: CentroidClassifier(normalize=None)])
def test_evaluate_names_the_row_before_the_run_starts(make):
    X, y = make_bank(4, 30, 8, seed=2)
    X[77, 3] = 1e200
    seen = []
    with pytest.raises(InputError, match=r"^Method 'm': .*row 77, .*column 3"):
        evaluate(
            {"m": make(bank())}, X, y, ways=3, shots=1, queries=2, tasks=40, n_jobs=1, watch=lambda *x: seen.append(x)
        )
    assert not seen


BASES_OUT_OF_RANGE = {
    "offset": (1.0, np.float32, {"power_offset": 1e300}, "X_base leaves the range of float32 in column"),
    "power": (1.0, np.float64, {"power": 2000.0, "normalize": None}, "X_base leaves the range of float64 in column"),
    "scale": (1e300, np.float64, {"normalize": None}, "X_base has variances beyond the range"),
    "scale in single precision": (1e30, np.float32, {"normalize": None}, "X_base has variances beyond the range"),
    "all axes": (1e300, np.float64, {"normalize": None, "n_components": None}, "X_base has variances beyond"),
}


@pytest.mark.parametrize("case", BASES_OUT_OF_RANGE.values(), ids=BASES_OUT_OF_RANGE)
def test_a_bank_that_leaves_the_range_is_one_sentence(case):
    scale, dtype, parameters, sentence = case
    with pytest.raises(InputError, match=sentence):
        HOTClassifier(bank(scale, dtype), **parameters).fit((S * scale).astype(dtype), Y)


@pytest.mark.parametrize("head", ["bound", "sampled"])
@pytest.mark.parametrize("parameters", [{"support_weight": 1e300}, {"C": 1e-300}, {"C": 1e-310}], ids=str)
def test_parameters_out_of_range_are_the_cause_that_is_named(head, parameters):
    (name, value), *_ = parameters.items()
    named = re.escape(f"{name}={value:g}")
    with pytest.raises(ParameterError, match=f"leaves the range of float32 with .*{named}"):
        HOTClassifier(bank(), head=head, random_state=0, **parameters).fit(S.astype(np.float32), Y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("parameter", ["support_weight", "C", "alpha", "power_offset", "epsilon", "temperature"])
@pytest.mark.parametrize("value", [1e-310, 1e-38, 1e38, 1e300])
def test_extreme_parameters_give_finite_numbers_or_one_sentence(dtype, parameter, value):
    model = HOTClassifier(bank(dtype=dtype), sample_weights="classifier", **{parameter: value})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            probabilities = model.fit(S.astype(dtype), Y).predict_proba(S)
        except HotshotError:
            return
        assert np.isfinite(probabilities).all()


@pytest.mark.parametrize("C", [1e8, 1e12])
def test_a_weak_penalty_gives_the_same_for_any_order_of_the_labels_or_warns(C):
    y = np.arange(5)
    order = np.array([3, 1, 4, 0, 2])
    for seed in range(2):
        novel, labels = make_bank(5, 6, 16, seed=seed + 10, spread=0.5)
        X, y_base = make_bank(10, 30, 16, seed=seed, spread=0.3)
        base = BaseClasses.from_samples(X.astype(np.float32), y_base)
        support, found, converged = novel[::6].astype(np.float32), [], []
        assert (labels[::6] == y).all()
        for own in (y, order):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model = HOTClassifier(base, C=C).fit(support, own)
            assert model.converged_ == (not any(w.category is ConvergenceWarning for w in caught))
            converged.append(model.converged_)
            found.append(model.predict_proba(novel)[:, own])
        assert not all(converged) or np.abs(found[0] - found[1]).max() < 0.02


def test_plain_logistic_regression_reports_whether_it_converged():
    assert HOTClassifier(None).fit(S, Y).converged_
    with pytest.warns(ConvergenceWarning):
        assert not HOTClassifier(None).fit(S * 1e200, Y).converged_
