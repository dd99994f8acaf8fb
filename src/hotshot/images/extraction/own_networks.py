"""A network of one's own as an extractor: a `torch.nn.Module` that can be named, or an ONNX file (extra `onnx`)."""

import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hotshot.errors import InputError, ParameterError, RunError
from hotshot.files.source import map_bytes
from hotshot.formatting import readable_size, reason
from hotshot.images.backbones import require_device
from hotshot.images.backbones.weights import Report, load_weights
from hotshot.images.extraction.extractor import Extractor, side_of, tried
from hotshot.images.training.augmentation import DEVIATION, MEAN, as_input

# Types of tensors, as onnxruntime calls them.
_DTYPES: dict[str, np.dtype] = {"tensor(float)": np.dtype("float32"), "tensor(float16)": np.dtype("float16")}
_SILENT = 4
# Bytes of the images that a file takes at once, where it does not leave their number open.
_LARGEST_BATCH = 2**28


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
        raise ParameterError(f"network must be package.module:name, file.py:name or a file.onnx, got {name!r}.")
    side = side_of(size)
    _check_normalisation(mean, deviation)
    require_device(device)
    network = _build(place, attribute).to(device).eval()
    short = f"{Path(place).name if place.endswith('.py') else place}:{attribute}"
    known = {"size": size, "mean": list(map(float, mean)), "deviation": list(map(float, deviation))}
    untried = Extractor(short, network, partial(as_input, size=size, mean=mean, deviation=deviation), side, known)
    extractor = tried(untried, device)
    if weights is None:
        return extractor, None
    if not network.state_dict():
        raise ParameterError(f"{short} has no weights that {weights} could replace: leave the file out.")
    report = load_weights(network, weights)
    known |= {"weights": Path(weights).name, "matched": len(report.matched)}
    return tried(replace(untried, about=known), device), report


def _check_normalisation(mean: Sequence[float], deviation: Sequence[float]) -> None:
    try:
        numbers = np.array([mean, deviation], dtype=np.float32)
    except (TypeError, ValueError):
        numbers = np.empty(0, dtype=np.float32)
    if numbers.shape != (2, 3) or not np.isfinite(numbers).all() or not (numbers[1] > 0).all():
        raise ParameterError(f"mean and deviation must be three numbers, deviations above 0, got {mean}, {deviation}.")


def _build(place: str, attribute: str) -> nn.Module:
    name, path = f"{place}:{attribute}", Path(place)
    is_file = place.endswith(".py")
    if is_file and not path.is_file():
        raise InputError(f"There is no file {path}: name the Python file that defines the network.")
    with _importing_from(path.parent if is_file else Path()):
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
        if callable(found) and not isinstance(found, nn.Module):
            found = _made(found, name)
    if not isinstance(found, nn.Module):
        raise ParameterError(f"{name} must be or make a torch.nn.Module, got {type(found).__name__}: wrap it in one.")
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


def _made(make: Any, name: str) -> Any:
    """What a class or function gives that needs no arguments."""
    try:
        parameters = list(inspect.signature(make).parameters.values())
    except (TypeError, ValueError):  # Of some that are not written in Python.
        parameters = []
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [p.name for p in parameters if p.default is p.empty and p.kind not in optional]
    if needed:
        raise ParameterError(f"{name} needs {', '.join(needed)}: name a function without required arguments.")
    try:
        return make()
    except (Exception, SystemExit) as error:
        raise InputError(f"{name} fails while it makes the network ({reason(error)}): correct it.") from None


