"""What benchmarks share: options, real and synthetic features, evaluation, time, memory and tables."""

from __future__ import annotations

import io
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import psutil
import typer
from PIL import Image
from rich.console import Console

from hotshot import BaseClasses, evaluate, read_features
from hotshot.bank.embedded import load_bank
from hotshot.cli.terminal import Watching
from hotshot.evaluation.data import load_base
from hotshot.evaluation.results import Evaluation
from hotshot.evaluation.tables import Table

console = Console(width=150)

# --- options

DataFolder = Annotated[
    Path,
    typer.Argument(
        metavar="DATA", help="Folder with banking77/features.npz and miniimagenet/features.npz (`load` in shared.py)."
    ),
]
Sets = Annotated[str, typer.Option(help="Sets, separated by commas.")]
Methods = Annotated[str, typer.Option(help="Methods, separated by commas, the reference first.")]
Tasks = Annotated[int, typer.Option(help="Tasks per number of shots.")]
Seed = Annotated[int, typer.Option(help="Seed of everything random.")]
Jobs = Annotated[int, typer.Option(help="Processes; -1 for one per core.")]
Out = Annotated[Path | None, typer.Option(help="Folder to save the runs in, to resume them later.")]


# --- real features

# Base classes, and samples of novel classes with their labels.
Data = tuple[BaseClasses, np.ndarray, np.ndarray]
SETS = "banking77,miniimagenet,omniglot"
SPLITS = ",".join(f"banking77-{seed}" for seed in range(5))
OMNIGLOT_BASE, OMNIGLOT_NOVEL = 200, 50


def load(name: str, folder: Path, seed: int = 0) -> Data:
    """A set by name.

    - banking77: sentence embeddings `X` and labels `y`, split at random into 47 base and 30 novel classes by the seed;
      banking77-3 by seed 3.
    - miniimagenet: arrays `base` and `val` (classes, samples, V) and `scale`; a feature is (stored value * scale)**2.
      The network was trained on the base classes; the validation classes are novel.
    - omniglot: the bank that comes with hotshot; omniglot-small: 200 base and 50 novel classes of it.
    - BASE:NOVEL: two files.
    """
    if ":" in name:
        base, novel = name.split(":")
        return load_base(Path(base)), *read_features(novel)
    name, _, part = name.partition("-")
    if name == "omniglot":
        return _small(seed) if part else _omniglot()
    with np.load(folder / name / "features.npz", allow_pickle=False) as file:
        stored = dict(file)
    if name == "banking77":
        X, y = stored["X"], stored["y"]
        intents = np.random.default_rng(int(part or seed)).permutation(np.unique(y))
        is_base = np.isin(y, intents[:47])
        return BaseClasses.from_samples(X[is_base], y[is_base]), X[~is_base], y[~is_base]
    (X_base, y_base), (X, y) = (
        (((stored[part].astype(np.float32) * stored["scale"]) ** 2).reshape(-1, stored[part].shape[2]),
         np.repeat(stored[f"{part}_names"], stored[part].shape[1]))
        for part in ("base", "val")
    )  # fmt: skip
    return BaseClasses.from_samples(X_base, y_base, seen_in_training=True), X, y


def _omniglot() -> Data:
    bank = load_bank("omniglot")
    return bank.base, bank.X_novel, bank.y_novel


def _small(seed: int) -> Data:
    base, X, y = _omniglot()
    assert base.samples is not None
    rng = np.random.default_rng(seed)
    old = np.isin(base.labels, rng.choice(len(base.names), OMNIGLOT_BASE, replace=False))
    new = np.isin(y, rng.choice(np.unique(y), OMNIGLOT_NOVEL, replace=False))
    names = base.names[base.labels]
    kept = BaseClasses.from_samples(base.samples[old], names[old], about=base.about)
    return kept, X[new], y[new]


def ways_of(name: str) -> int:
    """Omniglot's tasks have 20 classes, all others 5."""
    return 20 if name == "omniglot" else 5


def evaluated(methods: Any, data: Data, tasks: int, **options: Any) -> Evaluation:
    """`evaluate` with a progress bar."""
    base, X, y = data
    with Watching(console) as watching:
        return evaluate(methods, X, y, base=base, tasks=tasks, watch=watching, **options)


# --- synthetic features

HIDDEN = 96


def features(out: np.ndarray, per_class: int, seed: int, first: int = 0, decay: float = 1.0) -> np.ndarray:
    """Fill `out` (classes * per_class, V), one class at a time from number `first` on.

    One ReLU layer over Gaussian classes in 96 dimensions of decreasing variance. About as many axes hold 90% and 98% of
    the variance as with features of a small ResNet on miniImageNet, where 43 and 273 of 640 do.
    """
    width = out.shape[1]
    layer = np.random.default_rng(seed).normal(size=(HIDDEN, width)).astype(np.float32) / 4
    scales = np.arange(1, HIDDEN + 1, dtype=np.float32) ** -decay
    for c, rows in enumerate(range(0, len(out), per_class)):
        rng = np.random.default_rng([seed, first + c])
        centre = rng.normal(size=HIDDEN)
        noise = rng.standard_normal((per_class, HIDDEN), dtype=np.float32)
        hidden = scales * (centre.astype(np.float32) + 1.5 * noise)
        own = 0.02 * rng.standard_normal((per_class, width), dtype=np.float32)
        np.maximum(hidden @ layer + own, 0, out=out[rows : rows + per_class])
    return out


