r"""Eq. 8: the low-level transport, one for each base class, between its samples and the targets of a task.

.. math::
    M^b = \arg\min_M \sum_{jn} D_{jn} M_{jn} + \epsilon \sum_{jn} M_{jn} \log M_{jn}
    \quad \text{with} \quad \sum_n M_{jn} = p^b_j, \; \sum_j M_{jn} = 1/S, \qquad D_{jn} = 1 - \cos(x_j, y_n).

Targets are the support samples, or the means of the novel classes.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from hotshot.arrays import unit_vectors
from hotshot.bank import Bucket, PreparedBase
from hotshot.transport import Solution, solve


def low_level(
    buckets: Sequence[Bucket], targets: np.ndarray, epsilon: float
) -> Iterator[tuple[Bucket, np.ndarray, Solution]]:
    """Costs D and plans M (classes, tasks, J, targets) of targets (tasks, targets, V), bucket by bucket."""
    n_tasks, n_targets, width = targets.shape
    points = unit_vectors(targets).reshape(n_tasks * n_targets, width)
    for bucket in buckets:
        n_classes, size, _ = bucket.units.shape
        # One product per class for all tasks, in the layout that is fastest for the solver: samples last.
        similarity = points @ bucket.units.swapaxes(1, 2)
        distance = (1 - similarity.reshape(n_classes, n_tasks, n_targets, size)).swapaxes(2, 3)
        mass = np.broadcast_to(bucket.mass[:, None], (n_classes, n_tasks, size))
        yield bucket, distance, solve(distance, mass, epsilon=epsilon).raise_for_status()


def class_plan(base: PreparedBase, targets: np.ndarray, b: int, epsilon: float) -> np.ndarray:
    """M^b (tasks, J_b, targets) of base class b."""
    (bucket,) = (bucket for bucket in base.buckets if b in bucket.classes)
    row = np.flatnonzero(bucket.classes == b)
    only = Bucket(bucket.classes[row], bucket.units[row], bucket.mass[row])
    ((_, _, solution),) = low_level([only], targets, epsilon)
    # Rows beyond the samples of the class are padding.
    return np.asarray(solution.plan[0, :, : base.counts[b]])
