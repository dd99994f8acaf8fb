"""Time and marginal error of hotshot's transport and of POT's solvers, on the same problems and one thread.

Problems are those of one few-shot task: 64 base classes of 600 samples against 5 or 25 support samples, cosine cost,
uniform marginals, epsilon 0.01. POT's solvers are limited to the paper's 200 iterations; whether these suffice depends
on the features, so every row shows the iterations and the marginal error. Times are medians of CPU time; a marginal
error is the sum of absolute violations of both marginals, the worst of all problems. `solve_batch` stops with its
slowest problem.
"""

from __future__ import annotations

import platform
import statistics
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import numpy as np
import ot
import ot.batch
import typer
from threadpoolctl import threadpool_limits

from benchmarks.shared import Seed, say, show, timed
from hotshot.evaluation.tables import Cell, Table
from hotshot.transport import pairwise_cost, solve

CLASSES, SAMPLES, WIDTH = 64, 600, 64
EPSILON = 0.01
PEER_ITERATIONS = 200
PEER_TOLERANCE = 1e-9  # the default of ot.sinkhorn


def main(
    seed: Seed = 0, seconds: Annotated[float, typer.Option(help="CPU time per row, if two runs take less.")] = 1.0
) -> None:
    say(f"Python {platform.python_version()}, NumPy {np.__version__}, POT {ot.__version__}, one thread, seed {seed}.")
    # POT warns if it reaches its limit of iterations; the table shows the error.
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        for features in FEATURES:
            for support in (5, 25):
                show(against_peers(features, support, seed, seconds))


def centred_features(rng: np.random.Generator, samples: int, support: int) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian classes around Gaussian means, like features after centring."""
    means = 0.5 * rng.normal(size=(CLASSES, 1, WIDTH))
    return means + rng.normal(size=(CLASSES, samples, WIDTH)), rng.normal(size=(support, WIDTH))


def rectified_features(rng: np.random.Generator, samples: int, support: int) -> tuple[np.ndarray, np.ndarray]:
    """Non-negative, skewed features around a profile per class, like outputs of a ReLU: all cosines are large."""
    base = rng.gamma(2.0, size=(CLASSES, 1, WIDTH)) * rng.gamma(1.0, size=(CLASSES, samples, WIDTH))
    return base, rng.gamma(2.0, size=(support, WIDTH)) * rng.gamma(1.0, size=(support, WIDTH))


FEATURES = {"centred": centred_features, "uncentred, post-ReLU": rectified_features}


# A solver takes (problems, J, S) costs and returns the plans and the iterations, per problem or for all.
Solver = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def hotshot_solver(cost: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    solution = solve(cost, epsilon=EPSILON)
    return solution.plan, solution.iterations


def pot_loop(method: str, cost: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    a, b = (np.full(size, 1.0 / size) for size in cost.shape[1:])
    options = {"method": method, "numItermax": PEER_ITERATIONS, "stopThr": PEER_TOLERANCE, "log": True}
    plans, logs = zip(*(ot.sinkhorn(a, b, c, EPSILON, **options) for c in cost), strict=True)
    return np.stack(plans), np.array([log["niter"] for log in logs]) + 1


def pot_batch(method: str, cost: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    result = ot.batch.solve_batch(cost, EPSILON, method=method, max_iter=PEER_ITERATIONS, tol=PEER_TOLERANCE)
    return result.plan, np.array([result.log["n_iter"] + 1])


SOLVERS: dict[str, tuple[Solver, type]] = {
    "hotshot, float64": (hotshot_solver, np.float64),
    "hotshot, float32": (hotshot_solver, np.float32),
    "ot.sinkhorn, loop": (partial(pot_loop, "sinkhorn"), np.float64),
    "ot.sinkhorn(sinkhorn_log), loop": (partial(pot_loop, "sinkhorn_log"), np.float64),
    "ot.batch.solve_batch(sinkhorn)": (partial(pot_batch, "sinkhorn"), np.float64),
    "ot.batch.solve_batch(log_sinkhorn)": (partial(pot_batch, "log_sinkhorn"), np.float64),
}


def median_times(runs: dict[str, Callable[[], Any]], seconds: float) -> dict[str, tuple[float, int, Any]]:
    """Median CPU time, number of runs and result of each; runs alternate, so that other load affects all alike.

    Each runs at least twice, then up to 30 times while its total time is below `seconds`.
    """
    times: dict[str, list[float]] = {name: [] for name in runs}
    results = {}
    for _ in range(30):
        for name, run in runs.items():
            if len(times[name]) < 2 or sum(times[name]) < seconds:
                results[name], spent = timed(run, time.process_time)
                times[name].append(spent)
    return {name: (statistics.median(times[name]), len(times[name]), results[name]) for name in runs}


def worst_marginal_error(plan: np.ndarray) -> str:
    """The largest sum of absolute violations of both uniform marginals among (problems, J, S) plans."""
    plan = plan.astype(np.float64)
    rows = np.abs(plan.sum(axis=2) - 1 / plan.shape[1]).sum(axis=1)
    columns = np.abs(plan.sum(axis=1) - 1 / plan.shape[2]).sum(axis=1)
    return f"{np.max(rows + columns):.1e}"


def against_peers(features: str, support: int, seed: int, seconds: float) -> Table:
    cost = pairwise_cost(*FEATURES[features](np.random.default_rng(seed), SAMPLES, support))
    runs = {name: partial(solver, cost.astype(dtype)) for name, (solver, dtype) in SOLVERS.items()}
    times = median_times(runs, seconds)
    reference = times["hotshot, float64"][0]
    rows: list[tuple[Cell, ...]] = []
    for name, (elapsed, n_runs, (plan, iterations)) in times.items():
        error, ratio = worst_marginal_error(plan), f"{elapsed / reference:.1f}"
        rows.append((name, f"{1e3 * elapsed:.1f}", str(n_runs), _range(iterations), error, ratio))
    title = f"{CLASSES} problems of {SAMPLES} x {support}, {features} features, epsilon {EPSILON}"
    columns = ("solver", "CPU ms", "runs", "iterations", "marginal error", "time / hotshot float64")
    return Table(title, columns, tuple(rows))


def _range(iterations: np.ndarray) -> str:
    low, high = iterations.min(), iterations.max()
    return f"{low}" if low == high else f"{low}-{high}"
