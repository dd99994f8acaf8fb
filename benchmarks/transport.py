"""Time and marginal error of hotshot's transport and of POT's solvers, on the same problems and one thread.

    python -m benchmarks.transport [--seed 0] [--seconds 1]

Problems are those of one few-shot task: 64 base classes of 600 samples against 5 or 25 support samples, cosine cost,
uniform marginals, epsilon 0.01. POT's solvers are limited to the paper's 200 iterations; whether these suffice depends
on the features, so every row shows the iterations and the marginal error.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
import warnings
from collections.abc import Callable
from functools import partial

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
PEER_TOLERANCE = 1e-9  # the default of ot.sinkhorn

console = Console(width=110)


def centred_features(rng: np.random.Generator, samples: int, support: int) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian classes around Gaussian means, like features after centring."""
    means = 0.5 * rng.normal(size=(CLASSES, 1, WIDTH))
    return means + rng.normal(size=(CLASSES, samples, WIDTH)), rng.normal(size=(support, WIDTH))


def rectified_features(rng: np.random.Generator, samples: int, support: int) -> tuple[np.ndarray, np.ndarray]:
    """Non-negative, skewed features around a profile per class, like outputs of a ReLU: all cosines are large."""
    profile = rng.gamma(2.0, size=(CLASSES, 1, WIDTH))
    base = profile * rng.gamma(1.0, size=(CLASSES, samples, WIDTH))
    return base, rng.gamma(2.0, size=(support, WIDTH)) * rng.gamma(1.0, size=(support, WIDTH))


FEATURES = {"centred": centred_features, "uncentred, post-ReLU": rectified_features}


# A solver takes (problems, J, S) costs and returns the plans and the iterations, per problem or for all.
Solver = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def hotshot_solver(cost: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    solution = solve(cost, epsilon=EPSILON)
    return solution.plan, solution.iterations


def pot_loop(method: str) -> Solver:
    def run(cost: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        a, b = (np.full(size, 1.0 / size) for size in cost.shape[1:])
        options = {"method": method, "numItermax": PEER_ITERATIONS, "stopThr": PEER_TOLERANCE, "log": True}
        plans, logs = zip(*(ot.sinkhorn(a, b, c, EPSILON, **options) for c in cost), strict=True)
        return np.stack(plans), np.array([log["niter"] for log in logs]) + 1

    return run


def pot_batch(method: str) -> Solver:
    def run(cost: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        options = {"method": method, "max_iter": PEER_ITERATIONS, "tol": PEER_TOLERANCE}
        result = ot.batch.solve_batch(cost, EPSILON, **options)
        return result.plan, np.array([result.log["n_iter"] + 1])

    return run


SOLVERS: dict[str, tuple[Solver, type]] = {
    "hotshot, float64": (hotshot_solver, np.float64),
    "hotshot, float32": (hotshot_solver, np.float32),
    "ot.sinkhorn, loop": (pot_loop("sinkhorn"), np.float64),
    "ot.sinkhorn(sinkhorn_log), loop": (pot_loop("sinkhorn_log"), np.float64),
    "ot.batch.solve_batch(sinkhorn)": (pot_batch("sinkhorn"), np.float64),
    "ot.batch.solve_batch(log_sinkhorn)": (pot_batch("log_sinkhorn"), np.float64),
}


def median_times(runs: dict[str, Callable[[], object]], seconds: float) -> dict[str, tuple[float, int]]:
    """Median CPU time and number of runs of each; runs alternate, so that other load affects all alike.

    Each runs at least twice, then up to 30 times while its total time is below `seconds`.
    """
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(30):
        for name, run in runs.items():
            if len(times[name]) < 2 or sum(times[name]) < seconds:
                start = time.process_time()
                run()
                times[name].append(time.process_time() - start)
    return {name: (statistics.median(spent), len(spent)) for name, spent in times.items()}


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
        "solver", "CPU ms", "runs", "iterations", "marginal error", "time / hotshot float64",
    )  # fmt: skip
    found: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def solver_run(name: str) -> Callable[[], None]:
        solver, dtype = SOLVERS[name]
        problems = cost.astype(dtype)

        def run() -> None:
            found[name] = solver(problems)

        return run

    times = median_times({name: solver_run(name) for name in SOLVERS}, seconds)
    reference = times["hotshot, float64"][0]
    for name, (elapsed, runs) in times.items():
        plan, iterations = found[name]
        table.add_row(
            name,
            f"{1e3 * elapsed:.1f}",
            str(runs),
            _range(iterations),
            f"{worst_marginal_error(plan):.1e}",
            f"{elapsed / reference:.1f}",
        )
    return table


def growth(parameter: str, values: list, seed: int, seconds: float) -> Table:
    """Time of hotshot as one of J, S and 1 / epsilon grows, on centred features."""
    table = _table(
        f"hotshot on {CLASSES} problems as {parameter} grows (J {SAMPLES}, S 5, epsilon {EPSILON} otherwise)",
        parameter, "float64 CPU ms", "iterations", "marginal error", "float32 CPU ms",
    )  # fmt: skip
    for value in values:
        setting = {"J": SAMPLES, "S": 5, "1 / epsilon": 1 / EPSILON, parameter: value}
        x, y = centred_features(np.random.default_rng(seed), setting["J"], setting["S"])
        cost, epsilon = pairwise_cost(x, y), 1 / setting["1 / epsilon"]
        solution = solve(cost, epsilon=epsilon)
        problems = {"float64": cost, "float32": cost.astype(np.float32)}
        times = median_times({k: partial(solve, c, epsilon=epsilon) for k, c in problems.items()}, seconds)
        table.add_row(
            f"{value:g}",
            f"{1e3 * times['float64'][0]:.1f}",
            _range(solution.iterations),
            f"{worst_marginal_error(solution.plan):.1e}",
            f"{1e3 * times['float32'][0]:.1f}",
        )
    return table


def _range(iterations: np.ndarray) -> str:
    low, high = iterations.min(), iterations.max()
    return f"{low}" if low == high else f"{low}-{high}"


def _table(title: str, first: str, *others: str) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="seed of the problems (default: 0)")
    parser.add_argument("--seconds", type=float, default=1.0, help="CPU time per row, if two runs take less")
    options = parser.parse_args()
    console.print(
        f"Python {platform.python_version()}, NumPy {np.__version__}, POT {ot.__version__}, "
        f"{platform.machine()} with {os.cpu_count()} CPUs, one thread used, seed {options.seed}. "
        "Times are medians of CPU time; marginal errors are sums of absolute violations of both marginals, the "
        f"worst of all problems. POT stops after {PEER_ITERATIONS} iterations or if the 2-norm of one "
        f"marginal's violation is below {PEER_TOLERANCE:g}; solve_batch stops with its slowest problem."
    )
    with threadpool_limits(1), warnings.catch_warnings():
        # POT warns if it reaches its limit of iterations; the table shows the error.
        warnings.simplefilter("ignore")
        for features in FEATURES:
            for support in (5, 25):
                console.print(against_peers(features, support, options.seed, options.seconds))
        for parameter, values in {
            "J": [150, 300, 600, 1200, 2400, 4800],
            "S": [2, 5, 10, 25, 50, 100],
            "1 / epsilon": [10, 100, 1000, 10_000],
        }.items():
            console.print(growth(parameter, values, options.seed, options.seconds / 4))


if __name__ == "__main__":
    main()
