"""Time and marginal error of hotshot's transport against POT's solvers, one thread, the same problems.

    python -m benchmarks.transport [--seed 0] [--seconds 4]

Problems are those of one few-shot task: 64 base classes of 600 samples against 5 or 25 support samples, cosine cost,
uniform marginals, epsilon 0.01. POT's solvers have the paper's 200 iterations; whether that is enough depends on the
features, so every row shows what its plans miss of the marginals.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
import warnings
from collections.abc import Callable

import numpy as np
import ot
import ot.batch
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from hotshot.transport import pairwise_cost, solve

CLASSES, SAMPLES, WIDTH = 64, 600, 64
EPSILON = 0.01
PEER_ITERATIONS = 200

console = Console(width=110)


def centred_features(rng: np.random.Generator, samples: int, support: int) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian classes around Gaussian means, as features are once their mean is subtracted."""
    means = 0.5 * rng.normal(size=(CLASSES, 1, WIDTH))
    return means + rng.normal(size=(CLASSES, samples, WIDTH)), rng.normal(size=(support, WIDTH))


def rectified_features(rng: np.random.Generator, samples: int, support: int) -> tuple[np.ndarray, np.ndarray]:
    """Non-negative, skewed features around a profile per class, as they leave a ReLU: cosines are all large."""
    profile = rng.gamma(2.0, size=(CLASSES, 1, WIDTH))
    base = profile * rng.gamma(1.0, size=(CLASSES, samples, WIDTH))
    return base, rng.gamma(2.0, size=(support, WIDTH)) * rng.gamma(1.0, size=(support, WIDTH))


FEATURES = {"centred": centred_features, "uncentred, post-ReLU": rectified_features}


def pot_loop(method: str) -> Callable[[np.ndarray], np.ndarray]:
    def plans(cost: np.ndarray) -> np.ndarray:
        a, b = (np.full(size, 1.0 / size) for size in cost.shape[1:])
        return np.stack(
            [ot.sinkhorn(a, b, c, EPSILON, method=method, numItermax=PEER_ITERATIONS) for c in cost]
        )

    return plans


def pot_batch(method: str) -> Callable[[np.ndarray], np.ndarray]:
    def plans(cost: np.ndarray) -> np.ndarray:
        # The tolerance is the default one of ot.sinkhorn.
        return ot.batch.solve_batch(cost, EPSILON, method=method, max_iter=PEER_ITERATIONS, tol=1e-9).plan

    return plans


def hotshot_plans(cost: np.ndarray) -> np.ndarray:
    return solve(cost, epsilon=EPSILON).plan


SOLVERS = {
    "hotshot, float64": (hotshot_plans, np.float64),
    "hotshot, float32": (hotshot_plans, np.float32),
    "ot.sinkhorn, loop": (pot_loop("sinkhorn"), np.float64),
    "ot.sinkhorn(sinkhorn_log), loop": (pot_loop("sinkhorn_log"), np.float64),
    "ot.batch.solve_batch(sinkhorn)": (pot_batch("sinkhorn"), np.float64),
    "ot.batch.solve_batch(log_sinkhorn)": (pot_batch("log_sinkhorn"), np.float64),
}


def median_time(run: Callable[[], object], seconds: float) -> tuple[float, int]:
    """Median time of a run and how many runs: as many as `seconds` hold, between 3 and 30."""
    times: list[float] = []
    while len(times) < 3 or (len(times) < 30 and sum(times) < seconds):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times), len(times)


def worst_marginal_error(plan: np.ndarray) -> float:
    """The largest sum of absolute violations of both uniform marginals among (problems, J, S) plans."""
    plan = plan.astype(np.float64)
    rows = np.abs(plan.sum(axis=2) - 1 / plan.shape[1]).sum(axis=1)
    columns = np.abs(plan.sum(axis=1) - 1 / plan.shape[2]).sum(axis=1)
    return float(np.max(rows + columns))


def against_peers(features: str, support: int, seed: int, seconds: float) -> Table:
    x, y = FEATURES[features](np.random.default_rng(seed), SAMPLES, support)
    cost = pairwise_cost(x, y)
    table = _table(
        f"{CLASSES} problems of {SAMPLES} x {support}, {features} features, epsilon {EPSILON}",
        "solver", "ms", "runs", "worst marginal error", "time / hotshot float64",
    )  # fmt: skip
    reference = None
    for name, (solver, dtype) in SOLVERS.items():
        problems = cost.astype(dtype)
        error = worst_marginal_error(solver(problems))
        elapsed, runs = median_time(lambda: solver(problems), seconds)  # noqa: B023
        reference = reference or elapsed
        table.add_row(name, f"{1e3 * elapsed:.1f}", str(runs), f"{error:.1e}", f"{elapsed / reference:.1f}")
    return table


def growth(parameter: str, values: list, seed: int, seconds: float) -> Table:
    """Time of hotshot as one of J, S and 1 / epsilon grows, on centred features."""
    table = _table(
        f"hotshot on {CLASSES} problems as {parameter} grows (J {SAMPLES}, S 5, epsilon {EPSILON} otherwise)",
        parameter, "float64 ms", "iterations", "worst marginal error", "float32 ms",
    )  # fmt: skip
    for value in values:
        setting = {"J": SAMPLES, "S": 5, "1 / epsilon": 1 / EPSILON, parameter: value}
        x, y = centred_features(np.random.default_rng(seed), setting["J"], setting["S"])
        cost, epsilon = pairwise_cost(x, y), 1 / setting["1 / epsilon"]
        solution = solve(cost, epsilon=epsilon)
        times = [
            median_time(lambda: solve(problems, epsilon=epsilon), seconds)[0]  # noqa: B023
            for problems in (cost, cost.astype(np.float32))
        ]
        table.add_row(
            f"{value:g}",
            f"{1e3 * times[0]:.1f}",
            f"{solution.iterations.min()}-{solution.iterations.max()}",
            f"{worst_marginal_error(solution.plan):.1e}",
            f"{1e3 * times[1]:.1f}",
        )
    return table


def _table(title: str, first: str, *others: str) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--seconds", type=float, default=4.0, help="time to spend on each row, where runs are short"
    )
    options = parser.parse_args()
    console.print(
        f"Python {platform.python_version()}, NumPy {np.__version__}, POT {ot.__version__}, "
        f"{platform.machine()} with {os.cpu_count()} CPUs, one thread used, seed {options.seed}. "
        f"Times are medians. POT: at most {PEER_ITERATIONS} iterations and its own stopping rule; "
        "solve_batch runs until the slowest problem of the batch is done."
    )
    with threadpool_limits(1), warnings.catch_warnings():
        # POT warns when its iterations ran out; the table shows by how much.
        warnings.simplefilter("ignore")
        for features in FEATURES:
            for support in (5, 25):
                console.print(against_peers(features, support, options.seed, options.seconds))
        for parameter, values in {
            "J": [150, 300, 600, 1200, 2400, 4800],
            "S": [2, 5, 10, 25, 50, 100],
            "1 / epsilon": [10, 100, 1000, 10_000],
        }.items():
            console.print(growth(parameter, values, options.seed, options.seconds / 8))


if __name__ == "__main__":
    main()
