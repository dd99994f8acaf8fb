"""Transport problems: some with known plans, some from random families, all as NumPy float64."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st


@dataclass(frozen=True)
class Problem:
    """Costs (…, J, S), marginals (…, J) and (…, S), epsilon, and the plan where it is known to `within`."""

    cost: np.ndarray
    a: np.ndarray
    b: np.ndarray
    epsilon: float
    plan: np.ndarray | None = None
    within: float = 1e-8

    def astype(self, dtype) -> Problem:
        """The same problem in another precision."""
        return replace(self, cost=self.cost.astype(dtype), a=self.a.astype(dtype), b=self.b.astype(dtype))


def random_masses(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Masses between 0.1 and 1, scaled to unit total."""
    mass = rng.uniform(0.1, 1.0, size=shape)
    return mass / mass.sum(axis=-1, keepdims=True)


# Problems with known plans.


def one_target() -> Problem:
    """All mass goes to one point: the plan is the other marginal."""
    rng = np.random.default_rng(1)
    a = random_masses(rng, 7)
    return Problem(rng.random((7, 1)), a, np.ones(1), 0.01, a[:, None])


def diracs() -> Problem:
    """Each of three problems of 4 x 3 has a single source and a single target that carry mass."""
    rng = np.random.default_rng(2)
    a, b = np.eye(4)[[0, 3, 1]], np.eye(3)[[2, 1, 1]]
    return Problem(rng.random((3, 4, 3)), a, b, 0.05, a[:, :, None] * b[:, None, :])


def permutation(size: int = 6) -> Problem:
    """Cost 0 on a permutation and 1 elsewhere; what leaks at epsilon 0.01 is exp(-100)."""
    matrix = np.eye(size)[np.random.default_rng(3).permutation(size)]
    mass = np.full(size, 1 / size)
    return Problem(1 - matrix, mass, mass, 0.01, matrix / size)


def separable(epsilon: float = 0.02) -> Problem:
    """Costs f_j + g_n do not care who goes where: the plan is the product of the marginals."""
    rng = np.random.default_rng(4)
    cost = rng.random((9, 1)) + rng.random((1, 4))
    a, b = random_masses(rng, 9), random_masses(rng, 4)
    return Problem(cost, a, b, epsilon, np.outer(a, b))


def two_by_two(epsilon: float = 0.1, seed: int = 6) -> Problem:
    """The odds ratio t (1 - a - b + t) / ((a - t) (b - t)) of a 2 x 2 plan is that of exp(-C / epsilon)."""
    rng = np.random.default_rng(seed)
    cost = rng.random((2, 2))
    if cost[0, 0] + cost[1, 1] < cost[0, 1] + cost[1, 0]:
        cost = cost[:, ::-1].copy()
    a, b = random_masses(rng, 2), random_masses(rng, 2)
    odds = np.exp(-(cost[0, 0] + cost[1, 1] - cost[0, 1] - cost[1, 0]) / epsilon)
    half = 1 + (odds - 1) * (a[0] + b[0])
    root = np.sqrt(half**2 + 4 * (1 - odds) * odds * a[0] * b[0])
    t = 2 * odds * a[0] * b[0] / (half + root) if half > 0 else (root - half) / (2 - 2 * odds)
    return Problem(cost, a, b, epsilon, np.array([[t, a[0] - t], [b[0] - t, 1 - a[0] - b[0] + t]]))


def sorted_line() -> Problem:
    """Sorted points and squared distances: the exact plan is monotone, the north-west corner rule."""
    x = np.arange(6) / 6
    y = np.array([0.05, 0.45, 0.95])
    # Partial sums of the two marginals never meet, so the exact plan is unique and epsilon may be tiny.
    a, b = np.full(6, 1 / 6), np.array([0.25, 0.33, 0.42])
    edges = np.concatenate([[0.0], np.cumsum(b)])
    starts = np.concatenate([[0.0], np.cumsum(a)])
    overlap = np.minimum(starts[1:, None], edges[None, 1:]) - np.maximum(starts[:-1, None], edges[None, :-1])
    return Problem((x[:, None] - y) ** 2, a, b, 1e-4, np.clip(overlap, 0, None), within=1e-6)


KNOWN = {
    "one target": one_target,
    "diracs": diracs,
    "permutation": permutation,
    "separable": separable,
    "2 x 2": two_by_two,
    "sorted line": sorted_line,
}


# Random families, with costs between 0 and 1.


def uniform_costs(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.random(shape)


def cosine_costs(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Half the cosine distance between random features around two centres."""
    *batch, rows, columns = shape
    x = rng.normal(size=(*batch, rows, 12)) + rng.normal(size=(*batch, 1, 12))
    y = rng.normal(size=(*batch, columns, 12))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    y /= np.linalg.norm(y, axis=-1, keepdims=True)
    return np.clip(0.5 - 0.5 * x @ np.swapaxes(y, -1, -2), 0, 1)


def tied_costs(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Four values only, so that many exact plans are as good as one another."""
    return rng.integers(0, 4, size=shape) / 3


def heavy_tailed_costs(rng: np.random.Generator, *shape: int) -> np.ndarray:
    cost = rng.standard_cauchy(shape) ** 2
    return cost / cost.max()


FAMILIES = {"uniform": uniform_costs, "cosine": cosine_costs, "tied": tied_costs, "heavy tailed": heavy_tailed_costs}


def random_problem(
    family: str = "uniform",
    rows: int = 20,
    columns: int = 5,
    epsilon: float = 0.05,
    seed: int = 0,
    batch: tuple[int, ...] = (),
) -> Problem:
    rng = np.random.default_rng(seed)
    cost = FAMILIES[family](rng, *batch, rows, columns)
    return Problem(cost, random_masses(rng, *batch, rows), random_masses(rng, *batch, columns), epsilon)


def padded(problems: list[Problem], filler: float = 0.0) -> Problem:
    """Problems of different sizes in one batch, filled up with points of no mass."""
    rows = max(p.cost.shape[0] for p in problems)
    columns = max(p.cost.shape[1] for p in problems)
    cost = np.full((len(problems), rows, columns), filler)
    a, b = np.zeros((len(problems), rows)), np.zeros((len(problems), columns))
    for k, p in enumerate(problems):
        j, s = p.cost.shape
        cost[k, :j, :s], a[k, :j], b[k, :s] = p.cost, p.a, p.b
    return Problem(cost, a, b, problems[0].epsilon)


def problems(lowest_epsilon: float = 1e-3, batch: tuple[int, ...] = ()) -> st.SearchStrategy[Problem]:
    """Hypothesis strategy: a random problem of any family, small shape and epsilon up to 10."""
    return st.builds(
        random_problem,
        family=st.sampled_from(list(FAMILIES)),
        rows=st.integers(1, 24),
        columns=st.integers(1, 8),
        epsilon=st.floats(np.log10(lowest_epsilon), 1.0).map(lambda power: 10.0**power),
        seed=st.integers(0, 10_000),
        batch=st.just(batch),
    )
