"""What a head is trained on: points, their classes and weights, and the spread of their logits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from few_shot_problems import (
    gaussians_of,
    prepared_bank,
    problem_of,
    random_problem,
    random_tasks,
    random_theta,
    random_weights,
)
from hotshot.arrays import like, to_numpy
from hotshot.method.heads.problem import logit_covariances, mix, through_covariances, unmix


def random_head_problem(xp, gaussian_shots, support_shots, n_generated=60, support_weight=3.0, tasks=2):
    """A problem from a bank, with its parts in NumPy."""
    base = prepared_bank()
    means, gaussian_labels = random_tasks(base, tasks, gaussian_shots, seed=1)
    support, labels = random_tasks(base, tasks, support_shots, seed=2)
    weights = random_weights(tasks, len(base.names), means.shape[1])
    reference = xp.asarray([0.0], dtype=xp.float64)
    there = base.to(reference)
    gaussians = gaussians_of(there, *(like(x, reference) for x in (means, gaussian_labels, weights)))
    problem = problem_of(
        there,
        gaussians,
        like(support, reference),
        like(labels, reference),
        n_classes=len(gaussian_shots),
        n_generated=n_generated,
        support_weight=support_weight,
        C=0.5,
    )
    return problem, to_numpy(gaussians.means), gaussian_labels, support, labels


@pytest.mark.parametrize("gaussian_shots", [(1, 1, 1), (1, 2, 3), (4, 4, 4)])
def test_points_are_gaussians_then_support_with_their_classes(xp, gaussian_shots):
    problem, means, gaussian_labels, support, labels = random_head_problem(xp, gaussian_shots, (2, 1, 3))
    assert problem.n_gaussians == sum(gaussian_shots)
    assert problem.n_classes == 3
    assert problem.C == 0.5
    points = to_numpy(problem.points)
    np.testing.assert_array_equal(points[..., :-1], np.concatenate([means, support], axis=1))
    np.testing.assert_array_equal(points[..., -1], 1)
    expected = np.eye(3)[np.concatenate([gaussian_labels, labels], axis=1)]
    np.testing.assert_array_equal(to_numpy(problem.members), expected)


@pytest.mark.parametrize("gaussian_shots", [(1, 1, 1), (1, 2, 3), (4, 4, 4)])
def test_the_gaussians_of_a_class_share_its_generated_features(xp, gaussian_shots):
    problem, *_ = random_head_problem(xp, gaussian_shots, (2, 1, 3), n_generated=60, support_weight=3.0)
    counts = to_numpy(problem.counts)
    expected = [60 / shots for shots in gaussian_shots for _ in range(shots)]
    np.testing.assert_allclose(counts, np.tile([*expected, *[3.0] * 6], (2, 1)))


@pytest.mark.parametrize("gaussian_shots", [(1, 1, 1), (4, 4, 4)])
def test_logit_covariances_are_w_sigma_w(gaussian_shots):
    problem, *_ = random_head_problem(np, gaussian_shots, (1, 1, 1))
    weights = random_theta(problem)[..., :-1]
    spread, _ = logit_covariances(problem, weights)
    for t in range(2):
        for g in range(problem.n_gaussians):
            if problem.mixing is None:
                covariance = problem.covariances.matrices[t, g]
            else:
                covariance = sum(m * s for m, s in zip(problem.mixing[t, g], problem.covariances.matrices, strict=True))
            expected = weights[t] @ covariance @ weights[t].T
            np.testing.assert_allclose(spread[t, g], expected, rtol=1e-9, atol=1e-12)


def test_more_gaussians_than_base_classes_share_the_base_covariances():
    few, *_ = random_head_problem(np, (1, 1, 1), (1, 1, 1))
    many, *_ = random_head_problem(np, (4, 4, 4), (1, 1, 1))
    assert few.mixing is None
    assert many.mixing is not None
    assert many.covariances.count == 6


@pytest.mark.parametrize("gaussian_shots", [(1, 1, 1), (4, 4, 4)])
@given(st.integers(0, 999))
def test_unmix_is_the_transpose_of_mix(gaussian_shots, seed):
    problem, *_ = random_head_problem(np, gaussian_shots, (1, 1, 1))
    kept = problem.covariances.count
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, kept, 3, 3)), rng.normal(size=(2, problem.n_gaussians, 3, 3))
    assert np.sum(mix(problem, x) * y) == pytest.approx(np.sum(x * unmix(problem, y)), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_through_covariances_is_the_gradient_through_the_spread(n_classes):
    problem = random_problem(n_classes=n_classes, tasks=1)
    weights = random_theta(problem)[..., :-1]
    rng = np.random.default_rng(0)
    slope = rng.normal(size=(1, problem.n_gaussians, n_classes, n_classes))
    slope = slope + np.swapaxes(slope, 2, 3)
    spread, lent = logit_covariances(problem, weights)
    step = 1e-6 * rng.normal(size=weights.shape)
    change = sum(np.sum(slope * sign * logit_covariances(problem, weights + sign * step)[0]) for sign in (1, -1))
    assert np.sum(through_covariances(problem, slope, lent) * step) == pytest.approx(change / 2, rel=1e-5)
    assert spread.shape == slope.shape
