"""A run is a folder: `run.json` holds the request, `journal.jsonl` the results, record by record.

The journal is only ever appended to. Each line is a checksum and a JSON document, written at once and forced to the
disk, so that whatever ends the process leaves whole lines and at most one torn one, which is dropped at the next start.
"""

from __future__ import annotations

import dis
import hashlib
import json
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, BinaryIO

import numpy as np
from joblib.hashing import NumpyHasher
from sklearn.base import BaseEstimator

from hotshot.arrays import array_hash
from hotshot.bank import BaseClasses
from hotshot.classifiers.classifier import FewShotClassifier
from hotshot.errors import ParameterError, RunError
from hotshot.files.atomic import has_its_name, locked, write_json
from hotshot.files.objects import read_object
from hotshot.files.opening import json_object

REQUEST, JOURNAL = "run.json", "journal.jsonl"
CALIBRATION_BINS = 15
# Entries of a class that say nothing of what it computes.
UNSAID = {
    "__module__", "__doc__", "__dict__", "__weakref__", "__annotations__", "__firstlineno__", "__static_attributes__",
    "__abstractmethods__", "_abc_impl",
}  # fmt: skip


@dataclass(frozen=True)
class Chunk:
    """A method on the tasks [start, stop) of one number of shots, or of a range such as "1-10"."""

    shots: int | str
    start: int
    stop: int
    method: str


@dataclass(frozen=True)
class Record:
    """The result of a chunk, as the journal keeps it.

    `classes`, `queries` and `correct` have a list for each task: its classes, as indices, how many queries each class
    had, and how many of these were predicted right. `bins` are (count, confidence, correct) per bin of confidence, or
    None without probabilities; `statuses` counts transport problems by status. `measures` are what else the setting
    measures, one number per task; a closed one has None.
    """

    chunk: Chunk
    classes: list[list[int]]
    queries: list[list[int]]
    correct: list[list[int]]
    bins: list[list[float]] | None
    statuses: dict[str, int]
    stopped_early: int
    seconds: float
    measures: dict[str, list[float]] | None = None

    def to_json(self) -> dict[str, Any]:
        """As plain lists and numbers."""
        document = asdict(self)
        if self.measures is None:
            del document["measures"]
        return {"unit": document.pop("chunk"), **document}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Record:
        """The record that `to_json` wrote; ValueError or the like where it cannot be one."""
        record = cls(chunk=Chunk(**document["unit"]), **{name: x for name, x in document.items() if name != "unit"})
        tasks = [record.classes, record.queries, record.correct]
        ways = [list(map(len, rows)) for rows in tasks]
        classes, queries, correct = (np.array([number for row in rows for number in row]) for rows in tasks)
        bins = np.zeros((CALIBRATION_BINS, 3)) if record.bins is None else np.array(record.bins)
        measures = {} if record.measures is None else record.measures
        sound = (
            ways[0] == ways[1] == ways[2]
            and len(ways[0]) == record.chunk.stop - record.chunk.start
            and min(ways[0]) > 0
            and all(numbers.ndim == 1 and numbers.dtype.kind == "i" for numbers in (classes, queries, correct))
            and classes.min() >= 0
            and correct.min() >= 0
            and (correct <= queries).all()
            and min(map(sum, record.queries)) > 0
            and np.isfinite(bins).all()
            and bins.shape == (CALIBRATION_BINS, 3)
            and all(isinstance(n, int) for n in (*record.statuses.values(), record.stopped_early))
            and record.seconds >= 0
            and isinstance(measures, dict)
            and all(isinstance(values, list) and len(values) == len(ways[0]) for values in measures.values())
            and all(type(x) in (int, float) and np.isfinite(x) for values in measures.values() for x in values)
        )
        if not sound:
            raise ValueError(f"the record of {record.chunk.method} from task {record.chunk.start} on holds no counts")
        return record


