"""Fuzzed feature files: valid files of every format, damaged at random, are read.

Bits, bytes, lengths, words, opcodes and members of archives are changed, removed or exchanged. `hotshot.read_features`
must return features or raise InputError with one sentence. Anything else is a finding: another exception, a crash, more
than `SECONDS`, more memory than `MEMORY`, a new file in the folder of the run. The first file of each kind of finding
is saved, and its kind is printed.

Each file is read in a fork of this process. Formats that hotshot reads in a child process are read in the same fork:
starting Python for each file would take hours. If they crash or reach a limit there, the file counts as "stopped".
"""

from __future__ import annotations

import importlib
import io
import json
import os
import pickle
import random
import resource
import signal
import sys
import tempfile
import traceback
import warnings
import zipfile
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from scipy.io import savemat
from scipy.sparse import csc_array

from benchmarks.shared import Seed, forks, in_fork, printed, say, show
from hotshot import read_features
from hotshot.errors import InputError
from hotshot.evaluation.tables import Table
from hotshot.files import child, write_features

SECONDS = 5
# A small compressed file may unpack to 256 MiB, a child may use 512, and the conversion of features needs more.
MEMORY = 2**30
LIMITS = {resource.RLIMIT_AS: MEMORY, resource.RLIMIT_FSIZE: MEMORY, resource.RLIMIT_CORE: 0}
OUTCOMES = ("refused", "stopped", "read")
# Words of the readers, and of libraries that they use, for a lack of memory.
OUT_OF_MEMORY = ("does not fit in memory", "MemoryError", "malloc", "bad_alloc", "Unable to allocate")
# Words of the parent if its child reached its limits.
STOPPED = ("crashes the program", "of memory to read", "seconds to read")
# Folder for the files of findings.
KEPT = Path(tempfile.gettempdir()) / "hotshot-fuzz"
# Suffix and bytes of valid files, by format.
Files = dict[str, list[tuple[str, bytes]]]


def main(
    inputs: Annotated[int, typer.Option(help="Number of files.")] = 100_000,
    seed: Seed = 0,
    jobs: Annotated[int, typer.Option(help="Processes.")] = 2,
    formats: Annotated[str, typer.Option(help="Formats, separated by commas; all by default.")] = "",
) -> None:
    files = valid_files()
    files = {name: some for name, some in files.items() if not formats or name in formats.split(",")}
    # Imported once, not in each fork, so that their memory does not count.
    for reader in ("named_arrays", "feature_tables", "child_readers"):
        importlib.import_module(f"hotshot.files.{reader}")
    counts: Counter[tuple[str, str]] = Counter()
    findings: Counter[str] = Counter()
    KEPT.mkdir(exist_ok=True)
    with forks(jobs) as (pool, top):
        for number, found in enumerate(pool.map(partial(test, files, seed, top), range(inputs), chunksize=50)):
            name, suffix, data = fuzzed(random.Random(f"{seed} {number}"), files)
            counts[name, found if found in OUTCOMES else "findings"] += 1
            if found not in OUTCOMES:
                findings[f"{name}: {found}"] += 1
                if findings[f"{name}: {found}"] == 1:
                    kept = KEPT / f"finding-{seed}-{number}{suffix}"
                    kept.write_bytes(data)
                    say(f"Finding: {name}: {found}, first file: {kept}")
    columns = (*OUTCOMES, "findings")
    rows = [(name, *(f"{counts[name, column]:,}" for column in columns)) for name in sorted(files)]
    rows.append(("all", *(f"{sum(counts[name, column] for name in files):,}" for column in columns)))
    show(Table(f"{inputs:,} fuzzed feature files, seed {seed}", ("format", *columns), tuple(rows)))
    for what, times in findings.items():
        say(f"{times} x {what}")
    sys.exit(bool(findings))


# --- reading


def test(files: Files, seed: int, top: Path, number: int) -> str:
    """Read file `number` in a fork; one of OUTCOMES, or the description of a finding."""
    _, suffix, data = fuzzed(random.Random(f"{seed} {number}"), files)
    folder, log = top / str(os.getpid()), top / f"log {os.getpid()}"
    folder.mkdir(exist_ok=True)
    path = folder / f"a{suffix}"
    path.write_bytes(data)
    # The labels of .npy files.
    np.save(folder / "a.labels.npy", np.repeat([0, 1, 2], 2))
    # If the content of a file can create files, they appear in this folder.
    code = in_fork(lambda: print(_read(path), end=""), folder, log, SECONDS, LIMITS)
    outcome = printed(log)[0].replace(_BEGUN + _ENDED, "")
    for left in set(os.listdir(folder)) - {path.name, "a.labels.npy"}:
        outcome = f"made {left[:40]!r}"
    path.unlink()
    if _BEGUN in outcome:
        return "stopped"
    if code == 0 and outcome:
        return outcome
    return f"more than {SECONDS} s" if code in (-signal.SIGALRM, -signal.SIGXCPU) else f"crash with exit code {code}"


