"""Shared by the evaluation benchmarks: synthetic features of the paper's sizes, tasks, and tables."""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from hotshot import BaseClasses
from hotshot.evaluation.tasks import Episodes

WAYS, QUERIES = 5, 15
NOVEL_CLASSES, NOVEL_SAMPLES = 20, 600
HIDDEN = 96
MINI_IMAGENET = (64, 600, 640)

console = Console(width=120)


@dataclass(frozen=True)
class Data:
    """Base samples of B classes, sorted by class, and the novel samples."""

    base: BaseClasses
    X: np.ndarray
    y: np.ndarray

    @property
    def sizes(self) -> str:
        """B, J and V."""
        return f"B={len(self.base.names)}, J={self.base.counts[0]}, V={self.base.n_features}"


def features(out: np.ndarray, per_class: int, width: int, seed: int, first: int = 0) -> np.ndarray:
    """Fill `out` (classes * per_class, width), one class at a time.

    One ReLU layer over Gaussian classes in 96 dimensions of decreasing variance. About as many axes hold 90% and 98% of
    the variance as with features of a small ResNet on miniImageNet, where 43 and 273 of 640 do.
    """
    layer = np.random.default_rng(seed).normal(size=(HIDDEN, width)).astype(np.float32) / 4
    scales = np.arange(1, HIDDEN + 1, dtype=np.float32) ** -1.0
    for c, rows in enumerate(range(0, len(out), per_class)):
        rng = np.random.default_rng([seed, first + c])
        centre = rng.normal(size=HIDDEN)
        noise = rng.standard_normal((per_class, HIDDEN), dtype=np.float32)
        hidden = scales * (centre.astype(np.float32) + 1.5 * noise)
        own = 0.02 * rng.standard_normal((per_class, width), dtype=np.float32)
        np.maximum(hidden @ layer + own, 0, out=out[rows : rows + per_class])
    return out


def make_data(B: int, J: int, V: int, seed: int) -> Data:
    """A bank, and novel classes from the same distribution."""
    X_base = features(np.empty((B * J, V), dtype=np.float32), J, V, seed)
    base = BaseClasses.from_samples(X_base, np.repeat(np.arange(B), J))
    X = np.empty((NOVEL_CLASSES * NOVEL_SAMPLES, V), dtype=np.float32)
    y = np.repeat(np.arange(NOVEL_CLASSES), NOVEL_SAMPLES)
    return Data(base, features(X, NOVEL_SAMPLES, V, seed, first=B), y)


def episodes_of(data: Data, shots: int, seed: int) -> Episodes:
    return Episodes(data.y, ways=WAYS, shots=shots, queries=QUERIES, seed=seed)


def prepare(model: Any, data: Data, seed: int) -> float:
    """Fit once, which prepares the bank for later fits; returns the seconds."""
    task = episodes_of(data, 1, seed)[0]
    start = time.perf_counter()
    model.fit(data.X[task.support], task.support_labels)
    return time.perf_counter() - start


def shrunk(options: argparse.Namespace, B: int, J: int, V: int) -> tuple[int, int, int]:
    """Sizes divided by --shrink, for a quick trial, but large enough for the method."""
    return max(4, B // options.shrink), max(8, J // options.shrink), max(16, V // options.shrink)


def make_table(title: str, first: str, *others: str) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column(first, no_wrap=True)
    for name in others:
        table.add_column(name, justify="right")
    return table
