"""A pickle read as data: its opcodes are followed one by one, and none of them can call anything.

Python's own unpickler imports and calls whatever the file names. This one knows a fixed table of names (see
`pickle_records`), refuses all others where they are mentioned, and has no opcode that reaches beyond the table:
classes, extension codes, persistent ids and buffers outside the file are refused.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NoReturn

from hotshot.errors import InputError
from hotshot.files import pickle_values as values
from hotshot.files.pickle_records import (
    OLD_MODULES,
    ArrayRecord,
    DTypeRecord,
    Name,
    Pairs,
    Unsound,
)
from hotshot.files.pickle_state import State
from hotshot.files.pickle_values import F8, I4, U1, U2, U4, U8

NEWEST_PROTOCOL = 5
_STOP = ord(".")
_LONGEST_NAME = 256

Step = Callable[[State], None]


def run_pickle(state: State) -> Any:
    """The one value of a pickle, made of numbers, text, bytes, lists, tuples and records."""
    data, end, steps = state.data, state.end, _STEPS
    try:
        while True:
            if state.position >= end:
                state.truncated()
            opcode = data[state.position]
            state.position += 1
            if opcode == _STOP:
                break
            steps[opcode](state)
        if state.below or len(state.stack) != 1:
            raise Unsound("it does not end with one value")
        return state.stack.pop()
    except IndexError:
        raise _sentence(state, "it takes a value from where there is none") from None
    except Unsound as problem:
        raise _sentence(state, str(problem)) from None


def _sentence(state: State, what: str) -> InputError:
    return InputError(
        f"{state.path} is not a sound pickle of features, {what} (byte {state.position}): "
        "copy or download it again, or save its vectors with numpy.savez(path, X=X, y=y)."
    )


# --- the stack and the memo


def _pop(state: State) -> None:
    if state.stack:
        state.stack.pop()
    else:
        state.to_mark()


def _pop_mark(state: State) -> None:
    state.to_mark()


def _put(state: State, index: int) -> None:
    value = state.stack[-1]
    if index < len(state.memo):
        state.memo[index] = value
        return
    # Whoever writes a pickle counts from 0 or 1, and never faster than the bytes of the file.
    if index > state.position:
        raise Unsound(f"it numbers its values from {index}")
    state.memo.extend([None] * (index - len(state.memo)))
    state.memo.append(value)


def _get(state: State, index: int) -> None:
    if index >= len(state.memo):
        raise Unsound("it refers to a value that is not there")
    state.stack.append(state.memo[index])


def _index_line(state: State) -> int:
    line = state.line(12)
    if not line.isdigit():
        raise Unsound("it has no number where one should be")
    return int(line)


# --- containers


def _append(state: State) -> None:
    value = state.stack.pop()
    _list(state).append(value)


def _appends(state: State) -> None:
    items = state.to_mark()
    _list(state).extend(items)


def _list(state: State) -> list[Any]:
    target = state.stack[-1]
    if type(target) is not list:
        raise Unsound("it appends to what is no list")
    return target


def _set_item(state: State) -> None:
    value, key = state.stack.pop(), state.stack.pop()
    _set_items(state, [key, value])


def _set_items(state: State, items: list[Any]) -> None:
    target = state.stack[-1]
    if type(target) is not Pairs or len(items) % 2:
        raise Unsound("it sets items of what is no dictionary")
    target.extend(items)


def _dict(state: State) -> None:
    items = state.to_mark()
    state.push(Pairs())
    _set_items(state, items)


def _short_tuple(state: State, length: int) -> None:
    stack = state.stack
    if len(stack) < length:
        raise IndexError
    items = tuple(stack[-length:])
    del stack[-length:]
    state.push(items)


# --- names, and what stands for calling them


def _name(state: State, module: Any, name: Any) -> None:
    if type(module) is not str or type(name) is not str:
        raise Unsound("it names something by what is no name")
    found = state.names.get((OLD_MODULES.get(module, module), name))
    if found is None:
        _refuse_name(state, module, name)
    state.stack.append(found)


def _refuse_name(state: State, module: str, name: str) -> NoReturn:
    if module.split(".")[0] == "torch":
        raise InputError(
            f"{state.path} asks for {printable(module, name)}, more than plain tensors need: save tensors with "
            "torch.save({'X': X, 'y': y}, path), or arrays with numpy.savez."
        )
    raise InputError(
        f"{state.path} asks to call {printable(module, name)}, which no file of vectors needs, and nothing of it was "
        "run: do not open it with pickle, get the features from a source you trust, best as .npz or .safetensors."
    )


def printable(module: str, name: str) -> str:
    """A name from the file, safe to print: no control characters, no endless lines."""
    text = f"{module[:80]}.{name[:80]}"
    text = text if len(text) <= 80 else f"{text[:79]}…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _global(state: State) -> None:
    module, name = (state.line(_LONGEST_NAME).decode(errors="backslashreplace") for _ in range(2))
    _name(state, module, name)


def _stack_global(state: State) -> None:
    name, module = state.stack.pop(), state.stack.pop()
    _name(state, module, name)


def _reduce(state: State) -> None:
    args, callee = state.stack.pop(), state.stack.pop()
    if type(callee) is not Name or callee.make is None or type(args) is not tuple:
        raise Unsound(f"it calls {callee.text if type(callee) is Name else 'what is no function'}")
    state.push(callee.make(args, state.spend))


def _build(state: State) -> None:
    attributes = state.stack.pop()
    target = state.stack[-1]
    if type(target) is ArrayRecord or type(target) is DTypeRecord:
        target.build(attributes)
    elif type(target) is not Pairs:
        # Attributes of a dictionary say nothing about its items; nothing else that is needed has any.
        raise Unsound("it sets attributes of what has none")


def _instance(state: State) -> None:
    _global(state)
    raise Unsound(_CLASSES)


def _persistent_id(state: State) -> None:
    if state.persistent is None:
        raise Unsound(_OUTSIDE)
    state.push(state.persistent(state.stack.pop()))


# --- the file itself


def _protocol(state: State) -> None:
    protocol = state.number(U1)
    if protocol > NEWEST_PROTOCOL:
        raise Unsound(f"it is of protocol {protocol} where {NEWEST_PROTOCOL} is the newest")


def _frame(state: State) -> None:
    # Frames only help a reader that has no file at hand; but a torn file shows early.
    if state.number(U8) > state.end - state.position:
        state.truncated()


def _unknown(state: State) -> None:
    raise Unsound(f"it has the opcode {state.data[state.position - 1]:#04x}, which does not exist")


# --- the table of opcodes

_CLASSES = "it makes objects of classes"
_EXTENSIONS = "it uses extension codes of the program that wrote it"
_SETS = "it has a set, whose order is undefined"
_OUTSIDE = "it refers to objects outside the file"


def _refused(what: str) -> Step:
    def step(state: State) -> None:
        raise Unsound(what)

    return step


def _pushed(value: Any) -> Step:
    return lambda state: state.stack.append(value)


def _pushed_number(layout: struct.Struct) -> Step:
    return lambda state: state.stack.append(state.number(layout))


def _counted(step: Callable[[State, int], None], layout: struct.Struct) -> Step:
    """An opcode that is followed by a length or an index."""
    return lambda state: step(state, state.number(layout))


_OPCODES: dict[bytes, Step] = {
    b"(": values.mark,
    b"0": _pop,
    b"1": _pop_mark,
    b"2": lambda state: state.stack.append(state.stack[-1]),
    b"p": lambda state: _put(state, _index_line(state)),
    b"q": _counted(_put, U1),
    b"r": _counted(_put, U4),
    b"\x94": lambda state: state.memo.append(state.stack[-1]),
    b"g": lambda state: _get(state, _index_line(state)),
    b"h": _counted(_get, U1),
    b"j": _counted(_get, U4),
    b"]": lambda state: state.push([]),
    b"l": lambda state: state.push(state.to_mark()),
    b"a": _append,
    b"e": _appends,
    b"}": lambda state: state.push(Pairs()),
    b"d": _dict,
    b"s": _set_item,
    b"u": lambda state: _set_items(state, state.to_mark()),
    b")": _pushed(()),
    b"t": lambda state: state.push(tuple(state.to_mark())),
    b"\x85": lambda state: _short_tuple(state, 1),
    b"\x86": lambda state: _short_tuple(state, 2),
    b"\x87": lambda state: _short_tuple(state, 3),
    b"c": _global,
    b"\x93": _stack_global,
    b"R": _reduce,
    b"b": _build,
    b"Q": _persistent_id,
    b"N": _pushed(None),
    b"\x88": _pushed(True),
    b"\x89": _pushed(False),
    b"F": values.float_line,
    b"G": _pushed_number(F8),
    b"I": values.integer_line,
    b"L": values.integer_line,
    b"J": _pushed_number(I4),
    b"K": _pushed_number(U1),
    b"M": _pushed_number(U2),
    b"\x8a": _counted(values.long_integer, U1),
    b"\x8b": _counted(values.long_integer, I4),
    b"S": values.quoted_line,
    b"T": _counted(values.byte_string, I4),
    b"U": _counted(values.byte_string, U1),
    b"B": _counted(values.byte_string, U4),
    b"C": _counted(values.byte_string, U1),
    b"\x8e": _counted(values.byte_string, U8),
    b"\x96": _counted(values.byte_string, U8),
    b"V": values.text_line,
    b"X": _counted(values.text, U4),
    b"\x8c": _counted(values.text, U1),
    b"\x8d": _counted(values.text, U8),
    b"\x80": _protocol,
    b"\x95": _frame,
    b"i": _instance,
    b"o": _refused(_CLASSES),
    b"\x81": _refused(_CLASSES),
    b"\x92": _refused(_CLASSES),
    b"P": _refused(_OUTSIDE),
    b"\x82": _refused(_EXTENSIONS),
    b"\x83": _refused(_EXTENSIONS),
    b"\x84": _refused(_EXTENSIONS),
    b"\x8f": _refused(_SETS),
    b"\x90": _refused(_SETS),
    b"\x91": _refused(_SETS),
    b"\x97": _refused(_OUTSIDE),
    b"\x98": _refused(_OUTSIDE),
}
_STEPS = [_OPCODES.get(bytes([code]), _unknown) for code in range(256)]
