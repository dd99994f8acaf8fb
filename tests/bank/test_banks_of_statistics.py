"""Banks without samples predict as the full ones do, or say what to pass instead."""

from __future__ import annotations

import numpy as np
import pytest
from bank_file_examples import HOW, STATISTICS, WIDTH, probabilities, saved, task

from few_shot_problems import plain_space, ragged_bank, transfer_of
from hotshot import CentroidClassifier, HOTClassifier
from hotshot.errors import NoSamplesWarning, ParameterError

NO_SAMPLES_NEEDED = ("mean-cosine", "cosine", "euclidean", "cosine-weighted", "euclidean-weighted", "nearest")


@pytest.mark.parametrize("cost", NO_SAMPLES_NEEDED)
@pytest.mark.parametrize("form", STATISTICS)
def test_a_bank_of_statistics_predicts_as_the_full_bank_does(form, cost, tmp_path):
    bank = ragged_bank()
    bank.prepare(plain_space(n_components=0.98))
    small = saved(bank, tmp_path / "one.bank", samples=False, covariance=form)
    assert small.samples is None
    assert small.n_features == WIDTH
    expected = probabilities(bank, cost=cost, covariance=form)
    np.testing.assert_array_equal(probabilities(small, cost=cost, covariance=form), expected)
    # "auto" takes what there is.
    np.testing.assert_array_equal(probabilities(small, cost=cost), expected)


def test_weights_by_a_classifier_are_in_the_statistics(tmp_path):
    space = {"sample_weights": "classifier", "temperature": 0.3, "n_components": None, "covariance": "diagonal"}
    bank = ragged_bank(spread=1.0)
    bank.prepare(plain_space(**space))
    small = saved(bank, tmp_path / "one.bank", **HOW["statistics"])
    for cost in ("mean-cosine", "cosine-weighted"):
        np.testing.assert_array_equal(*(probabilities(one, cost=cost, **space) for one in (small, bank)))


def test_spaces_that_differ_in_their_covariances_only_become_one(tmp_path):
    bank = ragged_bank()
    for form in ("auto", "dense", "factored", "diagonal"):
        bank.prepare(plain_space(covariance=form))
    small = saved(bank, tmp_path / "one.bank", **HOW["statistics"])
    assert list(small.prepared) == [plain_space(covariance="diagonal")]
    assert small.prepare(plain_space()).covariances.is_diagonal


def test_one_axis_is_not_the_whole_variance_without_samples_either(tmp_path):
    bank = ragged_bank()
    bank.prepare(plain_space(n_components=1))
    small = saved(bank, tmp_path / "one.bank", **HOW["statistics"])
    assert small.prepare(plain_space(n_components=1)).means.shape[1] == 1
    with pytest.raises(ParameterError, match="was saved for"):
        small.prepare(plain_space(n_components=1.0))


def small_bank(tmp_path, **how):
    return saved(ragged_bank(), tmp_path / "small.bank", **{**HOW["statistics"], **how})


NEEDS_SAMPLES = {
    "another space": (
        lambda b: HOTClassifier(b, cost="cosine", n_components=2).fit(*task()[:2]),
        "was saved for power=1.0, .*n_components=0.98.*: use these parameters, or a bank with samples",
    ),
    "another form": (
        lambda b: HOTClassifier(b, cost="cosine", covariance="dense").fit(*task()[:2]),
        "covariance='diagonal': use these parameters",
    ),
    "raw means": (lambda b: b.means, "a mean of raw features needs: save it with samples=True"),
    "a centre": (lambda b: b.centre(0.5), "the centre of features to the power 0.5 needs"),
}  # fmt: skip


@pytest.mark.parametrize("case", NEEDS_SAMPLES)
def test_what_needs_samples_says_what_to_pass_instead(case, tmp_path):
    act, message = NEEDS_SAMPLES[case]
    with pytest.raises(ParameterError, match=message) as error:
        act(small_bank(tmp_path))
    assert "\n" not in str(error.value)


def test_a_cost_that_needs_samples_is_replaced_with_a_warning(tmp_path):
    small = small_bank(tmp_path, covariance="low-rank")
    with pytest.warns(NoSamplesWarning, match="which cost='hierarchical' needs: cost='mean-cosine' is used instead"):
        answers = probabilities(small)
    np.testing.assert_array_equal(answers, probabilities(small, cost="mean-cosine"))


def test_a_cost_below_the_estimators_needs_its_samples(tmp_path):
    base = small_bank(tmp_path).prepare(plain_space(n_components=0.98))
    with pytest.raises(ParameterError, match="pass cost='mean-cosine', or a bank with samples"):
        transfer_of(base, base.means[None, :2])


def test_the_centre_is_kept_for_classifiers_that_need_no_more(tmp_path):
    X, y, queries = task()
    models = [CentroidClassifier(b).fit(X, y) for b in (ragged_bank(), small_bank(tmp_path))]
    np.testing.assert_array_equal(*(model.predict_proba(queries) for model in models))
