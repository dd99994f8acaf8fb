"""Banks as folders: ``bank.json`` describes the bank, safetensors files hold the numbers and are mapped into memory.

============================  ==========================================================================
``bank.json``                 format, names and counts of the classes, spaces that are prepared, origin
``samples.safetensors``       samples (sum(counts), V), class by class; absent in a bank of statistics
``space-0.safetensors``, …    one prepared space each: transform, statistics, samples in its axes
``features.safetensors``      usual norms and directions of the samples; absent in a bank of few classes
============================  ==========================================================================

Files may be truncated or edited, so all parts of a bank are checked against each other. Large arrays are not read
for this: samples, their unit vectors and dense covariances are checked by their shapes only.
"""

import json
import math
import re
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.bank.covariances import COVARIANCE_FORMS, Dense, Diagonal, Factored, Joined
from hotshot.bank.feature_space import FeatureSpace, check_feature_space
from hotshot.bank.low_rank import LowRank
from hotshot.bank.space import FeatureTransform, PreparedBase, Space
from hotshot.bank.statistics import Bucket
from hotshot.errors import InputError, ParameterError
from hotshot.files.objects import (
    check_sealed,
    file_in_folder,
    from_json,
    need,
    read_folder,
    read_json_document,
    refuse_damage,
    to_json,
    write_sealed,
)
from hotshot.files.tensors import map_tensors, write_tensors
from hotshot.version import __version__

WHAT, VERSION = "bank", 2
DESCRIPTION, SAMPLES, FEATURES = "bank.json", "samples.safetensors", "features.safetensors"
REMEDY = "make one with BaseClasses.save or hotshot convert"
# How far the mass of a class may be from 1, in single precision.
MASS_TOLERANCE = 1e-3
_TYPES = {t.__name__: t for t in (PreparedBase, Bucket, FeatureTransform, Dense, Diagonal, LowRank, Factored, Joined)}


@dataclass(frozen=True)
class StoredBank:
    """The content of a folder; samples are None in a bank of statistics."""

    names: np.ndarray
    counts: np.ndarray
    samples: np.ndarray | None
    n_features: int
    dtype: np.dtype
    smallest: float
    spaces: dict[Space, PreparedBase] = field(default_factory=dict)
    centres: dict[float, np.ndarray] = field(default_factory=dict)
    content_hash: str = ""
    about: dict[str, Any] = field(default_factory=dict)
    choices: dict[str, Any] = field(default_factory=dict)
    feature_space: FeatureSpace | None = None


def write_bank(folder: Path, bank: StoredBank) -> None:
    """Write all parts of a bank to an existing folder; samples that it holds already are not written again."""
    if bank.samples is None:
        (folder / SAMPLES).unlink(missing_ok=True)
    elif not (folder / SAMPLES).exists():
        write_tensors(folder / SAMPLES, {"samples": bank.samples}, {})
    if bank.names.dtype.kind not in "OUiufb" or not all(isinstance(n, (str, int, float)) for n in bank.names.tolist()):
        raise InputError(f"Class names must be text or numbers to be saved, got {bank.names.dtype}: convert them.")
    spaces = []
    for number, (space, prepared) in enumerate(bank.spaces.items()):
        tensors: dict[str, np.ndarray] = {}
        content = to_json(replace(prepared, names=np.empty(0), counts=np.empty(0)), "base", tensors)
        # The bank has them.
        del tensors[content.pop("counts")["tensor"]]
        write_tensors(folder / f"space-{number}.safetensors", tensors, {"content": json.dumps(content)})
        plain = {name: to_json(value, name, {}) for name, value in asdict(space).items()}
        spaces.append({"file": f"space-{number}.safetensors", "space": plain})
    features: dict[str, np.ndarray] = {}
    feature_space = to_json(bank.feature_space, "features", features)
    if features:
        write_tensors(folder / FEATURES, features, {})
    description = {
        "format": f"hotshot {WHAT}",
        "version": VERSION,
        "hotshot": __version__,
        "n_features": int(bank.n_features),
        "dtype": str(bank.dtype),
        "smallest": float(bank.smallest),
        "samples": None if bank.samples is None else SAMPLES,
        "content_hash": bank.content_hash,
        "spaces": spaces,
        "centres": {repr(float(power)): centre.tolist() for power, centre in bank.centres.items()},
        "about": bank.about,
        "choices": bank.choices,
        "feature_space": feature_space,
        "counts": bank.counts.tolist(),
        "names": bank.names.tolist(),
    }
    check_about(bank.about)
    files = {SAMPLES: bank.samples is not None, FEATURES: features, **{str(entry["file"]): True for entry in spaces}}
    write_sealed(folder, DESCRIPTION, description, [file for file, is_there in files.items() if is_there])


def check_about(about: dict[str, Any] | None) -> None:
    """Raise unless ``about`` can be written as JSON."""
    try:
        json.dumps(about)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"about must hold only what JSON can: text, numbers, lists and dicts ({error}).") from None


