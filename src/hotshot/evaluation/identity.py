"""What tells one function or object from another: those that may give different numbers have different hashes, or none.

Functions go by their code with its constants, defaults, closures and the globals it reads, objects by their class and
state, arrays and banks by their hashes, and what belongs to an installed package by its name.
"""

import dis
import hashlib
import json
import sys
from functools import cached_property
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from hotshot.arrays import array_hash
from hotshot.bank import BaseClasses

PLAIN = (bool, int, float, str, type(None))
# Entries of a class that say nothing of what it computes.
UNSAID = {
    "__module__", "__doc__", "__dict__", "__weakref__", "__annotations__", "__firstlineno__", "__static_attributes__",
    "__abstractmethods__", "_abc_impl",
}  # fmt: skip


def identity(value: Any) -> str:
    """A name and a hash of a parameter, which is cloned before it is fitted; raise where it has no identity."""
    return f"{getattr(value, '__qualname__', type(value).__qualname__)} {_Hashes().of(value, cloned=True)}"


class _Hashes:
    """SHA-256 of values by all that they consist of; those met are kept, so that circles end."""

    def __init__(self) -> None:
        self._met: dict[tuple[int, bool], tuple[Any, str]] = {}

    def of(self, value: Any, cloned: bool = False) -> str:
        """The hash of a value; where it is `cloned` before it is fitted, what it has learned so far does not count."""
        key = id(value), cloned
        if key not in self._met:
            # Within itself it goes by its number; it is kept so that no other value gets its id.
            self._met[key] = value, f"circle {len(self._met)}"
            text = json.dumps([type(value).__qualname__, self._parts(value, cloned)])
            self._met[key] = value, hashlib.sha256(text.encode()).hexdigest()
        return self._met[key][1]

    def _parts(self, value: Any, cloned: bool) -> Any:
        kind = type(value)
        if kind in (*PLAIN, bytes, complex):
            return repr(value)
        if isinstance(value, BaseClasses):
            return value.fingerprint
        if kind is np.ndarray and value.dtype.kind != "O":
            return array_hash(np.atleast_1d(value))
        if isinstance(value, ModuleType):
            # Of the user's own modules the text counts: what is read from them is not known.
            own = getattr(value, "__file__", None) if not _is_package(value) else None
            return [value.__name__, own and hashlib.sha256(Path(own).read_bytes()).hexdigest()]
        if callable(value) and is_installed(value):
            return [getattr(value, "__module__", None), getattr(value, "__qualname__", value.__name__)]
        if isinstance(value, FunctionType):
            read = sorted(_globals_of(value.__code__) & value.__globals__.keys())
            cells = [cell.cell_contents for cell in value.__closure__ or ()]
            parts = (value.__code__, value.__defaults__, value.__kwdefaults__, vars(value), *cells)
            return [[self.of(part) for part in parts], {name: self.of(value.__globals__[name]) for name in read}]
        if isinstance(value, CodeType):
            constants = [self.of(constant) for constant in value.co_consts]
            return [value.co_code.hex(), value.co_names, value.co_varnames, value.co_freevars, constants]
        if isinstance(value, type):
            own = {name: self.of(entry) for name, entry in vars(value).items() if name not in UNSAID}
            return [value.__module__, value.__qualname__, [self.of(parent) for parent in value.__bases__], own]
        if isinstance(value, (classmethod, staticmethod, cached_property)):
            return self.of(value.func if isinstance(value, cached_property) else value.__func__)
        if isinstance(value, property):
            return [self.of(part) for part in (value.fget, value.fset, value.fdel)]
        if isinstance(value, (set, frozenset)):
            return sorted(self.of(item, cloned) for item in value)
        if kind in (list, tuple):
            return [self.of(item, cloned) for item in value]
        if kind is dict:
            return [[self.of(key), self.of(item)] for key, item in value.items()]
        if cloned and getattr(kind, "__sklearn_clone__", None) is BaseEstimator.__sklearn_clone__:
            return [self.of(kind), {name: self.of(own, True) for name, own in value.get_params(deep=False).items()}]
        # As it would be pickled: a class or function, what it is called with, state, and items.
        recipe = value.__reduce_ex__(4)
        if isinstance(recipe, str):
            raise TypeError(f"{recipe} has neither code nor state that can be read")
        return [self.of(list(part) if hasattr(part, "__next__") else part) for part in recipe]


def _globals_of(code: CodeType) -> set[str]:
    """Names of globals that a code reads, in functions within it too."""
    own = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return own.union(*(_globals_of(constant) for constant in code.co_consts if isinstance(constant, CodeType)))


def is_installed(value: Any) -> bool:
    """Whether a class or function is what Python, hotshot or an installed package has under its name."""
    home = getattr(value, "__module__", None) or ("scipy.special" if isinstance(value, np.ufunc) else "")
    module = sys.modules.get(home)
    found: Any = module
    for name in getattr(value, "__qualname__", getattr(value, "__name__", "")).split("."):
        found = getattr(found, name, None)
    if module is None or found is not value:
        return False
    return _is_package(module)


def _is_package(module: ModuleType) -> bool:
    """Whether a module belongs to Python, hotshot or an installed package."""
    packages = {"site-packages", "dist-packages"} & {*Path(getattr(module, "__file__", None) or "").parts}
    return bool(packages) or module.__name__.split(".")[0] in {*sys.stdlib_module_names, "hotshot"} - {"__main__"}
