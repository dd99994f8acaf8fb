"""The state of a pickle being read: where in the file, what on the stack, and what it may still take.

Time is linear in the bytes of the file. Memory is at most `BYTES_PER_BYTE` times the file and `BYTES_ALWAYS`,
whatever is in it, and about the file itself for vectors.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from hotshot.errors import InputError
from hotshot.files.pickle_records import NAMES, Name, Unsound

BYTES_PER_BYTE = 32
BYTES_ALWAYS = 2**27

# Features need two or three open containers; a flood of marks would only cost memory.
_MOST_OPEN_MARKS = 1000
# A container takes some 80 bytes of memory and as little as one in the file: so many, and one in four bytes.
_CONTAINERS_ALWAYS = 2**20


class State:
    """A stack, the stacks below open marks, the memo, and a position in the file.

    Parameters
    ----------
    data : bytes or mmap
    path : Path
        For the sentences.
    names : mapping
        The table of what the file may name.
    start, end : int
        The part of `data` to read; the pickle itself tells where it stops.
    persistent : function or None
        What stands for a persistent id; they are refused where it is None.
    """

    def __init__(
        self,
        data: bytes | mmap.mmap,
        path: Path,
        *,
        names: Mapping[tuple[str, str], Name] = NAMES,
        start: int = 0,
        end: int | None = None,
        persistent: Callable[[Any], Any] | None = None,
    ) -> None:
        self.data = data
        self.view = memoryview(data)
        self.path = path
        self.names = names
        self.position = start
        self.end = len(data) if end is None else end
        self.persistent = persistent
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []
        self.memo: list[Any] = []
        # Bytes may be made anew once for every byte in the file, as text in Latin-1 is.
        self._bytes_left = self.end - start
        self._containers_left = _CONTAINERS_ALWAYS + (self.end - start) // 4

    # --- reading

    def take(self, n_bytes: int) -> memoryview:
        """The next bytes, as a view of the file."""
        start = self.position
        stop = start + n_bytes
        if stop > self.end:
            self.truncated()
        self.position = stop
        return self.view[start:stop]

    def number(self, layout: struct.Struct) -> Any:
        """The next number."""
        start = self.position
        stop = start + layout.size
        if stop > self.end:
            self.truncated()
        self.position = stop
        return layout.unpack_from(self.data, start)[0]

    def line(self, longest: int) -> bytes:
        """The next bytes up to a line feed."""
        start = self.position
        stop = self.data.find(b"\n", start, min(self.end, start + longest + 1))
        if stop < 0:
            if start + longest >= self.end:
                self.truncated()
            raise Unsound(f"it has a line of more than {longest} bytes where a number or a name should be")
        self.position = stop + 1
        return self.data[start:stop]

    def truncated(self) -> NoReturn:
        """Raise the sentence for a file that ends too early."""
        raise InputError(
            f"{self.path} is truncated: it ends at byte {self.end}, in the middle of its pickle: "
            "copy or download it again."
        )

    # --- the stack

    def push(self, container: Any) -> None:
        """Push a new container or record."""
        self._containers_left -= 1
        if self._containers_left < 0:
            raise Unsound("it is a flood of containers")
        self.stack.append(container)

    def open_mark(self) -> None:
        """Start a new stack above a mark."""
        if len(self.below) >= _MOST_OPEN_MARKS:
            raise Unsound("it nests its containers a thousand deep")
        self.below.append(self.stack)
        self.stack = []

    def to_mark(self) -> list[Any]:
        """All that was pushed since the last mark."""
        items = self.stack
        self.stack = self.below.pop()
        return items

    def spend(self, n_bytes: int) -> None:
        """Account for bytes that are not a view of the file."""
        self._bytes_left -= n_bytes
        if self._bytes_left < 0:
            raise Unsound("it makes the same bytes again and again")
