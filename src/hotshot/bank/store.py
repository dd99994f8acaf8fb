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
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.bank.covariances import Bucket, Dense, Factored, Joined
from hotshot.bank.space import FeatureSpace, FeatureTransform, PreparedBase, Space, check_feature_space
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

WHAT, VERSION = "bank", 3
DESCRIPTION, SAMPLES, FEATURES = "bank.json", "samples.safetensors", "features.safetensors"
REMEDY = "make one with BaseClasses.save or hotshot convert"
# How far the mass of a class may be from 1, in single precision.
MASS_TOLERANCE = 1e-3
_TYPES: dict[str, Any] = {t.__name__: t for t in (Bucket, FeatureTransform, FeatureSpace, Dense, Factored, Joined)}
# Not in the file of a space: the bank has them.
NOT_SAVED = ("names", "counts")


def _is_number(value: Any) -> bool:
    """Whether a value from JSON is a finite number."""
    return type(value) in (int, float) and math.isfinite(value)


def _are_names(names: Any) -> bool:
    """Whether these are different texts, or different numbers."""
    are_numbers = all(type(name) is bool or _is_number(name) for name in names)
    is_one_type = are_numbers or all(isinstance(name, str) for name in names)
    return type(names) is list and is_one_type and len(set(names)) == len(names) > 0


# What the description of a bank holds. Of a space nothing is checked: a fit that looks for another one prepares it.
_DESCRIPTION: dict[str, Callable[[Any], Any]] = {
    "names": _are_names,
    "counts": lambda x: type(x) is list and all(type(count) is int and count > 0 for count in x),
    "n_features": lambda x: type(x) is int and x > 0,
    "dtype": lambda x: x in ("float32", "float64"),
    "smallest": _is_number,
    "samples": lambda x: x in (None, SAMPLES),
    "content_hash": re.compile("[0-9a-f]{64}").fullmatch,
    "spaces": lambda x: type(x) is list,
    "centres": lambda x: all(math.isfinite(float(power)) and all(map(_is_number, x[power])) for power in x),
    "about": lambda x: type(x) is dict,
    "choices": lambda x: type(x) is dict,
}
# Shapes of the arrays: B classes, V features, A axes; b classes of a part, with up to J rows. "?" stands for None.
_SHAPES: dict[type, dict[str, str]] = {
    PreparedBase: {"means": "BA", "weighted_means": "BA", "mean_units": "BA", "spectrum": "A"},
    FeatureTransform: {"axes": "VA", "centre": "?V"},
    Bucket: {"units": "bJA", "mass": "bJ"},
    Dense: {"matrices": "bAA"},
    Factored: {"rows": "bJA", "lengths": "?bJ", "means": "?bA", "scales": "bJ", "diagonal": "?bA"},
}
# Large arrays are not read for checks.
_LARGE, _NOT_NEGATIVE = ("units", "rows", "matrices"), ("spectrum", "scales", "diagonal", "mass")


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
    names = bank.names.tolist()
    if bank.names.dtype.kind not in "OUiufb" or not all(isinstance(name, (str, int, float)) for name in names):
        raise InputError(f"Class names must be text or numbers to be saved, got {bank.names.dtype}: convert them.")
    check_about(bank.about)
    if samples is None:
        (folder / SAMPLES).unlink(missing_ok=True)
    elif not (folder / SAMPLES).exists():
        write_tensors(folder / SAMPLES, {"samples": samples}, {})
    entries = []
    for number, (space, prepared) in enumerate(spaces.items()):
        parts = {f.name: getattr(prepared, f.name) for f in fields(prepared) if f.name not in NOT_SAVED}
        tensors: dict[str, np.ndarray] = {}
        content = {name: to_json(part, f"base.{name}", tensors) for name, part in parts.items()}
        file = f"space-{number}.safetensors"
        write_tensors(folder / file, tensors, {"content": json.dumps(content)})
        entries.append({"file": file, "space": {name: to_json(x, name, {}) for name, x in asdict(space).items()}})
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
        "smallest": bank.smallest,
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
    write_sealed(folder, DESCRIPTION, description, sorted(file.name for file in folder.glob("*.safetensors")))


