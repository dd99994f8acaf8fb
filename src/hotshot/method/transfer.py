r"""Transfer weights by transport on two levels: eqs. 8 and 9 learn costs between base classes and targets for eq. 6.

.. math::
    M^b = \arg\min_M \sum_{jn} D_{jn} M_{jn} + \epsilon \sum_{jn} M_{jn} \log M_{jn}
    \quad \text{with} \quad \sum_n M_{jn} = p^b_j, \; \sum_j M_{jn} = 1/S, \qquad D_{jn} = 1 - \cos(x_j, y_n),

for the samples of each base class and the targets, which are the support samples or the means of the novel classes, and

.. math::
    C_{bn} = \sum_j D_{jn} M^b_{jn}, \qquad
    T = \arg\min_T \sum_{bn} C_{bn} T_{bn} + \epsilon \sum_{bn} T_{bn} \log T_{bn}
    \quad \text{with} \quad \sum_n T_{bn} = 1/B, \; \sum_b T_{bn} = 1/S, \qquad w_{bn} = S\, T_{bn}.

Each column of :math:`M^b` sums to 1/S, so the learned cost falls with the number of targets while epsilon stays.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from hotshot.arrays import unit_vectors
from hotshot.bank import Bucket, PreparedBase
from hotshot.errors import ParameterError
from hotshot.method import Method
from hotshot.transport import Solution, pairwise_cost, solve

# --- eq. 8: one low-level transport for each base class, between its samples and the targets of a task


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


# --- eq. 9: the learned cost, and simpler ones

COST_SCALES = ("published", "over-targets")


def learned_cost(buckets: Sequence[Bucket], targets: np.ndarray, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """C (tasks, classes, targets) and the status of each low-level problem (tasks, classes), by index of the class."""
    costs, statuses, classes = [], [], []
    for bucket, distance, solution in low_level(buckets, targets, epsilon):
        costs.append(np.sum(distance * solution.plan, axis=2))
        statuses.append(solution.status)
        classes.append(bucket.classes)
    order = np.argsort(np.concatenate(classes))
    return np.concatenate(costs)[order].swapaxes(0, 1), np.concatenate(statuses)[order].swapaxes(0, 1)


def mean_cosine(base: PreparedBase, targets: np.ndarray) -> np.ndarray:
    r""":math:`\sum_j p_j (1 - \cos(x_j, y_n)) / S`: mean cosine distance to the samples of a class, weighted."""
    return np.asarray((1 - base.mean_units @ unit_vectors(targets).swapaxes(1, 2)) / targets.shape[1])


@dataclass(frozen=True)
class Cost:
    """An entry of ``COSTS``: the cost (tasks, B, targets) from a bank and targets (tasks, targets, V).

    ``over_targets`` tells whether its published scale is divided by the number of targets. None is the cost that
    transport learns; its ``proxy`` takes its place where there are no samples, and to retrieve the nearest classes.
    """

    between: Callable[[PreparedBase, np.ndarray], np.ndarray] | None
    over_targets: bool = False
    proxy: str | None = None

    @property
    def needs_samples(self) -> bool:
        """Whether the bank must have samples."""
        return self.between is None


COSTS = {
    "hierarchical": Cost(None, over_targets=True, proxy="mean-cosine"),
    "mean-cosine": Cost(mean_cosine, over_targets=True),
    "cosine": Cost(lambda base, targets: pairwise_cost(base.means, targets, "cosine")),
    "cosine-weighted": Cost(lambda base, targets: pairwise_cost(base.weighted_means, targets, "cosine")),
    "euclidean": Cost(lambda base, targets: pairwise_cost(base.means, targets, "euclidean")),
    "euclidean-weighted": Cost(lambda base, targets: pairwise_cost(base.weighted_means, targets, "euclidean")),
}


def class_costs(
    base: PreparedBase, targets: np.ndarray, method: Method, lends: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The method's cost (tasks, B, targets), and the statuses of its low-level problems (any number of them).

    The transport learns it only for base classes that may lend in a task (tasks, B): the others get arbitrary numbers.
    """
    entry = COSTS[method.cost]
    statuses = np.empty((len(targets), 0), dtype=np.int64)
    if entry.between is not None:
        cost = entry.between(base, targets)
    elif not base.buckets:
        raise ParameterError(
            f"The base classes keep no samples, which the {method.cost} cost needs: pass cost='mean-cosine', "
            "or a bank with samples."
        )
    elif lends is None:
        cost, statuses = learned_cost(base.buckets, targets, method.epsilon)
    else:
        # Each task has its own classes. The others get the numbers of the first of them, to stay in its range.
        tasks = [
            learned_cost(_lending(base.buckets, x), targets[i : i + 1], method.epsilon) for i, x in enumerate(lends)
        ]
        places = np.where(lends, np.cumsum(lends, axis=1) - 1, 0)
        cost = np.stack([cost[0, place] for (cost, _), place in zip(tasks, places, strict=True)])
        statuses = np.stack([status[0, place] for (_, status), place in zip(tasks, places, strict=True)])
    if method.cost_scale == "over-targets" and not entry.over_targets:
        cost = cost / targets.shape[1]
    return cost, statuses


def _lending(buckets: Sequence[Bucket], lends: np.ndarray) -> list[Bucket]:
    """The samples of the classes that lend (B,)."""
    rows = [np.flatnonzero(lends[bucket.classes]) for bucket in buckets]
    return [Bucket(b.classes[r], b.units[r], b.mass[r]) for b, r in zip(buckets, rows, strict=True) if len(r)]


# --- eq. 6: the high-level transport

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