def synthetic(B: int, J: int, V: int, seed: int, novel: tuple[int, int] = (20, 600), decay: float = 1.0) -> Data:
    """A bank of B classes of J samples, and novel classes (number and samples of each) of the same distribution."""
    n, samples = novel
    X_base = features(np.empty((B * J, V), dtype=np.float32), J, seed, decay=decay)
    X = features(np.empty((n * samples, V), dtype=np.float32), samples, seed, first=B, decay=decay)
    return BaseClasses.from_samples(X_base, np.repeat(np.arange(B), J)), X, np.repeat(np.arange(n), samples)


# --- time and memory


def timed(run: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> tuple[Any, float]:
    """The result of `run`, and its seconds."""
    start = clock()
    result = run()
    return result, clock() - start


def median_seconds(run: Callable[[], object], repeats: int) -> float:
    """The median time of several runs after a first one."""
    run()
    return float(np.median([timed(run)[1] for _ in range(repeats)]))


def peak_memory() -> str:
    """The peak memory of this process so far."""
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB"


def watched(command: list[str], folder: Path | None = None) -> tuple[str, float, int]:
    """What a command prints, its wall time, and its peak memory in bytes.

    Memory is the proportional set size, which includes mapped pages of files, of the process and its descendants.
    """
    start, peak = time.perf_counter(), 0
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        while process.poll() is None:
            try:
                root = psutil.Process(process.pid)
                sizes = [one.memory_full_info() for one in (root, *root.children(recursive=True))]
                peak = max(peak, sum(getattr(size, "pss", size.rss) for size in sizes))
            except psutil.Error:
                pass  # a process has ended
            time.sleep(0.1)
        assert process.stdout is not None
        output = process.stdout.read()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)[:200]} failed with exit code {process.returncode}.")
    return output, time.perf_counter() - start, peak


def in_new_process(function: Callable[..., Any], *arguments: Any) -> tuple[Any, int]:
    """What a function of a benchmark returns in a new process, as JSON, and the peak memory in bytes."""
    call = f"{function.__name__}(*{arguments!r})"
    program = f"import json; from {function.__module__} import {function.__name__}; print(json.dumps({call}))"
    output, _, peak = watched([sys.executable, "-c", program])
    return json.loads(output), peak


# A killed process loses nothing that it has written, so that a folder in memory also serves crash tests.
MEMORY = Path("/dev/shm") if Path("/dev/shm").is_dir() else None


@contextmanager
def forks(jobs: int, place: Path | None = MEMORY) -> Iterator[tuple[ProcessPoolExecutor, Path]]:
    """Forks of this process, and a folder for their files."""
    with (
        tempfile.TemporaryDirectory(prefix="hotshot-", dir=place, ignore_cleanup_errors=True) as folder,
        ProcessPoolExecutor(jobs, get_context("fork")) as pool,
    ):
        yield pool, Path(folder)


def in_fork(
    work: Callable[[], object], folder: Path, log: Path, seconds: int, limits: Mapping[int, int] | None = None
) -> int:
    """Run `work` in a fork of this process, in a folder; its exit code, negative for a signal.

    What it prints is in `log` with the suffixes .out and .err. Processes that it starts end with it. `limits` are those
    of `resource`; that of memory is beyond what this process has.
    """
    process = get_context("fork").Process(target=_confined, args=(work, folder, log, seconds, limits or {}))
    process.start()
    process.join()
    assert process.pid is not None
    assert process.exitcode is not None
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return process.exitcode


def _confined(work: Callable[[], object], folder: Path, log: Path, seconds: int, limits: Mapping[int, int]) -> None:
    os.setsid()
    signal.alarm(seconds)
    for number, path in enumerate((os.devnull, log.with_suffix(".out"), log.with_suffix(".err"))):
        os.dup2(os.open(path, os.O_RDWR | (os.O_CREAT | os.O_TRUNC) * bool(number)), number)
    sys.stdout, sys.stderr = (io.TextIOWrapper(io.FileIO(number, "w")) for number in (1, 2))
    os.chdir(folder)
    for what, limit in limits.items():
        used = psutil.Process().memory_info().vms if what == resource.RLIMIT_AS else 0
        resource.setrlimit(what, (limit + used,) * 2)
    code: Any = 0
    try:
        work()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    # Without waiting for the worker processes of libraries, which end with the fork.
    os._exit(code)


def printed(log: Path) -> tuple[str, str]:
    """What a fork has printed on its standard output and error."""
    out, err = (log.with_suffix(suffix).read_bytes().decode(errors="backslashreplace") for suffix in (".out", ".err"))
    return out, err


def make_images(folder: Path, splits: Mapping[str, str]) -> None:
    """Four random images of every class, whose names are the letters of its split."""
    rng = np.random.default_rng(0)
    for place in (folder / split / name for split, names in splits.items() for name in names):
        place.mkdir(parents=True)
        for number in range(4):
            pixels = rng.integers(0, 255, size=(18, 20, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(place / f"{number}.png")


def size_on_disk(path: Path) -> int:
    """Bytes of a file, or of all files of a folder."""
    return sum(file.stat().st_size for file in path.iterdir()) if path.is_dir() else path.stat().st_size


# --- tables


def show(table: Table) -> None:
    """Print a table as Markdown, with its title and notes."""
    console.print(table.title, style="bold", highlight=False)
    console.print(table.to_markdown(), *table.notes, sep="\n", markup=False, soft_wrap=True, highlight=False)


def say(sentence: str) -> None:
    """Print a sentence as it is."""
    console.print(sentence, markup=False, highlight=False, soft_wrap=True)
