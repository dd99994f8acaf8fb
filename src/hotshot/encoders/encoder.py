"""The interface of all encoders: a checked function from texts or images to features."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.arrays import slices
from hotshot.errors import HotshotError, InputError
from hotshot.formatting import quoted, reason

if TYPE_CHECKING:
    from hotshot.images.extraction import Extractor

TEXTS, IMAGES = "texts", "images"
# Inputs that a network takes at once.
AT_ONCE = {TEXTS: 256, IMAGES: 128}
# Two probes of one encoder differ by rounding only, on a GPU to about a thousandth; other weights change all of it.
TOLERANCE = 3e-3
_PROBE_TEXT = "The quick brown fox jumps over the lazy dog."
_PROBE_LENGTH = 16


@dataclass(frozen=True, eq=False)
class Encoder:
    """A function from texts or images to features, with what a saved model needs to load it again.

    Attributes
    ----------
    name : str
        Name that loads it again, from any folder.
    kind : {"texts", "images"}
        Type of its inputs.
    size : int or None
        Side of its input images in pixels; None for texts.
    about : dict
        Header of feature files: "extractor", "transform" and "network".
    run : callable
        The function, from a batch of inputs to an array (n, V).
    probe : tuple of float
        A few numbers computed from its features of a fixed input, to recognise it.
    width : int or None
        Width of the features, V; None before the first call.
    notes : tuple of str
        Remarks on how it was loaded.
    extractor : Extractor or None
        Extractor of image datasets; None for texts.

    See Also
    --------
    load_encoder : Load an encoder by name.

    Examples
    --------
    >>> encoder = Encoder("lengths", "texts", None, {}, run=lambda texts: [[len(text), 1.0] for text in texts])
    >>> encoder.encode(["wren", "kestrel"])
    array([[4., 1.],
           [7., 1.]], dtype=float32)
    """

    name: str
    kind: str
    size: int | None
    about: dict[str, Any]
    run: Callable[[Any], Any] = field(repr=False)
    probe: tuple[float, ...] = field(default=(), repr=False)
    width: int | None = None
    notes: tuple[str, ...] = field(default=(), repr=False)
    extractor: Any = field(default=None, repr=False)

    def encode(self, batch: Any) -> np.ndarray:
        """Compute the features of inputs.

        Parameters
        ----------
        batch : list of str or array (n, size, size, 3)
            Texts, or images in uint8.

        Returns
        -------
        array (n, V)
            Finite features in float32.
        """
        batch = self._checked(batch)
        found = [self._features(batch[rows]) for rows in slices(len(batch), AT_ONCE[self.kind])]
        return np.concatenate(found) if found else np.empty((0, self.width or 0), np.float32)

    def same_as(self, probe: Sequence[float]) -> bool:
        """Whether a saved probe is that of this encoder, up to rounding.

        Parameters
        ----------
        probe : sequence of float
            Probe of a saved model.

        Returns
        -------
        bool
            Whether the encoder is the same.
        """
        try:
            given = np.asarray(probe, dtype=np.float64)
        except (TypeError, ValueError):
            return False
        own = np.asarray(self.probe)
        return given.shape == own.shape and bool(np.linalg.norm(given - own) <= TOLERANCE * np.linalg.norm(own))

    def _checked(self, batch: Any) -> Any:
        if self.kind == TEXTS:
            one = isinstance(batch, (str, bytes)) or not isinstance(batch, Iterable)
            texts = [] if one else list(batch)
            strange = [batch] if one else [text for text in texts if not isinstance(text, str)]
            if strange:
                raise InputError(f"{self.name} encodes a list of texts, got {quoted(strange[0])}: pass a list of str.")
            return texts
        pixels = np.asarray(batch)
        if pixels.dtype != np.uint8 or pixels.shape[1:] != (self.size, self.size, 3):
            raise InputError(
                f"{self.name} encodes images (n, {self.size}, {self.size}, 3) of uint8, got {pixels.dtype} "
                f"{pixels.shape}: decode them with read_images(paths, {self.size})."
            )
        return pixels

    def _features(self, batch: Any) -> np.ndarray:
        try:
            features = np.asarray(self.run(batch))
        except HotshotError:
            raise
        except (Exception, SystemExit) as error:
            raise InputError(f"{self.name} fails on {self.kind} ({reason(error)}): fix it.") from None
        wanted = (len(batch), features.shape[-1] if self.width is None and features.ndim else self.width)
        if features.shape != wanted or not features.size or features.dtype.kind not in "fiu":
            raise InputError(
                f"{self.name} must return features ({len(batch)}, {self.width or 'V'}) of {len(batch)} {self.kind}, "
                f"got {features.dtype} {features.shape}: fix it."
            )
        features = features.astype(np.float32, copy=False)
        if not np.isfinite(features).all():
            raise InputError(f"{self.name} returned NaN or infinity: check its weights and the {self.kind}.")
        return features


def text_encoder(name: str, extractor: str, embed: Callable[[list[str]], Any]) -> Encoder:
    """The encoder of a function from texts to features, tested on synthetic texts; headers name it `extractor`."""
    untried = Encoder(name, TEXTS, None, {}, embed)
    # A single text, which a careless squeeze takes the axis of, and two.
    features = untried.encode([_PROBE_TEXT])
    found = _probed(untried, features)
    found.encode([_PROBE_TEXT, "Hello"])
    unit = abs(float(np.linalg.norm(features)) - 1) < 1e-3
    about: dict[str, Any] = {"extractor": extractor, "transform": "unit norm" if unit else "none", "network": {}}
    return _with_header(found, about)


def image_encoder(name: str, extractor: Extractor, device: str, notes: Sequence[str] = ()) -> Encoder:
    """The encoder of a network that was tested on synthetic images."""
    import torch

    def run(pixels: np.ndarray) -> np.ndarray:
        inputs = torch.from_numpy(np.array(pixels)).permute(0, 3, 1, 2).to(device)
        with torch.inference_mode():
            return extractor.network(extractor.prepare(inputs)).float().cpu().numpy()

    encoder = Encoder(name, IMAGES, extractor.size, {}, run, notes=tuple(notes), extractor=extractor)
    found = _probed(encoder, encoder.encode(_probe_image(extractor.size)))
    return _with_header(found, {"extractor": extractor.name, "transform": "none", "network": extractor.about})


def _with_header(encoder: Encoder, about: dict[str, Any]) -> Encoder:
    return replace(encoder, about={**about, "network": {**about["network"], "probe": list(encoder.probe)}})


def _probe_image(side: int) -> np.ndarray:
    """One image (1, side, side, 3) of rings around a corner, from integers: identical on every processor."""
    x, y, channel = np.ogrid[:side, :side, 1:4]
    return ((x * x + 2 * y * y) * channel * 4 // side % 256).astype(np.uint8)[None]


def _probed(encoder: Encoder, features: np.ndarray) -> Encoder:
    """The encoder with its probe: sums of all features, as single features are often zero after a ReLU."""
    row = features[0].astype(np.float64)
    waves = np.cos(np.outer(np.arange(1, _PROBE_LENGTH + 1), np.arange(len(row)) + 0.5))
    probe = tuple(float(f"{x:.7g}") for x in waves @ row / np.sqrt(len(row)))
    return replace(encoder, probe=probe, width=len(row))
