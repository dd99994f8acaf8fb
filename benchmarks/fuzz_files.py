"""Fuzzed feature files: `python -m benchmarks.fuzz_files --inputs 100000`.

Sound files of every format are changed (bits, lengths, truncation, splices, opcodes, members of archives) and read by
`hotshot.features.read_features`. A file must be refused by an InputError or read as features; anything else is a
finding: another exception, a crash, more than `SECONDS`, more memory than `MEMORY`. Its bytes are saved and its kind
is printed. Hypothesis draws the changes.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import pickle
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.table import Table

from hotshot.errors import InputError
from hotshot.features.files import read_features, write_features

SECONDS = 5
# What a small compressed file may unpack to is 256 MiB; features are checked and converted on top of that.
MEMORY = 2**30
# Most files are changed little, so that readers get far.
CHANGES = [1, 1, 1, 1, 2, 2, 3, 6]
KINDS = ["bit", "byte", "number", "number", "token", "token", "cut", "end", "twice", "splice"]
# How the readers and the libraries under them say so.
OUT_OF_MEMORY = ("does not fit in memory", "MemoryError", "malloc", "bad_alloc", "Unable to allocate")
FAST = Path("/dev/shm")

console = Console(width=120)


# --- sound files


def sound_files() -> dict[str, list[tuple[str, bytes]]]:
    """Small sound files by format: suffix and bytes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 10)).astype(np.float32)
    y = np.repeat(["cat", "dog", "größe"], 2)
    codes = np.repeat([0, 1, 2], 2)
    files: dict[str, list[tuple[str, bytes]]] = {
        "pickle": [
            (".plk", pickle.dumps(value, protocol=protocol))
            for protocol in range(6)
            for value in (
                {"cat": list(X[:3]), "dog": list(X[3:])},
                {0: X[:3].tolist(), 7: [tuple(row) for row in X[3:].tolist()]},
                {"features": X, "labels": y},
                {"base": {1: list(X[:2].astype(np.float16))}, "novel": {"data": X, "y": codes.tolist()}},
                {3: [[np.float64(v) for v in X[0]], [1, 2, 300, 70_000, -1, 2**40, True, 0, 1, 2]]},
            )
        ],
        "torch archive": [(".pt", data) for data in _torch_files(X, codes, True)],
        "torch stream": [(".pt", data) for data in _torch_files(X, codes, False)],
        "mat": [(".mat", data) for data in _matlab_files(X, y, codes)],
        "npz": [(".npz", data) for data in _npz_files(X, y, codes)],
    }
    for suffix in (".npy", ".safetensors", ".csv", ".tsv", ".parquet"):
        files[suffix[1:]] = []
        for labels in (y, codes):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"a{suffix}"
                write_features(path, (X, labels), about={"extractor": "none"})
                files[suffix[1:]].append((suffix, path.read_bytes()))
    return files


def _torch_files(X: np.ndarray, codes: np.ndarray, archive: bool) -> list[bytes]:
    import torch

    tensor, labels = torch.from_numpy(X), torch.from_numpy(codes)
    made = []
    for value in (
        {"features": tensor, "labels": labels},
        (tensor.bfloat16(), labels),
        {1: list(tensor[:3]), 2: list(tensor[3:].half())},
        {"X": tensor.t()[:6, ::2], "y": labels.tolist(), "Z": X},
        {"X": tensor[:1, :1].expand(6, 4), "y": labels},
    ):
        file = io.BytesIO()
        torch.save(value, file, _use_new_zipfile_serialization=archive)
        made.append(file.getvalue())
    return made


def _matlab_files(X: np.ndarray, y: np.ndarray, codes: np.ndarray) -> list[bytes]:
    from scipy.io import savemat
    from scipy.sparse import csc_array

    made = []
    for variables, options in (
        ({"X": X, "y": codes, "class_names": y[::2].astype(object)}, {}),
        ({"X": X, "y": y, "about": '{"a": 1}', "s": {"a": 1}}, {}),
        ({"X": csc_array(X), "y": y.astype(object)}, {}),
        ({"X": X, "y": codes, "names": y[::2].astype(object)}, {"do_compression": True}),
        ({"X": X, "y": codes}, {"format": "4"}),
        ({"X": csc_array(X), "y": codes, "t": "text"}, {"format": "4"}),
    ):
        file = io.BytesIO()
        savemat(file, variables, **options)
        made.append(file.getvalue())
    return made


