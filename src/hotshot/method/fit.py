"""The whole method for a batch of tasks: targets, transfer weights, calibrated Gaussians, head.

The estimators call it with a batch of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from hotshot.arrays import Array, like, namespace
from hotshot.base import PreparedBase
from hotshot.method.calibration import MIX, CalibratedGaussians, automatic_mix, calibrate, class_targets
from hotshot.method.heads import fit_heads
from hotshot.method.hierarchy import HIERARCHICAL, NEAREST, Transfer, nearest_weights, transfer_weights

FREE_LUNCH_NEIGHBOURS = 2


@dataclass(frozen=True)
class Method:
    """Parameters of the method once the bank is prepared; see `HOTClassifier` for what each means."""

    cost: str = HIERARCHICAL
    epsilon: float = 0.02
    cost_scale: str = "published"
    n_retrieved: int | str | None = "auto"
    mean_rule: str = MIX
    mix: float | str = "auto"
    alpha: float = 0.0
    alpha_rule: str = "entries"
    per: str = "class"
    head: str = "bound"
    n_generated: int = 300
    support_weight: float = 20.0
    C: float = 1.0

    def neighbours(self, n_classes: int) -> int:
        """How many of B base classes lend where the nearest do so in equal parts."""
        wanted = self.n_retrieved if isinstance(self.n_retrieved, Integral) else FREE_LUNCH_NEIGHBOURS
        return min(int(wanted), n_classes)


@dataclass(frozen=True)
class FittedTasks:
    """Classifiers of a batch of tasks and what led to them.

    `theta` is (tasks, N, V + 1), intercepts last; `converged` (tasks,) tells whose head reached its minimum.
    """

    theta: Array
    converged: Array
    transfer: Transfer
    gaussians: CalibratedGaussians

    def decision(self, queries: Array) -> Array:
        """Logits (tasks, queries, N) of queries (tasks, queries, V) in the space of the bank."""
        xp = namespace(queries)
        return queries @ xp.matrix_transpose(self.theta[..., :-1]) + self.theta[:, None, :, -1]


def fit_tasks(
    base: PreparedBase,
    support: Array,
    labels: Array,
    method: Method,
    *,
    n_classes: int,
    seeds: Sequence[int] | None = None,
    keep_low_plans: bool = False,
) -> FittedTasks:
    """Fit one classifier per task.

    Parameters
    ----------
    support : array (tasks, S, V)
        Support samples in the space of the bank.
    labels : integer array (tasks, S)
        Their classes, from 0 to n_classes - 1, each with at least one sample.
    seeds : sequence of seeds, one per task
        For the sampled head.
    """
    xp = namespace(support, labels, base.means)
    means, shots = class_targets(support, labels, n_classes)
    if method.per == "class":
        everyone = like(np.arange(n_classes), labels)
        targets, target_labels = means, xp.broadcast_to(everyone, shots.shape)
    else:
        targets, target_labels = support, labels
        shots = xp.stack([xp.take(shots[i, :], labels[i, :]) for i in range(labels.shape[0])])
    neighbours = method.neighbours(base.means.shape[0])
    if method.cost == NEAREST:
        transfer = nearest_weights(base, targets, neighbours)
    else:
        transfer = transfer_weights(
            base,
            targets,
            cost=method.cost,
            epsilon=method.epsilon,
            cost_scale=method.cost_scale,
            n_retrieved=method.n_retrieved,
            keep_low_plans=keep_low_plans,
        )
    gaussians = calibrate(
        base,
        targets,
        target_labels,
        transfer.weights,
        mean_rule=method.mean_rule,
        mix=automatic_mix(shots) if method.mix == "auto" else method.mix,
        alpha=method.alpha,
        alpha_rule=method.alpha_rule,
        k=neighbours,
    )
    heads = fit_heads(
        base,
        gaussians,
        support,
        labels,
        n_classes=n_classes,
        head=method.head,
        n_generated=method.n_generated,
        support_weight=method.support_weight,
        C=method.C,
        seeds=seeds,
    )
    return FittedTasks(heads.theta, heads.converged, transfer, gaussians)
