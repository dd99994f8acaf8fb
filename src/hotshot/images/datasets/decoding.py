"""Every image decoded once: one mapped file of squares, so that training spends no time on files and formats.

A cache is a folder with `images.npy`, uint8 (images, size, size, 3), `labels.npy`, `kept.npy` (which images of the
split) and `header.json`, which says of which images it was made. It appears when it is complete, and is made again when
the images have changed.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from hotshot.arrays import slices
from hotshot.errors import InputError, ParameterError
from hotshot.files.atomic import replace_folder, write_json
from hotshot.files.numpy_files import map_npy
from hotshot.files.objects import read_json_document, refuse_damage
from hotshot.images.datasets.checking import AT_ONCE, Corrupt, Progress, in_order, refuse_corrupt
from hotshot.images.datasets.dataset import ImageSplit
from hotshot.images.datasets.pixels import CorruptImageError, pillow
from hotshot.images.datasets.references import ImageReference

_HEADER, _IMAGES, _LABELS, _KEPT = "header.json", "images.npy", "labels.npy", "kept.npy"
_WHAT, _VERSION = "decoded images", 1
_REMEDY = "remove the folder, it is made again from the images"
_SMALLEST, _LARGEST = 8, 2048
# A folder that is being filled changes every second; one that has not for an hour was left by a killed process.
_STALE = 3600

Batch = tuple[np.ndarray, list[int], list[Corrupt]]


@dataclass(frozen=True, eq=False)
class DecodedSplit:
    """The images of a split as one array, mapped from the disk.

    Attributes
    ----------
    images : uint8 array (images, size, size, 3)
    labels : integer array (images,)
        Index of each image's class among `names`.
    names : tuple of str
        Class names.
    kept : integer array (images,) or None
        Index of each image among those of the split: all of them, unless corrupt ones were left out.
    corrupt : tuple of Corrupt
        What was left out.
    fingerprint : str or None
        Of the split; None, as the two others, where the images were made in memory.
    folder : Path or None
        Of the files.
    """

    images: np.ndarray
    labels: np.ndarray
    names: tuple[str, ...]
    kept: np.ndarray | None = None
    corrupt: tuple[Corrupt, ...] = ()
    fingerprint: str | None = None
    folder: Path | None = None

    def __len__(self) -> int:
        return len(self.images)


def decode(
    split: ImageSplit, size: int, folder: str | Path, progress: Progress | None = None
) -> DecodedSplit:
    """The images of a split as squares of `size` pixels, from the cache in `folder` where they are there already.

    Each image is resized so that its shorter side is `size` (bicubic, with antialiasing) and cropped to the centre.

    Parameters
    ----------
    split : ImageSplit
    size : int
    folder : str or Path
        Of caches; each split and size has a folder of its own in it.
    progress : function or None
        Called with the number of images that are done and their total, while a cache is made.
    """
    if type(size) is not int or not _SMALLEST <= size <= _LARGEST:
        raise ParameterError(f"size must be an integer from {_SMALLEST} to {_LARGEST}, got {size!r:.40}.")
    fingerprint = split.fingerprint()
    slug = re.sub(r"[^A-Za-z0-9_-]+", "-", split.name)[:40]
    place = Path(folder) / f"{slug}-{size}-{fingerprint.removeprefix('sha256:')[:12]}"
    header = {
        "format": f"hotshot {_WHAT}",
        "version": _VERSION,
        "split": split.name,
        "size": size,
        "fingerprint": fingerprint,
        "modified": split.modified(),
        "names": list(split.names),
    }
    found = _cached(place, header, split)
    if found is None:
        _make(place, header, split, progress)
        found = _cached(place, header, split)
    if found is None:
        raise InputError(f"{place} changed while it was made: {_REMEDY}.")
    if not split.skip_corrupt:
        refuse_corrupt(found.corrupt, split.name)
    return found


def _cached(place: Path, header: dict[str, Any], split: ImageSplit) -> DecodedSplit | None:
    """What is in the folder, None where it is absent, damaged or of other images."""
    if not (place / _HEADER).is_file():
        return None
    try:
        found = read_json_document(place, _HEADER, _WHAT, _REMEDY, _VERSION)
        if any(found.get(key) != value for key, value in header.items()):
            return None
        images, labels, kept = (map_npy(place / name) for name in (_IMAGES, _LABELS, _KEPT))
        with refuse_damage(place, _WHAT):
            corrupt = tuple(Corrupt(**item) for item in found["corrupt"])
            size = header["size"]
            if images.shape != (len(kept), size, size, 3) or images.dtype != np.uint8:
                return None
            if len(kept) + len(corrupt) != len(split) or not np.array_equal(labels, split.labels[kept]):
                return None
    except InputError:
        return None
    return DecodedSplit(images, labels, split.names, kept, corrupt, header["fingerprint"], place)


def _make(place: Path, header: dict[str, Any], split: ImageSplit, progress: Progress | None) -> None:
    pillow()
    size = header["size"]
    _remove_stale(place)
    with replace_folder(place, _HEADER, overwrite=True) as new:
        kept, corrupt = [], []
        with (new / _IMAGES).open("wb") as file:
            _write_shape(file, len(split), size)
            for pixels, good, bad in in_order(_decoder(split.images, size), slices(len(split), AT_ONCE)):
                file.write(pixels.data)
                kept += good
                corrupt += bad
                if progress is not None:
                    progress(len(kept) + len(corrupt), len(split))
            file.seek(0)
            _write_shape(file, len(kept), size)
        if not split.skip_corrupt:
            refuse_corrupt(corrupt, split.name)
        labels = split.labels[kept]
        _check_classes(labels, split)
        np.save(new / _LABELS, labels)
        np.save(new / _KEPT, np.array(kept, dtype=np.int64))
        write_json(new / _HEADER, {**header, "count": len(kept), "corrupt": [asdict(one) for one in corrupt]})


def _decoder(images: Sequence[ImageReference], size: int) -> Callable[[slice], Batch]:
    def squares(some: slice) -> Batch:
        pixels = np.empty((some.stop - some.start, size, size, 3), np.uint8)
        good: list[int] = []
        bad = []
        for i in range(some.start, some.stop):
            try:
                pixels[len(good)] = images[i].square(size)
                good.append(i)
            except CorruptImageError as error:
                bad.append(Corrupt(error.name, error.reason))
        return pixels[: len(good)], good, bad

    return squares


def _write_shape(file: IO[bytes], count: int, size: int) -> None:
    """The header of an `.npy` file, which has the same length for every number of images."""
    np.lib.format.write_array_header_1_0(
        file, {"descr": "|u1", "fortran_order": False, "shape": (count, size, size, 3)}
    )


def _check_classes(labels: np.ndarray, split: ImageSplit) -> None:
    counts = np.bincount(labels, minlength=len(split.names))
    if not counts.all():
        raise InputError(
            f"{split.name} has no readable image of class '{split.names[int(counts.argmin())]}': replace its images."
        )


def _remove_stale(place: Path) -> None:
    """Remove what killed processes have left of this cache."""
    for part in place.parent.glob(f".{place.name[:60]}.*.part"):
        with suppress(OSError):
            newest = max(path.stat().st_mtime for path in (part, *part.iterdir()))
            if time.time() - newest > _STALE:
                shutil.rmtree(part, ignore_errors=True)
