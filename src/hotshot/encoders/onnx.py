"""An ONNX file as an encoder of images (extra `onnx`); only operators of onnxruntime are run."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.encoders.encoder import Encoder, network_encoder
from hotshot.errors import InputError, ParameterError, RunError
from hotshot.files.opening import map_bytes
from hotshot.formatting import reason

# Types of tensors, as onnxruntime calls them.
_DTYPES: dict[str, np.dtype] = {"tensor(float)": np.dtype("float32"), "tensor(float16)": np.dtype("float16")}
_SILENT = 4
# Pixels that a file takes at once, where it does not leave the number of images open.
_MOST_PIXELS = 2**24
_FORM = (
    "one input of square images, (batch, 3, size, size) or (batch, size, size, 3) of float32 or float16, and one "
    "output of features (batch, V)"
)


def onnx_encoder(name: str, size: int | None, device: str) -> Encoder:
    """The encoder of a file; `size` is the side of the images, if the file does not fix it.

    The file must have one input, images (batch, 3, size, size) or (batch, size, size, 3), normalised with the mean and
    deviation of ImageNet. Its output, or the only one of several with two axes, must be features (batch, V); a single
    output may also be maps (batch, V, h, w).
    """
    import torch

    from hotshot.backbones import decoded_size

    path = Path(name)
    digest = hashlib.sha256(map_bytes(path)).hexdigest()
    session, producer = _session(path, device)
    images, features, channels_last, batch, fixed_side = _form(session.get_inputs(), session.get_outputs(), path)
    side = size if fixed_side is None else fixed_side
    if side is None:
        raise ParameterError(f"{path} does not fix the size of its images: pass size (--size), such as 224.")
    if size not in (None, side):
        raise ParameterError(f"{path} takes images of size {side}, got {size}: leave size (--size) out.")
    decoded = decoded_size(side)
    if (batch or 1) * side**2 > _MOST_PIXELS:
        raise InputError(
            f"{path} takes {batch} images of size {side} at once: export it with an open number of images."
        )

    def run(pixels: Any) -> Any:
        missing = 0 if batch is None else batch - len(pixels)
        x = torch.cat([pixels, pixels[-1:].expand(missing, -1, -1, -1)])
        x = x.permute(0, 2, 3, 1).contiguous() if channels_last else x
        values = x.cpu().numpy().astype(_DTYPES[images.type], copy=False)
        (rows,) = session.run([features.name], {images.name: values})
        if len(rows) != len(x):
            raise ValueError(f"{len(rows)} rows come out")
        return torch.from_numpy(rows)[: len(pixels)]

    def network(pixels: Any) -> Any:
        return torch.cat([run(some) for some in pixels.split(batch or len(pixels))])

    about = {"sha256": digest, "producer": producer, "size": side}
    full = str(path.resolve()) + ("" if size is None else f"#{size}")
    return network_encoder(full, path.name, network, decoded, about, device)


def _session(path: Path, device: str) -> tuple[Any, str]:
    """The session of a file, and the program that wrote it."""
    try:
        import onnxruntime
    except ImportError:
        raise RunError(f"{path.name} needs onnxruntime: pip install 'hotshot[onnx]'.") from None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _SILENT
    kind, _, number = device.partition(":")
    provider = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}.get(kind)
    if provider not in onnxruntime.get_available_providers() or (number and not number.isdecimal()):
        raise ParameterError(f"device must be available in onnxruntime, such as cpu, got {device!r}.")
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


def _form(inputs: list[Any], outputs: list[Any], path: Path) -> tuple[Any, Any, bool, int | None, int | None]:
    """The input and the output, whether channels come last, and how many images of which side it takes, if fixed."""
    # Axes that the file leaves open have a name, or none.
    shape = [axis if isinstance(axis, int) and axis > 0 else None for axis in inputs[0].shape or ()] if inputs else []
    # Channels of no fixed number are taken to be where PyTorch has them; the trial tells.
    channels_last = len(shape) == 4 and shape[1] != 3 and shape[3] == 3
    order = (0, 3, 1, 2) if channels_last else (0, 1, 2, 3)
    batch, channels, *sides = [shape[i] for i in order] if len(shape) == 4 else [None, 0]
    fixed = {side for side in sides if side is not None}
    features = outputs if len(outputs) == 1 else [x for x in outputs if x.type in _DTYPES and len(x.shape or ()) == 2]
    is_image = len(inputs) == 1 and inputs[0].type in _DTYPES and channels in (3, None) and len(fixed) <= 1
    if not is_image or len(features) != 1:
        held = f"{_listed(inputs)}, and the output {_listed(outputs)}"
        raise InputError(f"{path} must have {_FORM}, and has the input {held}: export it again.")
    return inputs[0], features[0], channels_last, batch, next(iter(fixed), None)


def _listed(values: list[Any]) -> str:
    """Inputs or outputs of a file, in words."""
    return ", ".join(f"{x.name} {x.type} {list(x.shape or ())}" for x in values) or "none"
