"""Formats whose parsers can be attacked or crash are read in a child process with limits.

The child reads the file with the function `read_raw` of one module of this package and stores the result as JSON and a
safetensors file in a temporary folder; the parent maps these. Numbers that may not fit in memory come through a pipe
instead, from the function `read_rows`. If the child crashes, hangs or takes too much memory, it raises an error.
"""

import importlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any, BinaryIO

import numpy as np

from hotshot.arrays import slices
from hotshot.errors import InputError
from hotshot.files.objects import from_json, to_json
from hotshot.files.source import damaged, map_bytes
from hotshot.files.tensors import map_tensors, write_tensors_to
from hotshot.formatting import on_one_line, readable_size

# What reading any file may take: memory beyond that of Python and its libraries, and processor time.
MEMORY = 2**29
SECONDS = 60
# Large files may take more, in proportion. Numbers one by one take some ten times the memory that they take in a file.
GROWTH = 32
BYTES_PER_SECOND = 2**20
# Compressed files may unpack to 200 times their size, and are converted once.
GROWTH_OF_COMPRESSED = 400
_LONGEST_ANSWER = 2**28
# How the system ends a process that has used up its time, where it has limits.
_HANG = -getattr(signal, "SIGXCPU", 24)
_LIBRARIES = ("numpy", "scipy", "pyarrow", "array_api_compat")
# `import hotshot` takes seconds, so its packages are entered here without running their __init__. In isolated mode (-I)
# the current folder and PYTHONPATH are not searched: a numpy.py beside the data is never imported.
_START = """
import sys, types
folder, request, *libraries = sys.argv[1:]
sys.path += [library for library in libraries if library not in sys.path]
for name in ("hotshot", "hotshot.files"):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [folder if name == "hotshot" else folder + "/files"]
from hotshot.files.child import work
work(request)
"""


@dataclass(frozen=True)
class Vectors:
    """A list of vectors: the `numbers` of all of them, concatenated, and where each ends."""

    numbers: np.ndarray
    ends: np.ndarray


class Bytes(Vectors):
    """A list of byte strings, stored like `Vectors`."""


@dataclass(frozen=True)
class Texts:
    """A list or array of text: the distinct texts, and the index of each entry among them."""

    names: tuple[str, ...]
    codes: np.ndarray


@dataclass(frozen=True)
class Items:
    """A dictionary."""

    keys: tuple[Any, ...]
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Other:
    """A value that feature files cannot contain, described in words."""

    what: str


_TYPES = {kind.__name__: kind for kind in (Vectors, Bytes, Texts, Items, Other)}


@dataclass(frozen=True)
class Request:
    """A request to a child: which module reads which file, with which limits, into which folder.

    If `rows` is true, the child sends the numbers of the file through its pipe instead.
    """

    reader: str
    path: str
    name: str
    folder: str
    memory: int
    seconds: int
    rows: bool = False


def read_in_child(reader: str, path: Path, growth: int = GROWTH, name: str | None = None) -> Any:
    """The result of `read_raw` of the module `reader` on a file; its arrays are mapped, read-only.

    The child may use `MEMORY` bytes plus `growth` times the size of the file. Error messages call the file `name`.
    """
    with _request(reader, path, growth, name) as request:
        found = _answer(request, run(request))
        return from_json(found["value"], map_tensors(Path(request.folder) / "tensors").tensors, _TYPES)


def stream_from_child(
    reader: str, path: Path, growth: int, shape: tuple[int, int], dtype: np.dtype, rows: int
) -> Iterator[np.ndarray]:
    """The numbers (samples, V) from `read_rows` of the module `reader`, `rows` at a time.

    They come through a pipe: the child waits until they are read, and ends when the pipe is closed.
    """
    with _request(reader, path, growth, rows=True) as request, started(request) as process:
        for some in slices(shape[0], rows):
            X = np.empty((some.stop - some.start, shape[1]), dtype)
            clock = Timer(_patience(request), process.kill)
            clock.start()
            try:
                taken = process.stdout.readinto(X.data.cast("B"))  # type: ignore[union-attr]
                late = clock.finished.is_set()
            finally:
                clock.cancel()
            if taken < X.nbytes:
                _answer(request, _HANG if late else _ended(request, process))
                raise damaged(f"{path} holds fewer samples than the {shape[0]} that it announces")
            yield X
        _answer(request, _ended(request, process))


@contextmanager
def _request(reader: str, path: Path, growth: int, name: str | None = None, rows: bool = False) -> Iterator[Request]:
    """A request with the limits for a file, and a temporary folder."""
    size = len(map_bytes(path))
    memory, seconds = MEMORY + growth * size, SECONDS + size // BYTES_PER_SECOND
    # What is mapped stays readable after the folder is gone.
    with tempfile.TemporaryDirectory(prefix="hotshot-", ignore_cleanup_errors=True) as folder:
        yield Request(reader, str(path), str(path) if name is None else name, folder, memory, seconds, rows)


