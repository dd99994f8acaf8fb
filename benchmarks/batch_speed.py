"""Time and memory of a large batch that is classified jointly, beside PT-MAP and the same queries one by one.

Features are synthetic; every class has three examples. Memory is the peak of the process, in which PT-MAP runs last.
"""

from __future__ import annotations

import numpy as np

from benchmarks.shared import peak_memory, show, timed
from hotshot import BaseClasses, HOTClassifier, named_method
from hotshot.evaluation.tables import Cell, Table

NOISE, SHOTS = 1.5, 3


def main(queries: int = 10_000, classes: int = 100, width: int = 384) -> None:
    rng = np.random.default_rng(0)
    centres = 0.6 * rng.normal(size=(2 * classes, width))

    def drawn(labels: np.ndarray) -> np.ndarray:
        return (centres[labels] + NOISE * rng.normal(size=(len(labels), width))).astype(np.float32)

    names = np.array([f"class {i:04}" for i in range(2 * classes)])
    old = np.repeat(np.arange(classes), 60)
    new = classes + np.repeat(np.arange(classes), SHOTS)
    query_labels = classes + rng.integers(classes, size=queries)
    base = BaseClasses.from_samples(drawn(old), names[old])
    support, X = drawn(new), drawn(query_labels)
    model = HOTClassifier(base).fit(support, names[new])
    rival = named_method("pt-map", base)
    rows: list[tuple[Cell, ...]] = []
    for name, answer in (
        ("hot, one by one", model.predict),
        ("hot, jointly", model.predict_batch),
        ("pt-map, jointly", lambda X: rival.fit(support, names[new]).predict_batch(X)),
    ):
        answers, seconds = timed(lambda answer=answer: answer(X))
        rows.append((name, f"{seconds:.2f}", f"{np.mean(answers == names[query_labels]):.2%}", peak_memory()))
    title = f"{queries:,} queries, {classes} classes, {width} features"
    show(Table(title, ("method", "seconds", "right", "peak memory so far"), tuple(rows)))
