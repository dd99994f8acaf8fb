"""Fuzzed feature files: `python -m benchmarks.fuzz_files --inputs 100000`.

Hypothesis changes valid files of every format (bits, lengths, truncation, splices, opcodes, members of archives), and
`hotshot.features.read_features` reads them. It must return features or raise InputError. Anything else is a finding:
another exception, a crash, more than `SECONDS`, more memory than `MEMORY`, a new file in the folder of the run. The
bytes of each finding are saved and its kind is printed.

Formats that hotshot reads in a child process are read in a fork of this process, with the limits of a child: starting
Python for each file would take hours. Files whose child crashes or reaches its limits are counted as "stopped".
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from rich.console import Console
from rich.table import Table
from tests.bounded import TooSlow, within

from benchmarks.fuzz_inputs import Files, fuzzed, valid_files
from hotshot.errors import InputError
from hotshot.files import child, read_features

SECONDS = 5
# A small compressed file may unpack to 256 MiB, a child may use 512, and the conversion of features needs more.
MEMORY = 2**30
OUTCOMES = ("refused", "stopped", "read")
# Words of the readers, and of libraries that they use, for a lack of memory.
OUT_OF_MEMORY = ("does not fit in memory", "MemoryError", "malloc", "bad_alloc", "Unable to allocate")
# Words of the parent if its child crashed or reached its limits.
STOPPED = ("crashes the program", "of memory to read", "seconds to read")
FAST = Path("/dev/shm")
# Folder for the files of findings.
KEPT = Path(tempfile.gettempdir()) / "hotshot-fuzz"

console = Console(width=120)


# --- reading


def read(path: Path) -> str:
    """Read a file; returns "refused", "stopped" (with its child), "read", or the description of a finding."""
    try:
        file = read_features(path)
    except InputError as error:
        message = str(error)
        if any(word in message for word in STOPPED):
            return "stopped"
        if any(word in message for word in OUT_OF_MEMORY):
            return "too much memory"
        readable = message.isprintable() and len(message) < 1000
        return "refused" if readable else f"unreadable error message: {message.replace(str(path), '')[:60]!r}"
    X, y = file.X, file.y
    valid = X.ndim == 2 and X.dtype in (np.float32, np.float64) and bool(np.isfinite(X).all())
    valid = valid and y.shape == (len(X),) and y.dtype.kind in "Uiubf" and len(set(y.tolist())) >= 1
    json.dumps(file.about)
    "".join(map(str, y.tolist())).encode()
    return "read" if valid else "invalid features"


def forked(request: child.Request) -> int:
    """A replacement for `child.run`: answer a request in a fork, within its limits; returns its exit code."""
    for module in filter(None, (request.module, request.library)):
        importlib.import_module(module)
    process = os.fork()
    if process == 0:
        code = 1
        try:
            errors = os.open(f"{request.folder}/errors", os.O_WRONLY | os.O_CREAT)
            os.dup2(errors, 1)
            os.dup2(errors, 2)
            signal.alarm(0)
            # The limits are added to the memory that the process already uses.
            child.limit(replace(request, seconds=SECONDS))
            child.answer(request)
            code = 0
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}".encode(errors="replace"))
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def outcome(path: Path) -> str:
    try:
        with within(SECONDS), warnings.catch_warnings():
            warnings.simplefilter("error")
            return read(path)
    except TooSlow:
        return f"more than {SECONDS} s"
    except MemoryError:
        return "too much memory"
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}"


# --- processes


def work(inputs: int, number: int, formats: list[str], folder: Path) -> None:
    """Read `inputs` files; write counts and findings to a file. After a crash the last input is still on the disk."""
    made = json.loads((folder.parent / "valid.json").read_text())
    files = Files(
        (name, [(suffix, bytes.fromhex(data)) for suffix, data in some])
        for name, some in made.items()
        if not formats or name in formats
    )
    # The labels of every .npy file.
    np.save(folder / "a.labels.npy", np.repeat([0, 1, 2], 2))
    # Its memory does not count.
    importlib.import_module("torch")
    child.limit(child.Request("", "", "", "", "", "", MEMORY, seconds=10**6))
    child.run = forked
    # If the content of a file can create files, they appear here.
    os.chdir(folder)
    counts: Counter[str] = Counter()
    findings: dict[str, str] = {}
    slowest = 0.0

    def keep() -> None:
        kept = {"counts": counts, "findings": findings, "slowest": slowest}
        (folder / "result.json").write_text(json.dumps(kept))

    @seed(number)
    @settings(
        max_examples=inputs,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(fuzzed(files))
    def run(case: tuple[str, str, bytes]) -> None:
        nonlocal slowest
        name, suffix, data = case
        path = folder / f"a{suffix}"
        path.write_bytes(data)
        start = time.perf_counter()
        found = outcome(path)
        slowest = max(slowest, time.perf_counter() - start)
        path.unlink()
        left = [file.name for file in folder.iterdir() if file.name not in ("a.labels.npy", "result.json")]
        found = f"made {left[0][:40]!r}" if left else found
        counts[f"{name}|{found if found in OUTCOMES else 'finding'}"] += 1
        if found not in OUTCOMES:
            counts[f"finding|{name}: {found}"] += 1
            kept = KEPT / f"finding-{hashlib.sha256(data).hexdigest()[:12]}{suffix}"
            if f"{name}: {found}" not in findings:
                findings[f"{name}: {found}"] = str(kept)
                kept.write_bytes(data)
        if sum(counts.values()) % 100 == 0:
            keep()

    keep()
    run()
    keep()


class Totals:
    """Sums over all workers."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.findings: dict[str, str] = {}
        self.slowest = 0.0

    def add(self, folder: Path, code: int) -> int:
        """Add the result of a worker with this exit code; returns the number of files that it read."""
        result = json.loads((folder / "result.json").read_text())
        if code:
            # The last input is the only file left. Without one, the fault is in this program.
            left = next((path for path in folder.glob("a.*") if path.name != "a.labels.npy"), None)
            if left is None:
                raise SystemExit(f"A worker failed with exit code {code}.")
            kept = KEPT / f"crash-{hashlib.sha256(left.read_bytes()).hexdigest()[:12]}{left.suffix}"
            kept.write_bytes(left.read_bytes())
            left.unlink()
            result["findings"][f"{left.suffix}: crash with exit code {code}"] = str(kept)
            result["counts"][f"finding|{left.suffix}: crash with exit code {code}"] = 1
        self.counts.update(result["counts"])
        self.findings.update(result["findings"])
        self.slowest = max(self.slowest, result["slowest"])
        return sum(n for key, n in result["counts"].items() if not key.startswith("finding|"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000, help="number of files (default: 100000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the changes (default: 0)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--formats", default="", help="formats, separated by commas (default: all)")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        formats = options.formats.split(",") if options.formats else []
        work(options.inputs, options.seed, formats, Path(options.worker))
        return
    start = time.perf_counter()
    KEPT.mkdir(exist_ok=True)
    totals = Totals()
    with tempfile.TemporaryDirectory(dir=FAST if FAST.is_dir() else None) as top:
        # Made once, here: the workers need no torch, and their forks stay small.
        made = {name: [(suffix, data.hex()) for suffix, data in some] for name, some in valid_files().items()}
        (Path(top) / "valid.json").write_text(json.dumps(made))
        left = options.inputs
        number = options.seed * 10_000
        # After a crash the remaining files are drawn from another seed.
        while left > 0:
            workers = []
            for job in range(min(options.jobs, left)):
                folder = Path(top) / str(number)
                folder.mkdir()
                share = left // options.jobs + (job < left % options.jobs)
                command = [sys.executable, "-m", "benchmarks.fuzz_files", "--worker", str(folder)]
                command += ["--inputs", str(share), "--seed", str(number), "--formats", options.formats]
                workers.append((folder, subprocess.Popen(command)))
                number += 1
            left -= sum(totals.add(folder, worker.wait()) for folder, worker in workers)
    report(totals.counts, totals.findings, totals.slowest, time.perf_counter() - start)
    sys.exit(bool(totals.findings))


def report(counts: Counter[str], findings: dict[str, str], slowest: float, seconds: float) -> None:
    table = Table("format", "inputs", *OUTCOMES, "findings", title="Fuzzed feature files")
    names = sorted({key.split("|")[0] for key in counts if not key.startswith("finding|")})
    columns = (*OUTCOMES, "finding")
    for name in names:
        row = [counts[f"{name}|{column}"] for column in columns]
        table.add_row(name, f"{sum(row):,}", *(f"{n:,}" for n in row))
    total = [sum(counts[f"{name}|{column}"] for name in names) for column in columns]
    table.add_section()
    table.add_row("all", f"{sum(total):,}", *(f"{n:,}" for n in total))
    console.print(table)
    console.print(f"{seconds:.0f} s; the slowest file took {slowest:.2f} s.")
    for what, kept in sorted(findings.items()):
        console.print(f"Finding: {what} ({counts[f'finding|{what}'] or 1} times), first file: {kept}")


if __name__ == "__main__":
    main()
