"""Generators of small few-shot problems: ragged banks, tasks, head problems with random Gaussians."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
from scipy.special import logsumexp

from hotshot import HOTClassifier
from hotshot.bank import BaseClasses, Space
from hotshot.bank.covariances import Dense
from hotshot.method import Method
from hotshot.method.calibration import calibrate
from hotshot.method.heads import HEADS, Training
from hotshot.method.heads.bound import head_problem
from hotshot.method.heads.problem import Diagonals, HeadProblem, Mixtures
from hotshot.method.transfer import transfer_weights

RAGGED = (7, 12, 3, 30, 1, 13)


def drawn_classes(tasks, n=12, ways=5, seed=0):
    """Classes (tasks, ways) of tasks over n classes."""
    return np.random.default_rng(seed).permuted(np.tile(np.arange(n), (tasks, 1)), axis=1)[:, :ways]


def ragged_bank(sizes=RAGGED, width=6, seed=0, dtype=np.float64, spread=0.5):
    """A bank of Gaussian classes of these sizes, around random centres."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.normal(size=(len(sizes), width))[labels] + spread * rng.normal(size=(len(labels), width))
    return BaseClasses.from_samples(X.astype(dtype), labels)


def prepared_bank(**kwargs):
    """A ragged bank in the plain space."""
    return ragged_bank(**kwargs).prepare(plain_space())


def plain_space(**changes):
    """The space without a power and with all axes kept, with changes."""
    return Space(**{"power": 1.0, "n_components": None, **changes})


def method_with(**changes):
    """Parameters of the method: those of the estimator and the plain rule for the means, with changes."""
    settings = {**HOTClassifier(mean_rule="mix").settings(), **changes}
    return Method(**{f.name: settings[f.name] for f in fields(Method)})


def transfer_of(base, targets, **changes):
    """Transfer under the published parameters, with changes."""
    published = {"cost": "hierarchical", "epsilon": 0.01, "cost_scale": "published", "n_retrieved": None}
    return transfer_weights(base, targets, method_with(**{**published, **changes}))


def gaussians_of(base, targets, labels, weights, **changes):
    """Calibrated Gaussians with a mix of 0.7, with changes; every class has as many shots as targets."""
    shots = np.sum(labels[:, :, None] == labels[:, None, :], axis=-1).astype(targets.dtype)
    return calibrate(base, targets, labels, shots, weights, method_with(**{"mix": 0.7, **changes}))


def dense_covariances(base, gaussians):
    """Covariances (tasks, G, V, V) of calibrated Gaussians, with alpha."""
    factor = gaussians.alpha_factor
    return gaussians.mixed_covariances(base) + (0 if factor is None else factor @ factor.T)


def training_of(base, gaussians, support, labels, *, n_classes, seeds=None, **changes):
    """What a head is trained on, weighed as published, with changes."""
    method = method_with(**{"n_generated": 200, "support_weight": 1.0, **changes})
    seeds = range(support.shape[0]) if seeds is None else seeds
    return Training(base, gaussians, support, labels, n_classes, method, seeds)


def problem_of(*arrays, **settings):
    """The head problem of `training_of`."""
    return head_problem(training_of(*arrays, **settings))


def heads_of(*arrays, **settings):
    """Theta, convergence and slopes of the heads of `training_of`."""
    training = training_of(*arrays, **settings)
    return HEADS[training.method.head].fit(training)


def random_tasks(base, n_tasks=3, shots=(1, 1, 1), seed=1, noise=0.3):
    """Support (tasks, S, V) in the space of the bank, with `shots[c]` samples of class c, and labels."""
    rng = np.random.default_rng(seed)
    width = base.transform.axes.shape[0]
    labels = np.tile(np.repeat(np.arange(len(shots)), shots), (n_tasks, 1))
    centres = rng.normal(size=(n_tasks, len(shots), width))
    support = np.stack([centre[row] for centre, row in zip(centres, labels, strict=True)])
    support = support + noise * rng.normal(size=support.shape)
    return base.transform(support.astype(base.means.dtype)), labels


