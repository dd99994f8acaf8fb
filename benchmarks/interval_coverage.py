"""How often 95% intervals contain the accuracy on new classes, on synthetic classes whose accuracy is known.

Classes are Gaussians drawn from a known population: random means in 16 dimensions and a random spread per class, which
makes some classes hard and some easy. Every repetition draws new classes, 60 samples of each, and 5-way-1-shot tasks
with 15 queries per class. The two methods choose the nearest support sample by Euclidean distance and by cosine. The
true accuracy is a mean over many tasks, each with new classes. An interval over tasks accounts for the random tasks
only, an interval over classes also for the random classes.
"""

from __future__ import annotations

import numpy as np

from benchmarks.shared import Seed, Tasks, say, show
from hotshot.evaluation.tables import Cell, Table
from hotshot.intervals import class_interval, mean_interval

NUMBERS_OF_CLASSES = (16, 30, 60)
WAYS, QUERIES, SAMPLES, WIDTH = 5, 15, 60, 16
# The standard deviation of the logarithm of the spread.
HETEROGENEITY = 0.4
POPULATION_TASKS, POPULATION_STEP = 200_000, 2000
QUANTITIES = ("mean", "paired difference")


def main(repetitions: int = 500, tasks: Tasks = 400, seed: Seed = 0) -> None:
    truth = population_accuracies(np.random.default_rng([seed, 1]))
    say(f"True accuracy: {100 * truth[0]:.2f}% by Euclidean distance, {100 * truth[1]:.2f}% by cosine.")
    rows: list[tuple[Cell, ...]] = []
    for n in NUMBERS_OF_CLASSES:
        found = np.mean([repeated(np.random.default_rng([seed, n, i]), n, tasks, truth) for i in range(repetitions)], 0)
        for what, intervals in zip(QUANTITIES, found, strict=True):
            cells = (text for share, width in intervals for text in (f"{share:.1%}", f"{100 * width:.2f}"))
            rows.append((str(n), what, *cells))
    columns = ("classes", "quantity", "over classes", "± in %", "over tasks", "± in %")
    title = f"Coverage of 95% intervals, {repetitions} repetitions of {tasks} tasks, seed {seed}"
    show(Table(title, columns, tuple(rows)))


def repeated(rng: np.random.Generator, n: int, tasks: int, truth: np.ndarray) -> list[list[tuple[bool, float]]]:
    """Whether intervals over classes and over tasks contain the truth, and their half widths, for each quantity."""
    classes, drawn = draw_tasks(rng, draw_classes(rng, n, SAMPLES), tasks)
    one, other = accuracies(drawn)
    return [
        [
            (interval.low <= wanted <= interval.high, interval.half_width)
            for interval in (class_interval(values, classes), mean_interval(values))
        ]
        for values, wanted in ((one, truth[0]), (one - other, truth[0] - truth[1]))
    ]


def draw_classes(rng: np.random.Generator, n: int, samples: int) -> np.ndarray:
    """Samples (n, samples, V) of n random classes."""
    means = rng.normal(size=(n, 1, WIDTH))
    spreads = np.exp(HETEROGENEITY * rng.normal(size=(n, 1, 1)))
    return means + spreads * rng.normal(size=(n, samples, WIDTH))


def draw_tasks(rng: np.random.Generator, X: np.ndarray, tasks: int) -> tuple[np.ndarray, np.ndarray]:
    """Classes (tasks, ways) of tasks drawn from X (n, samples, V), and their samples (tasks, ways, 1 + queries, V)."""
    n, samples = X.shape[:2]
    classes = rng.permuted(np.tile(np.arange(n), (tasks, 1)), axis=1)[:, :WAYS]
    rows = rng.permuted(np.tile(np.arange(samples), (tasks * WAYS, 1)), axis=1)[:, : 1 + QUERIES]
    return classes, X[classes[..., None], rows.reshape(tasks, WAYS, -1)]


def accuracies(drawn: np.ndarray) -> np.ndarray:
    """Accuracy (2, tasks) by Euclidean distance and by cosine; the first sample of a class is its support."""
    tasks, ways, _, width = drawn.shape
    support, queries = drawn[:, :, 0], drawn[:, :, 1:].reshape(tasks, -1, width)
    truth = np.repeat(np.arange(ways), queries.shape[1] // ways)
    squares = np.sum(support**2, axis=2)[:, None]
    products = queries @ support.transpose(0, 2, 1)
    scores = (products - squares / 2, products / np.sqrt(squares))
    return np.stack([np.mean(np.argmax(score, axis=2) == truth, axis=1) for score in scores])


def population_accuracies(rng: np.random.Generator) -> np.ndarray:
    """True accuracy of both methods: the mean over tasks that each have new classes."""
    parts = []
    for _ in range(POPULATION_TASKS // POPULATION_STEP):
        X = draw_classes(rng, POPULATION_STEP * WAYS, 1 + QUERIES)
        parts.append(accuracies(X.reshape(POPULATION_STEP, WAYS, 1 + QUERIES, WIDTH)))
    return np.concatenate(parts, axis=1).mean(axis=1)
