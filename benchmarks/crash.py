"""Kill every command that writes files before each of its file operations.

A command first runs undisturbed, and its file operations are counted: create, write, fsync, rename, truncate and
remove, of files and folders. Then it is killed (SIGKILL) before the first operation, before the second, and so on; a
write is also killed after half of its bytes. After each kill, every file under a final name must have a content that it
also has in the undisturbed run (a journal may be a prefix of it). The same command, run again, must then end with exit
code 0 and leave exactly the files of the undisturbed run, byte for byte. The undisturbed run is also checked for three
faults: a file that is written under its final name, a file that gets its final name before fsync, and a name that is
missing for a while.

Last, two processes add classes to one model and are killed at random moments and started again, while a third loads
it ("shared model"): every load must give a whole model, and no class may be lost.

Each run is a fork of this process, which has imported everything; set OMP_NUM_THREADS and OPENBLAS_NUM_THREADS to 1.
Clocks are replaced by counters, so that dates and seconds are the same in every run.
"""

from __future__ import annotations

import builtins
import hashlib
import importlib
import io
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import as_completed
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer

from benchmarks import shared
from benchmarks.shared import forks, make_images
from hotshot import BaseClasses, HOTClassifier, InputClassifier
from hotshot.backbones import create, training
from hotshot.backbones.checkpoints import Recipe, save_checkpoint
from hotshot.bank import converting
from hotshot.cli import main as hotshot
from hotshot.encoders import encoder, extraction
from hotshot.paper import EXPERIMENTS
from hotshot.report import make_report

SECONDS = 120
# Files that grow in place by design: readers check them line by line, or row by row.
GROWING = ("journal.jsonl", ".safetensors.part", ".pixels")
# Imported here, once for all forks.
assert EXPERIMENTS
assert make_report
# Operations, kills and findings of a scenario.
Counts = tuple[int, int, list[str]]


def main(
    commands: Annotated[list[str] | None, typer.Argument(help="Such as train; all by default.")] = None,
    most: Annotated[int | None, typer.Option(help="Kills per command; all operations by default.")] = None,
    jobs: Annotated[int, typer.Option(help="Commands tested at the same time.")] = os.cpu_count() or 1,
) -> None:
    names = [*SCENARIOS, SHARED]
    chosen = commands or names
    if unknown := set(chosen) - set(names):
        sys.exit(f"Unknown commands: {', '.join(sorted(unknown))}. Known commands: {'; '.join(names)}.")
    # Small values, for several batches and short runs.
    encoder.AT_ONCE["images"], training.TASKS = 3, 20
    totals = np.zeros(3, dtype=int)
    with forks(jobs) as (pool, root):
        start, log = root / "start", root / "log"
        start.mkdir()
        if in_fork(prepare, start, log):
            sys.exit(f"The input files cannot be prepared: {last_line(log)}")
        futures = {
            pool.submit(share, start, root / str(number))
            if name == SHARED
            else pool.submit(crash, name, SCENARIOS[name], start, root / str(number), most): name
            for number, name in enumerate(chosen)
        }
        for future in as_completed(futures):
            points, kills, findings = future.result()
            totals += points, kills, len(findings)
            print(f"{futures[future]}: {points} operations, {kills} kills, {len(findings)} findings")
            print("".join(f"  {finding}\n" for finding in findings), end="", flush=True)
    print("All: {} operations, {} kills, {} findings.".format(*totals))
    sys.exit(bool(totals[2]))


# --- file operations of a process


