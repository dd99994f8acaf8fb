"""Time and memory of a large batch that is classified jointly, beside PT-MAP and the same queries one by one.

    python -m benchmarks.batch_speed [--queries 10000] [--classes 100] [--width 384]

Features are synthetic; every class has three examples. Memory is the peak of the process, in which PT-MAP runs last.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from hotshot import BaseClasses, HOTClassifier, named_method

NOISE, SHOTS = 1.5, 3


def peak() -> str:
    """The peak memory of this process so far."""
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB"


def timed(name: str, answer: Callable[[Any], np.ndarray], X: np.ndarray, labels: np.ndarray) -> None:
    """Print how long a method takes, the share of right answers and the peak memory after it."""
    begin = time.perf_counter()
    answers = answer(X)
    seconds = time.perf_counter() - begin
    print(f"{name:<28} {seconds:8.2f} s   {np.mean(answers == labels):7.2%} right   peak {peak()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--width", type=int, default=384)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    n = options.classes
    centres = 0.6 * rng.normal(size=(2 * n, options.width))

    def drawn(labels: np.ndarray) -> np.ndarray:
        return (centres[labels] + NOISE * rng.normal(size=(len(labels), options.width))).astype(np.float32)

    names = np.array([f"class {i:04}" for i in range(2 * n)])
    old, new, asked = (
        np.repeat(np.arange(n), 60),
        n + np.repeat(np.arange(n), SHOTS),
        n + rng.integers(n, size=options.queries),
    )
    base = BaseClasses.from_samples(drawn(old), names[old])
    support, X = drawn(new), drawn(asked)
    print(f"{options.queries:,} queries, {n} classes, {options.width} features")
    model = HOTClassifier(base).fit(support, names[new])
    timed("hot, one by one", model.predict, X, names[asked])
    timed("hot, jointly", model.predict_batch, X, names[asked])
    rival = named_method("pt-map", base)
    timed("pt-map, jointly", rival.fit(support, names[new]).predict_batch, X, names[asked])


if __name__ == "__main__":
    main()