def random_weights(n_tasks, n_classes, n_targets, seed=2):
    """Random transfer weights (tasks, B, targets)."""
    rng = np.random.default_rng(seed)
    weights = rng.gamma(0.5, size=(n_tasks, n_classes, n_targets))
    return weights / weights.sum(axis=1, keepdims=True)


def random_covariances(rng, count, width, spread=1.0, rank=None):
    """Random covariances (count, V, V) of trace about spread * V."""
    rank = rank or width
    roots = rng.normal(size=(count, width, rank))
    return spread * roots @ np.swapaxes(roots, -1, -2) / rank


def random_problem(n_classes=3, width=4, per_class=1, shots=1, tasks=2, spread=1.0, seed=0, C=1.0):
    """A head problem with `per_class` Gaussians and `shots` support samples of every class."""
    rng = np.random.default_rng(seed)
    mean_labels, labels = (np.tile(np.repeat(np.arange(n_classes), k), (tasks, 1)) for k in (per_class, shots))
    n_gaussians = n_classes * per_class
    covariances = random_covariances(rng, tasks * n_gaussians, width, spread)
    points = rng.normal(size=(tasks, n_gaussians + n_classes * shots, width + 1))
    points[..., -1] = 1
    means, samples = np.split(points, [n_gaussians], axis=1)
    return HeadProblem(
        means=means,
        mean_labels=mean_labels,
        mean_counts=rng.uniform(0.5, 5, size=mean_labels.shape),
        spread=Mixtures(
            np.eye(n_classes)[mean_labels], Dense(covariances.reshape(tasks, n_gaussians, width, width)), None
        ),
        samples=samples,
        labels=labels,
        counts=rng.uniform(0.5, 5, size=labels.shape),
        C=C,
    )


def spectrum_of(problem):
    """Mean variances (V,) of the Gaussians of a problem with dense covariances."""
    matrices = problem.spread.covariances.matrices
    return np.diagonal(matrices, axis1=-2, axis2=-1).mean(axis=(0, 1))


def diagonal_problem(seed=0, n_samples=20, n_new=3, n_old=5, width=4):
    """One task of samples of old and new classes, and four Gaussians of new ones with diagonal covariances."""
    rng = np.random.default_rng(seed)
    ones, old = np.ones((n_samples, 1)), rng.normal(size=(n_old, width + 1))
    samples = np.concatenate([rng.normal(size=(n_samples, width)), ones], axis=1)
    return HeadProblem(
        means=np.concatenate([rng.normal(size=(4, width)), ones[:4]], axis=1)[None],
        mean_labels=np.array([[0, 1, 2, 1]]),
        mean_counts=1 + rng.random((1, 4)),
        spread=Diagonals(np.array([[0, 1, 2, 1]]) + n_old, rng.random((1, 4, width))),
        samples=samples[None],
        labels=rng.integers(n_new + (n_old > 0), size=(1, n_samples)),
        counts=rng.random((1, n_samples)),
        C=1.3,
        old=old if n_old else None,
        levels=logsumexp(samples @ old.T, axis=1)[None] if n_old else None,
    )


def random_theta(problem, scale=1.0, seed=3):
    """Random weights and intercepts (tasks, N, V + 1)."""
    tasks, _, width = problem.means.shape
    return scale * np.random.default_rng(seed).normal(size=(tasks, problem.mean_labels.max() + 1, width))


def probabilities(theta, queries):
    """Class probabilities (queries, N) of one task, theta (N, V + 1)."""
    logits = queries @ theta[:, :-1].T + theta[:, -1]
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def assert_same(found, expected):
    """Two evaluations have the same results but for the time they took."""
    for one, other in zip(found.results, expected.results, strict=True):
        assert (one.method, one.shots) == (other.method, other.shots)
        for name in ("recall", "calibration_error", "statuses"):
            assert getattr(one, name) == getattr(other, name)
        np.testing.assert_equal({"": one.accuracies, **one.measures}, {"": other.accuracies, **other.measures})
