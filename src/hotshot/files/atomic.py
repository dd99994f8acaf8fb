"""Atomic writing: a file or folder appears or changes only when all of it is on the disk.

What is written is first in a hidden folder beside its final place, `.name.….part`, with a lock. When a process dies,
the system releases its lock, which tells the next writer of that name. Disks without locks work without them.
"""

import glob
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from hotshot.errors import InputError, RunError

LOCK, _NEW, _OLD = ".lock", "new", "old"


# --- files


@contextmanager
def replace_files(*paths: str | Path) -> Iterator[Sequence[BinaryIO]]:
    """Open files that replace `paths` at the end; after an error nothing has changed.

    With several files, the later ones are removed before the first is replaced: a new file is never found beside an
    old one, even if the process is killed.
    """
    places = [Path(path) for path in paths]
    with _one_sentence(places[0]), _hidden(places[0]) as hidden:
        parts = [hidden / f"{_NEW}{i}" for i in range(len(places))]
        with ExitStack() as stack:
            files = [stack.enter_context(part.open("xb")) for part in parts]
            yield files
            for file in files:
                file.flush()
                os.fsync(file.fileno())
        for place in places[1:]:
            place.unlink(missing_ok=True)
        for part, place in zip(parts, places, strict=True):
            part.replace(place)
            _sync_names(place.parent)


@contextmanager
def replace_file(path: str | Path) -> Iterator[BinaryIO]:
    """An open file that replaces `path` at the end; after an error nothing has changed."""
    with replace_files(path) as (file,):
        yield file


def check_writable(path: str | Path) -> None:
    """Raise unless a file of this name can be written: before the work, not after it."""
    with _one_sentence(path):
        with suppress(FileNotFoundError):
            if stat.S_ISDIR(os.stat(path).st_mode):
                raise InputError(f"{path} is a folder: name a file.")
        with _hidden(Path(path)):
            pass


def write_text(path: str | Path, text: str) -> None:
    """Write a text file in UTF-8."""
    with replace_file(path) as file:
        file.write(text.encode(errors="backslashreplace"))


def write_json(path: str | Path, content: Any) -> None:
    """Write an indented JSON document; half a surrogate pair, as in names of files, is written as in JSON."""
    write_text(path, json.dumps(content, ensure_ascii=False, indent=1) + "\n")


def link_or_copy(source: str | Path, target: str | Path) -> None:
    """Hard-link a file that is never changed, or copy it to the disk if that is impossible."""
    try:
        os.link(source, target)
    except OSError:
        with open(source, "rb") as content, replace_file(target) as file:
            shutil.copyfileobj(content, file)


# --- folders


@contextmanager
def replace_folder(path: str | Path, marker: str, overwrite: bool) -> Iterator[Path]:
    """A folder to fill that replaces `path` at the end; after an error nothing has changed.

    An existing folder is only replaced if it contains the file `marker`. Write its files with the functions above.
    """
    path = Path(path)
    # Links are followed and stay; "." gets a name.
    place = real(path)
    with _one_sentence(path):
        _check_replaceable(recover(path), marker, overwrite)
        with suppress(FileExistsError):
            place.parent.mkdir(parents=True)
        with _hidden(place) as hidden:
            new, old = hidden / _NEW, hidden / _OLD
            new.mkdir()
            yield new
            # Check again: filling may have taken hours.
            _check_replaceable(path, marker, overwrite)
            for inside, _, _ in os.walk(new):
                _sync_names(Path(inside))
            # For a moment `place` does not exist: if the process ends then, `recover` restores it.
            if place.exists():
                place.rename(old)
            try:
                new.rename(place)
            finally:
                if not place.exists():
                    old.rename(place)
            _sync_names(place.parent)


def recover(path: str | Path) -> Path:
    """The path; a folder that a dead process had moved away while replacing it is moved back first."""
    path = Path(path)
    # A name with a NUL character is refused by the reader.
    for hidden in () if os.path.exists(path) or "\0" in str(path) else _leftovers(real(path)):
        if (hidden / _OLD).exists():
            # A living writer is between two renames: the lock is free when the new folder is in its place.
            with suppress(OSError), _lock(hidden / LOCK, wait=True):
                if not os.path.exists(path):
                    (hidden / _OLD).rename(real(path))
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


