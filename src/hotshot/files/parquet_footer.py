"""What a Parquet file announces, added up before Arrow opens it.

The footer says how much each column holds, but a reader takes memory by what each page says of itself: a few bytes can
say two billion. And Arrow's Python objects for the footer end the process where it is unsound. So both are read here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotshot.errors import InputError
from hotshot.files.limits import check_size
from hotshot.files.mapped import map_bytes
from hotshot.files.thrift import Data, Struct, ThriftError, read_struct

_MAGIC = b"PAR1"
# Each string of this encoding repeats the start of the one before: a few bytes a row make megabytes.
_DELTA_BYTE_ARRAY = 7
# What a value takes at most, and the place of a string.
_BYTES_PER_VALUE = 8


@dataclass(frozen=True)
class Page:
    """What one page announces: bytes after unpacking, values (none in a dictionary), encoding."""

    n_bytes: int
    values: int
    encoding: int | None


def check_parquet(path: Path) -> int:
    """The number of rows of a file that announces no more than it may."""
    try:
        return _check(map_bytes(path), path)
    except ThriftError as error:
        raise InputError(f"{path} is not a sound Parquet file, {error}: copy or download it again.") from None


def _check(data: Data, path: Path) -> int:
    size = len(data)
    length = int.from_bytes(data[-8:-4], "little")
    if size < 12 or data[-4:] != _MAGIC or length > size - 12:
        raise ThriftError("its end is missing")
    footer, _ = read_struct(data, size - 8 - length, size - 8)
    n_rows = _count(footer, 3)
    if n_rows == 0:
        raise InputError(f"{path} holds no samples: store at least one.")
    n_bytes = rows = 0
    for group in _structs(footer, 4):
        rows += _count(group, 3)
        for chunk in _structs(group, 1):
            announced = _struct(chunk, 3)
            values = 0
            for page in pages(data, *_place(announced, size)):
                n_bytes += page.n_bytes
                values += page.values
                if page.encoding == _DELTA_BYTE_ARRAY:
                    raise InputError(f"{path} is encoded by DELTA_BYTE_ARRAY: write it again in a usual encoding.")
            if values != _count(announced, 5):
                raise ThriftError(f"a column announces {_count(announced, 5)} values and its pages {values}")
            check_size(path, max(n_bytes, _BYTES_PER_VALUE * values), "columns")
    if rows != n_rows:
        raise ThriftError(f"it announces {n_rows} rows and its groups {rows}")
    return n_rows


def pages(data: Data, start: int, end: int) -> Iterator[Page]:
    """The pages of one column chunk, bytes `start` to `end` of a file."""
    while start < end:
        header, start = read_struct(data, start, end)
        n_bytes, stored = _count(header, 2), _count(header, 3)
        if 5 in header:
            details = _struct(header, 5)
            yield Page(n_bytes, _count(details, 1), details.get(2))
        elif 8 in header:
            details = _struct(header, 8)
            yield Page(n_bytes, _count(details, 1), details.get(4))
        else:
            yield Page(n_bytes, 0, None)
        start += stored
        if start > end:
            raise ThriftError("a page is longer than its column")


def _place(announced: Struct, size: int) -> tuple[int, int]:
    """First byte of a column chunk and the one after its last."""
    data, dictionary = _count(announced, 9), announced.get(11)
    # Some writers say 0 where there is no dictionary.
    start = dictionary if isinstance(dictionary, int) and 0 < dictionary < data else data
    end = start + _count(announced, 7)
    if end > size:
        raise ThriftError("a column lies beyond its end")
    return start, end


def _count(fields: Struct, number: int) -> int:
    value: Any = fields.get(number)
    if type(value) is not int or value < 0:
        raise ThriftError
    return value


def _struct(fields: Struct, number: int) -> Struct:
    value: Any = fields.get(number)
    if not isinstance(value, dict):
        raise ThriftError
    return value


def _structs(fields: Struct, number: int) -> list[Struct]:
    value: Any = fields.get(number)
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ThriftError
    return value
