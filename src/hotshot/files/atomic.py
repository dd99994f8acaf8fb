"""The one way to write a file or a folder: it appears, or changes, only when all of it is on the disk."""

import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from hotshot.errors import InputError


@contextmanager
def replace_file(path: str | Path) -> Iterator[BinaryIO]:
    """An open file that takes the place of `path` at the end; after an error nothing has changed."""
    path = Path(path)
    temporary = _beside(path, "part")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}.") from None
    finally:
        with suppress(OSError):
            temporary.unlink()


def write_text(path: str | Path, text: str) -> None:
    """Write a text file in UTF-8."""
    with replace_file(path) as file:
        file.write(text.encode())


def write_json(path: str | Path, content: Any) -> None:
    """Write a JSON document that people can read too."""
    try:
        text = json.dumps(content, ensure_ascii=False, indent=1)
        text.encode()
    except UnicodeEncodeError:
        # File names of other encodings come as text that has no UTF-8 of its own.
        text = json.dumps(content, indent=1)
    write_text(path, text + "\n")


@contextmanager
def replace_folder(path: str | Path, marker: str, overwrite: bool) -> Iterator[Path]:
    """A folder to fill that takes the place of `path` at the end; after an error nothing has changed.

    Only a folder with the file `marker` in it is ever replaced.
    """
    path = Path(path)
    _check_replaceable(path, marker, overwrite)
    # Where links lead to: they stay, and "." has a name there.
    place = path.resolve()
    temporary, old = _beside(place, "part"), _beside(place, "old")
    try:
        temporary.mkdir(parents=True)
        yield temporary
        # Filling may have taken hours.
        _check_replaceable(path, marker, overwrite)
        if place.exists():
            place.rename(old)
        temporary.rename(place)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}.") from None
    finally:
        if old.exists() and not place.exists():
            old.rename(place)
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _beside(path: Path, suffix: str) -> Path:
    """A hidden name in the same folder, short enough wherever the path itself is."""
    return path.parent / f".{path.name[:60]}.{secrets.token_hex(4)}.{suffix}"


def _check_replaceable(path: Path, marker: str, overwrite: bool) -> None:
    """Raise where something is in the way of `path`."""
    if path.exists() and not (path / marker).is_file():
        raise InputError(f"{path} is there already and has no {marker}: choose another name.")
    if path.exists() and not overwrite:
        raise InputError(f"{path} is there already: pass overwrite=True to replace it, or choose another name.")
