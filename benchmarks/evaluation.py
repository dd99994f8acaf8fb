"""Time of hotshot's evaluation and of a plain implementation of the paper (benchmarks/reference.py), on the same tasks.

    python -m benchmarks.evaluation             # matrix products, comparison, stages
    python -m benchmarks.evaluation --sizes     # base sets of the paper's Table 4; tieredImageNet is slow
    python -m benchmarks.evaluation --growth    # times by B, J, V, shots and workers
    python -m benchmarks.evaluation --memory tiered
    python -m benchmarks.evaluation --all
    python -m benchmarks.evaluation --all --shrink 8 --tasks 40 20 4 --repeats 20    # quick trial of the program

Features are synthetic, post-ReLU and in single precision, with 20 novel classes of 600 samples. Tasks are 5-way with 15
queries per class, the same for hotshot and the reference. The bank is prepared before the measurement. The reference
runs in one process and uses one thread or all cores, whichever is faster; hotshot runs in one process per core, and its
time is the wall time of `evaluate`, with the start of the processes.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import sklearn
from joblib.externals.loky import get_reusable_executor
from rich.table import Table
from threadpoolctl import threadpool_limits

from benchmarks import reference
from benchmarks.memory import MEMORY_SIZES, memory
from benchmarks.stages import stages
from benchmarks.synthetic import (
    MINI_IMAGENET,
    QUERIES,
    WAYS,
    Data,
    console,
    episodes_of,
    make_data,
    make_table,
    prepare,
    shrunk,
)
from hotshot import FreeLunchClassifier, HOTClassifier, evaluate, parameter_set
from hotshot.errors import ScaleWarning
from hotshot.evaluation import MethodResult, mean_interval

CORES = os.cpu_count() or 1
PROJECTED_TASKS = 10_000
# B and J of the paper's Table 4, and the milliseconds it reports for H-OT by shots, on its authors' machine.
TABLE_4 = {
    "miniImageNet, CIFAR-FS": (64, 600, {1: "2,910, 3,060", 5: "10,060, 9,720"}),
    "CUB": (100, 59, {1: "2,600", 5: "11,120"}),
    "tieredImageNet": (351, 1281, {1: "9,310", 5: "41,120"}),
}
PROCEDURES = {"H-OT": reference.hierarchical_transport, "Free-Lunch": reference.free_lunch}
ARRANGED = partial(reference.hierarchical_transport, solver=reference.arranged_sinkhorn)


@dataclass(frozen=True)
class Timing:
    """Time and accuracies of a method."""

    seconds: float
    accuracies: np.ndarray
    result: MethodResult | None = None

    @property
    def per_task(self) -> float:
        """Seconds per task."""
        return self.seconds / len(self.accuracies)

    @property
    def accuracy(self) -> str:
        """Mean in percent with its 95% interval."""
        found = mean_interval(100 * self.accuracies)
        return f"{found.mean:.2f} ± {found.half_width:.2f}" if found.n > 1 else f"{found.mean:.2f}"


def time_hotshot(model: Any, data: Data, shots: int, tasks: int, seed: int, n_jobs: int = -1) -> Timing:
    """Wall time of `evaluate`, with the start of new worker processes."""
    get_reusable_executor().shutdown(wait=True)
    start = time.perf_counter()
    found = evaluate(
        {"it": model}, data.X, data.y,
        ways=WAYS, shots=shots, queries=QUERIES, tasks=tasks, seed=seed, n_jobs=n_jobs,
    )  # fmt: skip
    seconds = time.perf_counter() - start
    return Timing(seconds, found["it", shots].accuracies, found["it", shots])


def time_reference(
    procedure: Callable[..., np.ndarray], base: reference.BaseStatistics, data: Data, shots: int, tasks: int, seed: int
) -> dict[int, Timing]:
    """Time of the plain implementation with one thread and with all cores, the faster first."""
    episodes = episodes_of(data, shots, seed)
    found = {}
    for threads in {1, CORES}:
        rng = np.random.default_rng(seed)
        accuracies = []
        start = time.perf_counter()
        with threadpool_limits(threads):
            for task in episodes.take(tasks):
                predicted = procedure(base, data.X[task.support], task.support_labels, data.X[task.query], rng)
                accuracies.append(np.mean(predicted == task.query_labels))
        found[threads] = Timing(time.perf_counter() - start, np.array(accuracies))
    return dict(sorted(found.items(), key=lambda item: item[1].seconds))


def timed(run: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    found = run()
    return found, time.perf_counter() - start


def comparison(options: argparse.Namespace) -> None:
    """Table A: reference and hotshot on the same tasks at miniImageNet's size."""
    data = make_data(*shrunk(options, *MINI_IMAGENET), options.seed)
    default, all_axes, sampled = options.tasks
    families = {
        "H-OT": {
            "default": (HOTClassifier(data.base), default),
            "all axes": (HOTClassifier(data.base, n_components=None), all_axes),
            "authors' set": (HOTClassifier(data.base, **parameter_set("authors")), sampled),
        },
        "Free-Lunch": {"default": (FreeLunchClassifier(data.base, random_state=0), sampled)},
    }
    statistics, seconds = timed(lambda: reference.base_statistics(data.base.samples, data.base.counts))
    preparation = [f"reference {seconds:.1f}"]
    for family, settings in families.items():
        for setting, (model, _) in settings.items():
            preparation.append(f"hotshot {family}, {setting} {prepare(model, data, options.seed):.1f}")
    console.print(
        f"{data.sizes}; the default keeps {families['H-OT']['default'][0].coef_.shape[1]} axes. Seconds to prepare "
        f"the bank, not included below: {'; '.join(preparation)}."
    )
    for shots, reference_tasks in zip((1, 5), options.reference_tasks, strict=True):
        table = make_table(
            f"5-way-{shots}-shot, {data.sizes}", "method", "tasks", "ms per task", "tasks per s",
            "speed-up", f"min. for {PROJECTED_TASKS:,}", "accuracy %, 95%",
        )  # fmt: skip
        notes = []
        for family, settings in families.items():
            theirs = time_reference(PROCEDURES[family], statistics, data, shots, reference_tasks, options.seed)
            quickest = next(iter(theirs.values()))
            add_timing(table, f"reference {family}", quickest, quickest)
            notes.append(threads_note(f"Reference {family}", theirs))
            own = {
                setting: time_hotshot(model, data, shots, tasks, options.seed)
                for setting, (model, tasks) in settings.items()
            }
            for setting, timing in own.items():
                add_timing(table, f"hotshot {family}, {setting}", timing, quickest)
            table.add_section()
            if family == "H-OT":
                arranged = time_reference(ARRANGED, statistics, data, shots, reference_tasks, options.seed)
                name = "Reference with a Sinkhorn loop rearranged for NumPy"
                notes.append(f"{threads_note(name, arranged)} {ratios_note(arranged, own)}")
        console.print(table, *notes, paired_note(data, shots, all_axes, options.seed), "", sep="\n")