def _npz_files(X: np.ndarray, y: np.ndarray, codes: np.ndarray) -> list[bytes]:
    made = []
    for save in (np.savez, np.savez_compressed):
        for arrays in (
            {"X": X, "y": y},
            {"base": X.reshape(3, 2, 10), "base_names": y[::2]},
            {"cat": X[:2], "dog": np.asfortranarray(X[2:])},
            {"X": X.astype(np.float16), "y": codes, "names": y[::2]},
        ):
            file = io.BytesIO()
            save(file, **arrays)
            made.append(file.getvalue())
    return made


# --- changes

INTERESTING = [
    0,
    1,
    2,
    3,
    7,
    8,
    127,
    128,
    255,
    256,
    2**15,
    2**16 - 1,
    2**24,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**40,
]
INTERESTING += [2**60, 2**62, 2**63 - 1, 2**63, 2**64 - 1]
OPCODES = b"(012aebdegh]}lsutNRQ.iocpqrGIJKLMSTUVXB" + bytes(range(0x80, 0x99))
TOKENS = [
    *(bytes([code]) for code in OPCODES),
    b"cos\nsystem\n", b"cnumpy\nndarray\n", b"cnumpy\ndtype\n", b"cbuiltins\ngetattr\n",
    b"ccollections\nOrderedDict\n", b"cnumpy.core.multiarray\nscalar\n", b"cnumpy.core.numeric\n_frombuffer\n",
    b"c_codecs\nencode\n", b"h\x00", b"h\x05", b"G" + bytes(8), (b"G" + bytes(8)) * 9, b"K\x01",
    b"(" + b"K\x01" * 9 + b"e", b"I-1\n", b"F1.5\n", b"S'a'\n", b"Va\n",
    b"nan", b"inf", b"1e400", b"-", b",", b"\t", b"\n", b"\r\n", b'"', b"\0", b"\xff", b"{", b"[", b":",
    b"F64", b"I64", b"BF16", b"U99999", b"|O", b"<f8", b">f4", b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06",
    b"PAR1", b"\x93NUMPY", b"MATLAB 5.0 MAT-file", b"9" * 30, b"1" * 200, "é".encode(), b"\xed\xa0\x80",
]  # fmt: skip