def read_bank(path: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields of a bank from its folder, and those that it would compute; large arrays are views of the files."""
    folder = Path(path)

    def read() -> tuple[dict[str, Any], dict[str, Any]]:
        description = read_json_document(folder, DESCRIPTION, WHAT, REMEDY, VERSION)
        with refuse_damage(folder, WHAT):
            parts = _checked_parts(folder, description)
            check_sealed(folder, description)
        return parts

    return read_folder(folder, read)


def _checked_parts(folder: Path, description: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    for name, is_sound in _DESCRIPTION.items():
        need(is_sound(description[name]), f"{name} is invalid")
    names, counts = np.array(description["names"]), np.array(description["counts"], dtype=np.int64)
    need(len(names) == len(counts), "names and counts differ in length")
    width, dtype = description["n_features"], np.dtype(description["dtype"])
    centres = {float(power): np.array(c, dtype=np.float64) for power, c in description["centres"].items()}
    need(all(centre.shape == (width,) for centre in centres.values()), "centres is invalid")
    samples = feature_space = None
    if description["samples"] is not None:
        samples = map_tensors(file_in_folder(folder, SAMPLES)).tensors["samples"]
        expected = (sum(description["counts"]), width)
        need((samples.shape, samples.dtype) == (expected, dtype), f"samples have shape {samples.shape}, not {expected}")
    spaces = {}
    for entry in description["spaces"]:
        file = map_tensors(file_in_folder(folder, entry["file"]))
        content = json.loads(file.metadata["content"])
        parts = {name: from_json(x, file.tensors, _TYPES) for name, x in content.items()}
        prepared, space = PreparedBase(names=names, counts=counts, **parts), Space(**entry["space"])
        _check_prepared(prepared, space, counts, width, dtype)
        spaces[space] = prepared
    need(samples is not None or bool(spaces), "there are neither samples nor statistics")
    if description["feature_space"] is not None:
        tensors = map_tensors(file_in_folder(folder, FEATURES)).tensors
        feature_space = from_json(description["feature_space"], tensors, _TYPES)
        check_feature_space(feature_space, width)
    parts = {"names": names, "counts": counts, "samples": samples, "prepared": spaces, "centres": centres}
    parts |= {name: description[name] for name in ("about", "choices")}
    computed = {"feature_space": feature_space} | {name: description[name] for name in ("smallest", "content_hash")}
    return parts, computed


def _check_prepared(prepared: PreparedBase, space: Space, counts: np.ndarray, width: int, dtype: np.dtype) -> None:
    """Raise unless the parts of a prepared space match each other, the space and the bank."""
    axes, transform, is_normalised = len(prepared.spectrum), prepared.transform, space.normalize is not None
    fraction, exponent = math.frexp(transform.scale)
    need(
        isinstance(transform, FeatureTransform)
        and fraction == 0.5
        and abs(exponent) < np.finfo(dtype).maxexp
        and (transform.power, transform.offset) == (space.power, space.power_offset * transform.scale)
        and (is_normalised or transform.scale == 1)
        and transform.unit is is_normalised
        and (transform.centre is not None) is is_normalised,
        "a transform does not match its space",
    )
    covariances, buckets = prepared.covariances, prepared.buckets
    if not isinstance(covariances, Joined):
        covariances = Joined((covariances,), (np.arange(len(counts)),))
    need(isinstance(covariances.parts, tuple) and isinstance(buckets, tuple), "parts have the wrong type")
    check = partial(_check_arrays, dtype=dtype, B=len(counts), V=width, A=axes)
    check(prepared)
    check(transform)
    for part, classes in zip(covariances.parts, covariances.classes, strict=True):
        need(isinstance(part, (Dense, Factored)), "covariances have the wrong type")
        check(part, b=len(classes))
    for bucket in buckets:
        check(bucket, b=len(bucket.classes), J=int(counts[bucket.classes].max()))
        need((np.abs(bucket.mass.sum(axis=1) - 1) < MASS_TOLERANCE).all(), "sample weights of a class do not sum to 1")
    for groups in (covariances.classes, [bucket.classes for bucket in buckets] or covariances.classes):
        need(all(classes.dtype == np.int64 for classes in groups), "class indices have the wrong type")
        need(np.array_equal(np.sort(np.concatenate(groups)), np.arange(len(counts))), "a class is in no or two parts")


def _check_arrays(value: Any, dtype: np.dtype, **sizes: int) -> None:
    """Raise unless the arrays of a part have the shapes of the table, this dtype and sound numbers."""
    for name, shape in _SHAPES[type(value)].items():
        x, letters = getattr(value, name), shape.removeprefix("?")
        if x is None and letters != shape:
            continue
        # A size that is not given is that of the first array.
        sizes = {**dict(zip(letters, x.shape, strict=True)), **sizes}
        is_half = name == "rows" and value.means is None and x.dtype == np.float16
        need(x.dtype == dtype or is_half, f"{name} is not {dtype}")
        need(x.shape == tuple(sizes[letter] for letter in letters), f"{name} has shape {x.shape}")
        need(name in _LARGE or np.isfinite(x).all(), f"{name} holds NaN or infinity")
        need(name not in _NOT_NEGATIVE or (x >= 0).all(), f"{name} has a negative entry")