def read_bank(path: str | Path) -> StoredBank:
    """A bank from its folder; its large arrays are views of the files."""
    folder = Path(path)

    def read() -> StoredBank:
        description = read_json_document(folder, DESCRIPTION, WHAT, REMEDY, VERSION)
        with refuse_damage(folder, WHAT):
            bank = _stored(folder, description)
            check_sealed(folder, description)
        return bank

    return read_folder(folder, read)


def _stored(folder: Path, description: dict[str, Any]) -> StoredBank:
    _check_description(description)
    names = np.array(description["names"])
    counts = np.array(description["counts"], dtype=np.int64)
    width, dtype = description["n_features"], np.dtype(description["dtype"])
    samples = None
    if description["samples"] is not None:
        need(description["samples"] == SAMPLES, "samples are in another file")
        samples = map_tensors(file_in_folder(folder, SAMPLES)).tensors["samples"]
        expected = (sum(description["counts"]), width)
        need(samples.shape == expected, f"samples have shape {samples.shape} and not {expected}")
        need(samples.dtype == dtype, f"samples are {samples.dtype} and not {dtype}")
    spaces = {}
    for entry in description["spaces"]:
        file = map_tensors(file_in_folder(folder, entry["file"]))
        prepared = from_json(json.loads(file.metadata["content"]), file.tensors, _TYPES)
        space = _sound_space(entry["space"])
        _check_prepared(prepared, space, counts, width, dtype)
        spaces[space] = replace(prepared, names=names, counts=counts)
    feature_space = None
    # Banks of few classes have none.
    if description.get("feature_space") is not None:
        tensors = map_tensors(file_in_folder(folder, FEATURES)).tensors
        feature_space = from_json(description["feature_space"], tensors, {FeatureSpace.__name__: FeatureSpace})
        check_feature_space(feature_space, width)
    need(samples is not None or bool(spaces), "there are neither samples nor statistics")
    return StoredBank(
        names=names,
        counts=counts,
        samples=samples,
        spaces=spaces,
        centres={float(power): np.array(c, dtype=np.float64) for power, c in description["centres"].items()},
        n_features=width,
        dtype=dtype,
        smallest=float(description["smallest"]),
        content_hash=description["content_hash"],
        about=description["about"],
        choices=description.get("choices", {}),
        feature_space=feature_space,
    )


def _is_number(value: Any) -> bool:
    """Whether a value from JSON is a finite number."""
    return type(value) in (int, float) and math.isfinite(value)


def _check_description(found: dict[str, Any]) -> None:
    """Raise unless names, counts and the rest of a bank's description have the right types."""
    kinds = {"names": list, "counts": list, "n_features": int, "about": dict, "spaces": list, "centres": dict}
    for key, kind in kinds.items():
        need(type(found[key]) is kind, f"{key} is not of type {kind.__name__}")
    names, counts, centres, width = found["names"], found["counts"], found["centres"], found["n_features"]
    texts, truths = ([isinstance(name, kind) for name in names] for kind in (str, bool))
    need(0 < len(names) == len(counts), "names and counts differ in length")
    need(len(set(names)) == len(names), "a class name appears twice")
    numbers = all(t or _is_number(n) for t, n in zip(truths, names, strict=True))
    need(all(texts) or numbers, "class names mix text and numbers")
    need(width > 0 and all(type(count) is int and count > 0 for count in counts), "counts are not positive integers")
    need(type(found.get("choices", {})) is dict, "choices is not of type dict")
    need(found["dtype"] in ("float32", "float64"), "dtype is neither float32 nor float64")
    need(_is_number(found["smallest"]), "smallest is not a number")
    need(bool(re.fullmatch("[0-9a-f]{64}", found["content_hash"])), "content_hash is not a SHA-256")
    need(all(map(math.isfinite, map(float, centres))), "the power of a centre is not a number")
    vectors = (isinstance(c, list) and len(c) == width and all(map(_is_number, c)) for c in centres.values())
    need(all(vectors), "a centre has the wrong length")


def _sound_space(found: dict[str, Any]) -> Space:
    """A space from JSON; raise unless all of its parameters are present and valid."""
    need(set(found) == {field.name for field in fields(Space)}, "a space has unknown or missing parameters")
    space = Space(**found)
    need(
        all(map(_is_number, (space.power, space.power_offset, space.temperature)))
        and type(space.power_on_base) is bool
        and space.normalize in (None, "centre-l2")
        and (space.n_components is None or _is_number(space.n_components))
        and space.sample_weights in ("uniform", "classifier")
        and space.covariance in COVARIANCE_FORMS,
        "a space has an invalid parameter",
    )
    return space