def add_timing(table: Table, name: str, timing: Timing, peer: Timing) -> None:
    table.add_row(
        name,
        str(len(timing.accuracies)),
        f"{1e3 * timing.per_task:,.2f}",
        f"{1 / timing.per_task:,.1f}",
        f"{peer.per_task / timing.per_task:,.1f}",
        f"{PROJECTED_TASKS * timing.per_task / 60:,.1f}",
        timing.accuracy,
    )


def ratios_note(theirs: dict[int, Timing], own: dict[str, Timing]) -> str:
    quickest = next(iter(theirs.values())).per_task
    ratios = ", ".join(f"{setting} {quickest / timing.per_task:,.1f}" for setting, timing in own.items())
    return f"Speed-up of hotshot over it: {ratios}."


def threads_note(name: str, timings: dict[int, Timing]) -> str:
    """Times of the reference with one thread and with all cores, and the best case of one process per core."""
    times = ", ".join(f"{1e3 * t.per_task:,.0f} ms per task with {n} of {CORES} cores" for n, t in timings.items())
    shared = 1e3 * timings[1].per_task / CORES
    return f"{name}: {times}; at best {shared:,.0f} with one process per core."


def paired_note(data: Data, shots: int, tasks: int, seed: int) -> str:
    """Accuracy with 98% of the variance minus accuracy with all axes, on the same tasks."""
    methods = {"default": HOTClassifier(data.base), "all axes": HOTClassifier(data.base, n_components=None)}
    found = evaluate(methods, data.X, data.y, ways=WAYS, shots=shots, queries=QUERIES, tasks=tasks, seed=seed)
    gap = found.difference("all axes", shots, reference="default")
    return (
        f"5-way-{shots}-shot, {tasks} tasks: default minus all axes {100 * gap.mean:+.2f} ± {100 * gap.half_width:.2f} "
        "points of accuracy, paired."
    )


def paper_sizes(options: argparse.Namespace) -> None:
    """Table B: the base sets of the paper's Table 4."""
    default = options.tasks[0]
    table = make_table(
        f"H-OT on base sets of the sizes in the paper's Table 4, V={shrunk(options, 1, 1, 640)[2]}; hotshot with "
        f"default settings on {default} tasks",
        "base set", "B / J", "shots", "axes", "hotshot, ms", "reference, ms", "its tasks", "speed-up",
        "in the paper, ms",
    )  # fmt: skip
    for name, (classes, samples, reported) in TABLE_4.items():
        data = make_data(*shrunk(options, classes, samples, 640), options.seed)
        model = HOTClassifier(data.base)
        prepare(model, data, options.seed)
        own = {shots: time_hotshot(model, data, shots, default, options.seed) for shots in (1, 5)}
        statistics = reference.base_statistics(data.base.samples, data.base.counts)
        for shots, tasks in zip((1, 5), options.reference_tasks, strict=True):
            tasks = 1 if name == "tieredImageNet" else tasks
            found = time_reference(PROCEDURES["H-OT"], statistics, data, shots, tasks, options.seed)
            theirs = next(iter(found.values())).per_task
            table.add_row(
                name, f"{len(data.base.names)} / {data.base.counts[0]}", str(shots), str(model.coef_.shape[1]),
                f"{1e3 * own[shots].per_task:,.2f}", f"{1e3 * theirs:,.0f}", str(tasks),
                f"{theirs / own[shots].per_task:,.0f}", reported[shots],
            )  # fmt: skip
    console.print(table)


