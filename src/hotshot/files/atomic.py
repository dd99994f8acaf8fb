"""Atomic writing: a file or folder appears or changes only when all of it is on the disk.

Unfinished files have a hidden name beside the final one and are locked, as are folders that a command adds to. When a
process dies, the kernel releases its locks, which tells the next writer. Systems without locks work without them.
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
# Constants of Linux: paths are relative to the current folder, and are exchanged.
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


@contextmanager
def replace_files(*paths: str | Path) -> Iterator[Sequence[BinaryIO]]:
    """Open files that replace `paths` at the end; after an error nothing has changed.

    With several files, the later ones are removed before the first is replaced: a new file is never found beside an
    old one, even if the process is killed.
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
                # Windows cannot rename open files. Elsewhere the lock is held until the file has its name.
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
    """An open file that replaces `path` at the end; after an error nothing has changed."""
    with replace_files(path) as (file,):
        yield file


def check_writable(path: str | Path) -> None:
    """Raise unless a file of this name can be written: before the work, not after it."""
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
        file.write(text.encode(errors="backslashreplace"))


def write_json(path: str | Path, content: Any) -> None:
    """Write an indented JSON document."""
    try:
        text = json.dumps(content, ensure_ascii=False, indent=1)
        text.encode()
    except UnicodeEncodeError:
        # File names of other encodings come as text that has no UTF-8 of its own.
        text = json.dumps(content, indent=1)
    write_text(path, text + "\n")


@contextmanager
def replace_folder(path: str | Path, marker: str, overwrite: bool) -> Iterator[Path]:
    """A folder to fill that replaces `path` at the end; after an error nothing has changed.

    An existing folder is only replaced if it contains the file `marker`. Write its files with the functions above.
    """
    path = Path(path)
    # Links are followed and stay; "." gets a name.
    place = real(path)
    try:
        _check_replaceable(recover(path), marker, overwrite)
        temporary, descriptor = _claim(place, folder=True)
        try:
            yield temporary
            # Check again: filling may have taken hours.
            _check_replaceable(path, marker, overwrite)
            for inside, _, _ in os.walk(temporary):
                _sync_names(Path(inside))
            _put_in_place(temporary, place)
            _sync_names(place.parent)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
            os.close(descriptor)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}.") from None


