r"""From base classes and targets to transfer weights, by two levels of optimal transport.

The low-level transport (eq. 8) is solved between the samples of each base class and the targets; its total cost per
target is the learned cost (eq. 9). The plan of the high-level transport (eq. 6) between base classes and targets under
that cost determines how much each base class lends to each target. Targets are the support samples, or the means of
the novel classes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral

import numpy as np
from array_api_compat import device

from hotshot.arrays import Array, indices, namespace, to_numpy, unit_vectors
from hotshot.bank import Bucket, PreparedBase
from hotshot.errors import ParameterError
from hotshot.method.parameters import Method
from hotshot.transport import pairwise_cost, solve

# Equal weights on the nearest means instead of a transport, as in Free-Lunch, and their default number.
NEAREST, FREE_LUNCH_NEIGHBOURS = "nearest", 2
LEAST_WEIGHT = 1e-30
# In banks of up to this many classes all of them may lend; in larger ones the nearest to each target.
ALL_UP_TO, RETRIEVED = 512, 100
COST_SCALES = ("published", "over-targets")


@dataclass(frozen=True)
class ClassCost:
    """A cost between base classes and targets.

    Attributes
    ----------
    cost : array (tasks, B, targets)
        In the published scale.
    low_status : integer array (tasks, B) or None
        Status of each low-level problem, if there are any; CONVERGED for a base class that is left out.
    low_plans : list of arrays (tasks, J, targets) or None
        M^b for each base class, if requested; rows beyond its own J_b samples are padding and zero.
    """

    cost: Array
    low_status: Array | None = None
    low_plans: list[Array] | None = None


@dataclass(frozen=True)
class Transfer:
    """Transfer weights of the targets of a batch of tasks, and the transport they come from.

    Attributes
    ----------
    weights : array (tasks, B, targets)
        Transfer weights: columns sum to 1.
    cost : array (tasks, B, targets)
        Cost of the high-level transport; for the hierarchical cost the learned cost C_bn of eq. 9. Rows of base
        classes that retrieval left out of a task are undefined.
    plan : array (tasks, B, targets) or None
        High-level plan T_bn.
    high_status : integer array (tasks,) or None
    low_status, low_plans
        As in ``ClassCost``.
    """

    weights: Array
    cost: Array
    plan: Array | None = None
    high_status: Array | None = None
    low_status: Array | None = None
    low_plans: list[Array] | None = None


def transfer_weights(base: PreparedBase, targets: Array, method: Method, keep_low_plans: bool = False) -> Transfer:
    r"""Transfer weights :math:`w_{bn} = S\, T_{bn}` from the high-level transport (eq. 6).

    .. math::
        T = \arg\min_T \sum_{bn} C_{bn} T_{bn} + \epsilon \sum_{bn} T_{bn} \log T_{bn}
        \quad \text{with} \quad \sum_n T_{bn} = 1/B, \; \sum_b T_{bn} = 1/S.

    Parameters
    ----------
    targets : array (tasks, targets, V)
        In the space of the bank.
    method : Method
        Its cost is a name in ``COSTS``, or "nearest" for equal weights on the nearest means. With ``n_retrieved`` the
        transport runs over all classes that are near some target, and each target keeps its own.
    keep_low_plans : bool
        Whether the low-level plans are returned too.
    """
    xp = namespace(targets, base.means)
    n_targets, n_classes = targets.shape[1], base.means.shape[0]
    cost, epsilon, n_retrieved = method.cost, method.epsilon, method.n_retrieved
    if cost == NEAREST:
        return nearest_weights(base, targets, neighbours(n_retrieved, n_classes))
    entry = COSTS[cost]
    if entry.needs_samples and not base.buckets:
        raise ParameterError(
            f"The base classes keep no samples, which the {cost} cost needs: pass cost='mean-cosine', "
            "or a bank with samples."
        )
    near = None
    if n_retrieved == "auto":
        n_retrieved = None if n_classes <= ALL_UP_TO else RETRIEVED
    if n_retrieved is not None and int(n_retrieved) < n_classes:
        proxy = COSTS[entry.proxy].between(base, targets, epsilon, None, False).cost
        near = _nearest(proxy, int(n_retrieved))

    found = entry.between(base, targets, epsilon, near, keep_low_plans)
    class_cost = found.cost
    if method.cost_scale == "over-targets" and not entry.over_targets:
        class_cost = class_cost / n_targets

    mass = None
    if near is not None:
        lends = xp.astype(xp.any(near, axis=2), targets.dtype)
        mass = lends / xp.sum(lends, axis=1, keepdims=True)
    solution = solve(class_cost, mass, epsilon=epsilon).raise_for_status()
    weights = n_targets * solution.plan
    if near is not None:
        # The least weight matters only if the balance has sent all mass of a target to other classes.
        weights = xp.where(near, xp.maximum(weights, LEAST_WEIGHT), xp.zeros_like(weights))
    # The columns of a converged plan sum to 1/S up to its tolerance; a distribution sums to 1.
    weights = weights / xp.sum(weights, axis=1, keepdims=True)
    return Transfer(weights, class_cost, solution.plan, solution.status, found.low_status, found.low_plans)


def neighbours(n_retrieved: int | str | None, n_classes: int) -> int:
    """Number of nearest base classes, of B, that lend in equal parts."""
    wanted = n_retrieved if isinstance(n_retrieved, Integral) else FREE_LUNCH_NEIGHBOURS
    return min(int(wanted), n_classes)


def nearest_weights(base: PreparedBase, targets: Array, k: int) -> Transfer:
    """Free-Lunch's weights (eq. 3): 1/k for the k base classes whose means are nearest."""
    distances = pairwise_cost(base.means, targets, "squared-euclidean")
    near = _nearest(distances, k)
    xp = namespace(near)
    weights = xp.astype(near, targets.dtype)
    return Transfer(weights / xp.sum(weights, axis=1, keepdims=True), cost=distances)


