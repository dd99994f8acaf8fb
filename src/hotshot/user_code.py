"""User code by name: `package.module:name` or `path/to/file.py:name`.

It is imported and run, as `python -m` would run it: name only what you trust.
"""

import importlib
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from hotshot.errors import InputError, ParameterError
from hotshot.formatting import did_you_mean, reason

# Modules made of files, which Python does not know of.
LOADED: list[ModuleType] = []


def load_named(name: str, what: str, is_made: Callable[[Any], bool], **arguments: Any) -> Any:
    """The object of a name, or the result of calling it with these arguments unless it `is_made` already.

    Modules in the working folder are found too. `what` is a word for the object in error messages.
    """
    value = named_object(name, what)
    if callable(value) and not is_made(value):
        value = call_named(value, name, what, **arguments)
    # Worker processes are started with this path, and find there what the code has imported from beside it.
    if _folder(name) not in sys.path:
        sys.path.append(_folder(name))
    return value


def named_object(name: str, what: str) -> Any:
    """The object of a name; its module is imported."""
    place, _, attribute = name.rpartition(":")
    if not place or not attribute:
        raise ParameterError(f"{what} must be package.module:name or file.py:name, got {name!r}.")
    path, is_file = Path(place), place.endswith(".py")
    if is_file and not os.path.isfile(path):
        raise InputError(f"There is no file {path}: name the Python file that defines the {what}.")
    with _importing_from(name):
        try:
            module = _load_file(path) if is_file else importlib.import_module(place)
            # Some modules import what is asked for only now.
            value = getattr(module, attribute, None)
        except (Exception, SystemExit) as error:
            if isinstance(error, ModuleNotFoundError) and f"{place}.".startswith(f"{error.name}.") and not is_file:
                raise ParameterError(
                    f"There is no module {error.name}: install it, or run the command in its folder."
                ) from None
            raise InputError(
                f"{place} cannot be imported ({reason(error)}): fix it, or install what it needs."
            ) from None
    if value is None:
        close = did_you_mean(attribute, [public for public in dir(module) if not public.startswith("_")])
        raise ParameterError(f"{place} has no {attribute!r}: name a {what} that it defines.{close}")
    return value


def short_name(name: str) -> str:
    """The name of an object, without the folder of its file."""
    place, _, attribute = name.rpartition(":")
    return f"{Path(place).name if place.endswith('.py') else place}:{attribute}"


@contextmanager
def _importing_from(name: str) -> Iterator[None]:
    """Let modules beside the named file, or in the working folder, be imported, as Python does for a script."""
    entry, before = _folder(name), sys.dont_write_bytecode
    sys.path.insert(0, entry)
    importlib.invalidate_caches()
    # What Python keeps of a file may be taken for the next one, and the folder is the user's.
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before
        with suppress(ValueError):
            sys.path.remove(entry)


def _folder(name: str) -> str:
    place = name.rpartition(":")[0]
    return str((Path(place).parent if place.endswith(".py") else Path()).resolve())


def _load_file(path: Path) -> ModuleType:
    # A name of its own, so that it hides no module that is in use.
    module = ModuleType(f"_user_code_in_{path.stem}")
    module.__file__ = str(path)
    # Where dataclasses look for the module they stand in. Later it must not be there: workers, which cannot import it,
    # are sent the code of a class whose module is unknown, and the name alone of others.
    sys.modules[module.__name__] = module
    try:
        # The file itself, not its cached bytecode, which Python compares by seconds and size only.
        exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
    finally:
        del sys.modules[module.__name__]
    LOADED.append(module)
    return module


def call_named(make: Any, name: str, what: str, **arguments: Any) -> Any:
    """The result of a class or function of this name, called with those of the arguments that it takes."""
    required, parameters = required_arguments(make), _parameters(make)
    taken = {key: value for key, value in arguments.items() if key in parameters}
    if missing := [key for key in required if key not in taken]:
        raise ParameterError(f"{name} needs {', '.join(missing)}: name a function without required arguments.")
    if absent := [key for key in required if taken[key] is None]:
        raise ParameterError(f"{name} needs {absent[0]}: pass it (in the shell --{absent[0]} FILE).")
    with _importing_from(name):
        try:
            return make(**taken)
        except (Exception, SystemExit) as error:
            raise InputError(f"{name} fails to create the {what} ({reason(error)}): fix it.") from None


def required_arguments(function: Any) -> list[str]:
    """Names of the arguments without which a function or class cannot be called."""
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in _parameters(function).values() if p.default is p.empty and p.kind not in optional]


def _parameters(function: Any) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # Of some that are not written in Python.
        return {}
