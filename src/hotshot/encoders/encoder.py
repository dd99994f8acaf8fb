"""The interface of all encoders: a checked function from texts or images to features."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hotshot.arrays import slices
from hotshot.errors import HotshotError, InputError, ParameterError
from hotshot.formatting import quoted, reason

TEXTS, IMAGES = "texts", "images"
# Inputs that a network takes at once.
AT_ONCE = {TEXTS: 256, IMAGES: 128}
# Two probes of one encoder differ by rounding only, on a GPU to about a thousandth; other weights change all of it.
TOLERANCE = 3e-3
_PROBE_TEXTS = ["The quick brown fox jumps over the lazy dog.", "Hello"]
_PROBE_LENGTH = 16


@dataclass(frozen=True, eq=False)
class Encoder:
    """A function from texts or images to features, with what a saved model needs to load it again.

    ``name`` loads it again, from any folder. Its inputs are of the ``kind`` "texts", or "images" with a side of
    ``size`` pixels. ``run`` takes a batch of them to an array (n, V) of that ``width``, None before the first call;
    ``probe`` are a few numbers computed from its features of a fixed input, to recognise it. ``about`` is for the
    header of feature files: "extractor", "transform" and "network"; ``notes`` are remarks on how it was loaded.
    """

    name: str
    kind: str
    size: int | None
    about: dict[str, Any]
    run: Callable[[Any], Any] = field(repr=False)
    probe: tuple[float, ...] = field(default=(), repr=False)
    width: int | None = None
    notes: tuple[str, ...] = field(default=(), repr=False)

    def encode(self, batch: Any) -> np.ndarray:
        """Finite features (n, V) in float32 of a list of texts, or of images (n, size, size, 3) in uint8."""
        batch = self._checked(batch)
        features = [self._features(batch[rows]) for rows in slices(len(batch), AT_ONCE[self.kind])]
        return np.concatenate(features) if features else np.empty((0, self.width or 0), np.float32)

    def same_as(self, probe: Sequence[float]) -> bool:
        """Whether the probe of a saved model is that of this encoder, up to rounding."""
        try:
            saved = np.asarray(probe, dtype=np.float64)
        except (TypeError, ValueError):
            return False
        new = np.asarray(self.probe)
        return saved.shape == new.shape and bool(np.linalg.norm(saved - new) <= TOLERANCE * np.linalg.norm(new))

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


def tried_encoder(
    name: str,
    extractor: str,
    run: Callable[[Any], Any],
    size: int | None = None,
    about: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
) -> Encoder:
    """The encoder of a function from texts, or from images of this size; `about` describes its network.

    It is tried on two synthetic inputs, and on one, which a careless squeeze takes the axis of. The probe are sums of
    all features, as single features are often zero after a ReLU.
    """
    encoder = Encoder(name, TEXTS if size is None else IMAGES, size, {}, run, notes=tuple(notes))
    two = _PROBE_TEXTS if size is None else _probe_images(size)
    encoder.encode(two)
    row = encoder.encode(two[:1])[0]
    waves = np.cos(np.outer(np.arange(1, _PROBE_LENGTH + 1), np.arange(len(row)) + 0.5))
    probe = tuple(float(f"{x:.7g}") for x in waves @ row.astype(np.float64) / np.sqrt(len(row)))
    is_unit = size is None and abs(float(np.linalg.norm(row)) - 1) < 1e-3
    header = {
        "extractor": extractor,
        "transform": "unit norm" if is_unit else "none",
        "network": {**(about or {}), "probe": list(probe)},
    }
    return replace(encoder, about=header, probe=probe, width=len(row))


def _probe_images(side: int) -> np.ndarray:
    """Two images (2, side, side, 3) of rings around a corner, from integers: identical on every processor."""
    x, y, channel = np.ogrid[:side, :side, 1:4]
    rings = ((x * x + 2 * y * y) * channel * 4 // side % 256).astype(np.uint8)
    return np.stack([rings, 255 - rings])


def network_encoder(
    name: str,
    extractor: str,
    network: Callable[[Any], Any],
    size: int,
    about: Mapping[str, Any],
    device: str,
    notes: Sequence[str] = (),
    prepare: Callable[[Any], Any] | None = None,
) -> Encoder:
    """The encoder of a network of PyTorch, whose maps (batch, V, h, w) are averaged over h and w.

    `prepare` makes its inputs of pixels (batch, 3, size, size) in uint8; by default it takes their centre of side
    `about["size"]`, normalised by the "mean" and "deviation" there, if given.
    """
    import torch

    from hotshot.backbones.networks import as_input

    normalisation = {key: about[key] for key in ("mean", "deviation") if key in about}
    _check_normalisation(**normalisation)

    def centred(pixels: Any) -> Any:
        return as_input(pixels, about["size"], **normalisation)

    def run(pixels: np.ndarray) -> np.ndarray:
        inputs = (prepare or centred)(torch.from_numpy(np.array(pixels)).permute(0, 3, 1, 2).to(device))
        shape = tuple(inputs.shape)
        try:
            with torch.inference_mode():
                output = network(inputs)
                features = output.mean(dim=(2, 3)) if output.ndim == 4 else output
        except (Exception, SystemExit) as error:
            raise InputError(
                f"{extractor} fails on images {shape} ({reason(error)}): pass the size it is made for, or let it "
                "return features (batch, V) or maps (batch, V, h, w)."
            ) from None
        return features.float().cpu().numpy()

    return tried_encoder(name, extractor, run, size, about, notes)


def _check_normalisation(mean: Sequence[float] = (0, 0, 0), deviation: Sequence[float] = (1, 1, 1)) -> None:
    """Raise unless mean and deviation are valid for three channels."""
    try:
        numbers = np.array([mean, deviation], dtype=np.float32)
    except (TypeError, ValueError):
        numbers = np.empty(0, dtype=np.float32)
    if numbers.shape != (2, 3) or not np.isfinite(numbers).all() or not (numbers[1] > 0).all():
        raise ParameterError(f"mean and deviation must be three numbers, deviations above 0, got {mean}, {deviation}.")
