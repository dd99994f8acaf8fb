"""Time of one fit and predict on a prepared bank, with features of the paper's size.

    python -m benchmarks.estimator

The bank has B = 64 base classes of J = 600 samples with V = 640 post-ReLU features in single precision. The second
table compares the time of the bound head to that of SciPy's L-BFGS-B on the same problem. Times depend on the machine.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from hotshot import BaseClasses, HOTClassifier
from hotshot.method.fit import fit_tasks
from hotshot.method.heads.bound import bound_objective
from hotshot.method.heads.problem import HeadProblem, Training, head_problem, minimise

B, J, V = 64, 600, 640


def features(n_classes: int, per_class: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """One ReLU layer over Gaussian classes in 96 dimensions of decreasing variance: a spectrum like a network's."""
    scales = np.arange(1, 97) ** -0.5
    labels = np.repeat(np.arange(n_classes), per_class)
    centres = rng.normal(size=(n_classes, 96))
    hidden = scales * (centres[labels] + 1.5 * rng.normal(size=(len(labels), 96)))
    X = np.maximum(hidden @ rng.normal(size=(96, V)) / 4 + 0.02 * rng.normal(size=(len(labels), V)), 0)
    return X.astype(np.float32), labels


def median_seconds(run: Callable[[], object], repeats: int) -> float:
    run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def problem_of(base: BaseClasses, model: HOTClassifier, X: np.ndarray, y: np.ndarray) -> HeadProblem:
    prepared = base.prepare(model._space(model.power_))
    support = prepared.transform(X)[None]
    n_classes, method = len(model.classes_), model._method()
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


def main() -> None:
    rng = np.random.default_rng(0)
    X, labels = features(B + 20, J, rng)
    base = BaseClasses.from_samples(X[labels < B], labels[labels < B])
    console = Console(width=110)
    start = time.perf_counter()
    HOTClassifier(base).fit(X[-2 * J :: J], labels[-2 * J :: J])
    console.print(
        f"B={B}, J={J}, V={V}, float32, {os.cpu_count()} cores; bank prepared and first fit in "
        f"{time.perf_counter() - start:.1f} s"
    )
    table = Table(title="fit and predict of 15 queries per class, median time")
    for column in ("task", "setting", "ms", "axes"):
        table.add_column(column)
    for ways, shots in ((5, 1), (5, 5), (20, 5)):
        classes = np.arange(B, B + ways)
        support = np.concatenate([np.flatnonzero(labels == c)[:shots] for c in classes])
        query = np.concatenate([np.flatnonzero(labels == c)[shots : shots + 15] for c in classes])
        for setting, parameters in (
            ("default", {}),
            ("all axes", {"n_components": None}),
            ("per sample", {"per": "sample"}),
            ("mean-cosine cost", {"cost": "mean-cosine"}),
        ):
            model = HOTClassifier(base, **parameters)
            seconds = median_seconds(
                lambda model=model, s=support, q=query: model.fit(X[s], labels[s]).predict(X[q]), 7
            )
            table.add_row(f"{ways}-way-{shots}-shot", setting, f"{1000 * seconds:.1f}", str(model.coef_.shape[1]))
    console.print(table)

    table = Table(title="bound head alone, one thread, compared to SciPy's L-BFGS-B on the same objective")
    for column in ("task", "evaluations", "SciPy's evaluations", "SciPy time / own time"):
        table.add_column(column)
    for ways, shots in ((5, 1), (5, 5)):
        support = np.concatenate([np.flatnonzero(labels == c)[:shots] for c in range(B, B + ways)])
        model = HOTClassifier(base).fit(X[support], labels[support])
        problem = problem_of(base, model, X[support], labels[support] - B)
        # One thread: the thread pools of SciPy and NumPy would compete.
        with threadpool_limits(1):
            theirs = median_seconds(lambda p=problem: scipy_minimum(p), 5)
            ratio = theirs / median_seconds(lambda p=problem: our_minimum(p), 5)
        evaluations = str(our_minimum(problem))
        table.add_row(f"{ways}-way-{shots}-shot", evaluations, str(scipy_minimum(problem)), f"{ratio:.1f}")
    console.print(table)


if __name__ == "__main__":
    main()
