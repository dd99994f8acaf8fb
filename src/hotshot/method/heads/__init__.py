"""Heads: the N-way linear classifier trained on the support samples and the calibrated Gaussians."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hotshot.arrays import Array, indices, is_single, like, namespace, to_numpy
from hotshot.base import PreparedBase
from hotshot.method.calibration import CalibratedGaussians
from hotshot.method.heads.bound import bound_objective
from hotshot.method.heads.expected import expected_objective
from hotshot.method.heads.optimise import check_finite, minimise
from hotshot.method.heads.problem import head_problem, in_double
from hotshot.method.heads.sampled import fit_sampled

HEADS = ("bound", "expected", "sampled")


@dataclass(frozen=True)
class FittedHeads:
    """Weights and, last, intercepts theta (tasks, N, V + 1), and which tasks converged (tasks,)."""

    theta: Array
    converged: Array


def fit_heads(
    base: PreparedBase,
    gaussians: CalibratedGaussians,
    support: Array,
    labels: Array,
    *,
    n_classes: int,
    head: str = "bound",
    n_generated: float = 200,
    support_weight: float = 1.0,
    C: float = 1.0,
    seeds: Sequence[int] | None = None,
) -> FittedHeads:
    """Fit the classifiers of a batch of tasks.

    Parameters
    ----------
    gaussians : CalibratedGaussians
    support, labels : arrays (tasks, S, V) and (tasks, S)
        Support samples in the space of the bank, and their classes from 0.
    head : {"bound", "expected", "sampled"}
    n_generated : float
        Features per class: drawn by the sampled head, counted as so many by the other two.
    support_weight : float
        How many features each support sample counts as.
    C : float
        Inverse strength of the penalty, as in scikit-learn's LogisticRegression.
    seeds : sequence of seeds, one per task
        For the sampled head.
    """
    if head == "sampled":
        shift_factor = None if gaussians.shift_factor is None else to_numpy(gaussians.shift_factor)
        mixed = gaussians.mixed_covariances(base)
        check_finite(mixed)
        arrays = (gaussians.means, mixed, gaussians.labels, support, labels)
        seeds = range(support.shape[0]) if seeds is None else seeds
        fitted = [
            fit_sampled(
                means,
                covariances,
                shift_factor,
                *rest,
                n_classes=n_classes,
                n_generated=int(n_generated),
                support_weight=support_weight,
                C=C,
                rng=np.random.default_rng(seed),
            )
            for means, covariances, *rest, seed in zip(*(to_numpy(x) for x in arrays), seeds, strict=True)
        ]
        thetas, converged = zip(*fitted, strict=True)
        return FittedHeads(like(np.stack(thetas), support), indices(np.array(converged), support))

    problem = head_problem(
        base,
        gaussians,
        support,
        labels,
        n_classes=n_classes,
        n_generated=n_generated,
        support_weight=support_weight,
        # With two classes scikit-learn fits one vector, and two opposite halves of it cost half as much.
        C=C / 2 if n_classes == 2 else C,
    )
    xp = namespace(support)
    found = minimise(
        problem, bound_objective, xp.zeros_like(xp.matrix_transpose(problem.members) @ problem.points)
    )
    if head == "expected":
        found = minimise(problem, expected_objective, found.theta)
    if not bool(xp.all(found.converged)) and is_single(support):
        # Weak penalties and long axes use up single precision: go on from here in double.
        objective = expected_objective if head == "expected" else bound_objective
        found = minimise(in_double(problem), objective, xp.astype(found.theta, xp.float64))
    return FittedHeads(xp.astype(found.theta, support.dtype, copy=False), found.converged)
