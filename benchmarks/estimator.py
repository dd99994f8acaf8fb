"""Time of one fit and predict on a prepared bank, with features of the paper's size.

The bank has B = 64 base classes of J = 600 samples with V = 640 post-ReLU features in single precision. The second
table compares the time of the bound head to that of SciPy's L-BFGS-B on the same problem. Times depend on the machine.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Annotated

import numpy as np
import typer
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from benchmarks.shared import median_seconds, say, show, synthetic, timed
from hotshot import BaseClasses, HOTClassifier
from hotshot.evaluation.tables import Cell, Table
from hotshot.method.fit import fit_tasks
from hotshot.method.heads.bound import bound_objective
from hotshot.method.heads.problem import HeadProblem, Training, head_problem, minimise

SETTINGS = {
    "default": {},
    "all axes": {"n_components": None},
    "per sample": {"per": "sample"},
    "mean-cosine cost": {"cost": "mean-cosine"},
}


def main(shrink: Annotated[int, typer.Option(help="Divisor of B, J and V, for a quick trial.")] = 1) -> None:
    base, X, labels = synthetic(64 // shrink, 600 // shrink, 640 // shrink, seed=0, novel=(20, 20), decay=0.5)
    places = np.arange(len(labels)) % 20

    def rows(ways: int, first: int, last: int) -> np.ndarray:
        return np.flatnonzero((labels < ways) & (first <= places) & (places < last))

    _, seconds = timed(lambda: HOTClassifier(base).fit(X[rows(2, 0, 1)], labels[rows(2, 0, 1)]))
    sizes = f"B={len(base.names)}, J={base.counts[0]}, V={base.n_features}"
    say(f"{sizes}, float32, {os.cpu_count()} cores; bank prepared and first fit in {seconds:.1f} s")
    times: list[tuple[Cell, ...]] = []
    for ways, shots in ((5, 1), (5, 5), (20, 5)):
        support, query = rows(ways, 0, shots), rows(ways, shots, shots + 15)
        for setting, parameters in SETTINGS.items():
            model = HOTClassifier(base, **parameters)
            run = lambda model=model, s=support, q=query: model.fit(X[s], labels[s]).predict(X[q])  # noqa: E731
            milliseconds = f"{1000 * median_seconds(run, 7):.1f}"
            times.append((f"{ways}-way-{shots}-shot", setting, milliseconds, str(model.coef_.shape[1])))
    show(Table("fit and predict of 15 queries per class, median time", ("task", "setting", "ms", "axes"), tuple(times)))

    heads: list[tuple[Cell, ...]] = []
    for shots in (1, 5):
        support = rows(5, 0, shots)
        problem = problem_of(base, X[support], labels[support])
        # One thread: the thread pools of SciPy and NumPy would compete.
        with threadpool_limits(1):
            theirs, ours = (median_seconds(partial(f, problem), 5) for f in (scipy_minimum, our_minimum))
        evaluations = str(our_minimum(problem)), str(scipy_minimum(problem))
        heads.append((f"5-way-{shots}-shot", *evaluations, f"{theirs / ours:.1f}"))
    columns = ("task", "evaluations", "SciPy's evaluations", "SciPy time / own time")
    show(Table("bound head, one thread, compared to SciPy's L-BFGS-B on the same objective", columns, tuple(heads)))


def problem_of(base: BaseClasses, X: np.ndarray, y: np.ndarray) -> HeadProblem:
    prepared, method = HOTClassifier(base).parts()
    support, n_classes = prepared.transform(X)[None], len(np.unique(y))
    fitted = fit_tasks(prepared, support, y[None], method, n_classes=n_classes)
    return head_problem(Training(prepared, fitted.gaussians, support, y[None], n_classes, method, ()))


def scipy_minimum(problem: HeadProblem) -> int:
    """Minimise with SciPy's L-BFGS-B at its default tolerances; returns the number of evaluations."""
    shape = (1, problem.n_classes, problem.points.shape[2])

    def value_and_gradient(x: np.ndarray) -> tuple[float, np.ndarray]:
        found = bound_objective(problem, x.reshape(shape).astype(np.float32))
        return float(found.value[0]), found.gradient.ravel().astype(np.float64)

    return int(minimize(value_and_gradient, np.zeros(np.prod(shape)), jac=True, method="L-BFGS-B").nfev)


def our_minimum(problem: HeadProblem) -> int:
    start = np.zeros((1, problem.n_classes, problem.points.shape[2]), dtype=np.float32)
    return minimise(problem, bound_objective, start).iterations + 1
