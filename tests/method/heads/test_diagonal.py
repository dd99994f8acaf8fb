"""Diagonal covariances, alone and next to old classes: the objective is that of others, and its gradient is right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from few_shot_problems import diagonal_problem
from hotshot.bank.covariances import diagonal
from hotshot.method.heads.problem import Diagonals, Mixtures


@given(seed=st.integers(0, 2**31), n_old=st.sampled_from([0, 5]))
def test_the_gradient_is_that_of_the_value(seed, n_old):
    problem = diagonal_problem(seed, n_old=n_old)
    theta, step = np.random.default_rng(seed + 1).normal(size=(2, 1, 3, 5))
    step *= 1e-5
    gradient = problem.objective(theta).gradient
    ends = [problem.objective(theta + sign * step).value[0] for sign in (1, -1)]
    np.testing.assert_allclose(ends[0] - ends[1], 2 * np.sum(gradient * step), rtol=1e-4, atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_both_forms_of_diagonal_covariances_are_one_objective(seed):
    problem, theta = diagonal_problem(seed, n_old=0), np.random.default_rng(seed).normal(size=(1, 3, 5))
    mixtures = Mixtures(np.eye(3)[problem.mean_labels], diagonal(problem.spread.variances), None)
    got, expected = (x.objective(theta) for x in (problem, replace(problem, spread=mixtures)))
    np.testing.assert_allclose(got.value, expected.value, rtol=1e-12)
    np.testing.assert_allclose(got.gradient, expected.gradient, rtol=1e-9, atol=1e-12)


def test_without_variances_it_is_the_cross_entropy_of_all_classes():
    problem = diagonal_problem()
    problem = replace(problem, spread=Diagonals(problem.spread.labels, np.zeros((1, 4, 4))))
    rows = np.random.default_rng(1).normal(size=(3, 5))
    expected = np.sum(rows[:, :-1] ** 2) / (2 * problem.C)
    samples = [*zip(problem.samples[0], problem.labels[0], problem.counts[0], strict=True)]
    means = zip(problem.means[0], problem.mean_labels[0], problem.mean_counts[0], strict=True)
    for x, label, count in [*samples, *means]:
        old, new = problem.old @ x, rows @ x
        # A sample of an old class may be of any of them.
        of_label = new[label] if label < 3 else logsumexp(old)
        expected += count * (logsumexp(np.concatenate([old, new])) - of_label)
    np.testing.assert_allclose(problem.objective(rows[None]).value, [expected], rtol=1e-12)