def real(path: Path) -> Path:
    """The path with links resolved; a link to itself stays, and is refused when it is opened."""
    return Path(os.path.realpath(path))


# --- locks


@contextmanager
def locked(folder: str | Path, what: str = "folder") -> Iterator[Path]:
    """The folder, created if missing and locked until the end."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _sync_names(folder.parent)
        with open(folder / LOCK, "ab"):
            pass
    except OSError as error:
        refuse_file(folder, what)
        raise RunError(f"The {what} {folder} cannot be written: {error.strerror or error}.") from None
    with _lock(folder / LOCK) as free:
        _refuse_taken(free, f"the {what} {folder}")
        yield folder


@contextmanager
def held(path: str | Path) -> Iterator[None]:
    """Lock a name, until the end, for what is not written in one go; raise if another process has locked it."""
    with _lock(_lock_beside(path), remove=True) as free:
        _refuse_taken(free, str(path))
        yield


@contextmanager
def one_at_a_time(path: str | Path) -> Iterator[None]:
    """Other processes and threads that use this on the same folder wait until the end, also while it is replaced."""
    with _lock(_lock_beside(recover(path)), wait=True, remove=True):
        yield


def _lock_beside(path: str | Path) -> Path:
    place = real(Path(path))
    return place.with_name(f".{place.name[:60]}{LOCK}")


def _refuse_taken(free: bool | None, what: str) -> None:
    if free is False:
        raise RunError(f"Another process is writing to {what}: wait for it, or name another.")


@contextmanager
def _lock(path: Path, wait: bool = False, remove: bool = False) -> Iterator[bool | None]:
    """Lock a file until the end: False if another process or thread holds the lock, None if the disk has no locks."""
    from filelock import FileLock, Timeout

    free: bool | None = True
    lock = FileLock(path, blocking=wait)
    try:
        lock.acquire()
    except Timeout:
        free = False
    except (OSError, NotImplementedError):
        free = None
    try:
        yield free
    finally:
        if free and remove:
            # Whoever waits for it finds that it has gone, and makes another.
            with suppress(OSError):
                path.unlink()
        lock.release()


def has_its_name(file: BinaryIO) -> bool:
    """Whether an open file still has its name: nobody has deleted, moved or replaced it."""
    try:
        return os.path.samestat(os.stat(file.name), os.fstat(file.fileno()))
    except OSError:
        return False


# --- hidden folders


@contextmanager
def _hidden(place: Path) -> Iterator[Path]:
    """A locked, hidden folder beside `place`, removed at the end."""
    remove_leftovers(place)
    with ExitStack() as stack:
        while True:
            # A short name, so that it is valid wherever the path is.
            hidden = Path(tempfile.mkdtemp(".part", f".{place.name[:60]}.", place.parent))
            stack.callback(shutil.rmtree, hidden, ignore_errors=True)
            stack.enter_context(_lock(hidden / LOCK))
            # Another process may have removed it before it was locked.
            if hidden.exists():
                break
        yield hidden


def _leftovers(place: Path) -> list[Path]:
    """Hidden folders beside `place`, of living and dead processes."""
    return list(place.parent.glob(f".{glob.escape(place.name[:60])}.????????.part"))


def remove_leftovers(place: Path) -> None:
    """Remove the hidden folders that dead processes left beside `place`; every writer of that name does this."""
    for hidden in _leftovers(place):
        if place.exists() or not (hidden / _OLD).exists():
            with suppress(OSError), _lock(hidden / LOCK) as free:
                if free:
                    shutil.rmtree(hidden, ignore_errors=True)


def _sync_names(folder: Path) -> None:
    """Force the names in a folder to the disk; on some systems this is impossible or unnecessary."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _one_sentence(path: str | Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}.") from None
