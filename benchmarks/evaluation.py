"""hotshot's evaluation against the procedure of the paper written plainly (benchmarks/reference.py), task for task.

    python -m benchmarks.evaluation             # multiply rate, comparison, stages
    python -m benchmarks.evaluation --sizes     # the base sets of the paper's Table 4; one tieredImageNet task is slow
    python -m benchmarks.evaluation --growth    # as B, J, V, shots and workers grow
    python -m benchmarks.evaluation --memory tiered
    python -m benchmarks.evaluation --all
    python -m benchmarks.evaluation --all --shrink 8 --tasks 40 20 4 --repeats 20    # only tries the program

Features are synthetic, post-ReLU and single precision, with 20 novel classes of 600 samples; tasks are 5-way with 15
queries per class, and hotshot and the reference are given the same ones. What depends on the bank alone is prepared
before any clock starts. The reference is one process whose BLAS has all cores, or one where that is quicker; hotshot
has one process per core, and its time is the whole wall time of `evaluate`, start of the processes included.
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
    """A method on the first tasks of a draw."""

    seconds: float
    accuracies: np.ndarray
    result: MethodResult | None = None

    @property
    def per_task(self) -> float:
        """Seconds a task."""
        return self.seconds / len(self.accuracies)

    @property
    def accuracy(self) -> str:
        """Mean in percent with its 95% interval."""
        found = mean_interval(100 * self.accuracies)
        return f"{found.mean:.2f} ± {found.half_width:.2f}" if found.n > 1 else f"{found.mean:.2f}"


def time_hotshot(model: Any, data: Data, shots: int, tasks: int, seed: int, n_jobs: int = -1) -> Timing:
    """Whole wall time of `evaluate`, its worker processes started anew."""
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
    """The plain procedure, one task after another, by number of threads: all cores and one, the quicker first."""
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
        f"{data.sizes}; the default keeps {families['H-OT']['default'][0].coef_.shape[1]} axes. Seconds of preparing "
        f"the bank, once and not counted below: {'; '.join(preparation)}."
    )
    for shots, reference_tasks in zip((1, 5), options.reference_tasks, strict=True):
        table = make_table(
            f"5-way-{shots}-shot, {data.sizes}", "method", "tasks", "ms a task", "tasks a second",
            "times quicker", f"min. for {PROJECTED_TASKS:,}", "accuracy %, 95%",
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
                name = "Reference with its Sinkhorn rearranged for NumPy"
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
    return f"Times that hotshot is quicker than this: {ratios}."


def threads_note(name: str, timings: dict[int, Timing]) -> str:
    """The reference with one thread and with all, and what a user who starts one process per core could hope for."""
    times = ", ".join(f"{1e3 * t.per_task:,.0f} ms a task with {n} of {CORES} cores" for n, t in timings.items())
    shared = 1e3 * timings[1].per_task / CORES
    return f"{name}: {times}; at best {shared:,.0f} in one process per core."


def paired_note(data: Data, shots: int, tasks: int, seed: int) -> str:
    """What keeping 98% of the variance costs in accuracy, both settings on the same tasks."""
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
        f"H-OT on base sets of the sizes of the paper's Table 4, V={shrunk(options, 1, 1, 640)[2]}; hotshot's "
        f"default on {default} tasks, the reference on as many as the table says",
        "base set", "B / J", "shots", "axes", "hotshot, ms", "reference, ms", "tasks", "times quicker",
        "paper's own, ms",
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
    """Table C: hotshot's default as one size grows, the others as in the comparison at one shot."""
    usual = {**dict(zip("BJV", MINI_IMAGENET, strict=True)), "shots": 1, "workers": CORES}
    ranges = {
        "B": (16, 64, 256),
        "J": (150, 600, 2400),
        "V": (160, 640, 1280),
        "shots": (1, 5, 20),
        "workers": tuple(sorted({1, CORES})),
    }
    table = make_table(
        f"hotshot default as one of {', '.join(f'{name} {value}' for name, value in usual.items())} changes, "
        f"{options.repeats} tasks: wall time of evaluate, and time within the processes once they run",
        "what", "value", "axes", "wall ms a task", "core ms a task",
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
    """Table E: what the machine multiplies."""
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
    "rate": (multiply_rate, "what the machine multiplies"),
    "comparison": (comparison, "hotshot against the reference on the same tasks"),
    "stages": (stages, "where the default's time goes"),
    "sizes": (paper_sizes, "base sets of the paper's Table 4"),
    "growth": (growth, "as B, J, V, shots and workers grow"),
}
USUAL_PARTS = ("rate", "comparison", "stages")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, (_, text) in PARTS.items():
        parser.add_argument(f"--{name}", dest="parts", action="append_const", const=name, help=text)
    parser.add_argument("--memory", choices=MEMORY_SIZES, action="append", help="peak memory")
    parser.add_argument("--all", action="store_true", help="all of these")
    parser.add_argument(
        "--tasks", type=int, nargs=3, default=(2000, 400, 40), metavar=("DEFAULT", "ALL_AXES", "SAMPLED"),
        help="tasks of hotshot against the reference: default, all axes, sampled heads",
    )  # fmt: skip
    parser.add_argument(
        "--reference-tasks", type=int, nargs=2, default=(3, 2), metavar=("ONE_SHOT", "FIVE_SHOT"),
        help="tasks of the reference at one and five shots",
    )  # fmt: skip
    parser.add_argument("--repeats", type=int, default=200, help="tasks of hotshot in all other tables")
    parser.add_argument("--shrink", type=int, default=1, help="divide B, J and V, to try the program")
    parser.add_argument("--seed", type=int, default=0)
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
        f"{platform.machine()} with {CORES} CPUs, seed {options.seed}, load average {os.getloadavg()[0]:.1f} at start."
    )
    with warnings.catch_warnings():
        # The published constants are meant for other features; nothing here is about their accuracy.
        warnings.simplefilter("ignore", ScaleWarning)
        for name in options.parts or ():
            PARTS[name][0](options)
    for name in options.memory or ():
        memory(options, name)


if __name__ == "__main__":
    main()
