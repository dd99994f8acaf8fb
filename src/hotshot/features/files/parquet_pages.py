"""What the pages of a Parquet file announce, added up before any page is unpacked.

The footer of a file says how much its columns hold, but a reader takes memory by what each page says of itself. A few
bytes can say two billion. So the headers of the pages (Thrift's compact protocol) are read here first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

# Fields of a header: what a page of data says of itself, in two versions of the format.
_DATA, _DATA_V2 = 5, 8
# Each string of this encoding repeats the start of the one before: a few bytes a row make megabytes.
_REPEATING = 7
_DEEPEST = 8


@dataclass(frozen=True)
class Page:
    """What one page announces: bytes after unpacking, and values unless it is a dictionary."""

    n_bytes: int
    values: int
    repeating: bool


class BadPageError(ValueError):
    """Bytes that are no header of a page."""

    def __init__(self, what: str = "a page has no sound header") -> None:
        super().__init__(what)


def pages(data: Any, start: int, end: int) -> Iterator[Page]:
    """The pages of one column chunk, bytes `start` to `end` of a file."""
    while start < end:
        fields, start = _struct(data, start, end, 0)
        unpacked, packed = fields.get(2), fields.get(3)
        if not isinstance(unpacked, int) or not isinstance(packed, int) or unpacked < 0 or packed < 0:
            raise BadPageError
        version = _DATA_V2 if _DATA_V2 in fields else _DATA
        details = fields.get(version, {})
        values = details.get(1, 0) if isinstance(details, dict) else None
        if not isinstance(values, int) or values < 0:
            raise BadPageError
        encoding = details.get(4 if version == _DATA_V2 else 2)
        yield Page(unpacked, values, encoding == _REPEATING)
        start += packed
        if start > end:
            raise BadPageError


def _struct(data: Any, at: int, end: int, depth: int) -> tuple[dict[int, Any], int]:
    if depth > _DEEPEST:
        raise BadPageError
    fields: dict[int, Any] = {}
    number = 0
    while True:
        head, at = _byte(data, at, end), at + 1
        if head == 0:
            return fields, at
        if head >> 4:
            number += head >> 4
        else:
            number, at = _integer(data, at, end)
        fields[number], at = _value(data, at, end, head & 15, depth)


def _value(data: Any, at: int, end: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in (1, 2):
        return kind == 1, at
    if kind == 3:
        return _byte(data, at, end), at + 1
    if kind in (4, 5, 6):
        return _integer(data, at, end)
    if kind == 7:
        return None, at + 8
    if kind == 8:
        length, at = _varint(data, at, end)
        return None, at + length
    if kind == 12:
        return _struct(data, at, end, depth + 1)
    # Lists, sets and maps have no place in a page's header.
    raise BadPageError


def _integer(data: Any, at: int, end: int) -> tuple[int, int]:
    value, at = _varint(data, at, end)
    return (value >> 1) ^ -(value & 1), at


def _varint(data: Any, at: int, end: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte, at = _byte(data, at, end), at + 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise BadPageError


def _byte(data: Any, at: int, end: int) -> int:
    if at >= end:
        raise BadPageError
    return int(data[at])
