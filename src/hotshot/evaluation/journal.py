"""A run is a folder: `run.json` holds the request, `journal.jsonl` the results, record by record.

The journal is only ever appended to. Each line is a checksum and a JSON document, written at once and forced to the
disk, so that whatever ends the process leaves whole lines and at most one torn one, which is dropped at the next start.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import stat
import sys
import zlib
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, BinaryIO

import numpy as np
from joblib.hashing import NumpyHasher
from scipy import special
from sklearn.base import clone

from hotshot.arrays import array_hash
from hotshot.bank import BaseClasses
from hotshot.classifiers.classifier import FewShotClassifier
from hotshot.errors import ParameterError, RunError
from hotshot.files.atomic import has_its_name, locked, write_json
from hotshot.files.objects import need, read_object
from hotshot.files.opening import json_object
from hotshot.user_code import LOADED

REQUEST, JOURNAL = "run.json", "journal.jsonl"
CALIBRATION_BINS = 15


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

    `counts` has a row for each class of each task: its index, how many queries it had, and how many of these were
    predicted right. `bins` are (count, confidence, correct) per bin of confidence, or None without probabilities;
    `statuses` counts transport problems by status. `measures` are what else the setting measures, by name, one number
    per task.
    """

    chunk: Chunk
    counts: list[list[list[int]]]
    bins: list[list[float]] | None
    statuses: dict[str, int]
    stopped_early: int
    seconds: float
    measures: dict[str, list[float]]

    @property
    def accuracies(self) -> list[float]:
        """Share of the queries of each task that were predicted right."""
        return [sum(right for *_, right in task) / sum(queries for _, queries, _ in task) for task in self.counts]

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Record:
        """The record that was written as this document; an error where it cannot be one."""
        record = cls(**{**document, "chunk": Chunk(**document["chunk"])})
        counts, n_tasks = np.array([row for task in record.counts for row in task]), len(record.counts)
        need(n_tasks == record.chunk.stop - record.chunk.start and all(record.counts), "counts of other tasks")
        need(counts.dtype.kind == "i" and counts.shape[1:] == (3,) and (counts >= 0).all(), "no counts")
        need((counts[:, 2] <= counts[:, 1]).all() and np.isfinite(record.accuracies).all(), "more right than asked")
        bins = [] if record.bins is None else record.bins
        need(np.shape(bins) in ((0,), (CALIBRATION_BINS, 3)), "no bins")
        need(all(len(values) == n_tasks for values in record.measures.values()), "measures of other tasks")
        numbers = [record.seconds, *itertools.chain(*bins, *record.measures.values())]
        need(all(type(x) in (int, float) and math.isfinite(x) for x in numbers), "no numbers")
        need(record.seconds >= 0, "no time")
        need(all(type(n) is int for n in (*record.statuses.values(), record.stopped_early)), "no whole numbers")
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

    def records(self) -> dict[Chunk, Record]:
        """Every record by its chunk; lines that are none are passed over."""
        self._file.seek(0)
        return read_records(self._file.read())[0]

    def append(self, record: Record) -> None:
        """Write one record to the disk; where it does not fit, what was written of it is taken back."""
        self.check_kept()
        line = encode(asdict(record))
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
    return Path("runs") / sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()[:12]


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


def read_records(content: bytes) -> tuple[dict[Chunk, Record], int]:
    """The records of a journal by their chunks, the last of each, and how many lines are no records."""
    records, damaged = {}, 0
    for line in content.splitlines():
        try:
            record = Record.from_json(decode(line) or {})
            records[record.chunk] = record
        except (TypeError, LookupError, ArithmeticError, ValueError, AttributeError):
            damaged += 1
    return records, damaged


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
        # What its estimators have learned does not count: they are cloned before they are fitted.
        for name, value in clone(estimator).get_params(deep=True).items():
            parameters[name] = _value_to_json(value)
    except Exception as error:
        raise ParameterError(
            f"The {name} of {kind.__name__} cannot be identified after a restart "
            f"({' '.join(str(error).split()) or type(error).__name__}): leave out the run folder, or use classes and "
            "functions that stand at the top level of a file."
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
    return f"{getattr(value, '__qualname__', type(value).__qualname__)} {_hash(value)}"


def _hash(value: Any) -> str:
    return str(_Hasher("sha1").hash(value))


class _Hasher(NumpyHasher):
    """joblib's, which knows classes and functions by name only; of the user's own the text of their file counts too."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, BaseClasses):
            return str, (value.fingerprint,)
        if isinstance(value, np.ufunc) and value in (getattr(home, value.__name__, None) for home in (np, special)):
            return str, (f"ufunc {value.__name__}",)
        if isinstance(value, (type, FunctionType)) and not _is_installed(value):
            # Bases are given as state, which pickle saves after it has noted the object, so that circles end.
            return str, (f"{value.__qualname__} {_digest_of_text(value)}",), getattr(value, "__bases__", ())
        return NotImplemented

    def save_global(self, obj: Any, name: str | None = None, pack: Any = None) -> None:
        """Refuse what is no class or function, but would be known by its name alone, and is in no package."""
        if not _is_installed(obj):
            raise TypeError(f"{name or obj} has neither text nor state that can be read")
        super().save_global(obj, name)


def _is_installed(value: Any) -> bool:
    """Whether a class or function is what Python, hotshot or an installed package has under its name."""
    module = sys.modules.get(str(getattr(value, "__module__", None)))
    return module is not None and _is_package(module) and _has(module, value)


def _is_package(module: ModuleType) -> bool:
    """Whether a module belongs to Python, hotshot or an installed package."""
    folders = {"site-packages", "dist-packages"} & {*Path(getattr(module, "__file__", None) or "").parts}
    return bool(folders) or module.__name__.split(".")[0] in {*sys.stdlib_module_names, "hotshot"} - {"__main__"}


def _has(module: ModuleType, value: Any) -> bool:
    """Whether a module has a class or function under its name."""
    try:
        return bool(attrgetter(value.__qualname__)(module) is value)
    except AttributeError:
        return False


def _digest_of_text(value: type | FunctionType) -> str:
    """SHA-256 of the file at whose top level a class or function stands, and of the user's modules that it names."""
    places = [module for module in (sys.modules.get(value.__module__), *LOADED) if module and _has(module, value)]
    if not places or not getattr(places[0], "__file__", None):
        raise TypeError(f"{value.__qualname__} does not stand at the top level of a file")
    modules, waiting = set[ModuleType](), [places[0]]
    while waiting:
        modules.add(module := waiting.pop())
        for named in vars(module).values():
            other = named if isinstance(named, ModuleType) else sys.modules.get(str(getattr(named, "__module__", None)))
            if other and other not in modules and not _is_package(other) and getattr(other, "__file__", None):
                waiting.append(other)
    texts = sorted(Path(str(module.__file__)).read_bytes() for module in modules)
    return sha256(b"\0".join(texts)).hexdigest()
