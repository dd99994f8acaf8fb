"""The slot for a network of one's own: any `torch.nn.Module` that can be named, as an extractor."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from torch import nn

from hotshot.errors import InputError, ParameterError
from hotshot.images.backbones import require_device
from hotshot.images.backbones.weights import Report, load_weights
from hotshot.images.extraction.extractor import Extractor, checked, reason, side_of, tried
from hotshot.images.training.augmentation import DEVIATION, MEAN, as_input


def module_extractor(
    name: str,
    size: int,
    device: str = "cpu",
    *,
    weights: str | Path | None = None,
    mean: Sequence[float] = MEAN,
    deviation: Sequence[float] = DEVIATION,
) -> tuple[Extractor, Report | None]:
    """A module by name, and how its weights were matched where a file of them is given.

    The code that `name` points to is imported and run, as `python -m` would run it: name only what you trust.

    Parameters
    ----------
    name : str
        `package.module:attribute` or `path/to/file.py:attribute`, of a `torch.nn.Module`, or of a class or function
        without required arguments that gives one. Modules in the working folder are found too.
    size : int
        Side of the images (batch, 3, size, size) that the module takes. It must give features (batch, V), or maps
        (batch, V, h, w), which are averaged over h and w; it is tried on made-up images before any extraction.
    device : str
        PyTorch device, such as "cuda".
    weights : path, optional
        File for `hotshot.images.backbones.weights.load_weights`; without it the module is used as it is.
    mean, deviation : three numbers each
        By which pixels in [0, 1] are normalised, ImageNet's by default.
    """
    place, _, attribute = name.rpartition(":")
    if not place or not attribute:
        raise ParameterError(
            f"network must be package.module:name, file.py:name or a file ending in .onnx, got {name!r}."
        )
    side = side_of(size)
    _check_normalisation(mean, deviation)
    require_device(device)
    network = _build(place, attribute).to(device).eval()
    short = f"{Path(place).name if place.endswith('.py') else place}:{attribute}"
    known = {"size": size, "mean": list(map(float, mean)), "deviation": list(map(float, deviation))}
    features = checked(short, network)
    extractor = Extractor(short, features, lambda x: as_input(x, size, mean, deviation), side, known)
    extractor = tried(extractor, device)
    if weights is None:
        return extractor, None
    if not network.state_dict():
        raise ParameterError(f"{short} has no weights that {weights} could replace: leave the file out.")
    report = load_weights(network, weights)
    known |= {"weights": Path(weights).name, "matched": len(report.matched)}
    return tried(replace(extractor, about=known), device), report


def _check_normalisation(mean: Sequence[float], deviation: Sequence[float]) -> None:
    try:
        numbers = np.array([mean, deviation], dtype=np.float32)
    except (TypeError, ValueError):
        numbers = np.empty(0, dtype=np.float32)
    if numbers.shape != (2, 3) or not np.isfinite(numbers).all() or not (numbers[1] > 0).all():
        raise ParameterError(
            f"mean and deviation must be three numbers each, deviations above 0, got {mean} and {deviation}."
        )


def _build(place: str, attribute: str) -> nn.Module:
    is_file = place.endswith(".py")
    with _importing_from(Path(place).parent if is_file else Path()):
        source = _load_file(Path(place)) if is_file else _load_module(place)
        try:
            found = getattr(source, attribute)
        except AttributeError:
            raise ParameterError(f"{place} has no {attribute!r}: name a network that it defines.") from None
        except Exception as error:  # Of modules that import what is asked for only then.
            raise _broken(f"{place}:{attribute}", error) from None
        if callable(found) and not isinstance(found, nn.Module):
            found = _call(found, f"{place}:{attribute}")
    if not isinstance(found, nn.Module):
        raise ParameterError(
            f"{place}:{attribute} must be or make a torch.nn.Module, got {type(found).__name__}: wrap it in one."
        )
    return found


@contextmanager
def _importing_from(folder: Path) -> Iterator[None]:
    """Let modules of `folder` be imported, as `python -m` and `python file.py` do."""
    entry = str(folder.resolve())
    sys.path.insert(0, entry)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        with suppress(ValueError):
            sys.path.remove(entry)


def _load_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):
            raise _broken(name, error) from None
        raise ParameterError(
            f"There is no module {error.name}: install it, or run in the folder that holds it."
        ) from None
    except (Exception, SystemExit) as error:
        raise _broken(name, error) from None


def _load_file(path: Path) -> ModuleType:
    # A name of its own, so that it hides no module that is in use.
    spec = importlib.util.spec_from_file_location(f"_network_in_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise InputError(f"There is no file {path}: name the Python file that defines the network.")
    module = importlib.util.module_from_spec(spec)
    # Where dataclasses look for the module they stand in.
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise _broken(str(path), error) from None
    return module


def _broken(name: str, error: BaseException) -> InputError:
    return InputError(f"{name} cannot be imported ({reason(error)}): correct it, or install what it needs.")


def _call(make: Callable[[], Any], name: str) -> Any:
    try:
        parameters = list(inspect.signature(make).parameters.values())
    except (TypeError, ValueError):  # Of some that are not written in Python.
        parameters = []
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [p.name for p in parameters if p.default is p.empty and p.kind not in optional]
    if needed:
        raise ParameterError(
            f"{name} needs {', '.join(needed)}: name a function without required arguments that makes the network."
        )
    try:
        return make()
    except (Exception, SystemExit) as error:
        raise InputError(f"{name} fails while it makes the network ({reason(error)}): correct it.") from None
