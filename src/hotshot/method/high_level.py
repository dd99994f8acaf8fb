r"""Eq. 6: the high-level transport between base classes and targets, and the transfer weights that it gives.

.. math::
    T = \arg\min_T \sum_{bn} C_{bn} T_{bn} + \epsilon \sum_{bn} T_{bn} \log T_{bn}
    \quad \text{with} \quad \sum_n T_{bn} = 1/B, \; \sum_b T_{bn} = 1/S, \qquad w_{bn} = S\, T_{bn}.
"""

from dataclasses import dataclass
from numbers import Integral

import numpy as np

from hotshot.bank import PreparedBase
from hotshot.method import Method
from hotshot.method.learned_cost import COSTS, class_costs
from hotshot.transport import pairwise_cost, solve

# Equal weights on the nearest means instead of a transport, as in Free-Lunch, and their default number.
NEAREST, FREE_LUNCH_NEIGHBOURS = "nearest", 2
LEAST_WEIGHT = 1e-30
# In banks of up to this many classes all of them may lend; in larger ones the nearest to each target.
ALL_UP_TO, RETRIEVED = 512, 100


@dataclass(frozen=True)
class Transfer:
    """Transfer weights of targets (tasks, B, targets), whose columns sum to 1, and the transport that they come from.

    ``cost`` and ``plan`` (tasks, B, targets) are those of the high-level transport: for the hierarchical cost C_bn of
    eq. 9, and T_bn. Rows of base classes that retrieval left out of a task are undefined; the plan is None for the
    nearest means. ``statuses`` (tasks, problems) are those of all transport problems.
    """

    weights: np.ndarray
    cost: np.ndarray
    plan: np.ndarray | None
    statuses: np.ndarray


def transfer_weights(base: PreparedBase, targets: np.ndarray, method: Method) -> Transfer:
    """Transfer weights of targets (tasks, targets, V) in the space of the bank (eqs. 8, 9, 6).

    With ``n_retrieved`` the transport runs over all classes that are near some target, and each target keeps its own.
    """
    n_classes, n_retrieved = len(base.means), method.n_retrieved
    if method.cost == NEAREST:
        return nearest_weights(base, targets, neighbours(n_retrieved, n_classes))
    if n_retrieved == "auto":
        n_retrieved = None if n_classes <= ALL_UP_TO else RETRIEVED
    near: np.ndarray | None = None
    lends: np.ndarray | None = None
    mass = None
    if n_retrieved is not None and int(n_retrieved) < n_classes:
        proxy = COSTS[COSTS[method.cost].proxy or method.cost].between
        assert proxy is not None
        near = _nearest(proxy(base, targets), int(n_retrieved))
        lends = np.any(near, axis=2)
        mass = lends.astype(targets.dtype)
        mass /= mass.sum(axis=1, keepdims=True)
    cost, statuses = class_costs(base, targets, method, lends)
    solution = solve(cost, mass, epsilon=method.epsilon).raise_for_status()
    weights = targets.shape[1] * solution.plan
    if near is not None:
        # The least weight matters only if the balance has sent all mass of a target to other classes.
        weights = np.where(near, np.maximum(weights, LEAST_WEIGHT), 0)
    # The columns of a converged plan sum to 1/S up to its tolerance; a distribution sums to 1.
    weights = weights / weights.sum(axis=1, keepdims=True)
    return Transfer(weights, cost, solution.plan, np.concatenate([statuses, solution.status[:, None]], axis=1))


def neighbours(n_retrieved: int | str | None, n_classes: int) -> int:
    """Number of nearest base classes, of B, that lend in equal parts."""
    wanted = n_retrieved if isinstance(n_retrieved, Integral) else FREE_LUNCH_NEIGHBOURS
    return min(int(wanted), n_classes)


def nearest_weights(base: PreparedBase, targets: np.ndarray, k: int) -> Transfer:
    """Free-Lunch's weights (eq. 3): 1/k for the k base classes whose means are nearest."""
    distances = pairwise_cost(base.means, targets, "squared-euclidean")
    weights = _nearest(distances, k).astype(targets.dtype)
    weights /= weights.sum(axis=1, keepdims=True)
    return Transfer(weights, distances, None, np.empty((len(targets), 0), dtype=np.int64))


def _nearest(distances: np.ndarray, k: int) -> np.ndarray:
    """Which k base classes are nearest to each target, of equally near ones the first: (tasks, B, targets)."""
    return np.asarray(np.argsort(np.argsort(distances, axis=1, kind="stable"), axis=1, kind="stable") < k)
