"""The opcodes of a pickle that stand for numbers, text and bytes.

Numbers of a list that follow each other become one array at once: 24 million floats one by one would take a minute
and a gigabyte. In lists and tuples of the machine a NumPy array therefore stands for so many numbers.
"""

from __future__ import annotations

import codecs
import re
import struct

import numpy as np

from hotshot.files.pickle_records import Unsound
from hotshot.files.pickle_state import State

APPENDS, TUPLE = b"et"
# Fewer numbers are not worth a look ahead.
_SHORTEST_RUN = 8
_RUNS = {
    ord("G"): np.dtype([("opcode", np.uint8), ("number", ">f8")]),
    ord("K"): np.dtype([("opcode", np.uint8), ("number", np.uint8)]),
}
_FLOAT_LINES = re.compile(rb"(?:F[-+.0-9eE]{1,40}\na){8,}+")
_FLOAT = re.compile(rb"[-+.0-9eE]{1,40}|[-+]?(?:nan|inf)")
_INTEGER = re.compile(rb"[-+]?[0-9]{1,38}L?")
# Integers are labels and counts, and the longest is the number that marks a torch file.
_LONGEST_INTEGER = 16
# What Python 2 writes within quotes.
_QUOTED = re.compile(rb"""(?:[^\\]++|\\(?:[\\'"nrt]|x[0-9a-fA-F]{2}))*+""")
# Shorter byte strings are copied: a view takes more memory than they do.
_SHORT = 64


def mark(state: State) -> None:
    """Open a mark, or take all numbers up to the end of the list or tuple."""
    if not (state.position < state.end and state.data[state.position] in _RUNS and _run_of_numbers(state)):
        state.open_mark()


def _run_of_numbers(state: State) -> bool:
    """Take numbers of one opcode from a mark to the end of the list or tuple, where that is all there is.

    A list of 640 floats is 640 times the letter G and 8 bytes: an array with rows of nine bytes.
    """
    opcode = state.data[state.position]
    dtype = _RUNS[opcode]
    most = (state.end - state.position) // dtype.itemsize
    window = min(_SHORTEST_RUN, most)
    while True:
        block = np.frombuffer(state.data, dtype, window, state.position)
        others = block["opcode"] != opcode
        if window == most or others.any():
            break
        window = min(8 * window, most)
    count = int(others.argmax()) if others.any() else window
    after = state.position + count * dtype.itemsize
    if count < _SHORTEST_RUN or after >= state.end:
        return False
    closing = state.data[after]
    to_list = closing == APPENDS and state.stack and type(state.stack[-1]) is list
    if not to_list and closing != TUPLE:
        return False
    numbers = block["number"][:count].astype(np.float64 if opcode == ord("G") else np.int64)
    if to_list:
        state.stack[-1].append(numbers)
    else:
        state.push((numbers,))
    state.position = after + 1
    return True


def float_line(state: State) -> None:
    """Protocol 0 writes a list of floats as lines, each followed by the opcode that appends it."""
    start = state.position - 1
    if state.stack and type(state.stack[-1]) is list and (run := _FLOAT_LINES.match(state.data, start, state.end)):
        state.position = run.end()
        texts = run[0][1:-2].split(b"\naF")
        state.stack[-1].append(np.fromiter(map(_as_float, texts), np.float64, len(texts)))
        return
    line = state.line(40)
    if not _FLOAT.fullmatch(line):
        raise Unsound("it has no number where one should be")
    state.stack.append(_as_float(line))


def _as_float(text: bytes) -> float:
    try:
        return float(text)
    except ValueError:
        raise Unsound("it has no number where one should be") from None


def integer_line(state: State) -> None:
    """An integer in decimal digits; protocols 0 and 1 also say true and false by it."""
    line = state.line(40)
    if not _INTEGER.fullmatch(line):
        raise Unsound("it has no number where one should be")
    state.stack.append(line == b"01" if line in (b"00", b"01") else int(line.rstrip(b"L")))


def long_integer(state: State, n_bytes: int) -> None:
    """An integer of any length, of which only short ones are accepted."""
    if not 0 <= n_bytes <= _LONGEST_INTEGER:
        raise Unsound(f"it has an integer of {n_bytes} bytes")
    state.stack.append(int.from_bytes(state.take(n_bytes), "little", signed=True))


def byte_string(state: State, n_bytes: int) -> None:
    """Bytes, or a string of Python 2."""
    if n_bytes < 0:
        raise Unsound("it has a negative length")
    data = state.take(n_bytes)
    state.stack.append(bytes(data) if n_bytes <= _SHORT else data)


def quoted_line(state: State) -> None:
    """A string of Python 2 as in a program, with quotes and escapes."""
    line = state.line(state.end)
    if len(line) < 2 or line[:1] not in (b"'", b'"') or line[:1] != line[-1:]:
        raise Unsound("it has a string without quotes")
    text = line[1:-1]
    if not _QUOTED.fullmatch(text):
        raise Unsound("it has a string that Python would not write")
    state.stack.append(codecs.escape_decode(text)[0])


def text(state: State, n_bytes: int) -> None:
    """Text in UTF-8."""
    try:
        state.stack.append(str(state.take(n_bytes), "utf-8"))
    except UnicodeDecodeError:
        raise Unsound("it has text that is not UTF-8") from None


def text_line(state: State) -> None:
    """Text in Latin-1 with escapes for all other characters."""
    try:
        state.stack.append(state.line(state.end).decode("raw-unicode-escape"))
    except UnicodeDecodeError:
        raise Unsound("it has text that is none") from None


U1, U2, U4, U8 = (struct.Struct(f"<{code}") for code in "BHIQ")
I4, F8 = struct.Struct("<i"), struct.Struct(">d")
