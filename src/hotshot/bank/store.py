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

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.bank.covariances import COVARIANCE_FORMS, Dense, Factored, Joined, diagonal, low_rank
from hotshot.bank.space import FeatureTransform, PreparedBase, Space
from hotshot.bank.statistics import Bucket, FeatureSpace, check_feature_space
from hotshot.errors import InputError, ParameterError
from hotshot.files.atomic import recover
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

if TYPE_CHECKING:
    from hotshot.bank.bank import BaseClasses

# Version 2 had types of their own for diagonal and low-rank covariances.
WHAT, VERSIONS = "bank", range(2, 4)
DESCRIPTION, SAMPLES, FEATURES = "bank.json", "samples.safetensors", "features.safetensors"
REMEDY = "make one with BaseClasses.save or hotshot convert"
# How far the mass of a class may be from 1, in single precision.
MASS_TOLERANCE = 1e-3
_TYPES: dict[str, Any] = {t.__name__: t for t in (PreparedBase, Bucket, FeatureTransform, Dense, Factored, Joined)}
_TYPES |= {"Diagonal": diagonal, "LowRank": low_rank}
# Shapes of the arrays: B classes, V features, A axes; b classes of a part, with up to J rows. "?" stands for None.
_SHAPES: dict[type, dict[str, str]] = {
    PreparedBase: {"means": "BA", "weighted_means": "BA", "mean_units": "BA", "spectrum": "A", "ones": "A"},
    FeatureTransform: {"axes": "VA", "centre": "?V"},
    Bucket: {"units": "bJA", "mass": "bJ"},
    Dense: {"matrices": "bAA"},
    Factored: {"rows": "bJA", "lengths": "?bJ", "means": "?bA", "scales": "bJ", "diagonal": "?bA"},
}
_LARGE, _NOT_NEGATIVE = ("units", "rows", "matrices"), ("spectrum", "scales", "diagonal")
_KINDS = {
    "names": list, "counts": list, "n_features": int, "about": dict, "spaces": list, "centres": dict, "choices": dict,
}  # fmt: skip


def is_bank(path: str | Path) -> bool:
    """Whether a folder holds the description of a bank."""
    return os.path.isfile(recover(path) / DESCRIPTION)


def check_about(about: Mapping[str, Any] | None) -> None:
    """Raise unless ``about`` can be written as JSON."""
    try:
        json.dumps(about)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"about must hold only what JSON can: text, numbers, lists and dicts ({error}).") from None


def write_bank(
    folder: Path, bank: BaseClasses, samples: np.ndarray | None, spaces: Mapping[Space, PreparedBase], content_hash: str
) -> None:
    """Write a bank with these parts to an existing folder; samples that it holds already are not written again."""
    if samples is None:
        (folder / SAMPLES).unlink(missing_ok=True)
    elif not (folder / SAMPLES).exists():
        write_tensors(folder / SAMPLES, {"samples": samples}, {})
    names = bank.names.tolist()
    if bank.names.dtype.kind not in "OUiufb" or not all(isinstance(name, (str, int, float)) for name in names):
        raise InputError(f"Class names must be text or numbers to be saved, got {bank.names.dtype}: convert them.")
    check_about(bank.about)
    entries = []
    for number, (space, prepared) in enumerate(spaces.items()):
        tensors: dict[str, np.ndarray] = {}
        content = to_json(replace(prepared, names=np.empty(0), counts=np.empty(0)), "base", tensors)
        # The bank has them.
        del tensors[content.pop("counts")["tensor"]]
        file = f"space-{number}.safetensors"
        write_tensors(folder / file, tensors, {"content": json.dumps(content)})
        entries.append({"file": file, "space": {name: to_json(x, name, {}) for name, x in asdict(space).items()}})
    features: dict[str, np.ndarray] = {}
    feature_space = to_json(bank.feature_space, "features", features)
    if features:
        write_tensors(folder / FEATURES, features, {})
    description = {
        "format": f"hotshot {WHAT}",
        "version": VERSIONS[-1],
        "hotshot": __version__,
        "n_features": int(bank.n_features),
        "dtype": str(bank.dtype),
        "smallest": float(bank.smallest),
        "samples": None if samples is None else SAMPLES,
        "content_hash": content_hash,
        "spaces": entries,
        "centres": {repr(float(power)): centre.tolist() for power, centre in bank.centres.items()},
        "about": bank.about,
        "choices": bank.choices,
        "feature_space": feature_space,
        "counts": bank.counts.tolist(),
        "names": names,
    }
    files = [SAMPLES, FEATURES, *(f"space-{number}.safetensors" for number in range(len(spaces)))]
    write_sealed(folder, DESCRIPTION, description, [file for file in files if (folder / file).exists()])