def _check_prepared(prepared: Any, space: Space, counts: np.ndarray, width: int, dtype: np.dtype) -> None:
    """Raise unless the parts of a prepared space match each other, the space and the bank."""
    need(isinstance(prepared, PreparedBase), "a prepared space has the wrong type")
    n_classes, axes = len(counts), len(prepared.spectrum)
    need(0 < axes <= width, "there are more axes than features")
    if isinstance(space.n_components, int):
        need(axes == space.n_components, "the number of axes differs from n_components")
    for values in (prepared.means, prepared.weighted_means, prepared.mean_units):
        _check_array(values, (n_classes, axes), dtype, finite=True)
    for values in (prepared.spectrum, prepared.ones):
        _check_array(values, (axes,), dtype, finite=True)
    need(bool((prepared.spectrum >= 0).all()), "a variance is negative")
    _check_transform(prepared.transform, space, (width, axes), dtype)
    _check_covariances(prepared.covariances, n_classes, axes, dtype)
    _check_buckets(prepared.buckets, counts, axes, dtype)


def _check_array(x: Any, shape: tuple[int, ...], dtype: np.dtype, finite: bool = False) -> None:
    fits = isinstance(x, np.ndarray) and x.shape == shape and x.dtype == dtype
    need(fits, f"an array is not {dtype} of shape {shape}")
    need(not finite or bool(np.isfinite(x).all()), "an array holds NaN or infinity")


def _check_transform(transform: Any, space: Space, shape: tuple[int, int], dtype: np.dtype) -> None:
    need(isinstance(transform, FeatureTransform), "a transform has the wrong type")
    need(
        _is_scale(transform.scale, dtype)
        and (transform.power, transform.offset) == (space.power, space.power_offset * transform.scale)
        and (transform.unit or transform.scale == 1)
        and transform.unit is (space.normalize is not None)
        and (transform.centre is None) is not transform.unit,
        "a transform does not match its space",
    )
    _check_array(transform.axes, shape, dtype, finite=True)
    if transform.centre is not None:
        _check_array(transform.centre, shape[:1], dtype, finite=True)


def _is_scale(scale: Any, dtype: np.dtype) -> bool:
    """Whether this is a power of two within the range of this type."""
    fraction, exponent = math.frexp(scale) if _is_number(scale) else (0.0, 0)
    return fraction == 0.5 and abs(exponent) < np.finfo(dtype).maxexp


def _check_covariances(found: Any, count: int, axes: int, dtype: np.dtype) -> None:
    if isinstance(found, Joined):
        need(len(found.parts) == len(found.classes), "covariances and their classes differ in number")
        for part, classes in zip(found.parts, found.classes, strict=True):
            need(not isinstance(part, Joined), "joined covariances are nested")
            _check_covariances(part, len(classes), axes, dtype)
        _check_classes(found.classes, count)
    elif isinstance(found, Dense):
        _check_array(found.matrices, (count, axes, axes), dtype)
    elif isinstance(found, LowRank):
        rank = found.leading.shape[1]
        _check_array(found.rows, (count, rank, axes), np.dtype(np.float16))
        for values, shape in ((found.leading, (count, rank)), (found.rest, (count, axes))):
            _check_array(values, shape, dtype, finite=True)
            need(bool((values >= 0).all()), "a variance is negative")
    elif isinstance(found, Diagonal):
        _check_array(found.variances, (count, axes), dtype, finite=True)
        need(bool((found.variances >= 0).all()), "a variance is negative")
    else:
        need(isinstance(found, Factored), "covariances have the wrong type")
        size = found.rows.shape[1]
        _check_array(found.rows, (count, size, axes), dtype)
        _check_array(found.means, (count, axes), dtype, finite=True)
        _check_array(found.scales, (count, size), dtype, finite=True)
        if found.lengths is not None:
            _check_array(found.lengths, (count, size), dtype, finite=True)


def _check_buckets(buckets: Any, counts: np.ndarray, axes: int, dtype: np.dtype) -> None:
    need(isinstance(buckets, tuple) and all(isinstance(b, Bucket) for b in buckets), "buckets have the wrong type")
    if not buckets:
        return
    _check_classes([bucket.classes for bucket in buckets], len(counts))
    for bucket in buckets:
        size = int(counts[bucket.classes].max())
        _check_array(bucket.units, (len(bucket.classes), size, axes), dtype)
        _check_array(bucket.mass, (len(bucket.classes), size), dtype)
        whole = np.abs(bucket.mass.sum(axis=1) - 1) < MASS_TOLERANCE
        need(bool(whole.all() and (bucket.mass >= 0).all()), "the sample weights of a class do not sum to 1")


def _check_classes(parts: Any, count: int) -> None:
    """Raise unless each class is in exactly one part."""
    fits = all(isinstance(x, np.ndarray) and x.dtype == np.int64 and x.ndim == 1 for x in parts)
    need(fits, "class indices have the wrong type")
    together = np.sort(np.concatenate(parts))
    need(np.array_equal(together, np.arange(count)), "class indices do not match the bank")
