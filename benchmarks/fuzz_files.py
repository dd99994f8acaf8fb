"""Fuzzed feature files: `python -m benchmarks.fuzz_files --inputs 100000`.

Sound files of every format are changed (bits, lengths, truncation, splices, opcodes, members of archives) and read by
`hotshot.features.read_features`. A file must be refused by an InputError or read as features; anything else is a
finding: another exception, a crash, more than `SECONDS`, more memory than `MEMORY`, a file that appears in the folder
of the run. Its bytes are saved and its kind is printed. Hypothesis draws the changes.

Formats that are read by a child process are read by a fork of this one, with the limits of a child: starting Python
for each of so many files would take hours. Where such a child crashes or meets its limits, the sentence that says so
is counted by itself.
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

from benchmarks.fuzz_inputs import Files, fuzzed, sound_files
from hotshot.errors import InputError
from hotshot.files import child, read_features

SECONDS = 5
# What a small compressed file may unpack to is 256 MiB, a child has 512, and features are converted on top of that.
MEMORY = 2**30
SOUND = ("refused", "stopped", "read")
# How the readers and the libraries under them say so.
OUT_OF_MEMORY = ("does not fit in memory", "MemoryError", "malloc", "bad_alloc", "Unable to allocate")
# How the parent says that its child was stopped: by a crash of a library, or by its limits.
STOPPED = ("crashes the program", "of memory to read", "seconds to read")
FAST = Path("/dev/shm")
# Where files that were found are kept.
KEPT = Path(tempfile.gettempdir()) / "hotshot-fuzz"

console = Console(width=120)


# --- reading


def read(path: Path) -> str:
    """What becomes of a file: "refused", "stopped" with its child, "read", or the words for a finding."""
    try:
        file = read_features(path)
    except InputError as error:
        said = str(error)
        if any(word in said for word in STOPPED):
            return "stopped"
        if any(word in said for word in OUT_OF_MEMORY):
            return "too much memory"
        sound = said.isprintable() and len(said) < 1000
        return "refused" if sound else f"a sentence that is none: {said.replace(str(path), '')[:60]!r}"
    X, y = file.X, file.y
    sound = X.ndim == 2 and X.dtype in (np.float32, np.float64) and bool(np.isfinite(X).all())
    sound = sound and y.shape == (len(X),) and y.dtype.kind in "Uiubf" and len(set(y.tolist())) >= 1
    json.dumps(file.about)
    "".join(map(str, y.tolist())).encode()
    return "read" if sound else "unsound features"


def forked(request: child.Request) -> int:
    """As `child.run`: the exit code of a process that answers a request within its limits."""
    module = importlib.import_module(f"hotshot.files.{request.reader}")
    process = os.fork()
    if process == 0:
        code = 1
        try:
            errors = os.open(f"{request.folder}/errors", os.O_WRONLY | os.O_CREAT)
            os.dup2(errors, 1)
            os.dup2(errors, 2)
            signal.alarm(0)
            # The limits of the parent are on top of its own memory.
            child.limit(replace(request, seconds=SECONDS))
            child.answer(request, module)
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
    """Read so many files; counts and findings are kept in a file, and the file at hand survives a crash."""
    made = json.loads((folder.parent / "sound.json").read_text())
    files = Files(
        (name, [(suffix, bytes.fromhex(data)) for suffix, data in some])
        for name, some in made.items()
        if not formats or name in formats
    )
    # What belongs to every .npy file.
    np.save(folder / "a.labels.npy", np.repeat([0, 1, 2], 2))
    child.limit(child.Request("", "", "", "", MEMORY, seconds=10**6))
    child.run = forked
    # Files that are made anywhere by what is in a file are made here.
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
        counts[f"{name}|{found if found in SOUND else 'finding'}"] += 1
        if found not in SOUND:
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
    """What all workers found."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.findings: dict[str, str] = {}
        self.slowest = 0.0

    def add(self, folder: Path, code: int) -> int:
        """Take the result of a worker that ended with `code`; how many files it read."""
        result = json.loads((folder / "result.json").read_text())
        if code:
            # The file at hand is the only one left; where there is none, the fault is in this program.
            left = next((path for path in folder.glob("a.*") if path.name != "a.labels.npy"), None)
            if left is None:
                raise SystemExit(f"A worker ended with code {code}.")
            kept = KEPT / f"crash-{hashlib.sha256(left.read_bytes()).hexdigest()[:12]}{left.suffix}"
            kept.write_bytes(left.read_bytes())
            left.unlink()
            result["findings"][f"{left.suffix}: a crash with code {code}"] = str(kept)
            result["counts"][f"finding|{left.suffix}: a crash with code {code}"] = 1
        self.counts.update(result["counts"])
        self.findings.update(result["findings"])
        self.slowest = max(self.slowest, result["slowest"])
        return sum(n for key, n in result["counts"].items() if not key.startswith("finding|"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--formats", default="", help="some formats, with commas; all by default")
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
        # Made once: the workers do without torch and the memory that every fork of them would share.
        made = {name: [(suffix, data.hex()) for suffix, data in some] for name, some in sound_files().items()}
        (Path(top) / "sound.json").write_text(json.dumps(made))
        left = options.inputs
        number = options.seed * 10_000
        # After a crash the files that were not read are made up for, from another seed.
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
    table = Table("format", "inputs", *SOUND, "findings", title="Fuzzed feature files")
    names = sorted({key.split("|")[0] for key in counts if not key.startswith("finding|")})
    columns = (*SOUND, "finding")
    for name in names:
        row = [counts[f"{name}|{column}"] for column in columns]
        table.add_row(name, f"{sum(row):,}", *(f"{n:,}" for n in row))
    total = [sum(counts[f"{name}|{column}"] for name in names) for column in columns]
    table.add_section()
    table.add_row("all", f"{sum(total):,}", *(f"{n:,}" for n in total))
    console.print(table)
    console.print(f"{seconds:.0f} s; the slowest file took {slowest:.2f} s.")
    for what, kept in sorted(findings.items()):
        console.print(f"Finding: {what} ({counts[f'finding|{what}'] or 1} times), the first in {kept}")


if __name__ == "__main__":
    main()