_BEGUN, _ENDED = "\x02", "\x03"


def _run_here(request: child.Request) -> int:
    """A replacement for `child.run`: answer a request in this process, and tell its parent when."""
    print(_BEGUN, end="", flush=True)
    child.answer(request)
    print(_ENDED, end="", flush=True)
    return 0


def _read(path: Path) -> str:
    child.run = _run_here
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            file = read_features(path)
            X, y = file.X, file.y
            valid = X.ndim == 2 and X.dtype in (np.float32, np.float64) and bool(np.isfinite(X).all())
            valid = valid and y.shape == (len(X),) and y.dtype.kind in "Uiubf" and len(set(y.tolist())) >= 1
            json.dumps(file.about)
            "".join(map(str, y.tolist())).encode()
            return "read" if valid else "invalid features"
    except InputError as error:
        message = str(error)
        if any(words in message for words in STOPPED):
            return "stopped"
        if any(words in message for words in OUT_OF_MEMORY):
            return "too much memory"
        readable = message.isprintable() and len(message) < 1000
        return "refused" if readable else f"unreadable error message: {message.replace(str(path), '')[:60]!r}"
    except MemoryError:
        return "too much memory"
    except BaseException as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}"


# --- valid files


def valid_files() -> Files:
    """Small valid files."""
    X = np.random.default_rng(0).normal(size=(6, 10)).astype(np.float32)
    y, codes = np.repeat(["cat", "dog", "größe"], 2), np.repeat([0, 1, 2], 2)
    tensor, labels = torch.from_numpy(X), torch.from_numpy(codes)
    pickled: tuple[Any, ...] = (
        {"cat": list(X[:3]), "dog": list(X[3:])},
        {0: X[:3].tolist(), 7: [tuple(row) for row in X[3:].tolist()]},
        {"base": {1: list(X[:2].astype(np.float16))}, "novel": {"data": X, "y": codes.tolist()}},
        {3: [[np.float64(v) for v in X[0]], [1, 2, 300, 70_000, -1, 2**40, True, 0, 1, 2]]},
    )
    tensors = (
        {"features": tensor, "labels": labels},
        {1: list(tensor[:3]), 2: list(tensor[3:].half())},
        {"X": tensor.t()[:6, ::2], "y": labels.tolist(), "Z": X},
    )
    variables: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
        ({"X": csc_array(X), "y": y.astype(object), "s": {"a": 1}}, {"do_compression": True}),
        ({"X": X, "y": codes, "t": "text"}, {"format": "4"}),
    )
    arrays = (
        {"X": X, "y": y},
        {"base": X.reshape(3, 2, 10), "base_names": y[::2]},
        {"X": X.astype(np.float16), "y": codes, "names": y[::2]},
    )
    files: Files = {
        "pickle": [(".plk", pickle.dumps(value, protocol)) for value in pickled for protocol in range(6)],
        "torch archive": [(".pt", _bytes(torch.save, value)) for value in tensors],
        "torch stream": [(".pt", _bytes(torch.save, value, _use_new_zipfile_serialization=False)) for value in tensors],
        "mat": [(".mat", _bytes(savemat, value, **options, first=True)) for value, options in variables],
        "npz": [
            (".npz", _bytes(save, first=True, **value)) for value in arrays for save in (np.savez, np.savez_compressed)
        ],
    }
    for suffix in (".npy", ".safetensors", ".csv", ".tsv", ".parquet"):
        files[suffix[1:]] = []
        for some in (y, codes):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"a{suffix}"
                write_features(path, (X, some), about={"extractor": "none"})
                files[suffix[1:]].append((suffix, path.read_bytes()))
    return files


def _bytes(save: Any, *values: Any, first: bool = False, **options: Any) -> bytes:
    """What a function writes to a file, which is its first argument or its second."""
    file = io.BytesIO()
    save(*((file, *values) if first else (*values, file)), **options)
    return file.getvalue()


# --- damage