def _answer(request: Request, code: int) -> dict[str, Any]:
    """The answer of a child that ended with this exit code; raises if it has none or if it is an error."""
    answer = Path(request.folder) / "answer.json"
    if code or not answer.exists():
        raise InputError(_sentence(request, code))
    if answer.stat().st_size > _LONGEST_ANSWER + os.path.getsize(request.path):
        raise _too_much_memory(request)
    found: dict[str, Any] = json.loads(answer.read_text())
    if "error" in found:
        raise InputError(found["error"])
    return found


def run(request: Request) -> int:
    """Run a child on a request; its exit code, negative after a signal."""
    with started(request) as process:
        return _ended(request, process)


def _ended(request: Request, process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait(_patience(request))
    except subprocess.TimeoutExpired:
        return _HANG


def _patience(request: Request) -> int:
    """Seconds to wait: twice the limit of processor time, for a busy machine."""
    return 2 * request.seconds + SECONDS


@contextmanager
def started(request: Request) -> Iterator[subprocess.Popen[bytes]]:
    """A child that answers a request, killed at the end."""
    package = Path(__file__).parents[1]
    # The libraries of this process, wherever it found them.
    found = [importlib.util.find_spec(name) for name in _LIBRARIES]
    libraries = [str(Path(spec.origin).parents[1]) for spec in found if spec is not None and spec.origin]
    command = [sys.executable or "python3", "-I", "-c", _START, str(package), json.dumps(vars(request)), *libraries]
    # One thread, and no memory pools that take address space in advance.
    settings = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
    environment = {**os.environ, **settings, "MALLOC_ARENA_MAX": "1"}
    with (Path(request.folder) / "errors").open("wb") as errors:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=environment
            )
        except OSError as error:
            raise InputError(
                f"{request.name} is read by a child process, which cannot be started: {error.strerror or error}."
            ) from None
        with process:
            try:
                yield process
            finally:
                process.kill()


def _sentence(request: Request, code: int) -> str:
    """The error message for a child without an answer."""
    errors = (Path(request.folder) / "errors").read_bytes()[-2000:].decode(errors="replace").strip()
    if "bad_alloc" in errors or "MemoryError" in errors:
        return str(_too_much_memory(request))
    if code >= 0:
        reason = on_one_line(errors.splitlines()[-1] if errors else f"exit code {code}")
        return f"{request.name} cannot be read ({reason}): copy or download it again."
    if code == _HANG:
        return f"{request.name} takes more than {request.seconds} seconds to read: it is damaged or hostile."
    name = signal.Signals(-code).name
    if name == "SIGKILL":
        return f"{request.name} could not be read, the system stopped the reader for lack of memory: free some memory."
    return (
        f"{request.name} crashes the program that reads such files ({name}), in a separate process: it is damaged "
        "or hostile; copy or download it again."
    )


def _too_much_memory(request: Request) -> InputError:
    return InputError(
        f"{request.name} would take more than {readable_size(request.memory)} of memory to read: it is damaged or "
        "hostile; if you trust it, save its arrays with numpy.savez(path, X=X, y=y)."
    )


def work(text: str) -> None:
    """Answer a request: the main function of a child, which runs this and what follows."""
    request = Request(**json.loads(text))
    module = importlib.import_module(f"hotshot.files.{request.reader}")
    # The pipe is only for numbers: what a library prints goes to stderr.
    pipe = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    limit(request)
    answer(request, module, pipe)


def limit(request: Request) -> None:
    """Limit memory, time and disk space to what the request allows."""
    try:
        import resource
    except ImportError:
        # Not on Windows, where only the parent limits the time.
        return
    pages = Path("/proc/self/statm")
    used = int(pages.read_text().split()[0]) * resource.getpagesize() if pages.exists() else 2**31
    for what, most in (
        (resource.RLIMIT_AS, used + request.memory),
        (resource.RLIMIT_CPU, request.seconds),
        (resource.RLIMIT_FSIZE, request.memory),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(what)[1]
        soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
        # At the hard limit of time the system would kill without saying why. Not every system has every limit.
        with suppress(ValueError, OSError):
            resource.setrlimit(what, (soft, hard if what == resource.RLIMIT_CPU else soft))


def answer(request: Request, module: Any, pipe: BinaryIO | None = None) -> None:
    """Read the file, and store the result or the error message, or send the numbers through the pipe."""
    folder = Path(request.folder)
    tensors: dict[str, Any] = {}
    try:
        if request.rows and pipe is not None:
            for rows in module.read_rows(Path(request.path), request.name):
                pipe.write(rows.data)
            pipe.flush()
            found: dict[str, Any] = {}
        else:
            found = {"value": to_json(module.read_raw(Path(request.path), request.name), "value", tensors)}
            with (folder / "tensors").open("wb") as file:
                write_tensors_to(file, tensors, {})
    except MemoryError:
        found = {"error": str(_too_much_memory(request))}
    except InputError as error:
        found = {"error": str(error)}
    except OSError as error:
        found = {
            "error": f"{request.name} cannot be read and unpacked to {folder.parent}, {error.strerror or error}: set "
            "TMPDIR to a folder with more space, or save its arrays with numpy.savez(path, X=X, y=y)."
        }
    (folder / "answer.json").write_text(json.dumps(found))