def read_bank(path: str | Path) -> dict[str, Any]:
    """The parts of a bank from its folder, as ``BaseClasses`` takes them; large arrays are views of the files."""
    folder = Path(path)

    def read() -> dict[str, Any]:
        description = read_json_document(folder, DESCRIPTION, WHAT, REMEDY, VERSIONS)
        with refuse_damage(folder, WHAT):
            parts = _parts(folder, description)
            check_sealed(folder, description)
        return parts

    return read_folder(folder, read)


def _parts(folder: Path, description: dict[str, Any]) -> dict[str, Any]:
    # Banks of before have no choices.
    description = {"choices": {}, **description}
    _check_description(description)
    names, counts = np.array(description["names"]), np.array(description["counts"], dtype=np.int64)
    width, dtype = description["n_features"], np.dtype(description["dtype"])
    samples = feature_space = None
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
    need(samples is not None or bool(spaces), "there are neither samples nor statistics")
    # Banks of few classes have none.
    if description.get("feature_space") is not None:
        tensors = map_tensors(file_in_folder(folder, FEATURES)).tensors
        feature_space = from_json(description["feature_space"], tensors, {FeatureSpace.__name__: FeatureSpace})
        check_feature_space(feature_space, width)
    return {
        "names": names,
        "counts": counts,
        "samples": samples,
        "n_features": width,
        "dtype": dtype,
        "spaces": spaces,
        "centres": {float(power): np.array(c, dtype=np.float64) for power, c in description["centres"].items()},
        "feature_space": feature_space,
        **{key: description[key] for key in ("smallest", "about", "choices", "content_hash")},
    }


def _is_number(value: Any) -> bool:
    """Whether a value from JSON is a finite number."""
    return type(value) in (int, float) and math.isfinite(value)


def _check_description(description: dict[str, Any]) -> None:
    """Raise unless names, counts and the rest of a bank's description have the right types."""
    for key, kind in _KINDS.items():
        need(type(description[key]) is kind, f"{key} is not of type {kind.__name__}")
    names, counts, centres, width = (description[key] for key in ("names", "counts", "centres", "n_features"))
    need(0 < len(names) == len(counts), "names and counts differ in length")
    need(len(set(names)) == len(names), "a class name appears twice")
    are_numbers = all(type(name) is bool or _is_number(name) for name in names)
    need(are_numbers or all(isinstance(name, str) for name in names), "class names mix text and numbers")
    need(width > 0 and all(type(count) is int and count > 0 for count in counts), "counts are not positive integers")
    need(description["dtype"] in ("float32", "float64"), "dtype is neither float32 nor float64")
    need(_is_number(description["smallest"]), "smallest is not a number")
    need(re.fullmatch("[0-9a-f]{64}", description["content_hash"]), "content_hash is not a SHA-256")
    for power, centre in centres.items():
        is_vector = isinstance(centre, list) and len(centre) == width and all(map(_is_number, centre))
        need(is_vector and math.isfinite(float(power)), "a centre is not a vector of a power")


