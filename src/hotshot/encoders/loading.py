"""Encoders by name: one table of loaders, and those of one's own, whose names work from any folder."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.arrays import check_numbers
from hotshot.encoders import libraries
from hotshot.encoders.encoder import (
    IMAGES,
    TEXTS,
    Encoder,
    check_normalisation,
    image_encoder,
    network_encoder,
    text_encoder,
)
from hotshot.encoders.libraries import EFFICIENTNET, MINILM, absolute
from hotshot.encoders.onnx import onnx_encoder
from hotshot.errors import ParameterError, RunError
from hotshot.formatting import did_you_mean
from hotshot.images.decode import DEVIATION, MEAN
from hotshot.user_code import call_named, named_object, required_arguments, short_name

# Side of the input of networks that do not tell it, in pixels.
SIZE = 84
# The name of an object may be followed by a file of weights.
_OBJECT, _BACKBONE = re.compile(r"((?:.+?\.py|[\w.]+):\w+)(?:@(.+))?"), re.compile(r"\w+@.+")


# --- names


def encoder_kind(name: str) -> str:
    """Type of the inputs of an encoder, "texts" or "images", by its name; user code is imported to find out.

    Examples
    --------
    >>> encoder_kind("minilm"), encoder_kind("efficientnet-lite0")
    ('texts', 'images')
    """
    plain, _ = _without_size(name)
    family = _family(plain)
    if family == "object":
        return _kind(_named(plain)[2], plain)
    if family == "hf:":
        return IMAGES if libraries.is_vision_model(plain.removeprefix(family)) else TEXTS
    return TEXTS if family in (MINILM, "st:") else IMAGES


def runs_code(name: str) -> bool:
    """Whether loading an encoder by this name runs Python code that the name leads to.

    Folders of sentence-transformers may name any Python class.

    Examples
    --------
    >>> runs_code("minilm"), runs_code("my_encoder.py:embed")
    (False, True)
    """
    plain, _ = _without_size(name)
    family = _family(plain)
    return family == "object" or (family == "st:" and os.path.isdir(plain.removeprefix(family)))


def load_encoder(name: str, device: str = "cpu", size: int | None = None) -> Encoder:
    r"""Load an encoder by name; nothing is downloaded.

    Parameters
    ----------
    name : str
        ``minilm``, ``efficientnet-lite0``, ``timm:NAME[@WEIGHTS]``, ``st:NAME_OR_FOLDER``, ``openclip:NAME@WEIGHTS``,
        ``hf:NAME_OR_FOLDER``, the folder of a checkpoint of ``hotshot train``, ``FILE.onnx``,
        ``FILE.py:NAME[@WEIGHTS]`` or ``PACKAGE.MODULE:NAME[@WEIGHTS]``, or ``BACKBONE@WEIGHTS``. ``#SIZE`` at the end
        is the same as ``size``.
    device : str
        PyTorch device, such as "cpu" or "cuda".
    size : int, optional
        Side of the images in pixels, for networks that do not define it; 84 by default.

    Returns
    -------
    Encoder
        The encoder.

    See Also
    --------
    InputClassifier : Classify texts or images with an encoder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open(f"{folder}/own.py", "w") as file:
    ...         _ = file.write("def lengths(texts): return [[len(t), 1] for t in texts]\nlengths.kind = 'texts'\n")
    ...     encoder = load_encoder(f"{folder}/own.py:lengths")
    >>> encoder.encode(["wren"])
    array([[4., 1.]], dtype=float32)
    """
    plain, size_in_name = _without_size(name)
    if size is not None and size_in_name not in (None, size):
        raise ParameterError(f"{name} already sets another size than {size}: leave size (--size) out.")
    size = size_in_name if size is None else size
    family = _family(plain)
    place = plain.removeprefix(family) if family in PREFIXES else plain
    if size is not None and family not in SIZED:
        raise ParameterError(f"{plain} has a fixed size, or none: leave size (--size) out.")
    if family in PREFIXES and not place:
        raise ParameterError(f"encoder must have a name after {family!r}, such as {family}NAME.")
    try:
        if family != "object":  # Functions may do without PyTorch.
            from hotshot.backbones import require_device

            require_device(device)
        return LOADERS[family](place, size, device)
    except ImportError as error:
        extra = "text" if family in (MINILM, "st:", "hf:") else "images"
        raise RunError(f"{name} needs {error.name or 'PyTorch'}: pip install 'hotshot[{extra}]'.") from None


def _family(name: str) -> str:
    """The key of the loader for a name without its size."""
    prefix = next((prefix for prefix in PREFIXES if name.startswith(prefix)), None)
    if name in (MINILM, EFFICIENTNET) or prefix is not None:
        return prefix or name
    if name.lower().endswith(".onnx"):
        return "onnx"
    if os.path.exists(name):
        return "checkpoint"
    if _OBJECT.fullmatch(name):
        return "object"
    if _BACKBONE.fullmatch(name):
        return "backbone"
    if os.sep in name:
        return "checkpoint"
    names = (MINILM, EFFICIENTNET, *PREFIXES)
    valid = f"one of {', '.join(names)}, a checkpoint, file.onnx, file.py:name or package.module:name"
    raise ParameterError(f"encoder must be {valid}, got {name!r:.80}.{did_you_mean(name, names)}")


def _without_size(name: str) -> tuple[str, int | None]:
    """A name without its size, and the size; raises for names that no file can have."""
    try:
        possible = "\0" not in name and bool(os.fsencode(name))
    except (TypeError, UnicodeEncodeError):
        possible = False
    if not possible:
        raise ParameterError(f"encoder must be a name such as {MINILM}, got {name!r:.80}.")
    size = None if os.path.exists(name) else re.fullmatch("(.*)#([0-9]{1,5})", name, re.DOTALL)
    return (name, None) if size is None else (size[1], int(size[2]))


# --- a function or a network by name: NAME[@WEIGHTS]


def _named(name: str) -> tuple[str, str | None, Any]:
    """The name of an object, its file of weights, and the object."""
    place, weights = _OBJECT.fullmatch(name).groups()  # type: ignore[union-attr]
    try:
        return place, weights, named_object(place, "network")
    except ParameterError as error:
        raise ParameterError(f"{error}{did_you_mean(name.partition(':')[0] + ':', PREFIXES)}") from None


def _kind(item: Any, name: str) -> str:
    """The attribute `kind` of an object, by default images."""
    kind = getattr(item, "kind", IMAGES)
    if kind not in (TEXTS, IMAGES):
        raise ParameterError(f"{name}.kind must be 'texts' or 'images', got {kind!r:.40}: fix it.")
    return str(kind)


def object_encoder(name: str, size: int | None, device: str) -> Encoder:
    """A function of texts or of images (n, size, size, 3) in uint8, or a `torch.nn.Module`."""
    place, weights, item = _named(name)
    # Other objects are networks, or make them.
    is_function = callable(item) and (
        hasattr(item, "kind") or (not isinstance(item, type) and len(required_arguments(item)) == 1)
    )
    if not is_function:
        return module_encoder(place, SIZE if size is None else size, device, weights=weights, module=item)
    texts = _kind(item, place) == TEXTS
    if weights or (texts and size is not None):
        raise ParameterError(f"{place} is a function that takes no {'weights' if weights else 'size'}: leave it out.")
    full = _full_name(place)
    if texts:
        return text_encoder(full, short_name(place), item)
    side = getattr(item, "size", SIZE) if size is None else size
    check_numbers(size=side)
    return image_encoder(
        f"{full}#{side}", short_name(place), lambda x: np.array(item(x), np.float32), side, {"size": side}
    )


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

    The code that `name` points to is imported and run, as ``python -m`` would run it: name only what you trust.

    Parameters
    ----------
    name : str
        ``package.module:attribute`` or ``path/to/file.py:attribute``, of a `torch.nn.Module`, or of a class or function
        without required arguments that returns one. Modules in the working folder are found too.
    size : int
        Side of the images (batch, 3, size, size) that the module takes. It must return features (batch, V), or maps
        (batch, V, h, w), which are averaged over h and w.
    device : str
        PyTorch device, such as "cuda".
    weights : path, optional
        File of weights; by default the module is used as it is.
    mean, deviation : three numbers each
        Mean and deviation to normalise pixels in [0, 1] with, by default those of ImageNet.
    module : object, optional
        The object of this name, if it has already been imported.

    Returns
    -------
    Encoder
        The encoder.
    """
    from torch import nn

    from hotshot.backbones import require_device
    from hotshot.backbones.checkpoints import decoded_size
    from hotshot.backbones.weights import load_weights

    module = named_object(name, "network") if module is None else module
    side = decoded_size(size)
    check_normalisation(mean, deviation)
    require_device(device)
    if callable(module) and not isinstance(module, nn.Module):
        module = call_named(module, name, "network")
    if not isinstance(module, nn.Module):
        raise ParameterError(
            f"{name} must be or return a torch.nn.Module, got {type(module).__name__}: wrap it in one."
        )
    network, short, full = module.to(device).eval(), short_name(name), _full_name(name)
    about = {"size": size, "mean": list(map(float, mean)), "deviation": list(map(float, deviation))}
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
    module: Any = sys.modules[place]
    file = Path(getattr(module, "__file__", None) or "")
    return f"{file.resolve()}:{attribute}" if "." not in place and file.resolve().parent == Path.cwd() else name


