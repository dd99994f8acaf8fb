"""Safe opening of files: no waiting for pipes, no more bytes than allowed, and no compressed bombs."""

import json
import mmap
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from hotshot.errors import InputError
from hotshot.formatting import printable, readable_size

# Without waiting for the other end of a pipe, and as bytes on every system.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
# Compressed features shrink by a small factor, a bomb by a thousand and more.
MOST_EXPANSION = 200
ALWAYS_ALLOWED = 2**28


@contextmanager
def opened(path: str | Path, most: int | None = None) -> Iterator[BinaryIO]:
    """A file open for reading, of at most so many bytes; folders, pipes and devices are refused without waiting."""
    if "\0" in str(path):
        raise InputError(f"{printable(path)} cannot be read, its name has a NUL character: rename it.")
    try:
        with open(path, "rb", opener=lambda name, _: os.open(name, _FLAGS)) as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode):
                raise InputError(f"{printable(path)} is not a regular file: copy its content to one.")
            if most is not None and facts.st_size > most:
                held, allowed = readable_size(facts.st_size), readable_size(most)
                raise InputError(
                    f"{path} has {held}, and at most {allowed} are allowed: it is damaged, or another kind of file."
                )
            yield file
    except FileNotFoundError:
        raise InputError(f"There is no file {printable(path)}.") from None
    except IsADirectoryError:
        raise InputError(f"{printable(path)} is a folder: pass one file.") from None
    except OSError as error:
        raise InputError(f"{printable(path)} cannot be read: {error.strerror or error}.") from None


def map_bytes(path: str | Path) -> mmap.mmap:
    """All bytes of a file, mapped read-only."""
    with opened(path) as file:
        if not os.fstat(file.fileno()).st_size:
            raise damaged(f"{printable(path)} is empty")
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def json_object(text: str | bytes, **options: Any) -> dict[str, Any] | None:
    """The JSON object in a text; None if it is anything else."""
    try:
        value = json.loads(text, **options)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def damaged(what: str) -> InputError:
    """The error for a damaged file, with what to do about it."""
    return InputError(f"{what}: copy or download it again.")


def most_bytes(path: Path) -> int:
    """Bytes that a compressed file may unpack to: 200 times its size, but at least 256 MiB."""
    return max(ALWAYS_ALLOWED, MOST_EXPANSION * path.stat().st_size)


def check_size(path: Path, n_bytes: int, what: str) -> None:
    """Refuse `what` in a compressed file, such as "array 'X'", if it would unpack to more than is allowed."""
    if n_bytes > ALWAYS_ALLOWED and n_bytes > most_bytes(path):
        raise InputError(
            f"{path} holds {what} of {readable_size(n_bytes)}, but a file of {readable_size(path.stat().st_size)} "
            f"may unpack to at most {readable_size(most_bytes(path))}: it is damaged or hostile; if you trust it, "
            "unpack it yourself and store it uncompressed."
        )