class Journal:
    """The records of one run, open for appending; use it in a `with` statement.

    The folder is made where it is missing. `request` is all that decides the records, as JSON: a folder with another
    one is refused. `about` is what else is worth knowing (versions), kept from the first start.
    """

    def __init__(self, folder: str | Path, request: dict[str, Any], about: dict[str, Any]) -> None:
        self.folder = Path(folder)
        self._request, self._about = request, about
        self._file: BinaryIO
        self.dropped = 0

    def __enter__(self) -> Journal:
        with ExitStack() as stack:
            stack.enter_context(locked(self.folder, "run folder"))
            try:
                self._file = stack.enter_context(open(self.folder / JOURNAL, "a+b", buffering=0))
            except OSError as error:
                raise RunError(f"The run folder {self.folder} cannot be written: {error.strerror}.") from None
            if not stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
                raise RunError(f"{self.folder / JOURNAL} is not a regular file: name another folder.")
            if not check_request(self.folder, self._request):
                if os.fstat(self._file.fileno()).st_size:
                    raise RunError(f"{self.folder} has a journal but no {REQUEST}: name another folder.")
                write_json(self.folder / REQUEST, {**self._about, "request": self._request})
            self._file.seek(0)
            content = self._file.read()
            # A torn line is the last one and has no end.
            self._file.truncate(content.rfind(b"\n") + 1)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        with self._stack:
            if exception == (None, None, None):
                self.check_kept()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Every whole record; lines that do not have the checksum they name are counted in `dropped`."""
        self._file.seek(0)
        documents, self.dropped = decode_lines(self._file.read())
        return iter(documents)

    def append(self, record: dict[str, Any]) -> None:
        """Write one record to the disk; where it does not fit, what was written of it is taken back."""
        self.check_kept()
        line = encode(record)
        end = self._file.seek(0, os.SEEK_END)
        try:
            written = self._file.write(line)
            if written != len(line):
                raise OSError(0, "no space left on the device")
            os.fsync(self._file.fileno())
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(end)
            raise RunError(
                f"The run folder {self.folder} cannot be written ({error.strerror}), finished tasks are kept: make "
                "room and rerun the command to resume."
            ) from None

    def check_kept(self) -> None:
        """Raise where the journal is in the folder no more: nothing that is written to it would be found again."""
        if not has_its_name(self._file):
            raise RunError(
                f"The run folder {self.folder} was deleted or moved while the run was going on, and nothing of it is "
                "kept there: rerun the command."
            )


def folder_of(request: dict[str, Any]) -> Path:
    """The folder of a run whose user names none: the same request resumes in the same folder."""
    return Path("runs") / hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()[:12]


def check_request(folder: Path, request: dict[str, Any]) -> bool:
    """Whether a folder holds this request; one of another request is refused."""
    path = folder / REQUEST
    if not path.exists():
        return False
    before = (read_object(path) or {}).get("request")
    if not isinstance(before, dict):
        raise RunError(f"{path} cannot be read as a request: name another folder.")
    wanted = json.loads(json.dumps(request))
    differing = [key for key in sorted({*before, *wanted}) if before.get(key) != wanted.get(key)]
    if differing:
        raise RunError(
            f"The run folder {folder} holds another request (it differs in {', '.join(differing)}): "
            "name another folder, or repeat that request to resume it."
        )
    return True


def encode(record: dict[str, Any]) -> bytes:
    """One line: the CRC-32 of the document in hexadecimal, a space, the document."""
    document = json.dumps(record, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(document), document)


def decode_lines(content: bytes) -> tuple[list[dict[str, Any]], int]:
    """The documents of a journal, and the number of lines that are not what was written."""
    documents = [decode(line) for line in content.splitlines()]
    return [document for document in documents if document is not None], documents.count(None)


def decode(line: bytes) -> dict[str, Any] | None:
    """The document of a line, or None where the line is not what was written."""
    checksum, _, document = line.partition(b" ")
    return json_object(document) if checksum == b"%08x" % zlib.crc32(document) else None


# --- what identifies a method: those that may give different numbers have different descriptions, or none


def estimator_to_json(estimator: Any) -> dict[str, Any]:
    """Class and parameters of an estimator; banks, arrays, functions and objects go by their hashes."""
    kind, name = type(estimator), "class"
    described = f"{kind.__module__}.{kind.__qualname__}"
    try:
        if not _is_installed(kind):
            described += f" {_hash(kind)}"
        parameters = {}
        for name, value in estimator.get_params(deep=True).items():
            parameters[name] = _value_to_json(value)
    except Exception as error:
        raise ParameterError(
            f"The {name} of {kind.__name__} cannot be identified after a restart "
            f"({' '.join(str(error).split()) or type(error).__name__}): leave out the run folder, or pass what can be "
            "pickled."
        ) from None
    chosen = estimator.choice().settings if isinstance(estimator, FewShotClassifier) else {}
    return {"class": described, "parameters": parameters, "chosen": chosen}


def _value_to_json(value: Any) -> Any:
    if isinstance(value, (bool, int, float, str, type(None))):
        return value
    if isinstance(value, BaseClasses):
        return f"{value!r} {value.fingerprint}"
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        return f"array {array_hash(np.atleast_1d(value))}"
    return f"{getattr(value, '__qualname__', type(value).__qualname__)} {_hash(_as_cloned(value))}"


def _as_cloned(value: Any) -> Any:
    """A parameter without what its estimators have learned, which are cloned before they are fitted."""
    if getattr(type(value), "__sklearn_clone__", None) is BaseEstimator.__sklearn_clone__:
        return type(value), {name: _as_cloned(own) for name, own in value.get_params(deep=False).items()}
    return [type(value), *map(_as_cloned, value)] if type(value) in (list, tuple) else value


def _hash(value: Any) -> str:
    return str(_Hasher("sha1").hash(value))


class _Hasher(NumpyHasher):
    """joblib's, which knows the user's own functions and classes by name only; here they go by their code.

    Parts are given as state, which pickle saves after it has noted the object, so that circles end.
    """

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, BaseClasses):
            return str, (value.fingerprint,)
        if isinstance(value, frozenset):
            return tuple, (sorted(map(_hash, value)),)
        if isinstance(value, ModuleType):
            # Of the user's own modules the text counts: what is read from them is not known.
            file = None if _is_package(value) else getattr(value, "__file__", None)
            return str, (f"{value.__name__} {file and hashlib.sha256(Path(file).read_bytes()).hexdigest()}",)
        if isinstance(value, (classmethod, staticmethod, cached_property)):
            return tuple, ([value.func if isinstance(value, cached_property) else value.__func__],)
        if isinstance(value, property):
            return tuple, ([value.fget, value.fset, value.fdel],)
        if not callable(value) or (_is_installed(value) and not isinstance(value, np.ufunc)):
            return NotImplemented
        if isinstance(value, np.ufunc) and _is_installed(value):
            return str, (f"ufunc {value.__name__}",)
        if isinstance(value, FunctionType):
            names = sorted(_globals_of(value.__code__) & value.__globals__.keys())
            cells = [cell.cell_contents for cell in value.__closure__ or ()]
            parts = [_text(value.__code__), value.__defaults__, value.__kwdefaults__, vars(value), cells]
            return str, ("function",), [*parts, {name: value.__globals__[name] for name in names}]
        if isinstance(value, type):
            entries = {name: entry for name, entry in vars(value).items() if name not in UNSAID}
            return str, (f"{value.__module__}.{value.__qualname__}",), [value.__bases__, entries]
        return NotImplemented

    def save_global(self, obj: Any, name: str | None = None, pack: Any = None) -> None:
        """Refuse what has neither code nor state that can be read, and is in no package."""
        if not _is_installed(obj):
            raise TypeError(f"{name or obj} has neither code nor state that can be read")
        super().save_global(obj, name)


def _text(code: CodeType) -> str:
    """A code with its constants, the same in every process."""
    constants = [
        _text(x) if isinstance(x, CodeType) else repr(sorted(map(repr, x)) if isinstance(x, frozenset) else x)
        for x in code.co_consts
    ]
    return repr([code.co_code.hex(), code.co_names, code.co_varnames, code.co_freevars, constants])


def _globals_of(code: CodeType) -> set[str]:
    """Names of globals that a code reads, in functions within it too."""
    names = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return names.union(*(_globals_of(constant) for constant in code.co_consts if isinstance(constant, CodeType)))


def _is_installed(value: Any) -> bool:
    """Whether a class or function is what Python, hotshot or an installed package has under its name."""
    home = getattr(value, "__module__", None) or ("scipy.special" if isinstance(value, np.ufunc) else "")
    module: Any = sys.modules.get(home)
    found = module
    for name in getattr(value, "__qualname__", getattr(value, "__name__", "")).split("."):
        found = getattr(found, name, None)
    return module is not None and found is value and _is_package(module)


def _is_package(module: ModuleType) -> bool:
    """Whether a module belongs to Python, hotshot or an installed package."""
    packages = {"site-packages", "dist-packages"} & {*Path(getattr(module, "__file__", None) or "").parts}
    return bool(packages) or module.__name__.split(".")[0] in {*sys.stdlib_module_names, "hotshot"} - {"__main__"}
