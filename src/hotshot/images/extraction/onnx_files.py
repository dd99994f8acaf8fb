"""A network in an ONNX file as an extractor, run by onnxruntime (extra `onnx`)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hotshot.errors import InputError, ParameterError, RunError
from hotshot.images.backbones import require_device
from hotshot.images.extraction.extractor import Extractor, checked, reason, side_of, tried
from hotshot.images.training.augmentation import as_input

# Types of tensors, as onnxruntime calls them.
_DTYPES: dict[str, np.dtype] = {"tensor(float)": np.dtype("float32"), "tensor(float16)": np.dtype("float16")}
_SILENT = 4


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
    digest = _sha256(path)
    require_device(device)
    session, inputs, outputs, producer = _open(path, device)
    images, output = _image_input(inputs, path), _features_output(outputs, path)
    size = _size(images, size, path)

    def run(inputs: Tensor) -> Tensor:
        missing = 0 if images.batch is None else images.batch - len(inputs)
        x = torch.cat([inputs, inputs[-1:].expand(missing, -1, -1, -1)])
        x = x.permute(0, 2, 3, 1).contiguous() if images.channels_last else x
        (found,) = session.run([output], {images.name: x.cpu().numpy().astype(images.dtype, copy=False)})
        if len(found) != len(x):
            raise ValueError(f"{len(found)} rows come out")
        return torch.from_numpy(found)[: len(inputs)]

    run_batch = checked(path.name, run)

    def network(inputs: Tensor) -> Tensor:
        batch = len(inputs) if images.batch is None else images.batch
        return torch.cat([run_batch(some) for some in inputs.split(batch)])

    known = {"sha256": digest, "producer": producer, "size": size}
    extractor = Extractor(path.name, network, lambda pixels: as_input(pixels, size), side_of(size), known)
    return tried(extractor, device)


@dataclass(frozen=True)
class _Value:
    """What a file says of an input or an output."""

    name: str
    type: str
    shape: list[Any]

    def __str__(self) -> str:
        return f"{self.name} {self.type} {self.shape}"


@dataclass(frozen=True)
class _Images:
    """The input of a file: how its images lie in memory, and what of their shape is fixed."""

    name: str
    dtype: np.dtype
    channels_last: bool
    batch: int | None
    side: int | None


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None


def _open(path: Path, device: str) -> tuple[Any, list[_Value], list[_Value], str]:
    """The session that runs a file, its inputs and outputs, and the program that wrote it."""
    try:
        import onnxruntime
    except ImportError:
        raise RunError(f"{path.name} needs onnxruntime: pip install 'hotshot[onnx]'.") from None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _SILENT
    provider = _provider(device, onnxruntime.get_available_providers())
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=[provider], enable_fallback=False)
        inputs, outputs = (
            [_Value(x.name, x.type, list(x.shape or ())) for x in values]
            for values in (session.get_inputs(), session.get_outputs())
        )
        return session, inputs, outputs, session.get_modelmeta().producer_name
    except Exception as error:  # onnxruntime's own have no other base; names may be no text.
        raise InputError(
            f"{path} is not an ONNX file that onnxruntime {onnxruntime.__version__} can run ({reason(error)}): "
            "export or download it again."
        ) from None


def _provider(device: str, available: list[str]) -> tuple[str, dict[str, Any]]:
    kind, _, number = device.partition(":")
    name = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}.get(kind)
    if name not in available or (number and not number.isdecimal()):
        raise ParameterError(
            f"device must be one that onnxruntime has here for ONNX files, such as cpu, got {device!r}."
        )
    return str(name), {"device_id": int(number or 0)} if kind == "cuda" else {}


def _image_input(inputs: list[_Value], path: Path) -> _Images:
    if len(inputs) != 1:
        raise InputError(
            f"{path} must take one input, the images, and takes {_listed(inputs)}: export it with that one."
        )
    (given,) = inputs
    # Axes that the file leaves open have a name, or none.
    shape = [axis if isinstance(axis, int) and axis > 0 else None for axis in given.shape]
    # Channels of no fixed number are taken to be where PyTorch has them; the trial tells.
    channels_last = len(shape) == 4 and shape[1] != 3 and shape[3] == 3
    if given.type not in _DTYPES or len(shape) != 4 or (not channels_last and shape[1] not in (3, None)):
        raise InputError(
            f"{path} must take images (batch, 3, size, size) or (batch, size, size, 3) of float32 or float16, and "
            f"takes {given}: export it so."
        )
    sides = {side for side in (shape[1:3] if channels_last else shape[2:]) if side is not None}
    if len(sides) > 1:
        raise InputError(f"{path} must take square images, and takes {given}: export it so.")
    return _Images(given.name, _DTYPES[given.type], channels_last, batch=shape[0], side=sides.pop() if sides else None)


def _features_output(outputs: list[_Value], path: Path) -> str:
    flat = [x for x in outputs if x.type in _DTYPES and len(x.shape) == 2]
    found = outputs if len(outputs) == 1 else flat
    if len(found) != 1:
        raise InputError(
            f"{path} must have one output of features (batch, V), and has {_listed(outputs)}: export it with that one."
        )
    return found[0].name


def _size(images: _Images, size: int | None, path: Path) -> int:
    found = size if images.side is None else images.side
    if found is None:
        raise ParameterError(f"{path} leaves the size of its images open: pass size (--size), such as 224.")
    if size not in (None, found):
        raise ParameterError(f"{path} takes images of size {found}, got {size}: leave size (--size) out.")
    return found


def _listed(values: list[_Value]) -> str:
    return ", ".join(map(str, values)) or "none"
