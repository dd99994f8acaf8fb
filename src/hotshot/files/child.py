"""Formats whose parsers can be attacked or crash are read in a child process with limits of memory, time and disk.

The child calls a function on the file and stores what it returns as JSON and a safetensors file in a temporary folder,
which the parent maps. If the child crashes, hangs or takes too much memory, that is an error.
"""

import importlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.errors import InputError
from hotshot.files.opening import check_size, map_bytes
from hotshot.files.tensors import map_tensors, write_tensors_to
from hotshot.formatting import on_one_line, quoted, readable_size

# What reading any file may take: memory beyond that of Python and its libraries, and processor time.
MEMORY, SECONDS = 2**29, 60
# Large files may take more, in proportion. Numbers one by one take some ten times the memory that they take in a file;
# compressed files may unpack to 200 times their size, and are converted once.
GROWTH, GROWTH_OF_COMPRESSED, BYTES_PER_SECOND = 32, 400, 2**20
_LONGEST_ANSWER = 2**28
# How deep a value may be nested, and what each part of it takes.
_MOST_DEPTH, _BYTES_PER_VALUE = 6, 16
# How the system ends a process that has used up its time, where it has limits.
_HANG = -getattr(signal, "SIGXCPU", 24)
_LIBRARIES = ("numpy", "scipy", "torch", "h5py", "array_api_compat", "threadpoolctl")
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
class Request:
    """What a child is asked: which function reads which file, into which folder, with which library and limits."""

    module: str
    function: str
    path: str
    name: str
    folder: str
    library: str
    memory: int
    seconds: int


def read_in_child(
    function: Callable[[Path, str], Any], path: Path, growth: int = GROWTH, name: str | None = None, library: str = ""
) -> Any:
    """What `function` makes of a file in a child process, with mapped, read-only arrays.

    It returns a value of arrays, texts, numbers, lists and dictionaries, and the most bytes that it may take, or None.
    The child may use `MEMORY` bytes plus `growth` times the size of the file. Messages call the file `name`. A
    `library` that the function needs is imported first, and its memory does not count.
    """
    size = len(map_bytes(path))
    # What is mapped stays readable after the folder is gone.
    with tempfile.TemporaryDirectory(prefix="hotshot-", ignore_cleanup_errors=True) as folder:
        request = Request(
            function.__module__, function.__name__, str(path), name or str(path), folder, library,
            MEMORY + growth * size, SECONDS + size // BYTES_PER_SECOND,
        )  # fmt: skip
        code, place = run(request), Path(folder) / "answer.json"
        if code or not place.exists():
            raise InputError(_sentence(request, code))
        if place.stat().st_size > _LONGEST_ANSWER + size:
            raise _too_much_memory(request)
        reply = json.loads(place.read_text())
        if "error" in reply:
            raise InputError(reply["error"])
        return _unpacked(reply["value"], map_tensors(Path(folder) / "tensors").tensors, path)


def run(request: Request) -> int:
    """Run a child on a request; its exit code, negative after a signal."""
    # The libraries of this process, wherever it found them.
    specs = [importlib.util.find_spec(name) for name in _LIBRARIES]
    libraries = [str(Path(spec.origin).parents[1]) for spec in specs if spec is not None and spec.origin]
    package = str(Path(__file__).parents[1])
    command = [sys.executable or "python3", "-I", "-c", _START, package, json.dumps(vars(request)), *libraries]
    # One thread, and no memory pools that take address space in advance.
    settings = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    with (Path(request.folder) / "errors").open("wb") as errors:
        try:
            return subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, env=os.environ | settings,
                # Twice the limit of processor time, for a busy machine.
                timeout=2 * request.seconds + SECONDS, check=False,
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            return _HANG
        except OSError as error:
            raise InputError(
                f"{request.name} is read by a child process, which cannot be started: {error.strerror or error}."
            ) from None