def growth(options: argparse.Namespace) -> None:
    """Table C: time with default settings as one size changes; the others are those of the one-shot comparison."""
    usual = {**dict(zip("BJV", MINI_IMAGENET, strict=True)), "shots": 1, "workers": CORES}
    ranges = {
        "B": (16, 64, 256),
        "J": (150, 600, 2400),
        "V": (160, 640, 1280),
        "shots": (1, 5, 20),
        "workers": tuple(sorted({1, CORES})),
    }
    table = make_table(
        f"hotshot, default settings, {options.repeats} tasks; one of "
        f"{', '.join(f'{name} {value}' for name, value in usual.items())} changes; wall time of evaluate, and time in "
        "the processes without their start",
        "changed", "value", "axes", "wall ms per task", "core ms per task",
    )  # fmt: skip
    known: dict[tuple, tuple[str, ...]] = {}
    for what, values in ranges.items():
        for value in values:
            setting = {**usual, what: value}
            key = tuple(setting.values())
            if key not in known:
                known[key] = growth_row(setting, options)
            table.add_row(what, str(value), *known[key])
        table.add_section()
    console.print(table)


def growth_row(setting: dict[str, int], options: argparse.Namespace) -> tuple[str, ...]:
    data = make_data(*shrunk(options, *(setting[name] for name in "BJV")), options.seed)
    model = HOTClassifier(data.base)
    prepare(model, data, options.seed)
    own = time_hotshot(model, data, setting["shots"], options.repeats, options.seed, setting["workers"])
    milliseconds = (1e3 * own.per_task, 1e3 * own.result.seconds_per_task)
    return (str(model.coef_.shape[1]), *(f"{value:.2f}" for value in milliseconds))


def multiply_rate(options: argparse.Namespace) -> None:
    """Table E: speed of matrix products on this machine."""
    size = 2048 // options.shrink
    table = make_table(f"product of two {size} x {size} matrices, best of 5", "precision", "threads", "GFLOP/s")
    for dtype in (np.float32, np.float64):
        x = np.random.default_rng(0).normal(size=(size, size)).astype(dtype)
        for threads in sorted({1, CORES}):
            with threadpool_limits(threads):
                best = min(timed(lambda x=x: x @ x)[1] for _ in range(6))
            table.add_row(np.dtype(dtype).name, str(threads), f"{2 * size**3 / best / 1e9:.0f}")
    console.print(table)


PARTS = {
    "rate": (multiply_rate, "speed of matrix products on this machine"),
    "comparison": (comparison, "hotshot and the reference on the same tasks"),
    "stages": (stages, "time of each stage with default settings"),
    "sizes": (paper_sizes, "base sets of the paper's Table 4"),
    "growth": (growth, "times by B, J, V, shots and workers"),
}
USUAL_PARTS = ("rate", "comparison", "stages")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, (_, text) in PARTS.items():
        parser.add_argument(f"--{name}", dest="parts", action="append_const", const=name, help=text)
    parser.add_argument(
        "--memory", choices=MEMORY_SIZES, action="append", help="peak memory on a base set of this size"
    )
    parser.add_argument("--all", action="store_true", help="all tables")
    parser.add_argument(
        "--tasks", type=int, nargs=3, default=(2000, 400, 40), metavar=("DEFAULT", "ALL_AXES", "SAMPLED"),
        help="tasks of hotshot in the comparison: default settings, all axes, sampled heads",
    )  # fmt: skip
    parser.add_argument(
        "--reference-tasks", type=int, nargs=2, default=(3, 2), metavar=("ONE_SHOT", "FIVE_SHOT"),
        help="tasks of the reference with one and five shots",
    )  # fmt: skip
    parser.add_argument("--repeats", type=int, default=200, help="tasks of hotshot in all other tables")
    parser.add_argument("--shrink", type=int, default=1, help="divisor of B, J and V, for a quick trial")
    parser.add_argument("--seed", type=int, default=0, help="seed of features and tasks (default: 0)")
    options = parser.parse_args()
    if options.all:
        options.parts, options.memory = list(PARTS), list(MEMORY_SIZES)
    elif not options.parts and not options.memory:
        options.parts = USUAL_PARTS
    return options


def main() -> None:
    options = parse()
    console.print(
        f"Python {platform.python_version()}, NumPy {np.__version__}, scikit-learn {sklearn.__version__}, "
        f"{platform.machine()} with {CORES} CPUs, seed {options.seed}, load average {os.getloadavg()[0]:.1f}."
    )
    with warnings.catch_warnings():
        # The published constants suit other features; accuracy does not matter here.
        warnings.simplefilter("ignore", ScaleWarning)
        for name in options.parts or ():
            PARTS[name][0](options)
    for name in options.memory or ():
        memory(options, name)


if __name__ == "__main__":
    main()