# --- backbones


def backbone_encoder(name: str, size: int | None, device: str) -> Encoder:
    """A backbone with published weights, BACKBONE@WEIGHTS."""
    from hotshot.backbones import create, options_for
    from hotshot.backbones.checkpoints import decoded_size
    from hotshot.backbones.networks import as_input
    from hotshot.backbones.weights import load_weights

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
    from hotshot.backbones.checkpoints import load_backbone
    from hotshot.backbones.networks import as_input

    network, recipe, about = load_backbone(name)
    about = {"backbone": recipe.backbone, "epochs": len(about["history"]), "trained_on": list(about["names"])}
    prepare, full = partial(as_input, size=recipe.size), str(Path(name).resolve())
    network = network.to(device)
    return network_encoder(full, recipe.backbone, network, recipe.decoded_size, about, device, prepare=prepare)


# Loaders by the prefix of a name, by the name, or by what else a name can be; `SIZED` are those of networks that may
# leave the size of their images open.
PREFIXES: dict[str, Callable[[str, Any, str], Encoder]] = {
    "timm:": libraries.timm_encoder,
    "st:": libraries.sentence_encoder,
    "openclip:": libraries.openclip_encoder,
    "hf:": libraries.transformers_encoder,
}
SIZED: dict[str, Callable[[str, Any, str], Encoder]] = {
    "onnx": onnx_encoder,
    "object": object_encoder,
    "backbone": backbone_encoder,
}
LOADERS: dict[str, Callable[[str, Any, str], Encoder]] = {
    **PREFIXES,
    **SIZED,
    MINILM: libraries.minilm,
    EFFICIENTNET: libraries.efficientnet,
    "checkpoint": checkpoint_encoder,
}