def _nearest(distances: Array, k: int) -> Array:
    """Which k base classes are nearest to each target, of equally near ones the first: (tasks, B, targets)."""
    xp = namespace(distances)
    order = xp.argsort(distances, axis=1, stable=True)
    return xp.argsort(order, axis=1, stable=True) < k


def _learned_cost(
    base: PreparedBase, targets: Array, epsilon: float, near: Array | None, keep_plans: bool
) -> ClassCost:
    r""":math:`C_{bn} = \sum_j D_{jn} M^b_{jn}` (eq. 9), from the low-level transport (eq. 8).

    All classes share one batch for all tasks, unless only some are ``near``, which differ between tasks.
    """
    xp = namespace(targets)
    units = unit_vectors(targets)
    if near is None:
        return _low_level(base.buckets, units, epsilon, keep_plans)
    lends = to_numpy(xp.any(near, axis=2))
    costs, statuses, plans_of_tasks = [], [], []
    for task, chosen in enumerate(lends):
        subsets = [_subset(bucket, chosen) for bucket in base.buckets]
        buckets = tuple(bucket for bucket in subsets if len(bucket.classes))
        found = _low_level(buckets, units[task : task + 1, ...], epsilon, keep_plans)
        # Classes that lend nothing have no mass in the high-level transport: their cost is arbitrary.
        place = indices(np.where(chosen, np.cumsum(chosen) - 1, 0), units)
        costs.append(xp.take(found.cost, place, axis=1))
        statuses.append(xp.take(found.low_status, place, axis=1))
        plans_of_tasks.append(dict(zip(np.flatnonzero(chosen), found.low_plans or [], strict=False)))
    low_plans = _stack_plans(base, targets, plans_of_tasks) if keep_plans else None
    return ClassCost(xp.concat(costs, axis=0), xp.concat(statuses, axis=0), low_plans)


