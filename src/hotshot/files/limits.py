"""How much memory a file may ask for: decided by its size on the disk, before any memory is taken."""

from __future__ import annotations

from pathlib import Path

from hotshot.errors import InputError
from hotshot.files.names import readable_size

# Compressed features shrink by a small factor, a bomb by a thousand and more.
MOST_EXPANSION = 200
ALWAYS_ALLOWED = 2**28


def most_bytes(path: Path) -> int:
    """Bytes that a compressed file may unpack to: 200 times its size, and 256 MiB in any case."""
    return max(ALWAYS_ALLOWED, MOST_EXPANSION * path.stat().st_size)


def check_size(path: Path, n_bytes: int, what: str) -> None:
    """Refuse `what` in a compressed file, such as "array 'X'", where it would unpack to more than is allowed."""
    if n_bytes > ALWAYS_ALLOWED and n_bytes > most_bytes(path):
        raise InputError(
            f"{path} holds {what} of {readable_size(n_bytes)} where a file of {readable_size(path.stat().st_size)} "
            f"may unpack to {readable_size(most_bytes(path))}: it is damaged or hostile; if you trust it, unpack it "
            "yourself and store it uncompressed."
        )
