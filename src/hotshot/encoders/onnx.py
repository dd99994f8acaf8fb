"""An ONNX file as an encoder of images (extra `onnx`); only operators of onnxruntime are run."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.encoders.encoder import Encoder, network_encoder
from hotshot.errors import InputError, ParameterError, RunError
from hotshot.files.opening import map_bytes
from hotshot.formatting import readable_size, reason

if TYPE_CHECKING:
    from torch import Tensor

# Types of tensors, as onnxruntime calls them.
_DTYPES: dict[str, np.dtype] = {"tensor(float)": np.dtype("float32"), "tensor(float16)": np.dtype("float16")}
_SILENT = 4
# Bytes of the images that a file takes at once, where it does not leave their number open.
_LARGEST_BATCH = 2**28


def onnx_encoder(name: str, size: int | None, device: str) -> Encoder:
    """The encoder of a file; `size` is the side of the images, if the file does not fix it.

    The file must have one input, images (batch, 3, size, size) or (batch, size, size, 3), normalised with the mean and
    deviation of ImageNet. Its output, or the only one of several with two axes, must be features (batch, V); a single
    output may also be maps (batch, V, h, w).
    """
    import torch

    from hotshot.backbones.checkpoints import decoded_size

    path = Path(name)
    digest = hashlib.sha256(map_bytes(path)).hexdigest()
    session, producer = _open(path, device)
    images, channels_last, batch, fixed_side = _image_input(session.get_inputs(), path)
    outputs = session.get_outputs()
    flat = [x for x in outputs if x.type in _DTYPES and len(x.shape or ()) == 2]
    features = outputs if len(outputs) == 1 else flat
    if len(features) != 1:
        raise InputError(
            f"{path} must have one output of features (batch, V), and has {_listed(outputs)}: export it again."
        )
    side = size if fixed_side is None else fixed_side
    if side is None:
        raise ParameterError(f"{path} does not fix the size of its images: pass size (--size), such as 224.")
    if size not in (None, side):
        raise ParameterError(f"{path} takes images of size {side}, got {size}: leave size (--size) out.")
    n_bytes = (batch or 1) * 3 * side**2 * 4
    if n_bytes > _LARGEST_BATCH:
        raise InputError(
            f"{path} takes batches of {batch} images of size {side} only, {readable_size(n_bytes)} where "
            f"{readable_size(_LARGEST_BATCH)} are allowed: export it with an open number of images."
        )

    def run(inputs: Tensor) -> Tensor:
        missing = 0 if batch is None else batch - len(inputs)
        x = torch.cat([inputs, inputs[-1:].expand(missing, -1, -1, -1)])
        x = x.permute(0, 2, 3, 1).contiguous() if channels_last else x
        pixels = x.cpu().numpy().astype(_DTYPES[images.type], copy=False)
        (rows,) = session.run([features[0].name], {images.name: pixels})
        if len(rows) != len(x):
            raise ValueError(f"{len(rows)} rows come out")
        return torch.from_numpy(rows)[: len(inputs)]

    def network(inputs: Tensor) -> Tensor:
        return torch.cat([run(some) for some in inputs.split(batch or len(inputs))])

    about = {"sha256": digest, "producer": producer, "size": side}
    full = str(path.resolve()) + ("" if size is None else f"#{size}")
    return network_encoder(full, path.name, network, decoded_size(side), about, device)


def _open(path: Path, device: str) -> tuple[Any, str]:
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


def _image_input(inputs: list[Any], path: Path) -> tuple[Any, bool, int | None, int | None]:
    """The input of a file, whether its channels come last, and how many images of which side it takes, if fixed."""
    if len(inputs) != 1:
        raise InputError(f"{path} must take one input, the images, and takes {_listed(inputs)}: export it again.")
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
        raise InputError(f"{path} must take square images, and takes {_listed([given])}: export it again.")
    return given, channels_last, shape[0], sides.pop() if sides else None


def _listed(values: list[Any]) -> str:
    """Inputs or outputs of a file, in words."""
    return ", ".join(f"{x.name} {x.type} {list(x.shape or ())}" for x in values) or "none"
