"""Calibrated Gaussians against the formulas, written out as loops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from few_shot_problems import (
    RAGGED,
    gaussians_of,
    plain_space,
    prepared_bank,
    problem_of,
    ragged_bank,
    random_tasks,
    random_theta,
    random_weights,
)
from hotshot.arrays import like, to_numpy
from hotshot.bank import BaseClasses
from hotshot.bank.covariances import Dense
from hotshot.method.calibration import MEAN_RULES, automatic_mix, class_targets, head_covariances, prior_certainty
from hotshot.method.heads.bound import bound_objective

B = len(RAGGED)


def naive_posterior(base, borrowed, x, shots, shrinkage=0.2):
    """Lent mean + A (x - lent mean), A = S_b (S_b + S_w / K)^-1 with both covariances shrunk, as dense matrices."""
    identity = np.eye(len(x))
    within = np.diag(base.spectrum)
    within = (1 - shrinkage) * within + shrinkage * np.trace(within) / len(x) * identity
    variances, axes = np.linalg.eigh(np.cov(base.means.T) - np.mean(1 / base.counts) * np.diag(base.spectrum))
    between = axes * np.maximum(variances, 0) @ axes.T
    between = 0.5 * (0.5 * between + 0.5 * np.trace(between) / len(x) * identity)
    within = B * (B - 3) / ((B + 1) * (B - 1)) * within
    return borrowed + between @ np.linalg.solve(between + within / shots, x - borrowed)


def naive_mean(rule, base, borrowed, x, *, m, k, shots):
    if rule == "posterior":
        mixed = naive_mean("mix", base, borrowed, x, m=m, k=k, shots=shots)
        return 0.25 * mixed + 0.75 * naive_posterior(base, borrowed, x, shots)
    if rule == "posterior-whole":
        return naive_posterior(base, borrowed, x, shots, shrinkage=0.7)
    if rule == "mix":
        return m * borrowed + (1 - m) * x
    if rule == "printed":
        return (borrowed + x) / (B + 1)
    return (k * borrowed + x) / (k + 1)


def random_case(base, shots=(1, 2), n_tasks=2):
    targets, labels = random_tasks(base, n_tasks=n_tasks, shots=shots)
    return targets, labels, random_weights(n_tasks, B, targets.shape[1])


def in_library(xp, base, *arrays):
    reference = xp.asarray([0.0], dtype=xp.float64)
    return base.to(reference), *(like(x, reference) for x in arrays)


@pytest.mark.parametrize("rule", MEAN_RULES)
def test_means_and_covariances_follow_the_rule(xp, rule):
    base = prepared_bank()
    targets, labels, weights = random_case(base)
    there, *arrays = in_library(xp, base, targets, labels, weights)
    got = gaussians_of(there, *arrays, mean_rule=rule, mix=0.6, n_retrieved=3)
    means, covariances = to_numpy(got.means), to_numpy(got.covariances(there))
    assert got.shift is None
    for t in range(2):
        for n in range(3):
            borrowed = sum(weights[t, b, n] * base.means[b] for b in range(B))
            shots = np.sum(labels[t] == labels[t, n])
            expected = naive_mean(rule, base, borrowed, targets[t, n], m=0.6, k=3, shots=shots)
            np.testing.assert_allclose(means[t, n], expected, rtol=1e-10, atol=1e-14)
            lent = sum(weights[t, b, n] * base.covariances.matrices[b] for b in range(B))
            lent = lent / B if rule == "printed" else lent
            np.testing.assert_allclose(covariances[t, n], lent, rtol=1e-10, atol=1e-14)
            # The own share is that of the target in a mean of the same direction; a posterior mean leaves the line
            # from the lent mean to the target, and its foot on it counts.
            whole = np.linalg.lstsq(np.stack([borrowed, targets[t, n]]).T, means[t, n], rcond=None)[0]
            share = whole[1] / whole.sum()
            if rule.startswith("posterior"):
                line = targets[t, n] - borrowed
                share = line @ (means[t, n] - borrowed) / (line @ line)
            np.testing.assert_allclose(to_numpy(got.own_share)[t, n], share, rtol=1e-9)


def test_the_automatic_mix_of_a_gaussian_follows_the_shots_of_its_class(xp):
    base = prepared_bank()
    targets, labels, weights = random_case(base)
    prior = 0.7 * B * (B - 3) / ((B + 1) * (B - 1))
    mix = prior / (prior + 0.3 * np.array([[1, 2, 2], [1, 2, 2]]))
    there, *arrays = in_library(xp, base, targets, labels, weights)
    means = to_numpy(gaussians_of(there, *arrays, mean_rule="mix", mix="auto").means)
    for t in range(2):
        for n in range(3):
            borrowed = weights[t, :, n] @ base.means
            expected = naive_mean("mix", base, borrowed, targets[t, n], m=mix[t, n], k=None, shots=None)
            np.testing.assert_allclose(means[t, n], expected, rtol=1e-10, atol=1e-14)


def test_a_mix_of_zero_keeps_the_targets_and_a_mix_of_one_the_base():
    base = prepared_bank()
    targets, labels, weights = random_case(base)
    np.testing.assert_allclose(
        gaussians_of(base, targets, labels, weights, mean_rule="mix", mix=0.0).means, targets, atol=1e-14
    )
    lent = np.swapaxes(weights, 1, 2) @ base.means
    np.testing.assert_allclose(
        gaussians_of(base, targets, labels, weights, mean_rule="mix", mix=1.0).means, lent, atol=1e-14
    )


@pytest.mark.parametrize(("rule", "added"), [("entries", 0.21 * np.ones((6, 6))), ("diagonal", 0.21 * np.eye(6))])
@pytest.mark.parametrize("mean_rule", MEAN_RULES)
def test_alpha_is_added_in_the_original_axes(xp, rule, added, mean_rule):
    base = prepared_bank()
    there, *arrays = in_library(xp, base, *random_case(base))
    plain = gaussians_of(there, *arrays, mean_rule=mean_rule)
    shifted = gaussians_of(there, *arrays, mean_rule=mean_rule, alpha=0.21, alpha_rule=rule)
    extra = to_numpy(shifted.covariances(there) - plain.covariances(there))
    axes = base.transform.axes
    np.testing.assert_allclose(axes @ extra @ axes.T, np.broadcast_to(added, extra.shape), atol=1e-10)
    np.testing.assert_array_equal(to_numpy(shifted.means), to_numpy(plain.means))


def test_alpha_entries_on_fewer_axes_is_the_projection():
    base = ragged_bank().prepare(plain_space(n_components=3))
    case = random_case(base)
    plain, shifted = (gaussians_of(base, *case, alpha=alpha).covariances(base) for alpha in (0.0, 0.5))
    axes = base.transform.axes
    expected = axes.T @ np.full((6, 6), 0.5) @ axes
    np.testing.assert_allclose(shifted - plain, np.broadcast_to(expected, plain.shape), atol=1e-10)


def test_class_targets_are_the_means_of_their_support_samples(xp):
    rng = np.random.default_rng(0)
    labels = np.array([[0, 0, 1, 2, 2, 2], [2, 1, 0, 1, 1, 2]])
    support = rng.normal(size=(2, 6, 4))
    got, shots = class_targets(xp.asarray(support), xp.asarray(labels), 3)
    for t in range(2):
        for c in range(3):
            own = [x for x, label in zip(support[t], labels[t], strict=True) if label == c]
            np.testing.assert_allclose(to_numpy(got)[t, c], sum(own) / len(own), rtol=1e-12)
            assert to_numpy(shots)[t, c] == len(own)


def test_automatic_mix_falls_with_the_shots(xp):
    got = automatic_mix(xp.asarray([[1.0, 2.0, 5.0]], dtype=xp.float64))
    np.testing.assert_allclose(to_numpy(got), [[0.7, 0.7 / 1.3, 0.7 / 2.2]], rtol=1e-12)


def test_the_certainty_of_a_prior_grows_with_its_classes_and_few_classes_lend_no_mean():
    certainties = [prior_certainty(b) for b in (1, 2, 3, 4, 8, 30, 1000)]
    assert certainties[:3] == [0, 0, 0]
    assert np.all(np.diff(certainties[2:]) > 0)
    # Student's predictive distribution of one more mean: a variance of (1 + 1 / B) (B - 1) / (B - 3).
    means, b = np.random.default_rng(0).standard_t(8 - 1, size=2_000_000) * np.sqrt(1 + 1 / 8), 8
    assert means.var() * prior_certainty(b) == pytest.approx(1, rel=0.05)
    base = BaseClasses.from_samples(np.random.default_rng(1).normal(size=(30, 6)), np.repeat(np.arange(3), 10))
    base = base.prepare(plain_space())
    targets, labels = random_tasks(base, n_tasks=1, shots=(1, 2))
    for rule in ("mix", "posterior"):
        got = gaussians_of(base, targets, labels, random_weights(1, 3, 3), mean_rule=rule, mix="auto")
        np.testing.assert_allclose(got.means, targets, atol=1e-12)


# --- dense covariances, or weights over those of the base ---------------------------------------------------


@pytest.mark.parametrize(("shots", "dense"), [((2, 1, 3), True), ((3, 2, 2), False), ((9, 9, 9), False)])
def test_covariances_are_dense_where_there_are_no_more_gaussians_than_base_classes(shots, dense):
    base = prepared_bank()
    gaussians = gaussians_of(base, *random_case(base, shots), alpha=0.3)
    stack, mixing = head_covariances(base, gaussians)
    expected = gaussians.covariances(base)
    if dense:
        assert mixing is None
        np.testing.assert_allclose(stack.matrices, expected)
    else:
        assert stack.count == B + 1
        mixed = stack.mixtures(mixing.reshape(-1, B + 1)).reshape(expected.shape)
        np.testing.assert_allclose(mixed, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("objective", [bound_objective])
@pytest.mark.parametrize("alpha_rule", ["entries", "diagonal"])
@pytest.mark.parametrize("mean_rule", MEAN_RULES)
@pytest.mark.parametrize("alpha", [0.0, 0.21])
def test_both_forms_give_the_same_head(xp, objective, alpha_rule, mean_rule, alpha):
    base = prepared_bank()
    support, labels, weights = random_case(base, shots=(3, 2, 4))
    there, support, labels, weights = in_library(xp, base, support, labels, weights)
    settings = {"mean_rule": mean_rule, "alpha": alpha, "alpha_rule": alpha_rule}
    gaussians = gaussians_of(there, support, labels, weights, **settings)
    mixed = problem_of(there, gaussians, support, labels, n_classes=3, n_generated=50, support_weight=2.0, C=1.0)
    assert mixed.mixing is not None
    dense = replace(mixed, covariances=Dense(gaussians.covariances(there)), mixing=None)
    theta = like(random_theta(mixed), support)
    a, b = objective(mixed, theta), objective(dense, theta)
    np.testing.assert_allclose(to_numpy(a.value), to_numpy(b.value), rtol=1e-10)
    np.testing.assert_allclose(to_numpy(a.gradient), to_numpy(b.gradient), rtol=1e-8, atol=1e-8)
