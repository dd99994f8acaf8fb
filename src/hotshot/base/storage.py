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
from hotshot.errors import InputError
from hotshot.features import FeatureTransform
from hotshot.records import describe, read_description, restore, sound
from hotshot.tensors import map_tensors, write_tensors
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
    """Write all parts of a bank to a folder that exists; samples that are there already stay."""
    if bank.samples is not None and not (folder / SAMPLES).exists():
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
        content = describe(replace(prepared, names=np.empty(0)), "base", tensors)
        write_tensors(folder / f"space-{number}.safetensors", tensors, {"content": json.dumps(content)})
        spaces.append({"file": f"space-{number}.safetensors", "space": asdict(space)})
    description = {
        "format": f"hotshot {WHAT}",
        "version": VERSION,
        "hotshot": __version__,
        "n_features": bank.n_features,
        "dtype": str(bank.dtype),
        "smallest": bank.smallest,
        "samples": None if bank.samples is None else SAMPLES,
        "fingerprint": bank.fingerprint,
        "spaces": spaces,
        "centres": {repr(power): centre.tolist() for power, centre in bank.centres.items()},
        "about": bank.about,
        "counts": bank.counts.tolist(),
        "names": bank.names.tolist(),
    }
    (folder / DESCRIPTION).write_text(json.dumps(description, ensure_ascii=False, indent=1), encoding="utf-8")


def is_bank(path: str | Path) -> bool:
    """Whether a folder says that it is a bank."""
    return (Path(path) / DESCRIPTION).is_file()


def read_bank(path: str | Path) -> StoredBank:
    """A bank from its folder; its large arrays are views of the files."""
    folder = Path(path)
    description = read_description(folder, DESCRIPTION, WHAT, REMEDY, VERSION)
    with sound(folder, WHAT):
        return _stored(folder, description)


def _stored(folder: Path, description: dict[str, Any]) -> StoredBank:
    names = np.array(description["names"])
    counts = np.array(description["counts"], dtype=np.int64)
    width, dtype = int(description["n_features"]), np.dtype(description["dtype"])
    if not (names.shape == counts.shape == (len(names),) and len(names) and (counts > 0).all()):
        raise ValueError("names and counts do not fit each other")
    samples = None
    if description["samples"] is not None:
        samples = map_tensors(folder / SAMPLES).tensors["samples"]
        if samples.shape != (counts.sum(), width) or samples.dtype != dtype:
            raise ValueError(
                f"samples of shape {samples.shape} where {(int(counts.sum()), width)} was expected"
            )
    spaces = {}
    for entry in description["spaces"]:
        if Path(entry["file"]).name != entry["file"]:
            raise ValueError(f"file {entry['file']!r} is not in the folder")
        file = map_tensors(folder / entry["file"])
        prepared = restore(json.loads(file.metadata["content"]), file.tensors, _TYPES)
        _check_shapes(prepared, len(names), width)
        spaces[Space(**entry["space"])] = replace(prepared, names=names)
    return StoredBank(
        names=names,
        counts=counts,
        samples=samples,
        spaces=spaces,
        centres={float(power): np.array(c, dtype=np.float64) for power, c in description["centres"].items()},
        n_features=width,
        dtype=dtype,
        smallest=float(description["smallest"]),
        fingerprint=str(description["fingerprint"]),
        about=dict(description["about"]),
    )


def _check_shapes(prepared: Any, n_classes: int, width: int) -> None:
    """Raise unless the parts of a prepared space fit each other and the bank."""
    axes = len(prepared.spectrum)
    means, transform = (prepared.means, prepared.weighted_means, prepared.mean_units), prepared.transform
    sound = (
        isinstance(prepared, PreparedBase)
        and all(mean.shape == (n_classes, axes) for mean in means)
        and prepared.ones.shape == (axes,)
        and transform.axes.shape == (width, axes)
        and prepared.covariances.count == n_classes
    )
    seen = [bucket.classes for bucket in prepared.buckets]
    if seen:
        sound = sound and np.array_equal(np.sort(np.concatenate(seen)), np.arange(n_classes))
        sound = sound and all(
            b.units.shape == (*b.mass.shape, axes) and len(b.classes) == len(b.mass) for b in prepared.buckets
        )
    if not sound:
        raise ValueError("the parts of a prepared space do not fit each other")
