"""What `package.module:name` and `file.py:name` name, imported from where the user is."""

import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from hotshot.errors import InputError, ParameterError
from hotshot.formatting import reason


def named_object(name: str) -> Any:
    """What `package.module:attribute` or `path/to/file.py:attribute` names; its module is imported."""
    place, _, attribute = name.rpartition(":")
    if not place or not attribute:
        raise ParameterError(f"network must be package.module:name, file.py:name or a file.onnx, got {name!r}.")
    path = Path(place)
    is_file = place.endswith(".py")
    if is_file and not os.path.isfile(path):
        raise InputError(f"There is no file {path}: name the Python file that defines the network.")
    with importing_from(name):
        try:
            source = _load_file(path) if is_file else importlib.import_module(place)
            # Some modules import what is asked for only now.
            found = getattr(source, attribute, None)
        except (Exception, SystemExit) as error:
            if isinstance(error, ModuleNotFoundError) and f"{place}.".startswith(f"{error.name}.") and not is_file:
                raise ParameterError(f"There is no module {error.name}: install it, or run in its folder.") from None
            raise InputError(
                f"{place} cannot be imported ({reason(error)}): correct it, or install what it needs."
            ) from None
    if found is None:
        raise ParameterError(f"{place} has no {attribute!r}: name a network that it defines.")
    return found


def short_name(name: str) -> str:
    """The name of an object without the folder of its file."""
    place, _, attribute = name.rpartition(":")
    return f"{Path(place).name if place.endswith('.py') else place}:{attribute}"


@contextmanager
def importing_from(name: str) -> Iterator[None]:
    """Let modules beside the named file, or in the working folder, be imported, as Python does for a script."""
    place = name.rpartition(":")[0]
    entry = str((Path(place).parent if place.endswith(".py") else Path()).resolve())
    sys.path.insert(0, entry)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        with suppress(ValueError):
            sys.path.remove(entry)


def _load_file(path: Path) -> ModuleType:
    # A name of its own, so that it hides no module that is in use.
    spec = importlib.util.spec_from_file_location(f"_network_in_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"Python has no loader for {path}")
    module = importlib.util.module_from_spec(spec)
    # Where dataclasses look for the module they stand in.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def required_arguments(function: Any) -> list[str]:
    """Names of the arguments without which a function or class cannot be called."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # Of some that are not written in Python.
        parameters = []
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in parameters if p.default is p.empty and p.kind not in optional]