def onnx_extractor(path: str | Path, size: int | None = None, device: str = "cpu") -> Extractor:
    """The extractor of an ONNX file; of the file nothing but the operators of onnxruntime is run.

    The file must have one input, images (batch, 3, size, size) or (batch, size, size, 3), which come normalised with
    ImageNet's mean and deviation. Its output, or of several the only one of two axes, must be features (batch, V);
    an only output may also be maps (batch, V, h, w), which are averaged over h and w.

    Parameters
    ----------
    path
    size : int, optional
        Side of the images, where the file leaves it open.
    device : str
        "cpu", or "cuda" with a number or without where onnxruntime is built for it.
    """
    path = Path(path)
    digest = hashlib.sha256(map_bytes(path)).hexdigest()
    require_device(device)
    session, producer = _open(path, device)
    images, outputs = _image_input(session.get_inputs(), path), session.get_outputs()
    flat = [x for x in outputs if x.type in _DTYPES and len(x.shape or ()) == 2]
    found = outputs if len(outputs) == 1 else flat
    if len(found) != 1:
        given = _listed(outputs)
        raise InputError(f"{path} must have one output of features (batch, V), and has {given}: export it so.")
    side = size if images.side is None else images.side
    if side is None:
        raise ParameterError(f"{path} leaves the size of its images open: pass size (--size), such as 224.")
    if size not in (None, side):
        raise ParameterError(f"{path} takes images of size {side}, got {size}: leave size (--size) out.")
    n_bytes = (images.batch or 1) * 3 * side**2 * 4
    if n_bytes > _LARGEST_BATCH:
        raise InputError(
            f"{path} takes batches of {images.batch} images of size {side} only, {readable_size(n_bytes)} where "
            f"{readable_size(_LARGEST_BATCH)} are allowed: export it with an open number of images."
        )

    def run(inputs: Tensor) -> Tensor:
        missing = 0 if images.batch is None else images.batch - len(inputs)
        x = torch.cat([inputs, inputs[-1:].expand(missing, -1, -1, -1)])
        x = x.permute(0, 2, 3, 1).contiguous() if images.channels_last else x
        (rows,) = session.run([found[0].name], {images.name: x.cpu().numpy().astype(images.dtype, copy=False)})
        if len(rows) != len(x):
            raise ValueError(f"{len(rows)} rows come out")
        return torch.from_numpy(rows)[: len(inputs)]

    def network(inputs: Tensor) -> Tensor:
        batch = len(inputs) if images.batch is None else images.batch
        return torch.cat([run(some) for some in inputs.split(batch)])

    known = {"sha256": digest, "producer": producer, "size": side}
    return tried(Extractor(path.name, network, partial(as_input, size=side), side_of(side), known), device)


@dataclass(frozen=True)
class _Images:
    """The input of a file: how its images lie in memory, and what of their shape is fixed."""

    name: str
    dtype: np.dtype
    channels_last: bool
    batch: int | None
    side: int | None


def _open(path: Path, device: str) -> tuple[Any, str]:
    """The session that runs a file, and the program that wrote it."""
    try:
        import onnxruntime
    except ImportError:
        raise RunError(f"{path.name} needs onnxruntime: pip install 'hotshot[onnx]'.") from None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _SILENT
    kind, _, number = device.partition(":")
    provider = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}.get(kind)
    if provider not in onnxruntime.get_available_providers() or (number and not number.isdecimal()):
        raise ParameterError(f"device must be one that onnxruntime has for ONNX files, such as cpu, got {device!r}.")
    providers = [(provider, {"device_id": int(number or 0)} if kind == "cuda" else {})]
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=providers, enable_fallback=False)
        # Names that are no text are found out here.
        _listed([*session.get_inputs(), *session.get_outputs()])
        return session, session.get_modelmeta().producer_name
    except Exception as error:  # onnxruntime's own have no other base.
        raise InputError(
            f"{path} is not an ONNX file that onnxruntime {onnxruntime.__version__} can run ({reason(error)}): "
            "export or download it again."
        ) from None


def _image_input(inputs: list[Any], path: Path) -> _Images:
    if len(inputs) != 1:
        raise InputError(f"{path} must take one input, the images, and takes {_listed(inputs)}: export it so.")
    (given,) = inputs
    # Axes that the file leaves open have a name, or none.
    shape = [axis if isinstance(axis, int) and axis > 0 else None for axis in given.shape or ()]
    # Channels of no fixed number are taken to be where PyTorch has them; the trial tells.
    channels_last = len(shape) == 4 and shape[1] != 3 and shape[3] == 3
    if given.type not in _DTYPES or len(shape) != 4 or (not channels_last and shape[1] not in (3, None)):
        raise InputError(
            f"{path} must take images (batch, 3, size, size) or (batch, size, size, 3) of float32 or float16, and "
            f"takes {_listed([given])}: export it so."
        )
    sides = {side for side in (shape[1:3] if channels_last else shape[2:]) if side is not None}
    if len(sides) > 1:
        raise InputError(f"{path} must take square images, and takes {_listed([given])}: export it so.")
    return _Images(given.name, _DTYPES[given.type], channels_last, batch=shape[0], side=sides.pop() if sides else None)


def _listed(values: list[Any]) -> str:
    """What a file says of its inputs or outputs."""
    return ", ".join(f"{x.name} {x.type} {list(x.shape or ())}" for x in values) or "none"