@st.composite
def changed(draw: Any, data: bytes, others: list[bytes]) -> bytes:
    """A file with up to a few changes anywhere in it."""
    for _ in range(draw(st.sampled_from(CHANGES))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        kind = draw(st.sampled_from(KINDS))
        if kind == "bit" and data:
            data = data[:at] + bytes([data[at] ^ (1 << draw(st.integers(0, 7)))]) + data[at + 1 :]
        elif kind == "byte":
            data = data[:at] + bytes([draw(st.integers(0, 255))]) + data[at + 1 :]
        elif kind == "number":
            width = draw(st.sampled_from([1, 2, 4, 8]))
            value = draw(st.sampled_from(INTERESTING)) % 2 ** (8 * width)
            order = draw(st.sampled_from(["little", "big"]))
            data = data[:at] + value.to_bytes(width, order) + data[at + width :]
        elif kind == "token":
            data = data[:at] + draw(st.sampled_from(TOKENS)) + data[at + draw(st.integers(0, 3)) :]
        elif kind == "cut":
            data = data[:at] + data[at + draw(st.integers(1, 64)) :]
        elif kind == "end":
            data = data[:at]
        elif kind == "twice":
            data = data[: at + draw(st.integers(1, 64))] + data[at:]
        else:
            other = draw(st.sampled_from(others))
            start = draw(st.integers(0, max(len(other) - 1, 0)))
            data = data[:at] + other[start : start + draw(st.integers(1, 128))] + data[at:]
    return data


@st.composite
def changed_member(draw: Any, data: bytes) -> bytes:
    """An archive of which one member is changed, under a right checksum."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    telling = [name for name in members if name.endswith((".pkl", ".npy"))]
    name = draw(st.sampled_from([*telling * 5, *members]))
    members[name] = draw(changed(members[name], list(members.values())))
    file = io.BytesIO()
    method = draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
    with zipfile.ZipFile(file, "w", method) as archive:
        for key, value in members.items():
            archive.writestr(key, value)
    return file.getvalue()


@st.composite
def changed_variable(draw: Any, data: bytes) -> bytes:
    """A MATLAB file of which one variable is changed, and then compressed."""
    start, variables = 128, []
    while start < len(data):
        end = start + 8 + struct.unpack_from("<I", data, start + 4)[0]
        variables.append(data[start:end])
        start = end
    at = draw(st.integers(0, len(variables) - 1))
    packed = zlib.compress(draw(changed(variables[at], variables)))
    variables[at] = struct.pack("<II", 15, len(packed)) + packed
    return data[:128] + b"".join(variables)


def values() -> Any:
    """Values that could be features, if they were of other shapes and types."""
    numbers = st.one_of(st.integers(-2, 2**65), st.floats(), st.booleans())
    text = st.text(max_size=5)
    arrays = st.builds(
        lambda shape, code: np.ones(shape, code),
        st.lists(st.integers(0, 4), max_size=4).map(tuple),
        st.sampled_from(["f2", "<f4", ">f4", "f8", "u1", "i8", "?", "U3", "S3", "c8", "O"]),
    )
    leaves = st.one_of(numbers, text, st.none(), arrays, st.binary(max_size=9), arrays.map(lambda a: a.sum()))
    names = st.sampled_from(["X", "y", "features", "labels", "names", "X_base", "base", "about"])
    keys = st.one_of(names, st.integers(0, 3), text, numbers, st.none(), st.binary(max_size=3))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4),
            st.tuples(inner, inner),
            st.dictionaries(keys, inner, max_size=4),
            st.lists(numbers, min_size=7, max_size=20),
        ),
        max_leaves=12,
    )


@st.composite
def fuzzed(draw: Any, files: dict[str, list[tuple[str, bytes]]]) -> tuple[str, str, bytes]:
    """Format, suffix and bytes of a file that may be anything."""
    name = draw(st.sampled_from(sorted(files)))
    suffix, data = draw(st.sampled_from(files[name]))
    how = draw(st.integers(0, 9))
    if how == 0:
        return name, suffix, draw(st.binary(max_size=200))
    if how == 1 and name in ("pickle", "csv", "tsv"):
        start = b"\x80\x04" if name == "pickle" else b""
        return name, suffix, start + b"".join(draw(st.lists(st.sampled_from(TOKENS), max_size=40))) + b"."
    if how < 4 and name == "pickle":
        return name, suffix, pickle.dumps(draw(values()), protocol=draw(st.integers(0, 5)))
    if how < 4 and data[:10] == b"MATLAB 5.0":
        return name, suffix, draw(changed_variable(data))
    if how < 6 and data[:2] == b"PK":
        return name, suffix, draw(changed_member(data))
    others = [other for _, other in files[name]]
    return name, suffix, draw(changed(data, others))


# --- reading


class TooSlow(BaseException):
    """A file took longer than it may."""


def read(path: Path) -> str:
    """What becomes of a file: "refused", "read", or the words for a finding."""
    try:
        file = read_features(path)
    except InputError as error:
        said = str(error)
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


@contextmanager
def limited() -> Iterator[None]:
    """At most so many seconds."""

    def stop(*_: Any) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def outcome(path: Path) -> str:
    try:
        with limited(), warnings.catch_warnings():
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
    files = {name: some for name, some in sound_files().items() if not formats or name in formats}
    # What belongs to every .npy file.
    np.save(folder / "a.labels.npy", np.repeat([0, 1, 2], 2))
    size = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
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
        counts[f"{name}|{found if found in ('read', 'refused') else 'finding'}"] += 1
        if found not in ("read", "refused"):
            counts[f"finding|{name}: {found}"] += 1
            kept = Path(f"finding-{hashlib.sha256(data).hexdigest()[:12]}{suffix}")
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
            # The file at hand is the only one left.
            (left,) = (path for path in folder.glob("a.*") if path.name != "a.labels.npy")
            kept = Path(f"crash-{hashlib.sha256(left.read_bytes()).hexdigest()[:12]}{left.suffix}")
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
    totals = Totals()
    with tempfile.TemporaryDirectory(dir=FAST if FAST.is_dir() else None) as top:
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
    table = Table("format", "inputs", "refused", "read", "findings", title="Fuzzed feature files")
    names = sorted({key.split("|")[0] for key in counts if not key.startswith("finding|")})
    columns = ("refused", "read", "finding")
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
