"""Lines of a text file from anywhere: UTF-8, of bounded length, without NUL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hotshot.errors import InputError

# A line of a hundred thousand features has a few million characters.
LONGEST_LINE = 2**24


def lines(path: Path) -> Iterator[str]:
    """Lines with their ends; what is not text is refused by line."""
    number = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            while line := file.readline(LONGEST_LINE):
                number += 1
                if len(line) == LONGEST_LINE:
                    raise InputError(
                        f"{path} has more than {LONGEST_LINE} characters in line {number}: it is no table."
                    )
                if "\0" in line:
                    raise InputError(f"{path} has a NUL character in line {number}: it is damaged or no text.")
                yield line
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text after line {number}: save it as UTF-8.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
