"""Formats whose parsers can be attacked or crash are read in a child process with limits of memory, time and disk.

The child calls a function on the file and stores what that packed as JSON and a safetensors file in a temporary folder;
the parent maps these. If the child crashes, hangs or takes too much memory, that is an error.
"""

import importlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotshot.errors import InputError
from hotshot.files.opening import map_bytes
from hotshot.files.packing import unpacked
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
_LIBRARIES = ("numpy", "scipy", "torch", "h5py", "array_api_compat")
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

    It returns a value packed as JSON, and the arrays in it. The child may use `MEMORY` bytes plus `growth` times the
    size of the file. Messages call the file `name`. A `library` that the function needs is imported first, and its
    memory does not count.
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
        found = json.loads(place.read_text())
        if "error" in found:
            raise InputError(found["error"])
        return unpacked(found["value"], map_tensors(Path(folder) / "tensors").tensors, path)


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
        read = getattr(importlib.import_module(request.module), request.function)
        value, arrays = read(Path(request.path), request.name)
        with (folder / "tensors").open("wb") as file:
            write_tensors_to(file, arrays, {})
        found = {"value": value}
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
