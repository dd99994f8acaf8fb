"""The one way to write a file or a folder: it appears, or changes, only when all of it is on the disk.

What is being written has a hidden name beside its own and is locked, as are folders that a command adds to. The kernel
takes the locks of a process that dies, so that the next writer knows. Where there are no locks, all goes on without.
"""

import ctypes
import glob
import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from hotshot.errors import InputError, RunError

try:
    import fcntl
except ImportError:  # Windows has no such locks: there, two processes on one name are the user's care.
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"
_NEW = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
# Of Linux: names are relative to the current folder, and change places.
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


@contextmanager
def replace_files(*paths: str | Path) -> Iterator[Sequence[BinaryIO]]:
    """Open files that take the places of `paths` at the end; after an error nothing has changed.

    Of several, the later ones are gone while the first is replaced: whatever ends the process, a new file is never
    found beside an old one.
    """
    places, parts, files = [Path(path) for path in paths], [], []
    try:
        for place in places:
            part, descriptor = _claim(place)
            parts.append(part)
            files.append(os.fdopen(descriptor, "wb"))
        yield files
        for file in files:
            file.flush()
            os.fsync(file.fileno())
            if fcntl is None:
                # Windows moves no open file. Elsewhere its lock stays until it has its name.
                file.close()
        for place in places[1:]:
            place.unlink(missing_ok=True)
        for part, place in zip(parts, places, strict=True):
            part.replace(place)
            _sync_names(place.parent)
    except OSError as error:
        raise InputError(f"{places[0]} cannot be written: {error.strerror or error}.") from None
    finally:
        for part, file in zip(parts, files, strict=False):
            with suppress(OSError):
                part.unlink()
            with suppress(OSError):
                file.close()


@contextmanager
def replace_file(path: str | Path) -> Iterator[BinaryIO]:
    """An open file that takes the place of `path` at the end; after an error nothing has changed."""
    with replace_files(path) as (file,):
        yield file


def check_writable(path: str | Path) -> None:
    """Raise unless a file of this name can be written: to be said before the work, not after it."""
    try:
        with suppress(FileNotFoundError):
            if stat.S_ISDIR(os.stat(path).st_mode):
                raise InputError(f"{path} is a folder: name a file.")
        part, descriptor = _claim(Path(path))
        os.close(descriptor)
        part.unlink()
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}.") from None


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

    Only a folder with the file `marker` in it is ever replaced. Its files are to be written with the functions above.
    """
    path = Path(path)
    # Where links lead to: they stay, and "." has a name there.
    place = real(path)
    try:
        _check_replaceable(recover(path), marker, overwrite)
        temporary, descriptor = _claim(place, folder=True)
        try:
            yield temporary
            # Filling may have taken hours.
            _check_replaceable(path, marker, overwrite)
            _sync_names(temporary)
            _put_in_place(temporary, place)
            _sync_names(place.parent)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
            os.close(descriptor)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}.") from None


def _put_in_place(new: Path, place: Path) -> None:
    """Give a folder its name; what had the name before has that of `new` then, or is removed."""
    if not place.exists():
        new.rename(place)
    elif not _exchange(new, place):
        # The name is gone for a moment: `recover` gives it back if that is when the process ends.
        old = new.with_suffix(".old")
        try:
            place.rename(old)
            new.rename(place)
        finally:
            if not place.exists():
                old.rename(place)
            shutil.rmtree(old, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Let two names change places in one step; whether the system can."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    names = os.fsencode(one), os.fsencode(other)
    return bool(rename(_AT_FDCWD, names[0], _AT_FDCWD, names[1], ctypes.c_uint(_RENAME_EXCHANGE)) == 0)


def real(path: Path) -> Path:
    """Where links lead to; a link that leads to itself stays, for whoever opens it to refuse."""
    return Path(os.path.realpath(path))


def recover(path: str | Path) -> Path:
    """The path, after a folder is back that a dead process had moved away to put another in its place."""
    path = Path(path)
    # A name with a NUL character is the reader's to refuse.
    for old in () if os.path.exists(path) or "\0" in str(path) else _left(real(path), "old"):
        with suppress(OSError), _locked_now(old.with_suffix(".part")) as free:
            if free is not False:
                old.rename(real(path))
    return path


def _check_replaceable(path: Path, marker: str, overwrite: bool) -> None:
    """Raise where something is in the way of `path`."""
    if path.exists() and not (path / marker).is_file():
        raise InputError(f"{path} is there already and has no {marker}: choose another name.")
    if path.exists() and not overwrite:
        raise InputError(f"{path} is there already: pass overwrite=True to replace it, or choose another name.")


@contextmanager
def locked(folder: str | Path, what: str = "folder") -> Iterator[Path]:
    """The folder, made where it is missing; until the end no other process may lock it."""
    folder = Path(folder)
    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _sync_names(folder.parent)
            file = stack.enter_context(open(folder / LOCK, "ab"))
        except (FileExistsError, NotADirectoryError):
            raise RunError(f"{folder} is a file, not a {what}: name another.") from None
        except OSError as error:
            raise RunError(f"The {what} {folder} cannot be written: {error.strerror or error}.") from None
        hold(file, f"the {what} {folder}")
        yield folder


def hold(file: BinaryIO, what: str) -> None:
    """Lock an open file until it is closed; raise where another process has it, or had it and removed it."""
    if _lock(file.fileno()) is False or not has_its_name(file):
        raise RunError(f"Another process is writing to {what}: wait for it, or name another.")


def has_its_name(file: BinaryIO) -> bool:
    """Whether an open file is still found under its name: nobody has deleted, moved or replaced it."""
    try:
        return os.path.samestat(os.stat(file.name), os.fstat(file.fileno()))
    except OSError:
        return False


def _lock(descriptor: int) -> bool | None:
    """Whether this process has the lock of an open file now; None where there are no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


@contextmanager
def _locked_now(path: Path) -> Iterator[bool | None]:
    """Whether a file or folder has been locked, until the end; not where a living process has the lock."""
    # Windows opens no folder, and has no locks to open it for.
    descriptor = os.open(path if fcntl is not None else os.devnull, os.O_RDONLY)
    try:
        yield _lock(descriptor)
    finally:
        os.close(descriptor)


def _left(path: Path, suffix: str) -> list[Path]:
    """What has been left, or is being written, beside `path`."""
    return list(path.parent.glob(f".{glob.escape(path.name[:60])}.{'[0-9a-f]' * 8}.{suffix}"))


def remove_left(path: Path) -> None:
    """Remove what dead processes left of their work on `path`; every writer of that name does."""
    for other in (*_left(path, "part"), *(_left(path, "old") if path.exists() else ())):
        with suppress(OSError), _locked_now(other) as free:
            if free:
                shutil.rmtree(other) if other.is_dir() else other.unlink()


def _claim(path: Path, folder: bool = False) -> tuple[Path, int]:
    """A new hidden file or folder beside `path`, open and locked by this process."""
    remove_left(path)
    while True:
        # Short enough wherever the path itself is.
        part = path.parent / f".{path.name[:60]}.{secrets.token_hex(4)}.part"
        if folder:
            part.mkdir(parents=True)
        opened = os.devnull if folder and fcntl is None else part
        descriptor = os.open(opened, os.O_RDONLY if folder else _NEW, 0o666)
        # Another process may have found it before it was locked, and removed it.
        if _lock(descriptor) is not False and part.exists():
            return part, descriptor
        os.close(descriptor)


def _sync_names(folder: Path) -> None:
    """Force the names in a folder to the disk; some systems open no folder, or need not be told."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