def _sentence(request: Request, code: int) -> str:
    """The error message for a child without an answer."""
    errors = (Path(request.folder) / "errors").read_bytes()[-2000:].decode(errors="replace").strip()
    if "bad_alloc" in errors or "MemoryError" in errors:
        return str(_too_much_memory(request))
    if code >= 0:
        last = on_one_line(errors.splitlines()[-1] if errors else f"exit code {code}")
        return f"{request.name} cannot be read ({last}): copy or download it again."
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


# --- in the child


def work(text: str) -> None:
    """Answer a request: the main function of a child."""
    request = Request(**json.loads(text))
    for module in filter(None, (request.module, request.library)):
        importlib.import_module(module)
    limit(request)
    answer(request)


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


def answer(request: Request) -> None:
    """Read the file, and store the result or the error message."""
    folder = Path(request.folder)
    try:
        value, most = getattr(importlib.import_module(request.module), request.function)(
            Path(request.path), request.name
        )
        packer = _Packer(request.name, sys.maxsize if most is None else most)
        reply = {"value": packer.packed(value)}
        with (folder / "tensors").open("wb") as file:
            write_tensors_to(file, packer.arrays, {})
    except MemoryError:
        reply = {"error": str(_too_much_memory(request))}
    except InputError as error:
        reply = {"error": str(error)}
    except OSError as error:
        reply = {
            "error": f"{request.name} cannot be read and unpacked to {folder.parent}, {error.strerror or error}: set "
            "TMPDIR to a folder with more space, or save its arrays with numpy.savez(path, X=X, y=y)."
        }
    (folder / "answer.json").write_text(json.dumps(reply))


# --- answers: lists, dictionaries and arrays of any kind, as JSON and few arrays, and back


class Other:
    """A value that feature files cannot contain: an object of the type `what`."""

    def __init__(self, what: str) -> None:
        self.what = what


class _Packer:
    """Collects the arrays of a value in `arrays`; raises if they would take more bytes than `most`.

    A file may refer to the same vector any number of times: without a limit a kilobyte could ask for terabytes.
    """

    def __init__(self, name: str, most: int) -> None:
        self.name, self.most, self.left = name, most, most
        self.arrays: dict[str, np.ndarray] = {}

    def packed(self, value: Any, depth: int = 0) -> Any:
        """The value as JSON: a plain value, or a list of its kind and its parts; arrays by their keys in `arrays`."""
        self._spend(_BYTES_PER_VALUE)
        value = value.item() if isinstance(value, np.generic) else value
        value = as_text(value) if isinstance(value, (bytes, bytearray)) else value
        if value is None or type(value) in (bool, float) or (type(value) is int and abs(value) < 2**63):
            return value
        if type(value) is str and _is_clean(value):
            self._spend(len(value))
            return value
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, dict) and depth < _MOST_DEPTH:
            keys = [self.packed(key, _MOST_DEPTH) for key in value]
            # A key that holds arrays, such as a tensor, is none.
            keys = [
                ["other", type(key).__name__] if isinstance(x, list) else x for x, key in zip(keys, value, strict=True)
            ]
            return ["dictionary", keys, [self.packed(x, depth + 1) for x in value.values()]]
        if type(value) in (list, tuple) and depth < _MOST_DEPTH:
            return self._list(list(value), depth)
        return ["other", type(value).__name__]

    def _array(self, array: np.ndarray) -> Any:
        self._spend(array.nbytes)
        if array.dtype.kind == "c":
            raise InputError(f"{self.name} holds complex numbers: take their real part or their modulus.")
        if array.dtype.kind in "OUS":
            return self._texts([as_text(x) for x in array.reshape(-1).tolist()], array.shape)
        return ["array", self._key(array)]

    def _texts(self, texts: list[Any], shape: tuple[int, ...]) -> Any:
        if not all(isinstance(text, str) and _is_clean(text) for text in texts):
            raise InputError(f"{self.name} has labels that are not valid text: store them as UTF-8.")
        self._spend(sum(map(len, texts)))
        return ["texts", texts, shape]

    def _list(self, items: list[Any], depth: int) -> Any:
        kinds = set(map(type, items))
        if kinds and kinds <= {bytes, bytearray}:
            self._spend(sum(map(len, items)))
            ends = np.cumsum([len(item) for item in items], dtype=np.int64)
            return ["bytes", self._key(np.frombuffer(b"".join(items), np.uint8)), self._key(ends)]
        if kinds and kinds <= {bytes, bytearray, str}:
            return self._texts(list(map(as_text, items)), (len(items),))
        numbers = self._row(items)
        if numbers is not None:
            return self._array(numbers)
        # Two arrays alone are features and labels.
        if kinds and all(issubclass(kind, (list, tuple, np.ndarray)) for kind in kinds) and (depth or len(items) != 2):
            rows: list[np.ndarray] = []
            # Those of different lengths are packed one by one.
            for item in items:
                row = self._row(item)
                if row is None or (rows and len(row) != len(rows[0])):
                    break
                self._spend(row.nbytes)
                rows.append(row)
            else:
                return ["rows", self._key(np.stack(rows))]
        return ["list", [self.packed(item, depth + 1) for item in items]]

    def _row(self, item: Any) -> np.ndarray | None:
        """A vector: a list of numbers, or an array with one axis longer than 1, as after pooling."""
        if isinstance(item, np.ndarray):
            is_row = item.dtype.kind in "fiub" and item.size and item.size == max(item.shape, default=0)
            return item.reshape(-1) if is_row else None
        kinds = set(map(type, item))
        if not kinds or not all(issubclass(kind, (int, float, np.number, np.bool_)) for kind in kinds):
            return None
        self._spend(8 * len(item))
        array = np.array(item)
        # NumPy makes floats of integers that 64 bits do not hold.
        return array if array.dtype.kind in ("iub" if kinds == {int} else "fiub") else None

    def _key(self, array: np.ndarray) -> str:
        key = str(len(self.arrays))
        self.arrays[key] = np.asarray(array, array.dtype.newbyteorder("="), order="C")
        return key

    def _spend(self, n_bytes: int) -> None:
        self.left -= n_bytes
        if self.left < 0:
            raise InputError(
                f"{self.name} would take more than {readable_size(self.most)} of memory because it repeats the same "
                "vectors: it is damaged or hostile; store each vector once."
            )