def _sound_space(values: dict[str, Any]) -> Space:
    """A space from JSON; raise unless all of its parameters are present and valid."""
    need(set(values) == {field.name for field in fields(Space)}, "a space has unknown or missing parameters")
    space = Space(**values)
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
    axes, transform = len(prepared.spectrum), prepared.transform
    need(0 < axes <= width, "there are more axes than features")
    is_number_of_axes = type(space.n_components) is int
    need(axes == space.n_components or not is_number_of_axes, "the number of axes differs from n_components")
    need(
        isinstance(transform, FeatureTransform)
        and _is_scale(transform.scale, dtype)
        and (transform.power, transform.offset) == (space.power, space.power_offset * transform.scale)
        and (transform.unit or transform.scale == 1)
        and transform.unit is (space.normalize is not None)
        and (transform.centre is None) is not transform.unit,
        "a transform does not match its space",
    )
    sizes = {"B": len(counts), "V": width, "A": axes}
    _check_arrays(prepared, sizes, dtype)
    _check_arrays(transform, sizes, dtype)
    covariances, buckets = prepared.covariances, prepared.buckets
    parts: Any = [(covariances, np.arange(len(counts)))]
    if isinstance(covariances, Joined):
        parts = list(zip(covariances.parts, covariances.classes, strict=True))
    _check_classes([classes for _, classes in parts], len(counts))
    for part, classes in parts:
        need(isinstance(part, (Dense, Factored)), "covariances have the wrong type")
        _check_arrays(part, {**sizes, "b": len(classes)}, dtype)
    are_buckets = isinstance(buckets, tuple) and all(isinstance(bucket, Bucket) for bucket in buckets)
    need(are_buckets, "buckets have the wrong type")
    if buckets:
        _check_classes([bucket.classes for bucket in buckets], len(counts))
    for bucket in buckets:
        _check_arrays(bucket, {**sizes, "b": len(bucket.classes), "J": int(counts[bucket.classes].max())}, dtype)
        is_one = np.abs(bucket.mass.sum(axis=1) - 1) < MASS_TOLERANCE
        need(is_one.all() and (bucket.mass >= 0).all(), "the sample weights of a class do not sum to 1")


def _check_arrays(value: Any, sizes: Mapping[str, int], dtype: np.dtype) -> None:
    """Raise unless the arrays of a part have the shapes of the table, this dtype and sound numbers."""
    for name, letters in _SHAPES[type(value)].items():
        x = getattr(value, name)
        if x is None and letters[0] == "?":
            continue
        letters = letters.removeprefix("?")
        # Sizes that nothing has set yet are those of the first array.
        sizes = {**dict(zip(letters, x.shape, strict=True)), **sizes}
        shape = tuple(sizes[letter] for letter in letters)
        is_half = name == "rows" and value.means is None and x.dtype == np.float16
        fits = isinstance(x, np.ndarray) and x.shape == shape and (x.dtype == dtype or is_half)
        need(fits, f"{name} is not {dtype} of shape {shape}")
        need(name in _LARGE or np.isfinite(x).all(), f"{name} holds NaN or infinity")
        need(name not in _NOT_NEGATIVE or (x >= 0).all(), f"{name} has a negative entry")


def _is_scale(scale: Any, dtype: np.dtype) -> bool:
    """Whether this is a power of two within the range of this type."""
    fraction, exponent = math.frexp(scale) if _is_number(scale) else (0.0, 0)
    return fraction == 0.5 and abs(exponent) < np.finfo(dtype).maxexp


def _check_classes(parts: Any, count: int) -> None:
    """Raise unless each class is in exactly one part."""
    are_indices = all(isinstance(x, np.ndarray) and x.dtype == np.int64 and x.ndim == 1 for x in parts)
    need(are_indices, "class indices have the wrong type")
    need(np.array_equal(np.sort(np.concatenate(parts)), np.arange(count)), "class indices do not match the bank")
