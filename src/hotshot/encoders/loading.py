"""Encoders by name: finds the loader for a name, and the form of the name that works from any folder."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from hotshot.encoders import libraries, own
from hotshot.encoders.encoder import IMAGES, TEXTS, Encoder
from hotshot.encoders.libraries import EFFICIENTNET, MINILM, PREFIXES
from hotshot.encoders.onnx import onnx_encoder
from hotshot.errors import ParameterError, RunError
from hotshot.formatting import did_you_mean

# Loaders of names without a prefix, and of networks that may leave the size of their images open.
PLAIN: dict[str, Callable[[str, str], Encoder]] = {
    MINILM: libraries.minilm,
    EFFICIENTNET: libraries.efficientnet,
    "checkpoint": own.checkpoint_encoder,
}
SIZED: dict[str, Callable[[str, int | None, str], Encoder]] = {
    "onnx": onnx_encoder,
    "object": own.object_encoder,
    "backbone": own.backbone_encoder,
}
NAMES = (MINILM, EFFICIENTNET, *PREFIXES)
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
    family = _family(plain)
    if family == "hf:":
        return IMAGES if libraries.is_vision_model(plain.removeprefix("hf:")) else TEXTS
    if family == "object":
        return own.object_kind(plain)
    return TEXTS if family in (MINILM, "st:") else IMAGES


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
    if family in SIZED:
        return SIZED[family](plain, size, device)
    if size is not None:
        raise ParameterError(f"{plain} has a fixed size, or none: leave size (--size) out.")
    place = plain.removeprefix(family)
    if family in PREFIXES and not place:
        raise ParameterError(f"encoder must have a name after {family!r}, such as {family}NAME.")
    from hotshot.backbones import require_device

    require_device(device)
    return PREFIXES[family](plain, place, device) if family in PREFIXES else PLAIN[family](plain, device)


def _family(name: str) -> str:
    """The key of the loader for a name without its size."""
    if name in (MINILM, EFFICIENTNET):
        return name
    prefix = next((prefix for prefix in PREFIXES if name.startswith(prefix)), None)
    if prefix is not None:
        return prefix
    if name.lower().endswith(".onnx"):
        return "onnx"
    if os.path.exists(name):
        return "checkpoint"
    if own.OBJECT.fullmatch(name):
        return "object"
    if _BACKBONE.fullmatch(name):
        return "backbone"
    if os.sep in name:
        return "checkpoint"
    known = f"one of {', '.join(NAMES)}, a checkpoint, file.onnx, file.py:name or package.module:name"
    raise ParameterError(f"encoder must be {known}, got {name!r:.80}.{did_you_mean(name, NAMES)}")


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