def _put_in_place(new: Path, place: Path) -> None:
    """Rename a folder to `place`; an existing folder there gets the name of `new`, or is removed."""
    if not place.exists():
        new.rename(place)
    elif not _exchange(new, place):
        # For a moment `place` does not exist: if the process ends then, `recover` restores it.
        old = new.with_suffix(".old")
        try:
            place.rename(old)
            new.rename(place)
        finally:
            if not place.exists():
                old.rename(place)
            shutil.rmtree(old, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one step; whether the system supports it."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    names = os.fsencode(one), os.fsencode(other)
    return bool(rename(_AT_FDCWD, names[0], _AT_FDCWD, names[1], ctypes.c_uint(_RENAME_EXCHANGE)) == 0)


def real(path: Path) -> Path:
    """The path with links resolved; a link to itself stays, and is refused when it is opened."""
    return Path(os.path.realpath(path))


def recover(path: str | Path) -> Path:
    """The path; a folder that a dead process had moved away while replacing it is moved back first."""
    path = Path(path)
    # A name with a NUL character is refused by the reader.
    for old in () if os.path.exists(path) or "\0" in str(path) else _leftovers(real(path), "old"):
        with suppress(OSError), _locked_now(old.with_suffix(".part")) as free:
            if free is not False:
                old.rename(real(path))
    return path


def _check_replaceable(path: Path, marker: str, overwrite: bool) -> None:
    """Raise if `path` exists and must not be replaced."""
    if path.exists() and not (path / marker).is_file():
        raise InputError(f"{path} already exists and has no {marker}: choose another name.")
    if path.exists() and not overwrite:
        raise InputError(f"{path} already exists: pass overwrite=True to replace it, or choose another name.")


def refuse_file(path: str | Path, what: str) -> None:
    """Raise if this path, or a folder that it is in, is a file."""
    if any(place.exists() and not place.is_dir() for place in (Path(path), *Path(path).parents)):
        raise RunError(f"{path} is a file, not a {what}: name another.")


@contextmanager
def locked(folder: str | Path, what: str = "folder") -> Iterator[Path]:
    """The folder, created if missing and locked until the end."""
    folder = Path(folder)
    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _sync_names(folder.parent)
            file = stack.enter_context(open(folder / LOCK, "ab"))
        except OSError as error:
            refuse_file(folder, what)
            raise RunError(f"The {what} {folder} cannot be written: {error.strerror or error}.") from None
        hold(file, f"the {what} {folder}")
        yield folder


@contextmanager
def one_at_a_time(path: str | Path) -> Iterator[None]:
    """Other processes and threads that use this on the same folder wait until the end, also while it is replaced."""
    while True:
        with ExitStack() as stack:
            # Without the folder, or on systems without locks, nothing is locked.
            with suppress(OSError):
                descriptor = os.open(recover(path), os.O_RDONLY)
                stack.callback(os.close, descriptor)
                if fcntl is not None:
                    fcntl.flock(descriptor, fcntl.LOCK_EX)
                if not os.path.samestat(os.stat(path), os.fstat(descriptor)):
                    continue
            yield
            return


def link_or_copy(source: str | Path, target: str | Path) -> None:
    """Hard-link a file that is never changed, or copy it to the disk if that is impossible."""
    try:
        os.link(source, target)
    except OSError:
        with open(source, "rb") as content, replace_file(target) as file:
            shutil.copyfileobj(content, file)


def hold(file: BinaryIO, what: str) -> None:
    """Lock an open file until it is closed; raise if another process has locked or removed it."""
    if _lock(file.fileno()) is False or not has_its_name(file):
        raise RunError(f"Another process is writing to {what}: wait for it, or name another.")


def has_its_name(file: BinaryIO) -> bool:
    """Whether an open file still has its name: nobody has deleted, moved or replaced it."""
    try:
        return os.path.samestat(os.stat(file.name), os.fstat(file.fileno()))
    except OSError:
        return False


def _lock(descriptor: int) -> bool | None:
    """Lock an open file; False if another process holds the lock, None if the system has no locks."""
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
    """Lock a file or folder until the end; yields the result of `_lock`."""
    # Windows cannot open folders, and has no locks.
    descriptor = os.open(path if fcntl is not None else os.devnull, os.O_RDONLY)
    try:
        yield _lock(descriptor)
    finally:
        os.close(descriptor)


def _leftovers(path: Path, suffix: str) -> list[Path]:
    """Unfinished files and folders beside `path`, of living and dead processes."""
    return list(path.parent.glob(f".{glob.escape(path.name[:60])}.{'[0-9a-f]' * 8}.{suffix}"))


def remove_leftovers(path: Path) -> None:
    """Remove the unfinished files that dead processes left beside `path`; every writer of that name does this."""
    for other in (*_leftovers(path, "part"), *(_leftovers(path, "old") if path.exists() else ())):
        with suppress(OSError), _locked_now(other) as free:
            if free:
                shutil.rmtree(other) if other.is_dir() else other.unlink()


def _claim(path: Path, folder: bool = False) -> tuple[Path, int]:
    """A new hidden file or folder beside `path`, open and locked by this process."""
    remove_leftovers(path)
    while True:
        # A short name, so that it is valid wherever the path is.
        part = path.parent / f".{path.name[:60]}.{secrets.token_hex(4)}.part"
        if folder:
            part.mkdir(parents=True)
        opened = os.devnull if folder and fcntl is None else part
        descriptor = os.open(opened, os.O_RDONLY if folder else _NEW, 0o666)
        # Another process may have removed it before it was locked.
        if _lock(descriptor) is not False and part.exists():
            return part, descriptor
        os.close(descriptor)


def _sync_names(folder: Path) -> None:
    """Force the names in a folder to the disk; on some systems this is impossible or unnecessary."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
