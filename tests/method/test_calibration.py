"""Calibrated Gaussians against the formulas, written out as loops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from few_shot_problems import (
    RAGGED,
    dense_covariances,
    gaussians_of,
    method_with,
    plain_space,
    prepared_bank,
    problem_of,
    ragged_bank,
    random_tasks,
    random_theta,
    random_weights,
)
from hotshot.bank import BaseClasses
from hotshot.bank.covariances import Dense
from hotshot.method.calibration import MEAN_RULES, own_parts, own_shares, prior_certainty
from hotshot.method.heads.problem import Mixtures

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


@pytest.mark.parametrize("rule", MEAN_RULES)
def test_means_and_covariances_follow_the_rule(rule):
    base = prepared_bank()
    targets, labels, weights = random_case(base)
    got = gaussians_of(base, targets, labels, weights, mean_rule=rule, mix=0.6, n_retrieved=3)
    means, covariances = got.means, dense_covariances(base, got)
    every_shot = np.sum(labels[:, :, None] == labels[:, None], axis=2)
    method = method_with(mean_rule=rule, mix=0.6, n_retrieved=3)
    shares = own_shares(base, targets, every_shot, weights, method)
    np.testing.assert_allclose(
        own_parts(base, targets, every_shot, method) + own_parts(base, 2 * targets, every_shot, method),
        own_parts(base, 3 * targets, every_shot, method), rtol=1e-9, atol=1e-12,
    )  # fmt: skip
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
            np.testing.assert_allclose(shares[t, n], share, rtol=1e-9)


@pytest.mark.parametrize(("rule", "added"), [("entries", 0.21 * np.ones((6, 6))), ("diagonal", 0.21 * np.eye(6))])
@pytest.mark.parametrize("mean_rule", MEAN_RULES)
@pytest.mark.parametrize("n_components", [None, 3])
def test_alpha_is_added_in_the_original_axes(rule, added, mean_rule, n_components):
    base = ragged_bank().prepare(plain_space(n_components=n_components))
    case = random_case(base)
    plain = gaussians_of(base, *case, mean_rule=mean_rule)
    shifted = gaussians_of(base, *case, mean_rule=mean_rule, alpha=0.21, alpha_rule=rule)
    extra = dense_covariances(base, shifted) - dense_covariances(base, plain)
    axes = base.transform.axes
    np.testing.assert_allclose(extra, np.broadcast_to(axes.T @ added @ axes, extra.shape), atol=1e-10)
    np.testing.assert_array_equal(shifted.means, plain.means)


def test_the_certainty_of_a_prior_grows_with_its_classes_and_few_classes_lend_no_mean():
    certainties = [prior_certainty(np.full(b, 10)) for b in (1, 2, 3, 4, 8, 30, 1000)]
    assert certainties[:3] == [0, 0, 0]
    assert np.all(np.diff(certainties[2:]) > 0)
    assert prior_certainty(np.full(8, 4)) == 0 < prior_certainty(np.full(20, 4))
    # Student's predictive distribution of one more mean: a variance of (1 + 1 / B) (B - 1) / (B - 3).
    means, b = np.random.default_rng(0).standard_t(8 - 1, size=2_000_000) * np.sqrt(1 + 1 / 8), 8
    assert means.var() * prior_certainty(np.full(b, 10)) == pytest.approx(1, rel=0.05)
    base = BaseClasses.from_samples(np.random.default_rng(1).normal(size=(30, 6)), np.repeat(np.arange(3), 10))
    base = base.prepare(plain_space())
    targets, labels = random_tasks(base, n_tasks=1, shots=(1, 2))
    for rule in ("mix", "posterior"):
        got = gaussians_of(base, targets, labels, random_weights(1, 3, 3), mean_rule=rule, mix="auto")
        np.testing.assert_allclose(got.means, targets, atol=1e-12)


# --- dense covariances, or weights over those of the base ---------------------------------------------------


@pytest.mark.parametrize("alpha_rule", ["entries", "diagonal"])
@pytest.mark.parametrize("mean_rule", MEAN_RULES)
@pytest.mark.parametrize("alpha", [0.0, 0.21])
def test_both_forms_give_the_same_head(alpha_rule, mean_rule, alpha):
    base = prepared_bank()
    support, labels, weights = random_case(base, shots=(3, 2, 4))
    settings = {"mean_rule": mean_rule, "alpha": alpha, "alpha_rule": alpha_rule}
    gaussians = gaussians_of(base, support, labels, weights, **settings)
    mixed = problem_of(base, gaussians, support, labels, n_classes=3, n_generated=50, support_weight=2.0, C=1.0)
    assert mixed.spread.mixing is not None
    dense = Dense(dense_covariances(base, gaussians))
    dense = replace(mixed, spread=Mixtures(mixed.spread.members, dense, None))
    theta = random_theta(mixed)
    a, b = mixed.objective(theta), dense.objective(theta)
    np.testing.assert_allclose(a.value, b.value, rtol=1e-10)
    np.testing.assert_allclose(a.gradient, b.gradient, rtol=1e-8, atol=1e-8)