# Most files have few changes, so that readers do not stop at the first bytes.
CHANGES = (1, 1, 1, 1, 2, 2, 3, 6)
NUMBERS = [2**power + more for power in (0, 3, 7, 8, 15, 16, 24, 31, 32, 40, 60, 62, 63, 64) for more in (-1, 0)]
OPCODES = b"(012aebdegh]}lsutNRQ.iocpqrGIJKLMSTUVXB" + bytes(range(0x80, 0x99))
TOKENS = [
    *(bytes([code]) for code in OPCODES), b"cos\nsystem\n", b"cnumpy\nndarray\n", b"cbuiltins\ngetattr\n",
    b"ccollections\nOrderedDict\n", b"cnumpy.core.multiarray\nscalar\n", b"cnumpy.core.numeric\n_frombuffer\n",
    b"c_codecs\nencode\n", b"h\x05", (b"G" + bytes(8)) * 9, b"(" + b"K\x01" * 9 + b"e", b"I-1\n", b"F1.5\n",
    *b"nan inf 1e400 - , F64 I64 BF16 U99999 |O <f8 >f4 PAR1 { [ :".split(), b"PK\3\4", b"PK\1\2", b"PK\5\6", b"\xff",
    b"\x93NUMPY", b"\xed\xa0\x80",
    b"\t", b"\n", b"\r\n", b'"', b"\0", b"MATLAB 5.0 MAT-file", b"9" * 30, b"1" * 200, "é".encode(),
]  # fmt: skip


def fuzzed(rng: random.Random, files: Files) -> tuple[str, str, bytes]:
    """Format, suffix and bytes of a file: random, or made from a valid one."""
    name = rng.choice(sorted(files))
    suffix, data = rng.choice(files[name])
    how = rng.randrange(10)
    if how == 0:
        return name, suffix, rng.randbytes(rng.randrange(200))
    if how == 1 and name in ("pickle", "csv", "tsv"):
        start = b"\x80\x04" if name == "pickle" else b""
        return name, suffix, start + b"".join(rng.choices(TOKENS, k=rng.randrange(40))) + b"."
    if how < 4 and name == "pickle":
        return name, suffix, pickle.dumps(random_value(rng, 4), rng.randrange(6))
    if how < 6 and data[:2] == b"PK":
        return name, suffix, changed_member(rng, data)
    return name, suffix, changed(rng, data, [other for _, other in files[name]])


def changed(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """A file with one to six changes at random places."""
    for _ in range(rng.choice(CHANGES)):
        at, width = rng.randrange(len(data) + 1), rng.choice((1, 2, 4, 8))
        number = (rng.choice(NUMBERS) % 256**width).to_bytes(width, rng.choice(("little", "big")))
        other = rng.choice(others)
        start = rng.randrange(len(other) + 1)
        new, removed = rng.choice(
            (
                (bytes(byte ^ (1 << rng.randrange(8)) for byte in data[at : at + 1]), 1),
                (rng.randbytes(1), 1),
                (number, width),
                (number, width),
                (rng.choice(TOKENS), rng.randrange(4)),
                (rng.choice(TOKENS), rng.randrange(4)),
                (b"", rng.randrange(1, 65)),
                (b"", len(data)),
                (data[at : at + rng.randrange(1, 65)], 0),
                (other[start : start + rng.randrange(1, 129)], 0),
            )
        )
        data = data[:at] + new + data[at + removed :]
    return data


def changed_member(rng: random.Random, data: bytes) -> bytes:
    """An archive with one changed member and correct checksums."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    main_ones = [name for name in members if name.endswith((".pkl", ".npy"))]
    name = rng.choice([*main_ones * 5, *members])
    members[name] = changed(rng, members[name], list(members.values()))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for key, value in members.items():
            archive.writestr(key, value)
    return file.getvalue()


def random_value(rng: random.Random, depth: int) -> Any:
    """A value of some type and shape, seldom features."""
    numbers = [
        rng.randint(-2, 2**65),
        rng.gauss(0, 1),
        float("nan"),
        True,
        np.float32(1.5),
        np.int64(3),
        rng.randrange(4),
    ]
    if depth and rng.random() < 0.7:
        inner = [random_value(rng, depth - 1) for _ in range(rng.randrange(5))]
        keys = [rng.choice(["X", "y", "labels", "names", "X_base", "about", *numbers, None, b"x", "é"]) for _ in inner]
        return rng.choice([inner, tuple(inner), dict(zip(keys, inner, strict=True)), rng.choices(numbers, k=12)])
    shape = tuple(rng.randrange(5) for _ in range(rng.randrange(5)))
    array = np.ones(shape, rng.choice(["f2", "<f4", ">f4", "f8", "u1", "i8", "?", "U3", "S3", "c8", "O"]))
    text = "".join(rng.choices("aé\0\ud800 ,\n", k=rng.randrange(6)))
    return rng.choice([*numbers, text, None, array, array, array, rng.randbytes(9), np.str_("a")])
