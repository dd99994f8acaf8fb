"""Banks as folders: `bank.json` says what is in it, safetensors files hold the numbers, mapped into memory on loading.

==========================  ==========================================================================
`bank.json`                 format, names and counts of the classes, spaces that are prepared, origin
`samples.safetensors`       samples (sum(counts), V), class by class; absent in a bank of statistics
`space-0.safetensors`, …    one prepared space each: transform, statistics, samples in its axes
==========================  ==========================================================================
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.base.covariances import Dense, Diagonal, Factored, Joined
from hotshot.base.prepared import Bucket, PreparedBase, Space
from hotshot.errors import InputError
from hotshot.features import FeatureTransform
from hotshot.tensors import map_tensors, write_tensors
from hotshot.version import __version__

FORMAT, VERSION = "hotshot bank", 1
DESCRIPTION, SAMPLES = "bank.json", "samples.safetensors"
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
    spaces = []
    for number, (space, prepared) in enumerate(bank.spaces.items()):
        tensors: dict[str, np.ndarray] = {}
        content = _describe(prepared, "base", tensors)
        write_tensors(folder / f"space-{number}.safetensors", tensors, {"content": json.dumps(content)})
        spaces.append({"file": f"space-{number}.safetensors", "space": asdict(space)})
    description = {
        "format": FORMAT,
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
        "names": _plain_names(bank.names),
    }
    (folder / DESCRIPTION).write_text(json.dumps(description, ensure_ascii=False, indent=1), encoding="utf-8")


def read_bank(folder: str | Path) -> StoredBank:
    """A bank from its folder; its large arrays are views of the files."""
    folder = Path(folder)
    try:
        text = (folder / DESCRIPTION).read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(
            f"{folder} is not a bank, it has no {DESCRIPTION}: make one with BaseClasses.save or hotshot convert."
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{folder / DESCRIPTION} cannot be read: {error}.") from None
    try:
        description = json.loads(text)
        if description["format"] != FORMAT:
            raise KeyError("format")
        if description["version"] != VERSION:
            raise InputError(
                f"{folder} is a bank of version {description['version']}, and this is hotshot {__version__}, "
                f"which reads version {VERSION}: make the bank again, or use the hotshot that wrote it."
            )
        return _stored(folder, description)
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise InputError(
            f"{folder} is not a sound bank ({type(error).__name__}: {error}): copy it again, or make it again."
        ) from None


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
        prepared = _restore(json.loads(file.metadata["content"]), file.tensors, names)
        _check_shapes(prepared, len(names), width)
        spaces[Space(**entry["space"])] = prepared
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
    means = (prepared.means, prepared.weighted_means, prepared.mean_units)
    sound = (
        isinstance(prepared, PreparedBase)
        and all(mean.shape == (n_classes, axes) for mean in means)
        and prepared.ones.shape == (axes,)
        and prepared.transform.axes.shape == (width, axes)
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


def _plain_names(names: np.ndarray) -> list[Any]:
    if names.dtype.kind == "O" and all(isinstance(name, str) for name in names):
        return list(names)
    if names.dtype.kind not in "Uiufb":
        raise InputError(
            f"Class names to save must be text or numbers, got dtype {names.dtype}: convert them first."
        )
    return names.tolist()


def _describe(value: Any, name: str, tensors: dict[str, np.ndarray]) -> Any:
    """`value` as JSON, with its arrays put into `tensors`; an array in two places is written once."""
    if isinstance(value, np.ndarray):
        for known, array in tensors.items():
            if array is value:
                return {"tensor": known}
        tensors[name] = value
        return {"tensor": name}
    if isinstance(value, tuple):
        return [_describe(item, f"{name}.{i}", tensors) for i, item in enumerate(value)]
    if is_dataclass(value):
        own = {f.name: getattr(value, f.name) for f in fields(value) if f.name != "names"}
        described = {key: _describe(item, f"{name}.{key}", tensors) for key, item in own.items()}
        return {"type": type(value).__name__, **described}
    return value


def _restore(value: Any, tensors: dict[str, np.ndarray], names: np.ndarray) -> Any:
    if isinstance(value, list):
        return tuple(_restore(item, tensors, names) for item in value)
    if isinstance(value, dict) and "tensor" in value:
        return tensors[value["tensor"]]
    if isinstance(value, dict):
        kind: Any = _TYPES[value["type"]]
        own = {key: _restore(item, tensors, names) for key, item in value.items() if key != "type"}
        return kind(**own, **({"names": names} if kind is PreparedBase else {}))
    return value


@contextmanager
def new_folder(path: str | Path, overwrite: bool) -> Iterator[Path]:
    """A folder to fill that takes the place of `path` at the end; after an error nothing has changed."""
    path = Path(path)
    if path.exists() and not overwrite:
        raise InputError(f"{path} is there already: pass overwrite=True to replace it.")
    if path.exists() and not (path / DESCRIPTION).exists():
        raise InputError(f"{path} is there and is not a bank: choose another name.")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        temporary.mkdir(parents=True)
        yield temporary
        if path.exists():
            old = path.with_name(f".{path.name}.{secrets.token_hex(4)}.old")
            path.rename(old)
            temporary.rename(path)
            shutil.rmtree(old)
        else:
            temporary.rename(path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}.") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
