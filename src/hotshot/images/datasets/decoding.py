"""A cache of decoded images, so that training spends no time on files and formats.

A cache is a folder with `images.npy`, uint8 (images, size, size, 3), and `header.json`, which lists its images and the
corrupt ones. It appears when it is complete, and is created again when the images have changed.
"""

import os
import re
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.arrays import slices
from hotshot.errors import InputError, ParameterError
from hotshot.files.arrays_files import map_npy, write_array
from hotshot.files.atomic import replace_file, replace_folder, write_json
from hotshot.files.objects import read_json_document, refuse_damage
from hotshot.files.samples import Lazy
from hotshot.formatting import count, listing
from hotshot.images.datasets.dataset import ImageSplit
from hotshot.images.datasets.pixels import CorruptImageError, ImageReference, pillow

_HEADER, _IMAGES = "header.json", "images.npy"
_WHAT, _VERSION = "decoded images", 1
_REMEDY = "remove the folder, it is created again from the images"
_SMALLEST, _LARGEST = 8, 2048
# Images that a thread takes at once.
_AT_ONCE = 64

# Called with the number of images that are done and their total.
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Corrupt:
    """An image that cannot be read, and why."""

    name: str
    reason: str


Batch = tuple[np.ndarray, list[Corrupt]]


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
        Index of each image in the split; corrupt images may have been left out.
    corrupt : tuple of Corrupt
        The images that were left out.
    fingerprint : str or None
        Fingerprint of the split; None, like the next two, for synthetic images.
    folder : Path or None
        Folder of the cache.
    ids : sequence of str or None
        Path of each image in the dataset.
    """

    images: np.ndarray
    labels: np.ndarray
    names: tuple[str, ...]
    kept: np.ndarray | None = None
    corrupt: tuple[Corrupt, ...] = ()
    fingerprint: str | None = None
    folder: Path | None = None
    ids: Sequence[str] | None = None

    def __len__(self) -> int:
        return len(self.images)


def decode(split: ImageSplit, size: int, folder: str | Path, progress: Progress | None = None) -> DecodedSplit:
    """The images of a split as squares of `size` pixels, from the cache in `folder` if it exists.

    Each image is resized so that its shorter side is `size` (bicubic, with antialiasing) and cropped to the centre.

    Parameters
    ----------
    split : ImageSplit
    size : int
    folder : str or Path
        Folder of caches, with one folder per split and size.
    progress : function or None
        Called with the number of decoded images and their total while a cache is created.
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
    bad = {one.name for one in found.corrupt} if found is not None else set()
    if found is None or len(_squares([image for image in split.images if image.name in bad], size)[0]):
        # There is no cache, or what could not be read now can.
        _make(place, header, split, progress)
        found = _cached(place, header, split)
    if found is None:
        raise InputError(f"{place} changed while it was created: {_REMEDY}.")
    # The rest stays decoded.
    _check_corrupt(found, split)
    return found


def _cached(place: Path, header: dict[str, Any], split: ImageSplit) -> DecodedSplit | None:
    """The cache in the folder; None if it is missing, damaged or of other images."""
    if not (place / _HEADER).is_file():
        return None
    try:
        found = read_json_document(place, _HEADER, _WHAT, _REMEDY, _VERSION)
        if any(found.get(key) != value for key, value in header.items()):
            return None
        images = map_npy(place / _IMAGES)
        with refuse_damage(place, _WHAT):
            corrupt = tuple(Corrupt(**item) for item in found["corrupt"])
            kept = _kept(split, corrupt)
    except InputError:
        return None
    shape = (len(split) - len(corrupt), header["size"], header["size"], 3)
    if images.shape != shape or images.dtype != np.uint8 or len(kept) != len(images):
        return None
    # Names that are not valid text are escaped.
    ids = Lazy(lambda row: split.images[row].name.encode(errors="backslashreplace").decode(), kept.tolist())
    return DecodedSplit(images, split.labels[kept], split.names, kept, corrupt, header["fingerprint"], place, ids)


def _make(place: Path, header: dict[str, Any], split: ImageSplit, progress: Progress | None) -> None:
    pillow()
    size = header["size"]
    with replace_folder(place, _HEADER, overwrite=True) as new:
        done, corrupt = 0, []
        with replace_file(new / _IMAGES) as file:
            write_array(file, (len(split), size, size, 3), np.dtype(np.uint8))
            for pixels, bad in _decoded(split.images, size):
                file.write(pixels.data)
                corrupt += bad
                done += len(pixels) + len(bad)
                if progress is not None:
                    progress(done, len(split))
            file.seek(0)
            write_array(file, (done - len(corrupt), size, size, 3), np.dtype(np.uint8))
        counted = {"count": len(split) - len(corrupt), "corrupt": [asdict(one) for one in corrupt]}
        write_json(new / _HEADER, header | counted)


def _kept(split: ImageSplit, corrupt: Sequence[Corrupt]) -> np.ndarray:
    """Indices of the readable images."""
    bad = {one.name for one in corrupt}
    return np.array([i for i, image in enumerate(split.images) if image.name not in bad], dtype=np.int64)


def _check_corrupt(found: DecodedSplit, split: ImageSplit) -> None:
    if found.corrupt and not split.skip_corrupt:
        listed = listing(f"{one.name} ({one.reason})" for one in found.corrupt)
        raise InputError(
            f"{split.name} has {count(len(found.corrupt), 'corrupt image')}, {listed}: replace them, or leave them out "
            "with skip_corrupt=True (--skip-corrupt); the others stay decoded."
        )
    counts = np.bincount(found.labels, minlength=len(split.names))
    if not counts.all():
        name = split.names[int(counts.argmin())]
        raise InputError(f"{split.name} has no readable image of class '{name}': replace its images.")


def _decoded(images: Sequence[ImageReference], size: int) -> Iterator[Batch]:
    """Squares and corrupt images, in order; decoded by threads, a few ahead."""
    threads = os.cpu_count() or 1
    waiting: deque[Future[Batch]] = deque()
    # Decoders warn about metadata, not about pixels; damaged images raise.
    with warnings.catch_warnings(), ThreadPoolExecutor(threads) as pool:
        warnings.simplefilter("ignore")
        for some in slices(len(images), _AT_ONCE):
            waiting.append(pool.submit(_squares, images[some], size))
            if len(waiting) > 2 * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _squares(images: Sequence[ImageReference], size: int) -> Batch:
    pixels = np.empty((len(images), size, size, 3), np.uint8)
    good, bad = 0, []
    for image in images:
        try:
            pixels[good] = image.square(size)
            good += 1
        except CorruptImageError as error:
            bad.append(Corrupt(error.name, error.reason))
    return pixels[:good], bad
