"""Peak memory of one evaluation in a separate process, with features on disk."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.synthetic import (
    NOVEL_CLASSES,
    NOVEL_SAMPLES,
    QUERIES,
    WAYS,
    Data,
    console,
    features,
    make_table,
    prepare,
    shrunk,
)
from hotshot import BaseClasses, HOTClassifier, evaluate

MEMORY_SIZES = {"mini": (64, 600), "tiered": (351, 1281)}
SAMPLE_SECONDS = 0.2


def memory(options: argparse.Namespace, name: str) -> None:
    """Table F: peak memory of one evaluation with default settings in a separate process, with features on disk."""
    B, J, V = shrunk(options, *MEMORY_SIZES[name], 640)
    with tempfile.TemporaryDirectory() as folder:
        for part, classes, per_class, first in (("base", B, J, 0), ("novel", NOVEL_CLASSES, NOVEL_SAMPLES, B)):
            shape = (classes * per_class, V)
            file = np.lib.format.open_memmap(f"{folder}/{part}.npy", "w+", np.float32, shape)
            features(file, per_class, V, options.seed, first)
            del file
        samples, ends = watched(f"evaluate_folder({folder!r}, {B}, {options.repeats}, {options.seed})")
    table = make_table(
        f"{name}: B={B}, J={J}, V={V}, base features of {4 * B * J * V / 1e9:.2f} GB on disk; default settings, "
        f"{options.repeats} tasks each with 1 and 5 shots; PSS of all processes",
        "phase", "peak GB", "seconds",
    )  # fmt: skip
    start = begin = samples[0][0]
    for phase, end in ends.items():
        peaks = [size for at, size in samples if begin <= at <= end]
        table.add_row(phase, f"{max(peaks) / 1e9:.2f}" if peaks else "", f"{end - begin:.1f}")
        begin = end
    table.add_section()
    table.add_row("all", f"{max(size for _, size in samples) / 1e9:.2f}", f"{begin - start:.1f}")
    console.print(table)


def evaluate_folder(folder: str, classes: int, tasks: int, seed: int) -> None:
    """The program that `memory` measures; prints the time at the end of each phase."""
    print("imports", time.time())
    X_base, X = (np.load(f"{folder}/{part}.npy", mmap_mode="r") for part in ("base", "novel"))
    base = BaseClasses.from_samples(X_base, np.repeat(np.arange(classes), len(X_base) // classes))
    del X_base
    data = Data(base, X, np.repeat(np.arange(NOVEL_CLASSES), NOVEL_SAMPLES))
    print("from_samples", time.time())
    model = HOTClassifier(base)
    prepare(model, data, seed)
    print("prepare", time.time())
    evaluate(model, data.X, data.y, ways=WAYS, shots=(1, 5), queries=QUERIES, tasks=tasks, seed=seed)
    print("evaluate", time.time())


def watched(call: str, module: str = "memory") -> tuple[list[tuple[float, int]], dict[str, float]]:
    """Memory over time of a call in a new interpreter, children included, and the times that it prints."""
    command = [sys.executable, "-c", f"from benchmarks import {module}; {module}.{call}"]
    samples = [(time.time(), 0)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            samples.append((time.time(), tree_memory(process.pid)))
            time.sleep(SAMPLE_SECONDS)
        phases = [line.rsplit(maxsplit=1) for line in process.stdout.read().splitlines()]
    if process.returncode:
        raise SystemExit(f"The measured process failed with exit code {process.returncode}.")
    return samples, {name: float(end) for name, end in phases}


def tree_memory(root: int) -> int:
    """Bytes of a process and all its descendants."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # the process has ended
    tree = [root]
    for pid in tree:
        tree.extend(child for child, parent in parents.items() if parent == pid)
    return sum(process_memory(Path(f"/proc/{pid}")) for pid in tree)


def process_memory(folder: Path) -> int:
    """Proportional set size, which divides shared pages among processes; resident size if it is not available."""
    try:
        lines = (folder / "smaps_rollup").read_text().splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    except (OSError, StopIteration):
        pass
    try:
        return int((folder / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0
