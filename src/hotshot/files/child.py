"""Formats whose parsers can be attacked or crash are read in a child process with limits of memory, time and disk.

The child calls a function on the file and writes the tensors that it returns into a temporary folder; the parent maps
them. If the child crashes, hangs or takes too much memory, that is an error.
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
from hotshot.files.samples import SeveralPartsError
from hotshot.files.tensors import TensorFile, map_tensors, write_tensors_to
from hotshot.formatting import on_one_line, readable_size, reason

# What reading any file may take: memory beyond that of Python and its libraries, and processor time.
MEMORY, SECONDS = 2**29, 60
# Large files may take more, in proportion. Numbers one by one take some ten times the memory that they take in a file;
# compressed files may unpack to 200 times their size, and are converted once.
GROWTH, GROWTH_OF_COMPRESSED, BYTES_PER_SECOND = 32, 400, 2**20
_ANSWER, _REFUSAL, _ERRORS = "tensors", "refusal.json", "errors"
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
    options: dict[str, Any]
    name: str
    folder: str
    library: str
    memory: int
    seconds: int


def read_in_child(
    function: Callable[..., Any],
    path: Path,
    *,
    growth: int = GROWTH_OF_COMPRESSED,
    name: str | None = None,
    library: str = "",
    **options: Any,
) -> TensorFile:
    """The tensors and metadata that `function` returns for a file and these options, in a child process.

    The child may use `MEMORY` bytes plus `growth` times the size of the file. Messages call the file `name`. A
    `library` that the function needs is imported first, and its memory does not count.
    """
    size = len(map_bytes(path))
    # What is mapped stays readable after the folder is gone.
    with tempfile.TemporaryDirectory(prefix="hotshot-", ignore_cleanup_errors=True) as folder:
        request = Request(
            function.__module__, function.__name__, str(path), options, name or str(path), folder, library,
            MEMORY + growth * size, SECONDS + size // BYTES_PER_SECOND,
        )  # fmt: skip
        code, answer, refusal = run(request), Path(folder, _ANSWER), Path(folder, _REFUSAL)
        if refusal.exists():
            message, parts = json.loads(refusal.read_text())
            raise SeveralPartsError(message, parts) if parts else InputError(message)
        if code or not answer.exists():
            raise InputError(_sentence(request, code))
        return map_tensors(answer)


def run(request: Request) -> int:
    """Run a child on a request; its exit code, negative after a signal."""
    # The libraries of this process, wherever it found them.
    specs = [importlib.util.find_spec(name) for name in _LIBRARIES]
    libraries = [str(Path(spec.origin).parents[1]) for spec in specs if spec is not None and spec.origin]
    package = str(Path(__file__).parents[1])
    command = [sys.executable or "python3", "-I", "-c", _START, package, json.dumps(vars(request)), *libraries]
    # One thread, and no memory pools that take address space in advance.
    settings = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    with Path(request.folder, _ERRORS).open("wb") as errors:
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
    errors = Path(request.folder, _ERRORS).read_bytes()[-2000:].decode(errors="replace").strip()
    if "bad_alloc" in errors or "MemoryError" in errors:
        return _too_much_memory(request)
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


def _too_much_memory(request: Request) -> str:
    return (
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
    """Read the file and store its tensors, or the error message."""
    parts: list[str] = []
    try:
        function = getattr(importlib.import_module(request.module), request.function)
        tensors, metadata = function(Path(request.path), **request.options)
        with Path(request.folder, _ANSWER).open("wb") as file:
            write_tensors_to(file, tensors, metadata)
        return
    except MemoryError:
        message = _too_much_memory(request)
    except InputError as error:
        message, parts = str(error), list(getattr(error, "parts", []))
    except OSError as error:
        message = (
            f"{request.name} cannot be read and unpacked to {Path(request.folder).parent}, {error.strerror or error}: "
            "set TMPDIR to a folder with more space, or save its arrays with numpy.savez(path, X=X, y=y)."
        )
    except Exception as error:
        # Values of every kind may lie where features are expected.
        message = (
            f"{request.name} holds no features that can be read ({reason(error, 100)}): copy or download it again."
        )
    Path(request.folder, _REFUSAL).write_text(json.dumps([message, parts]))