def _unpacked(value: Any, arrays: Mapping[str, np.ndarray], path: Path) -> Any:
    """The value that was packed: rows as flat arrays, byte strings in lists as views of one."""
    if not isinstance(value, list):
        return value
    kind, *parts = value
    if kind == "array":
        return arrays[parts[0]]
    if kind == "rows":
        return list(arrays[parts[0]])
    if kind == "texts":
        texts, shape = parts
        check_size(path, 4 * len(texts) * max(map(len, texts), default=0), "labels")
        return np.array(texts, dtype=str).reshape(shape)
    if kind == "other":
        return Other(parts[0])
    if kind == "bytes":
        data, ends = memoryview(arrays[parts[0]]), arrays[parts[1]].tolist()  # type: ignore[arg-type]
        return [data[start:end] for start, end in pairwise([0, *ends])]
    *keys, items = ([_unpacked(item, arrays, path) for item in part] for part in parts)
    if kind == "list":
        return items
    result: dict[Any, Any] = {}
    for key, item in zip(keys[0], items, strict=True):
        if key in result:
            raise InputError(f"{path} has two entries for {quoted(key)}: give every class one entry.")
        result[key] = item
    return result


def as_text(value: Any) -> str | None:
    """Text; bytes from Python 2 are decoded as UTF-8, or else as Latin-1, in which every byte is valid."""
    if not isinstance(value, (bytes, bytearray, memoryview)):
        return value if type(value) is str else None
    try:
        return bytes(value).decode()
    except UnicodeDecodeError:
        return bytes(value).decode("latin-1")


def _is_clean(text: str) -> bool:
    """Whether text can be stored: surrogates cannot be written, and NumPy drops NUL at the end."""
    return not text.endswith("\0") and not any("\ud800" <= c <= "\udfff" for c in text)
