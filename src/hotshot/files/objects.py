"""Objects as JSON and tensors, written and read without pickle; and folders that a JSON document describes."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from hotshot.errors import InputError, ParameterError
from hotshot.files.atomic import recover, write_json
from hotshot.files.opening import json_object, opened
from hotshot.files.opening import need as need
from hotshot.formatting import on_one_line

# A JSON document of more bytes, or with an integer of more digits, is none of ours.
LONGEST_DOCUMENT, MOST_DIGITS = 2**28, 300
# Of a file, what enters its digest: all of it, or of a larger one so many blocks of so many bytes.
_BLOCKS, _BLOCK = 256, 2**16
Content = TypeVar("Content")
_FAULTS = (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError, OSError)


def to_json(value: Any, name: str, tensors: dict[str, np.ndarray]) -> Any:
    """`value` as JSON; its arrays of numbers are added to `tensors`, each once."""
    keys = {id(array): key for key, array in tensors.items()}

    def encoded(value: Any, name: str) -> Any:
        if isinstance(value, np.ndarray):
            if value.dtype.kind in "OU" and all(isinstance(item, str) for item in value.flat) and value.ndim == 1:
                return {"text": value.tolist(), "objects": value.dtype.kind == "O"}
            if value.dtype.kind not in "biuf":
                raise InputError(f"{name} holds {value.dtype}, which cannot be saved: use text or numbers.")
            key = keys.setdefault(id(value), name)
            tensors[key] = value
            return {"tensor": key}
        if isinstance(value, tuple):
            return [encoded(item, f"{name}.{i}") for i, item in enumerate(value)]
        if is_dataclass(value) and not isinstance(value, type):
            parts = {f.name: encoded(getattr(value, f.name), f"{name}.{f.name}") for f in fields(value)}
            return {"type": type(value).__name__, **parts}
        if isinstance(value, np.generic):
            return value.item()
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        raise ParameterError(f"{name} is {value!r}, which cannot be saved: use text, numbers or None.")

    return encoded(value, name)


def from_json(value: Any, tensors: Mapping[str, np.ndarray], types: Mapping[str, type]) -> Any:
    """The inverse of `to_json`; only classes in `types` are created."""
    if isinstance(value, list):
        return tuple(from_json(item, tensors, types) for item in value)
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        return tensors[value["tensor"]]
    if "text" in value:
        need(all(isinstance(item, str) for item in value["text"]), "text that is not a string")
        need(type(value["objects"]) is bool, "text of an unknown type")
        return np.array(value["text"], dtype=object if value["objects"] else str)
    parts = {key: from_json(item, tensors, types) for key, item in value.items() if key != "type"}
    return types[value["type"]](**parts)


# --- folders


def read_object(path: str | Path) -> dict[str, Any] | None:
    """The JSON object in a file; None if it holds anything else."""

    def integer(digits: str) -> int:
        need(len(digits) <= MOST_DIGITS, "a number with too many digits")
        return int(digits)

    with opened(path, LONGEST_DOCUMENT) as file:
        return json_object(file.read(), parse_int=integer)


def read_json_document(folder: Path, file: str, what: str, remedy: str, version: int) -> dict[str, Any]:
    """The JSON object that describes a folder; raises unless it has this kind and version."""
    path = recover(folder) / file
    if not os.path.exists(path):
        raise InputError(f"{folder} is not a {what}, it has no {file}: {remedy}.")
    content = read_object(path)
    if content is None or content.get("format") != f"hotshot {what}":
        raise InputError(f"{path} does not describe a {what}: {remedy}.")
    if type(content.get("version")) is not int or content["version"] != version:
        raise InputError(
            f"{folder} is a {what} of version {content.get('version')!r:.20}, but this hotshot reads version "
            f"{version}: use the hotshot that wrote it, or create it again."
        )
    return content


def file_in_folder(folder: Path, name: str) -> Path:
    """A file of the folder; raises if the name leads outside, or to something else such as a pipe."""
    path = folder / name
    need(Path(name).name == name, f"file {name!r:.100} is not in the folder")
    need(path.is_file() or not path.exists(), f"{name} is not a file")
    return path


def write_sealed(folder: Path, name: str, content: Mapping[str, Any], files: Iterable[str]) -> str:
    """Write the JSON document of a folder, with digests that tie it to these other files of the folder; its digest."""
    sealed = {**content, "files": {file: file_digest(folder / file) for file in files}}
    digest = _document_digest(sealed)
    write_json(folder / name, {**sealed, "digest": digest})
    return digest


def check_sealed(folder: Path, content: Mapping[str, Any]) -> None:
    """Raise unless the document of a folder, and the files that it names, are those that were written together."""
    rest = {key: value for key, value in content.items() if key != "digest"}
    need(content["digest"] == _document_digest(rest), "its description was changed")
    for file, digest in content["files"].items():
        place = folder / file
        need(not Path(file).is_absolute() and ".." not in Path(file).parts, f"file {file!r:.100} is not in the folder")
        # What is in a folder of its own, such as the bank of a model, may be left out.
        if place.exists() or place.parent == folder:
            need(place.is_file() and file_digest(place) == digest, f"{file} was not written with it")


def _document_digest(content: Mapping[str, Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 of the size and the content of a file; of a large one, of blocks at even distances."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        digest = sha256(str(size).encode())
        evenly = [(size - _BLOCK) * i // (_BLOCKS - 1) for i in range(_BLOCKS)]
        for start in range(0, size, _BLOCK) if size <= _BLOCKS * _BLOCK else evenly:
            file.seek(start)
            digest.update(file.read(_BLOCK))
    return digest.hexdigest()


def read_folder(path: Path, read: Callable[[], Content]) -> Content:
    """What `read` returns; it reads again if another process has replaced the folder meanwhile."""

    def identity() -> tuple[int, int] | None:
        try:
            facts = path.stat()
            return facts.st_ino, facts.st_ctime_ns
        except (OSError, ValueError):
            return None

    while True:
        before = identity()
        try:
            return read()
        except InputError:
            if identity() == before:
                raise


@contextmanager
def refuse_damage(folder: Path | str, what: str, clear: type[Exception] = InputError) -> Iterator[None]:
    """Turn errors while a folder is read into one sentence; errors of type `clear` are raised as they are."""
    try:
        yield
    except clear:
        raise
    except _FAULTS as error:
        said = on_one_line(f"{type(error).__name__} {error}")
        raise InputError(f"{folder} is not a valid {what} ({said}): copy or create it again.") from None
