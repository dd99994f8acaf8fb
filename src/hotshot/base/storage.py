"""Banks as folders: `bank.json` says what is in it, safetensors files hold the numbers, mapped into memory on loading.

==========================  ==========================================================================
`bank.json`                 format, names and counts of the classes, spaces that are prepared, origin
`samples.safetensors`       samples (sum(counts), V), class by class; absent in a bank of statistics
`space-0.safetensors`, …    one prepared space each: transform, statistics, samples in its axes
==========================  ==========================================================================
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.base.covariances import Dense, Diagonal, Factored, Joined
from hotshot.base.prepared import Bucket, PreparedBase, Space
from hotshot.base.soundness import check_description, check_prepared, need, sound_space
from hotshot.base.space import FeatureTransform
from hotshot.errors import InputError, ParameterError
from hotshot.files.atomic import write_json
from hotshot.files.objects import file_in_folder, from_json, read_json_document, refuse_damage, to_json
from hotshot.files.tensors import map_tensors, write_tensors
from hotshot.version import __version__

WHAT, VERSION = "bank", 1
DESCRIPTION, SAMPLES = "bank.json", "samples.safetensors"
REMEDY = "make one with BaseClasses.save or hotshot convert"
_TYPES = {t.__name__: t for t in (PreparedBase, Bucket, FeatureTransform, Dense, Diagonal, Factored, Joined)}


@dataclass(frozen=True)
class StoredBank:
    """What a folder holds: samples are None in a bank of statistics."""

    names: np.ndarray
    counts: np.ndarray
    samples: np.ndarray | None
    spaces: dict[Space, PreparedBase]
    centres: dict[float, np.ndarray]
    n_features: int
    dtype: np.dtype
    smallest: float
    fingerprint: str
    about: dict[str, Any]


def write_bank(folder: Path, bank: StoredBank) -> None:
    """Write all parts of a bank to a folder that exists; samples that are there already stay if they are wanted."""
    if bank.samples is None:
        (folder / SAMPLES).unlink(missing_ok=True)
    elif not (folder / SAMPLES).exists():
        write_tensors(folder / SAMPLES, {"samples": bank.samples}, {})
    if bank.names.dtype.kind not in "OUiufb" or not all(
        isinstance(n, (str, int, float)) for n in bank.names.tolist()
    ):
        raise InputError(
            f"Class names to save must be text or numbers, got {bank.names.dtype}: convert them first."
        )
    spaces = []
    for number, (space, prepared) in enumerate(bank.spaces.items()):
        tensors: dict[str, np.ndarray] = {}
        content = to_json(replace(prepared, names=np.empty(0)), "base", tensors)
        write_tensors(folder / f"space-{number}.safetensors", tensors, {"content": json.dumps(content)})
        plain = {name: to_json(value, name, {}) for name, value in asdict(space).items()}
        spaces.append({"file": f"space-{number}.safetensors", "space": plain})
    description = {
        "format": f"hotshot {WHAT}",
        "version": VERSION,
        "hotshot": __version__,
        "n_features": int(bank.n_features),
        "dtype": str(bank.dtype),
        "smallest": float(bank.smallest),
        "samples": None if bank.samples is None else SAMPLES,
        "fingerprint": bank.fingerprint,
        "spaces": spaces,
        "centres": {repr(float(power)): centre.tolist() for power, centre in bank.centres.items()},
        "about": bank.about,
        "counts": bank.counts.tolist(),
        "names": bank.names.tolist(),
    }
    check_about(bank.about)
    write_json(folder / DESCRIPTION, description)


def check_about(about: dict[str, Any] | None) -> None:
    """Raise unless what is said of the features can be written as JSON."""
    try:
        json.dumps(about)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"about must hold text, numbers, lists and dicts only, as JSON does: {error}."
        ) from None


def is_bank(path: str | Path) -> bool:
    """Whether a folder says that it is a bank."""
    return (Path(path) / DESCRIPTION).is_file()


def read_bank(path: str | Path) -> StoredBank:
    """A bank from its folder; its large arrays are views of the files."""
    folder = Path(path)
    description = read_json_document(folder, DESCRIPTION, WHAT, REMEDY, VERSION)
    with refuse_damage(folder, WHAT):
        return _stored(folder, description)


def _stored(folder: Path, description: dict[str, Any]) -> StoredBank:
    check_description(description)
    names = np.array(description["names"])
    counts = np.array(description["counts"], dtype=np.int64)
    width, dtype = description["n_features"], np.dtype(description["dtype"])
    samples = None
    if description["samples"] is not None:
        need(description["samples"] == SAMPLES, "samples are elsewhere")
        samples = map_tensors(file_in_folder(folder, SAMPLES)).tensors["samples"]
        expected = (sum(description["counts"]), width)
        need(samples.shape == expected, f"samples of shape {samples.shape} where {expected} was expected")
        need(samples.dtype == dtype, f"samples of {samples.dtype} where {dtype} was expected")
    spaces = {}
    for entry in description["spaces"]:
        file = map_tensors(file_in_folder(folder, entry["file"]))
        prepared = from_json(json.loads(file.metadata["content"]), file.tensors, _TYPES)
        space = sound_space(entry["space"])
        check_prepared(prepared, space, counts, width, dtype)
        spaces[space] = replace(prepared, names=names)
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
        fingerprint=description["fingerprint"],
        about=description["about"],
    )
