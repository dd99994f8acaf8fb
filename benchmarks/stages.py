"""Time of each stage of an evaluation, on one thread."""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import numpy as np

import hotshot.evaluation.chunks as chunks
from benchmarks.synthetic import MINI_IMAGENET, WAYS, console, episodes_of, make_data, make_table, shrunk
from hotshot import HOTClassifier
from hotshot.evaluation.tasks import Episodes
from hotshot.method import fit as method
from hotshot.method import hierarchy
from hotshot.method.heads import HEADS, Head, problem

STAGES = (
    "drawing tasks", "cosines", "low-level transport", "learned cost", "high-level transport",
    "other transfer weights", "calibrated means", "mixed covariances", "head", "predict", "indexing and counting",
)  # fmt: skip


class Stopwatch:
    """Seconds by stage; the time of an inner stage is not counted in the outer one."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.stack: list[str] = []
        self.last = 0.0

    def charge(self) -> None:
        """Add the time since the last call to the innermost stage."""
        now = time.perf_counter()
        if self.stack:
            self.seconds[self.stack[-1]] += now - self.last
        self.last = now

    def wrap(self, stage: str, function: Callable) -> Callable:
        """The function, with its time added to a stage."""

        def run(*args: Any, **options: Any) -> Any:
            self.charge()
            self.stack.append(stage)
            try:
                return function(*args, **options)
            finally:
                self.charge()
                self.stack.pop()

        return run

    def wrap_solve(self, solve: Callable) -> Callable:
        """Low-level problems, one per base class, have one axis more than high-level problems."""
        low, high = self.wrap("low-level transport", solve), self.wrap("high-level transport", solve)

        def run(cost: np.ndarray, *args: Any, **options: Any) -> Any:
            if cost.ndim == 3:
                return high(cost, *args, **options)
            found = low(cost, *args, **options)
            self.stack[-1] = "learned cost"
            return found

        return run


def stage_seconds(runner: chunks.BatchedRunner, episodes: Episodes, tasks: int) -> dict[str, float]:
    """Run the chunks of `evaluate` in this process and measure the functions of each stage."""
    watch = Stopwatch()
    run = watch.wrap("indexing and counting", chunks.run_chunk)
    parts = chunks.chunks_of(["it"], episodes.shots, 0, tasks)
    chunks.run_chunk(runner, episodes, parts[0])
    with ExitStack() as patches:
        for owner, name, stage in (
            (Episodes, "__getitem__", "drawing tasks"),
            (hierarchy, "_low_level", "cosines"),
            (method, "transfer_weights", "other transfer weights"),
            (method, "calibrate", "calibrated means"),
            (problem, "head_covariances", "mixed covariances"),
            (method.FittedTasks, "decision", "predict"),
            (chunks, "softmax", "predict"),
        ):
            wrapped = watch.wrap(stage, getattr(owner, name))
            patches.enter_context(patch.object(owner, name, wrapped))
        heads = {"bound": Head(watch.wrap("head", HEADS["bound"].fit))}
        patches.enter_context(patch.dict(HEADS, heads))
        patches.enter_context(patch.object(hierarchy, "solve", watch.wrap_solve(hierarchy.solve)))
        for part in parts:
            run(runner, episodes, part)
    return {stage: watch.seconds[stage] for stage in STAGES}


def stages(options: argparse.Namespace) -> None:
    """Table D: time of each stage with default settings, on one thread."""
    data = make_data(*shrunk(options, *MINI_IMAGENET), options.seed)
    base, parameters = HOTClassifier(data.base).parts()
    runner = chunks.BatchedRunner(base, base.transform(data.X), parameters, None)
    classes, axes = base.means.shape
    # Multiplications and additions of the two stages that are matrix products; targets are classes.
    work = {"cosines": 2 * WAYS * len(data.base.samples) * axes, "mixed covariances": 2 * WAYS * classes * axes**2}
    for shots in (1, 5):
        spent = stage_seconds(runner, episodes_of(data, shots, options.seed), options.repeats)
        total = sum(spent.values())
        table = make_table(
            f"default settings, 5-way-{shots}-shot, {data.sizes}, {axes} axes, one thread, {options.repeats} tasks",
            "stage", "ms per task", "share", "GFLOP/s",
        )  # fmt: skip
        for stage, seconds in spent.items():
            rate = f"{work[stage] * options.repeats / seconds / 1e9:.0f}" if stage in work else ""
            table.add_row(stage, f"{1e3 * seconds / options.repeats:.3f}", f"{seconds / total:.1%}", rate)
        table.add_section()
        table.add_row("all", f"{1e3 * total / options.repeats:.3f}", "", "")
        console.print(table)
