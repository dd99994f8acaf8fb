"""Encoders by name: finds the loader for a name, and the form of the name that works from any folder."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.encoders.encoder import IMAGES, TEXTS, Encoder, image_encoder, text_encoder
from hotshot.encoders.hubs import absolute
from hotshot.errors import ParameterError, RunError
from hotshot.formatting import did_you_mean
from hotshot.user_code import named_object, required_arguments, short_name

MINILM, EFFICIENTNET = "minilm", "efficientnet-lite0"
PREFIXES = ("timm:", "st:", "openclip:", "hf:")
NAMES = (MINILM, EFFICIENTNET, *PREFIXES)
# Side of the input of networks that do not tell it, in pixels.
SIZE = 84
# An object may be followed by a file of weights, a backbone always is.
_OBJECT = re.compile(r"((?:.+?\.py|[\w.]+):\w+)(?:@(.+))?")
_BACKBONE = re.compile(r"\w+@.+")


def encoder_kind(name: str) -> str:
    """Type of the inputs of an encoder; user code is imported to find out.

    Parameters
    ----------
    name : str
        Name of the encoder, as in ``load_encoder``.

    Returns
    -------
    {"texts", "images"}
        Type of its inputs.

    Examples
    --------
    >>> encoder_kind("minilm"), encoder_kind("efficientnet-lite0")
    ('texts', 'images')
    """
    plain, _ = _without_size(name)
    if plain.startswith("hf:"):
        from hotshot.encoders.networks import is_vision_model

        return IMAGES if is_vision_model(plain.removeprefix("hf:")) else TEXTS
    if _family(plain) == "object":
        return _function_kind(_named_object(plain)[2], plain)
    return TEXTS if plain == MINILM or plain.startswith("st:") else IMAGES


def runs_code(name: str) -> bool:
    """Whether loading an encoder of this name runs Python code that the name leads to.

    Folders of sentence-transformers may name any Python class.

    Parameters
    ----------
    name : str
        Name of the encoder, as in ``load_encoder``.

    Returns
    -------
    bool
        Whether it does.

    Examples
    --------
    >>> runs_code("minilm"), runs_code("my_encoder.py:embed")
    (False, True)
    """
    plain, _ = _without_size(name)
    return _family(plain) == "object" or (plain.startswith("st:") and os.path.isdir(plain.removeprefix("st:")))


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
    try:
        return _load(name, device, size)
    except ImportError as error:
        extra = "text" if name == MINILM or name.startswith(("st:", "hf:")) else "images"
        missing = error.name or "PyTorch"
        raise RunError(f"{name} needs {missing}: pip install 'hotshot[{extra}]'.") from None


def _load(name: str, device: str, size: int | None) -> Encoder:
    plain, size_in_name = _without_size(name)
    if size is not None and size_in_name not in (None, size):
        raise ParameterError(f"{name} already sets another size than {size}: leave size (--size) out.")
    size = size_in_name if size is None else size
    family = _family(plain)
    if family in _SIZED:
        return _SIZED[family](plain, size, device)
    if size is not None:
        raise ParameterError(f"{plain} has a fixed size, or none: leave size (--size) out.")
    from hotshot.images.backbones import require_device
    from hotshot.images.extraction import checkpoint_extractor, pretrained_extractor

    require_device(device)
    if family == "library":
        return _of_a_library(plain, device)
    if family == EFFICIENTNET:
        return image_encoder(plain, pretrained_extractor(plain, device), device)
    return image_encoder(str(Path(plain).resolve()), checkpoint_extractor(plain, device), device)


def _family(name: str) -> str:
    """The loader for a name without its size."""
    if name == EFFICIENTNET:
        return EFFICIENTNET
    if name == MINILM or name.startswith(PREFIXES):
        return "library"
    if name.lower().endswith(".onnx"):
        return "onnx"
    if os.path.exists(name):
        return "checkpoint"
    for family, form in (("object", _OBJECT), ("backbone", _BACKBONE)):
        if form.fullmatch(name):
            return family
    if os.sep in name:
        return "checkpoint"
    known = f"one of {', '.join(NAMES)}, a checkpoint, file.onnx, file.py:name or package.module:name"
    raise ParameterError(f"encoder must be {known}, got {name!r:.80}.{did_you_mean(name, NAMES)}")


def _of_a_library(name: str, device: str) -> Encoder:
    from hotshot.encoders import networks, texts

    if name == MINILM:
        return text_encoder(MINILM, "all-MiniLM-L6-v2", texts.load_minilm(device))
    prefix, _, place = name.partition(":")
    if not place:
        raise ParameterError(f"encoder must have a name after {name!r}, such as {prefix}:NAME.")
    if prefix == "st":
        return texts.sentence_encoder(name, place, device)
    if prefix == "hf":
        load = networks.vision_encoder if networks.is_vision_model(place) else texts.transformers_encoder
        return load(name, place, device)
    model, _, weights = place.partition("@")
    load_network = networks.timm_encoder if prefix == "timm" else networks.openclip_encoder
    return load_network(name, model, weights, device)


def _onnx(path: str, size: int | None, device: str) -> Encoder:
    from hotshot.images.extraction import onnx_extractor

    extractor = onnx_extractor(path, size, device)
    return image_encoder(_full(absolute(path), size), extractor, device)


def _object(name: str, size: int | None, device: str) -> Encoder:
    name, weights, found = _named_object(name)
    full = _full_object(name)
    if _is_function(found):
        texts = _function_kind(found, name) == TEXTS
        if weights or (texts and size is not None):
            raise ParameterError(
                f"{name} is a function that takes no {'weights' if weights else 'size'}: leave it out."
            )
        if texts:
            return text_encoder(full, short_name(name), found)
        side = getattr(found, "size", SIZE) if size is None else size
        return _image_function(name, _full(full, side), found, side, device)
    from hotshot.encoders.modules import module_extractor

    side = SIZE if size is None else size
    extractor, report = module_extractor(name, side, device, weights=weights, found=found)
    full += f"@{absolute(weights)}" if weights else ""
    return image_encoder(_full(full, side), extractor, device, [f"{weights}: {report}"] if report else [])


def _is_function(found: Any) -> bool:
    """Whether a named object is a function of the inputs, not a network or a factory of one."""
    return callable(found) and (
        hasattr(found, "kind") or (not isinstance(found, type) and len(required_arguments(found)) == 1)
    )


def _function_kind(found: Any, name: str) -> str:
    """The kind of inputs of a named object: its attribute `kind`, by default images."""
    kind = getattr(found, "kind", IMAGES)
    if kind not in (TEXTS, IMAGES):
        raise ParameterError(f"{name}.kind must be 'texts' or 'images', got {kind!r:.40}: fix it.")
    return str(kind)


def _image_function(name: str, full: str, found: Callable[[np.ndarray], Any], size: int, device: str) -> Encoder:
    """The encoder of a function from images in uint8 (n, size, size, 3) to an array (n, V)."""
    import torch

    from hotshot.images.extraction import Extractor, side_of, tried

    side_of(size)

    def network(pixels: torch.Tensor) -> torch.Tensor:
        images = pixels.permute(0, 2, 3, 1).cpu().numpy()
        return torch.from_numpy(np.array(found(images), dtype=np.float32))

    extractor = Extractor(short_name(name), network, lambda pixels: pixels, size, {"size": size})
    return image_encoder(full, tried(extractor, "cpu"), device)


def _backbone(name: str, size: int | None, device: str) -> Encoder:
    from hotshot.images.backbones import require_device
    from hotshot.images.extraction import weights_extractor

    require_device(device)
    backbone, _, weights = name.partition("@")
    side = SIZE if size is None else size
    extractor, report = weights_extractor(backbone, weights, side, device)
    full = _full(f"{backbone}@{absolute(weights)}", side)
    return image_encoder(full, extractor, device, [f"{weights}: {report}"])


# Loaders of networks that may leave the size of their images open.
_SIZED = {"onnx": _onnx, "object": _object, "backbone": _backbone}


def _full(name: str, size: int | None) -> str:
    return name if size is None else f"{name}#{size}"


def _without_size(name: str) -> tuple[str, int | None]:
    """A name without its size, and the size; raises for names that no file can have."""
    try:
        possible = "\0" not in name and bool(os.fsencode(name))
    except (TypeError, UnicodeEncodeError):
        possible = False
    if not possible:
        raise ParameterError(f"encoder must be a name such as {MINILM}, got {name!r:.80}.")
    plain, mark, size = ("", "", "") if os.path.exists(name) else name.rpartition("#")
    return (plain, int(size)) if mark and re.fullmatch("[0-9]{1,5}", size) else (name, None)


def _named_object(name: str) -> tuple[str, str | None, Any]:
    """The name of an object, its file of weights, and the object."""
    place, weights = _OBJECT.fullmatch(name).groups()  # type: ignore[union-attr]
    try:
        return place, weights, named_object(place, "network")
    except ParameterError as error:
        raise ParameterError(f"{error}{did_you_mean(name.partition(':')[0] + ':', PREFIXES)}") from None


def _full_object(name: str) -> str:
    """The name of an object that works from any folder: for modules in the working folder, with their file."""
    place, _, attribute = name.rpartition(":")
    if place.endswith(".py"):
        return f"{absolute(place)}:{attribute}"
    module: Any = sys.modules[place]
    file = Path(getattr(module, "__file__", None) or "")
    return f"{file.resolve()}:{attribute}" if "." not in place and file.resolve().parent == Path.cwd() else name