def _low_level(buckets: tuple[Bucket, ...], units: Array, epsilon: float, keep_plans: bool) -> ClassCost:
    r""":math:`M^b` (eq. 8) and :math:`C_{bn}` (eq. 9) for every class of the buckets, in the order of their indices."""
    xp = namespace(units)
    n_tasks, n_targets, width = units.shape
    points = xp.reshape(units, (n_tasks * n_targets, width))
    costs: list[Array] = []
    statuses: list[Array] = []
    plans: list[Array] = []
    for bucket in buckets:
        n_classes, size, _ = bucket.units.shape
        # One product per class for all tasks, in the layout that is fastest for the solver: samples last.
        similarity = points @ xp.matrix_transpose(bucket.units)
        distance = xp.matrix_transpose(1 - xp.reshape(similarity, (n_classes, n_tasks, n_targets, size)))
        mass = xp.broadcast_to(bucket.mass[:, None, :], (n_classes, n_tasks, size))
        solution = solve(distance, mass, epsilon=epsilon).raise_for_status()
        # Eq. 9: C_bn = sum_j D_jn M_jn.
        costs.append(xp.sum(distance * solution.plan, axis=2))
        statuses.append(solution.status)
        if keep_plans:
            plans.extend(solution.plan[i, ...] for i in range(n_classes))
    order = np.concatenate([bucket.classes for bucket in buckets])
    back = np.argsort(order)
    place = indices(back, units)
    cost = xp.permute_dims(xp.take(xp.concat(costs, axis=0), place, axis=0), (1, 0, 2))
    status = xp.permute_dims(xp.take(xp.concat(statuses, axis=0), place, axis=0), (1, 0))
    return ClassCost(cost, status, [plans[i] for i in back] if keep_plans else None)


def _subset(bucket: Bucket, lends: np.ndarray) -> Bucket:
    keep = np.flatnonzero(lends[bucket.classes])
    rows = indices(keep, bucket.units)
    take = namespace(bucket.units).take
    return Bucket(bucket.classes[keep], take(bucket.units, rows, axis=0), take(bucket.mass, rows, axis=0))


def _stack_plans(base: PreparedBase, targets: Array, of_tasks: list[dict[int, Array]]) -> list[Array]:
    """Plans (tasks, J, targets) of every base class; zero for tasks that it lends nothing to."""
    xp = namespace(targets)
    stacked = []
    for b in range(base.means.shape[0]):
        size = next(bucket.mass.shape[1] for bucket in base.buckets if b in bucket.classes)
        nothing = xp.zeros((1, size, targets.shape[1]), dtype=targets.dtype, device=device(targets))
        stacked.append(xp.concat([plans.get(b, nothing) for plans in of_tasks], axis=0))
    return stacked


def _mean_cosine(base: PreparedBase, targets: Array, *_: object) -> ClassCost:
    r""":math:`\sum_j p_j (1 - \cos(x_j, y_n)) / S`: mean cosine distance to the samples of a class, weighted."""
    similarity = base.mean_units @ namespace(targets).matrix_transpose(unit_vectors(targets))
    return ClassCost((1 - similarity) / targets.shape[1])


@dataclass(frozen=True)
class Cost:
    """An entry of ``COSTS``.

    Attributes
    ----------
    between : function of a PreparedBase, targets, epsilon, near (tasks, B, targets) or None, and keep_low_plans
        Returns a ``ClassCost`` in the published scale.
    over_targets : bool
        Whether that scale is divided by the number of targets.
    proxy : str
        The cost, of those that need no samples, by which the nearest base classes are retrieved.
    needs_samples : bool
    """

    between: Callable[[PreparedBase, Array, float, Array | None, bool], ClassCost]
    over_targets: bool
    proxy: str
    needs_samples: bool = False


def distance_to(means: str, kind: str, name: str) -> Cost:
    """The cost ``name``: a distance to the means in the attribute ``means`` of the bank."""
    return Cost(
        lambda base, targets, *_: ClassCost(pairwise_cost(getattr(base, means), targets, kind)),
        over_targets=False,
        proxy=name,
    )


COSTS: dict[str, Cost] = {
    "hierarchical": Cost(_learned_cost, over_targets=True, proxy="mean-cosine", needs_samples=True),
    "mean-cosine": Cost(_mean_cosine, over_targets=True, proxy="mean-cosine"),
    "cosine": distance_to("means", "cosine", "cosine"),
    "cosine-weighted": distance_to("weighted_means", "cosine", "cosine-weighted"),
    "euclidean": distance_to("means", "euclidean", "euclidean"),
    "euclidean-weighted": distance_to("weighted_means", "euclidean", "euclidean-weighted"),
}
