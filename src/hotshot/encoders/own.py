"""Encoders of one's own: functions and networks by name, backbones with files of weights, checkpoints, ONNX files.

Of ONNX files (extra `onnx`) only operators of onnxruntime are run.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.arrays import check_numbers
from hotshot.encoders.encoder import IMAGES, TEXTS, Encoder, network_encoder, tried_encoder
from hotshot.encoders.libraries import PREFIXES, absolute
from hotshot.errors import InputError, ParameterError, RunError
from hotshot.files.opening import map_bytes
from hotshot.formatting import did_you_mean, reason
from hotshot.images.decode import DEVIATION, MEAN
from hotshot.user_code import call_named, named_object, required_arguments, short_name

# Side of the input of networks that do not tell it, in pixels.
SIZE = 84
# The name of an object may be followed by a file of weights.
OBJECT = re.compile(r"((?:.+?\.py|[\w.]+):\w+)(?:@(.+))?")


def named(name: str) -> tuple[str, str | None, Any]:
    """The name of an object without its file of weights, that file, and the object."""
    place, weights = OBJECT.fullmatch(name).groups()  # type: ignore[union-attr]
    try:
        return place, weights, named_object(place, "network")
    except ParameterError as error:
        raise ParameterError(f"{error}{did_you_mean(name.partition(':')[0] + ':', PREFIXES)}") from None


def kind_of(item: Any, name: str) -> str:
    """The attribute `kind` of an object, by default images."""
    kind = getattr(item, "kind", IMAGES)
    if kind not in (TEXTS, IMAGES):
        raise ParameterError(f"{name}.kind must be 'texts' or 'images', got {kind!r:.40}: fix it.")
    return str(kind)


def object_encoder(name: str, size: int | None, device: str) -> Encoder:
    """A function of texts or of images (n, size, size, 3) in uint8, or a `torch.nn.Module`."""
    place, weights, item = named(name)
    # Other objects are networks, or make them.
    is_function = callable(item) and (
        hasattr(item, "kind") or (not isinstance(item, type) and len(required_arguments(item)) == 1)
    )
    if not is_function:
        return module_encoder(place, SIZE if size is None else size, device, weights=weights, module=item)
    texts = kind_of(item, place) == TEXTS
    if weights or (texts and size is not None):
        raise ParameterError(f"{place} is a function that takes no {'weights' if weights else 'size'}: leave it out.")
    full, short = _full_name(place), short_name(place)
    if texts:
        return tried_encoder(full, short, item)
    side = getattr(item, "size", SIZE) if size is None else size
    check_numbers(size=side)
    return tried_encoder(f"{full}#{side}", short, lambda x: np.array(item(x), np.float32), side, {"size": side})


def module_encoder(
    name: str,
    size: int = SIZE,
    device: str = "cpu",
    *,
    weights: str | Path | None = None,
    mean: Sequence[float] = MEAN,
    deviation: Sequence[float] = DEVIATION,
    module: Any = None,
) -> Encoder:
    """Load a `torch.nn.Module` by name; ``load_encoder`` does it with the mean and deviation of ImageNet.

    ``package.module:attribute`` or ``path/to/file.py:attribute`` is a module, or a class or function without required
    arguments that returns one. It is imported and run, as ``python -m`` would run it: name only what you trust. The
    module takes images (batch, 3, size, size), less `mean` and divided by `deviation`, and must return features
    (batch, V), or maps (batch, V, h, w), which are averaged over h and w. `weights` is a file to load, and `module` the
    object, if it has already been imported.
    """
    from torch import nn

    from hotshot.backbones import decoded_size, load_weights, require_device

    module = named_object(name, "network") if module is None else module
    side = decoded_size(size)
    require_device(device)
    if callable(module) and not isinstance(module, nn.Module):
        module = call_named(module, name, "network")
    if not isinstance(module, nn.Module):
        raise ParameterError(
            f"{name} must be or return a torch.nn.Module, got {type(module).__name__}: wrap it in one."
        )
    network, short, full = module.to(device).eval(), short_name(name), _full_name(name)
    about = {"size": size, "mean": np.ravel(mean).tolist(), "deviation": np.ravel(deviation).tolist()}
    # Lazy layers get their weights when the network is tried.
    encoder = network_encoder(f"{full}#{size}", short, network, side, about, device)
    if weights is None:
        return encoder
    if not network.state_dict():
        raise ParameterError(f"{short} has no weights to replace with {weights}: leave the file out.")
    report = load_weights(network, weights)
    about |= {"weights": Path(weights).name, "matched": len(report.matched)}
    name = f"{full}@{absolute(str(weights))}#{size}"
    return network_encoder(name, short, network, side, about, device, [f"{weights}: {report}"])


def _full_name(name: str) -> str:
    """The name of an object that works from any folder: for modules in the working folder, with their file."""
    place, _, attribute = name.rpartition(":")
    if place.endswith(".py"):
        return f"{absolute(place)}:{attribute}"
    file = Path(getattr(sys.modules[place], "__file__", None) or "")
    return f"{file.resolve()}:{attribute}" if "." not in place and file.resolve().parent == Path.cwd() else name


def backbone_encoder(name: str, size: int | None, device: str) -> Encoder:
    """A backbone with published weights, BACKBONE@WEIGHTS."""
    from hotshot.backbones import as_input, create, decoded_size, load_weights, options_for

    backbone, _, weights = name.partition("@")
    size = SIZE if size is None else size
    side = decoded_size(size)
    network = create(backbone, **options_for(backbone, size))
    report = load_weights(network, weights)
    about = {"backbone": backbone, "weights": Path(weights).name, "matched": len(report.matched)}
    full, notes = f"{backbone}@{absolute(weights)}#{size}", [f"{weights}: {report}"]
    network = network.to(device).eval()
    return network_encoder(full, backbone, network, side, about, device, notes, partial(as_input, size=size))


def checkpoint_encoder(name: str, size: None, device: str) -> Encoder:
    """The backbone of a checkpoint of `hotshot train`."""
    from hotshot.backbones import as_input, load_backbone

    network, recipe, about = load_backbone(name)
    about = {"backbone": recipe.backbone, "epochs": len(about["history"]), "trained_on": list(about["names"])}
    prepare, full = partial(as_input, size=recipe.size), str(Path(name).resolve())
    network = network.to(device)
    return network_encoder(full, recipe.backbone, network, recipe.decoded_size, about, device, prepare=prepare)


# --- ONNX files

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
