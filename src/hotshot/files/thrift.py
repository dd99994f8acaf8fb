"""Thrift's compact protocol, in which Parquet files describe themselves, read within bounds."""

from __future__ import annotations

from typing import Any

# Far deeper and longer than any Parquet file; Arrow has the same limit for lists.
_DEEPEST = 16
_LONGEST_LIST = 1_000_000

Data = Any  # bytes, or a mapped file
Struct = dict[int, Any]


class ThriftError(ValueError):
    """Bytes that are no sound structure."""

    def __init__(self, what: str = "it does not describe itself soundly") -> None:
        super().__init__(what)


def read_struct(data: Data, at: int, end: int, depth: int = 0) -> tuple[Struct, int]:
    """The fields of the structure that starts at a byte, by their numbers, and the byte after it; texts are skipped."""
    if depth > _DEEPEST:
        raise ThriftError
    fields: Struct = {}
    number = 0
    while True:
        head, at = _byte(data, at, end), at + 1
        if head == 0:
            return fields, at
        if head >> 4:
            number += head >> 4
        else:
            number, at = _integer(data, at, end)
        kind = head & 15
        fields[number], at = (kind == 1, at) if kind in (1, 2) else _value(data, at, end, kind, depth)


def _value(data: Data, at: int, end: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in (1, 2, 3):
        return _byte(data, at, end), at + 1
    if kind in (4, 5, 6):
        return _integer(data, at, end)
    if kind == 7:
        return None, at + 8
    if kind == 8:
        length, at = _varint(data, at, end)
        return None, at + length
    if kind in (9, 10):
        return _list(data, at, end, depth)
    if kind == 12:
        return read_struct(data, at, end, depth + 1)
    raise ThriftError


def _list(data: Data, at: int, end: int, depth: int) -> tuple[list[Any], int]:
    head, at = _byte(data, at, end), at + 1
    size = head >> 4
    if size == 15:
        size, at = _varint(data, at, end)
    if size > min(_LONGEST_LIST, end - at) or depth > _DEEPEST:
        raise ThriftError
    values = []
    for _ in range(size):
        value, at = _value(data, at, end, head & 15, depth + 1)
        values.append(value)
    return values, at


def _integer(data: Data, at: int, end: int) -> tuple[int, int]:
    value, at = _varint(data, at, end)
    return (value >> 1) ^ -(value & 1), at


def _varint(data: Data, at: int, end: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte, at = _byte(data, at, end), at + 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise ThriftError


def _byte(data: Data, at: int, end: int) -> int:
    if at >= end:
        raise ThriftError
    return int(data[at])