class Operations:
    """Count the file operations of this process in the current folder; kill it before operation `kill_at`."""

    def __init__(self, kill_at: int | None) -> None:
        self.kill_at, self.number = kill_at, 0
        self.inside = Path.cwd()
        self.busy = False
        self.unsynced: set[int] = set()
        self.contents: dict[str, set[str]] = {}
        self.points: list[str] = []
        self.findings: set[str] = set()
        self.present = set(final_files(self.inside))
        self.digests: dict[tuple[int, int, int], str] = {}

    def install(self) -> None:
        """Start counting."""
        operations = self
        fsync, opener, raw = os.fsync, io.open, io.FileIO

        class CountedFile(raw):
            def write(self, data: Any) -> int:
                if operations.covers(self.name):
                    operations.unsynced.add(os.fstat(self.fileno()).st_ino)
                half = memoryview(data).cast("B")[: max(1, memoryview(data).nbytes // 2)]
                operations.count("write", self.name)
                operations.count("write half", self.name, last=partial(super().write, half))
                return super().write(data)

            def truncate(self, size: int | None = None) -> int:
                operations.count("truncate", self.name)
                return super().truncate(size)

        def traced_open(file: Any, mode: str = "r", buffering: int = -1, *arguments: Any, **options: Any) -> Any:
            if not set("wxa+") & set(mode):
                return opener(file, mode, buffering, *arguments, **options)
            inner = CountedFile(file, mode.replace("b", "").replace("t", ""), options.get("closefd", True))
            if "b" not in mode:
                return io.TextIOWrapper(io.BufferedWriter(inner), *arguments, **options)
            if buffering == 0:
                return inner
            return io.BufferedRandom(inner) if "+" in mode else io.BufferedWriter(inner)

        def traced_fsync(descriptor: int) -> None:
            operations.count("fsync", descriptor)
            fsync(descriptor)
            operations.unsynced.discard(os.fstat(descriptor).st_ino)

        builtins.open = io.open = traced_open  # type: ignore[assignment]
        os.fsync = traced_fsync
        sys.addaudithook(self.audit)

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Count an operation that Python is about to do."""
        if self.busy:
            return
        if event == "open":
            path, _, flags = arguments
            if isinstance(path, int) or not flags & (os.O_CREAT | os.O_TRUNC) or not self.covers(path):
                return
            self.count("open", path)
            name = os.fspath(path)
            inside_part = any(part.startswith(".") for part in Path(str(name)).parts)
            if not inside_part and not str(name).endswith(GROWING):
                self.findings.add(f"{name} is written under its final name")
        elif event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink"):
            # Paths are relative to an open folder only if a whole folder is removed.
            within = event in ("os.remove", "os.rmdir") and arguments[-1] != -1
            if within or self.covers(arguments[0]):
                if event == "os.rename":
                    self.check_synced(Path(os.fsdecode(arguments[0])))
                self.count(event.removeprefix("os."), arguments[1] if event == "os.rename" else arguments[0])

    def covers(self, path: Any) -> bool:
        """Whether a path or an open file is in the folder of the command."""
        if isinstance(path, int):
            with self.unwatched():
                path = os.readlink(f"/proc/self/fd/{path}")
        return self.inside in Path(self.inside, os.fsdecode(path)).parents

    def check_synced(self, path: Path) -> None:
        """A file must be on the disk before it gets its final name."""
        with self.unwatched():
            files = list(path.rglob("*")) if path.is_dir() else [path]
            if any(file.stat().st_ino in self.unsynced for file in files):
                self.findings.add(f"{path.name[:40]} gets its final name before it is on the disk")

    def count(self, kind: str, path: Any, last: Callable[[], object] = lambda: None) -> None:
        """Count an operation; if it is the chosen one, call `last` and end this process at once."""
        if self.busy or not self.covers(path):
            return
        self.number += 1
        if self.kill_at is None:
            name = path if isinstance(path, int) else Path(os.fsdecode(path)).name
            self.points.append(f"{kind} {name}")
            with self.unwatched():
                self.record_contents()
        elif self.number == self.kill_at:
            last()
            os.kill(os.getpid(), signal.SIGKILL)

    def record_contents(self) -> None:
        """Record the present content of every file under a final name."""
        found = final_files(self.inside)
        for name, path in found.items():
            facts = path.stat()
            key = (facts.st_ino, facts.st_size, facts.st_mtime_ns)
            self.digests.setdefault(key, digest(path))
            self.contents.setdefault(name, set()).add(self.digests[key])
        # A folder is replaced by two renames; its readers wait.
        gone = {name for name in self.present - set(found) if "/" not in name}
        missing = [name for name in gone if not name.endswith((*GROWING, ".labels.npy"))]
        if missing:
            self.findings.add(f"{missing[0]} is missing for a while")
        self.present |= set(found)

    @contextmanager
    def unwatched(self) -> Iterator[None]:
        """A block whose own file operations are not counted."""
        before, self.busy = self.busy, True
        try:
            yield
        finally:
            self.busy = before

    def report(self) -> dict[str, Any]:
        """What was seen."""
        with self.unwatched():
            self.record_contents()
            contents = {name: sorted(digests) for name, digests in self.contents.items()}
        facts = {"points": self.points, "contents": contents, "findings": sorted(self.findings)}
        return {**facts, "modules": sorted(sys.modules)}


def final_files(folder: Path) -> dict[str, Path]:
    """Files under final names; hidden files are unfinished, or locks."""
    paths = (path for path in folder.rglob("*") if not any(p.startswith(".") for p in path.relative_to(folder).parts))
    return {str(path.relative_to(folder)): path for path in paths if path.is_file()}


def digest(path: Path) -> str:
    with io.FileIO(path) as file:
        return hashlib.sha256(file.readall()).hexdigest()


def all_files(folder: Path) -> dict[str, str]:
    """The digest of every file, and every folder."""
    found = {str(path.relative_to(folder)): path for path in folder.rglob("*")}
    return {name: digest(path) if path.is_file() else "folder" for name, path in sorted(found.items())}


# --- commands

FILES = "--base base.npz --novel novel.npz"
SIZE = "--tasks 40 --shots 1 --ways 3 --queries 3 --jobs 1"
EVALUATE = f"evaluate {FILES} --methods hot,centroid-cl2n {SIZE}"
FORMATS = (".npz", ".npy", ".safetensors", ".csv", ".parquet", ".bank")
COMMANDS = {
    "evaluate": f"{EVALUATE} --out new-run",
    "tune": f"tune --base base.npz --val novel.npz --grid epsilon=0.01,0.05 {SIZE} --run search --out tuned.json",
    "train": "train pictures --size 16 --filters 2 --epochs 3 --batch-size 4 --out net",
    "extract": "extract pictures --encoder ./best --out features",
    "reproduce": f"reproduce histogram {FILES} --tasks 20 --ways 3 --queries 3 --jobs 1 --out paper",
    "report": "report run --out page.html --tasks 2",
    **{f"convert {kind}": f"convert --force base.npz out{kind}" for kind in FORMATS},
    "convert .npy, new": "convert base.npz new.npy",
    "predict": "predict new.model more.npz --batch -o answers.csv --force",
    "suggest": "suggest new.model more.npz -n 3 -o to-label.csv --force",
    "export": "export new.model one.onnx --force",
    "bank merge": "bank merge one.bank two.bank -o merge.bank --force",
    "bank compact": "bank compact one.bank -o compact.bank --force",
}


def command(line: str) -> None:
    sys.argv = ["hotshot", *line.split()]
    try:
        hotshot()
    except SystemExit as stop:
        if stop.code:
            raise


def features(seed: int = 0, names: str = "class") -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(10), 12)
    X = np.abs(rng.normal(size=(10, 6))[y] + 0.5 * rng.normal(size=(120, 6)))
    return X.astype(np.float32), np.array([f"{names} {label}" for label in y])


def prepare() -> None:
    """Make the input files of all commands, and older files under the names of most outputs."""
    X, y = features()
    for name, rows in (("base", slice(72)), ("novel", slice(72, None)), ("support", slice(72, None, 4))):
        np.savez(f"{name}.npz", X=X[rows], y=y[rows])
    np.savez("more.npz", X=X[73::4], y=y[73::4])
    older, labels = features(1, "older")
    np.savez("older.npz", X=older, y=labels)
    for kind in FORMATS:
        command(f"convert older.npz out{kind}")
    command(f"{EVALUATE} --out run")
    command("fit --base base.npz --support support.npz -o new.model")
    for name in ("answers.csv", "to-label.csv", "one.onnx"):
        Path(name).write_text("older")
    Path("tuned.json").write_text("{}")
    Path("page.html").write_text('<meta name="generator" content="hotshot report 0">')
    for seed, name in enumerate(("two", "one", "merge")):
        BaseClasses.from_samples(*features(seed)).save(f"{name}.bank")
    BaseClasses.from_samples(*features(3)).save("compact.bank", samples=False, covariance="pooled")
    fitted(1).save("one.model")
    make_images(Path("pictures"), {"train": "ab", "val": "cd", "test": "ef"})
    torch.manual_seed(0)
    recipe = Recipe(options={"filters": 2}, size=16, epochs=1)
    about = {"recipe": recipe.as_json(), "names": ["a", "b"], "width": 2, "history": [{"validation": None}]}
    save_checkpoint(Path("best"), {"backbone": create("conv4", filters=2)}, None, about)


def fitted(seed: int) -> HOTClassifier:
    X, y = features(seed)
    return HOTClassifier(BaseClasses.from_samples(X[:72], y[:72])).fit(X[72::4], y[72::4])


def save_bank() -> None:
    BaseClasses.from_samples(*features()).save("one.bank", overwrite=True)


def save_model() -> None:
    fitted(0).save("one.model", overwrite=True)


# Each is sent to another process, so none is a lambda.
SCENARIOS: dict[str, Callable[[], None]] = {name: partial(command, line) for name, line in COMMANDS.items()}
SCENARIOS |= {"bank": save_bank, "model": save_model}


# --- processes


def freeze_clocks() -> None:
    """Replace clocks by counters."""

    class Frozen(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime(2025, 1, 1, tzinfo=UTC)

    for module in (converting, extraction):
        module.datetime = Frozen  # type: ignore[attr-defined]
    steps = count()
    time.perf_counter = lambda: next(steps) / 1024


def in_fork(work: Callable[[], None], folder: Path, log: Path) -> int:
    """Run `work` in a fork of this process, in a folder and with clocks that are counters; returns its exit code."""

    def frozen() -> None:
        freeze_clocks()
        work()

    return shared.in_fork(frozen, folder, log, SECONDS)


def traced(run: Callable[[], None], kill_at: int | None, record: Path | None = None) -> None:
    """Run a command with its operations counted, and write what was seen to the file `record`."""
    operations = Operations(kill_at)
    operations.install()
    run()
    if record is not None:
        seen = operations.report()
        with operations.unwatched():
            record.write_text(json.dumps(seen))


def crash(scenario: str, run: Callable[[], None], start: Path, root: Path, most: int | None) -> Counts:
    """Kill a command that starts from the files in `start` at its operations, at `most` of them, evenly spaced."""
    box, whole, log, record = (root / name for name in ("box", "undisturbed", "log", "record"))
    root.mkdir(parents=True)
    shutil.copytree(start, box)
    if in_fork(partial(traced, run, None, record), box, log):
        return 0, 0, [f"{scenario} fails undisturbed: {last_line(log)}"]
    box.rename(whole)
    seen = json.loads(record.read_text())
    for module in seen["modules"]:
        # Imports that the command makes late, such as torch's optimisers, would take most of the time of each run.
        with suppress(Exception):
            importlib.import_module(module)
    points, expected = seen["points"], all_files(whole)
    findings = [f"{scenario}: {finding}" for finding in seen["findings"]]
    kills = len(points) if most is None else min(most, len(points))
    for number in sorted({round(n) for n in np.linspace(1, len(points), kills)}):
        where = f"{scenario}, killed before operation {number} of {len(points)} ({points[number - 1]})"
        shutil.copytree(start, box)
        code = in_fork(partial(traced, run, number), box, log)
        if code != -signal.SIGKILL:
            findings.append(f"{where}: not killed, exit code {code}: {last_line(log)}")
        for name, path in final_files(box).items():
            # What grows may be the start of what it becomes.
            final = whole / name
            grows = name.endswith(GROWING) and final.exists() and final.read_bytes().startswith(path.read_bytes())
            hidden_part = name.endswith(".safetensors.part")
            if not (grows or hidden_part or digest(path) in seen["contents"].get(name, ())):
                findings.append(f"{where}: {name} has neither its old nor its new content")
        if code := in_fork(run, box, log):
            findings.append(f"{where}: exit code {code} of the rerun: {last_line(log)}")
        else:
            found = all_files(box)
            different = sorted(name for name in {*found, *expected} if found.get(name) != expected.get(name))
            if different:
                findings.append(f"{where}: after the rerun {', '.join(different[:3])} differ from the undisturbed run")
        shutil.rmtree(box)
    return len(points), kills, findings


SHARED = "shared model"
WRITERS, ADDED, KILLS = 2, 12, 12


def add_classes(writer: int) -> None:
    """Add classes to the model one by one; a writer that was killed goes on after those that the model has."""
    rng = np.random.default_rng(writer)
    for number in range(ADDED):
        X = np.abs(rng.normal(size=(2, 6))).astype(np.float32)
        name = f"writer {writer} class {number}"
        with InputClassifier.change("new.model") as model:
            if name not in model.new_classes:
                model.add(X, [name] * 2)


def load_again_and_again() -> None:
    """Load the model until all classes are there; raise if a load fails, or if a class is gone again."""
    X, _ = features()
    seen: set[str] = set()
    while len(seen) < 4 + WRITERS * ADDED:
        model = InputClassifier.load("new.model")
        shapes = len(model.predict_proba(X)[0]), len(model.support.ids)
        if shapes != (len(model.classes), len(model.model.support_labels_)) or not seen <= {*model.new_classes}:
            raise RuntimeError(f"a mixed model: {shapes}, classes gone: {sorted(seen - {*model.new_classes})}")
        seen = {*model.new_classes}


def work_in(folder: Path, work: Callable[[], None]) -> None:
    os.chdir(folder)
    work()


def share(start: Path, root: Path) -> Counts:
    """Kill writers of one model at random moments while it is read; operations are additions."""
    box, rng, context = root / "box", np.random.default_rng(0), get_context("fork")
    root.mkdir()
    shutil.copytree(start, box)
    works = {"reader": load_again_and_again, **{f"writer {w}": partial(add_classes, w) for w in range(WRITERS)}}

    def started(name: str) -> Any:
        process = context.Process(target=work_in, args=(box, works[name]))
        process.start()
        return process

    running = {name: started(name) for name in works}
    findings, kills, until = [], 0, time.monotonic() + SECONDS
    while running:
        time.sleep(rng.uniform(0.02, 0.4))
        victim = str(rng.choice(list(works)[1:]))
        if kills < KILLS and victim in running:
            running[victim].kill()
            kills += 1
        for name, process in list(running.items()):
            if process.exitcode == -signal.SIGKILL:
                running[name] = started(name)
            elif process.exitcode is not None or time.monotonic() > until:
                del running[name]
                process.kill()
                if process.exitcode != 0:
                    findings.append(f"{SHARED}, {name}: exit code {process.exitcode} (None: it took too long)")
    return WRITERS * ADDED, kills, findings


def last_line(log: Path) -> str:
    lines = "".join(shared.printed(log)).strip().splitlines()
    return " ".join(lines[-3:])[:300] if lines else "no output"
