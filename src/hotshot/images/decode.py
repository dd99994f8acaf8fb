"""From image files to squares of RGB pixels, kept in a file where training needs them again and again."""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.arrays import check_numbers, slices
from hotshot.errors import InputError
from hotshot.files.atomic import one_at_a_time
from hotshot.files.opening import opened
from hotshot.formatting import count, listing, reason
from hotshot.images.records import Progress, compute_records
from hotshot.images.tree import LONGEST, File, file_on_disk

if TYPE_CHECKING:
    from PIL.Image import Image

# The formats in which people keep photographs and scans; Pillow knows others that start programs.
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM")
# From here on Pillow suspects a bomb too; the decoder of WEBP holds as many copies as take twice the memory.
MOST_PIXELS = 2**26
# Pixels that are turned to RGB at once; larger images are decoded one by one, however many threads there are.
STRIP = 2**22
_LARGE = Lock()
THUMBNAIL_SIDE, _THUMBNAIL_QUALITY = 64, 50
# Of ImageNet's pixels in [0, 1], by channel, as all published checkpoints have them.
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
# Images that are decoded and written to the disk at once.
_AT_ONCE = 64


class CorruptImageError(InputError):
    """One image cannot be read; `name` says which and `reason` why."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name} is not a readable image, {reason}: replace it or leave it out.")
        self.name, self.reason = name, reason


@dataclass(frozen=True, slots=True)
class Picture:
    """An image that is decoded when it is used: a file, or a row of an array (images, height, width, 3) in one."""

    file: File
    rows: np.ndarray | None = None
    index: int = 0

    @property
    def name(self) -> str:
        """The location of the image, such as `val.tar:val/n01855672/n0185567200000003.jpg`."""
        return self.file.name if self.rows is None else f"{self.file.name}[{self.index}]"

    @property
    def size(self) -> int:
        """Stored size in bytes."""
        return self.file.size if self.rows is None else self.rows.nbytes // len(self.rows)

    def read(self, at_least: int | None = None) -> Image:
        """The image in RGB; a large JPEG may be read at reduced size, but no side below `at_least`."""
        if self.rows is not None:
            return pillow().Image.fromarray(np.ascontiguousarray(self.rows[self.index]))
        try:
            data = self.file.data()
        except InputError as error:
            # The same sentence about "it", without its remedy.
            raise CorruptImageError(self.name, f"it{str(error).removeprefix(self.name).split(': ')[0]}") from None
        return decoded(data, self.name, at_least)


# --- from bytes to RGB


def pillow() -> Any:
    """Pillow; raises with instructions if it is missing."""
    try:
        import PIL.Image
        import PIL.ImageOps
    except ImportError:
        raise InputError("Reading images needs Pillow: pip install 'hotshot[images]'.") from None
    # Registers all formats, once.
    PIL.Image.init()
    return PIL


def decoded(data: bytes | memoryview, name: str, at_least: int | None = None) -> Image:
    """An image in RGB, rotated as its metadata says, on white if it is transparent.

    A large JPEG may be read at a half, a quarter or an eighth of its size, but no side below `at_least`.
    """
    library = pillow()
    try:
        formats = [name for name in FORMATS if name in library.Image.OPEN]
        with library.Image.open(BytesIO(data), formats=formats) as image:
            width, height = image.size
            if width * height > (MOST_PIXELS // 2 if image.format == "WEBP" else MOST_PIXELS):
                raise CorruptImageError(name, f"it has {width}x{height} pixels")
            if at_least is not None and image.format in ("JPEG", "MPO"):
                image.draft(None, (at_least, at_least))
            with nullcontext() if image.width * image.height <= STRIP else _LARGE:
                image.load()
                # Where this fails, the remarks of a camera are damaged, not the image.
                with suppress(Exception):
                    image = library.ImageOps.exif_transpose(image) if "exif" in image.info else image
                return _rgb(image, name, library)
    except CorruptImageError:
        raise
    except Exception as error:
        # Decoders meet damaged bytes in their own ways: OSError, SyntaxError, ValueError, struct.error and more.
        why = {
            "UnidentifiedImageError": "its format is unknown or its start is damaged",
            "MemoryError": "it needs too much memory",
        }.get(type(error).__name__, reason(error, 100))
        raise CorruptImageError(name, why if data else "it is empty") from None


def _rgb(image: Any, name: str, library: Any) -> Image:
    """The image in RGB, converted a few rows at a time: some conversions take much memory."""
    if image.mode == "RGB" and "transparency" not in image.info:
        return image
    converted = library.Image.new("RGB", image.size)
    for rows in slices(image.height, max(1, STRIP // max(1, image.width))):
        strip = image.crop((0, rows.start, image.width, rows.stop))
        converted.paste(_strip_in_rgb(strip, name, library), (0, rows.start))
    return converted


def _strip_in_rgb(image: Any, name: str, library: Any) -> Image:
    if "transparency" in image.info or image.mode in ("RGBA", "LA", "PA", "RGBa", "La"):
        paper = library.Image.new("RGBA", image.size, "white")
        return library.Image.alpha_composite(paper, image.convert("RGBA")).convert("RGB")
    if image.mode == "F":
        raise CorruptImageError(name, "its pixels are floating-point numbers, not 8 or 16 bits")
    if image.mode.startswith("I"):
        deep = np.asarray(image)
        if deep.size and not 0 <= deep.min() <= deep.max() < 2**16:
            raise CorruptImageError(name, "its pixels have 32 bits, not 8 or 16")
        # From 0 to 65535 to 0 to 255, rounded.
        image = library.Image.fromarray(((deep.astype(np.uint32) + 128) // 257).astype(np.uint8))
    return image if image.mode == "RGB" else image.convert("RGB")


# --- squares

# Squares uint8 (readable, size, size, 3), and by the index of an image why it is not readable.
Squares = tuple[np.ndarray, dict[int, str]]


def centre_square(image: Image, size: int) -> np.ndarray:
    """The largest centred square of an image, resized to uint8 (size, size, 3)."""
    library = pillow()
    return np.asarray(library.ImageOps.fit(image, (size, size), library.Image.Resampling.BICUBIC))


def squares(images: Sequence[Picture], size: int) -> Squares:
    """The largest centred squares of the images that can be read, and why others cannot."""
    return next(squares_of_batches([images], size))


def squares_of_batches(batches: Iterable[Sequence[Picture]], size: int) -> Iterator[Squares]:
    """Squares of each batch of images; threads decode the next batch meanwhile."""
    pillow()

    def square(image: Picture) -> np.ndarray | str:
        try:
            # Twice the size leaves the filter enough to work with.
            return centre_square(image.read(at_least=2 * size), size)
        except CorruptImageError as error:
            return error.reason

    def joined(results: Iterable[np.ndarray | str]) -> Squares:
        made = list(results)
        readable = [pixels for pixels in made if not isinstance(pixels, str)]
        pixels = np.stack(readable) if readable else np.empty((0, size, size, 3), np.uint8)
        return pixels, {i: why for i, why in enumerate(made) if isinstance(why, str)}

    ahead = None
    # Decoders warn about metadata, not about pixels; damaged images raise.
    with warnings.catch_warnings(), ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        warnings.simplefilter("ignore")
        for images in batches:
            before, ahead = ahead, pool.map(square, images)
            if before is not None:
                yield joined(before)
        if ahead is not None:
            yield joined(ahead)


def read_images(paths: Iterable[str | Path], size: int) -> np.ndarray:
    """Read image files, resized by their shorter side and cropped to squares: uint8 (n, size, size, 3).

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (60, 40)).save(f"{folder}/bird.png")
    ...     pixels = read_images([f"{folder}/bird.png"], 32)
    >>> pixels.shape
    (1, 32, 32, 3)
    """
    check_numbers(size=size)
    images = []
    for path in paths:
        with opened(path, LONGEST):
            images.append(Picture(file_on_disk(Path(), str(path))))
    pixels, errors = squares(images, size)
    for i, why in errors.items():
        raise CorruptImageError(images[i].name, why)
    return pixels


def thumbnails(pixels: np.ndarray, side: int = THUMBNAIL_SIDE) -> list[bytes]:
    """Thumbnails of images uint8 (n, height, width, 3), as WebP files of about a kilobyte."""

    def small(picture: np.ndarray) -> bytes:
        image, file = pillow().Image, BytesIO()
        square = image.fromarray(centre_square(image.fromarray(np.ascontiguousarray(picture)), side))
        square.save(file, "WEBP" if "WEBP" in image.SAVE else "JPEG", quality=_THUMBNAIL_QUALITY)
        return file.getvalue()

    return [small(picture) for picture in pixels]


# --- splits of datasets


@dataclass(frozen=True, eq=False)
class ImageSplit:
    """Images of some classes, sorted by class and name, and the index of each class among the sorted `names`.

    With `skip_corrupt`, images that cannot be read are left out, instead of refusing the split.
    """

    name: str
    names: tuple[str, ...]
    labels: np.ndarray
    images: Sequence[Picture]
    skip_corrupt: bool = False

    def __len__(self) -> int:
        return len(self.images)

    def fingerprint(self) -> str:
        """SHA-256 of the names and sizes of all images and of their classes."""
        digest = hashlib.sha256(json.dumps([self.names, self.labels.tolist()]).encode())
        for image in self.images:
            digest.update(json.dumps([image.name, image.size]).encode())
        return f"sha256:{digest.hexdigest()}"

    def modified(self) -> int:
        """Last change of any file with images, in nanoseconds."""
        return max(image.file.modified for image in self.images)

    def without(self, corrupt: dict[int, str], others: str) -> np.ndarray:
        """Indices of the images that are not corrupt; raises if there are corrupt ones and they are not to be skipped.

        The error ends with what happened to the `others`.
        """
        if corrupt and not self.skip_corrupt:
            listed = listing(f"{self.images[i].name} ({why})" for i, why in corrupt.items())
            raise InputError(
                f"{self.name} has {count(len(corrupt), 'corrupt image')}, {listed}: replace them, or leave them out "
                f"with skip_corrupt=True (--skip-corrupt); {others}."
            )
        rows = np.delete(np.arange(len(self)), list(corrupt))
        counts = np.bincount(self.labels[rows], minlength=len(self.names))
        if not counts.all():
            name = self.names[int(counts.argmin())]
            raise InputError(f"{self.name} has no readable image of class '{name}': replace its images.")
        return rows


@dataclass(frozen=True, eq=False)
class _Rows:
    """Some rows of an array on the disk, read when they are indexed."""

    array: np.ndarray
    rows: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, which: Any) -> np.ndarray:
        return self.array[self.rows[which]]


@dataclass(frozen=True, eq=False)
class DecodedSplit:
    """The images of a split, uint8 (images, size, size, 3), and the index of each class among `names`.

    `corrupt` are the names of images that were left out.
    """

    images: Any
    labels: np.ndarray
    names: tuple[str, ...]
    corrupt: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.images)


def decode(split: ImageSplit, size: int, folder: str | Path, progress: Progress | None = None) -> DecodedSplit:
    """The images of a split as squares of `size` pixels, mapped from a file in `folder`, which is made once.

    There is one file per split, size and state of the images; an interrupted decoding resumes. `progress` is called
    with the number of decoded images and their total.
    """
    check_numbers(size=size)
    about = {"images": split.fingerprint(), "modified": split.modified()}
    slug = re.sub(r"[^A-Za-z0-9_-]+", "-", split.name)[:40]
    digest = hashlib.sha256(json.dumps(about).encode()).hexdigest()
    path = Path(folder) / f"{slug}-{size}-{digest[:12]}.pixels"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path.parent} cannot be written: {error.strerror or error}.") from None

    def compute(batches: list[slice]) -> Iterator[tuple[dict[str, np.ndarray], dict[int, str]]]:
        for pixels, errors in squares_of_batches((split.images[rows] for rows in batches), size):
            yield {"pixels": pixels}, errors

    with one_at_a_time(path):
        fields = [("pixels", np.uint8, (size, size, 3))]
        records, corrupt = compute_records(path, about, fields, len(split), _AT_ONCE, compute, progress)
    rows = split.without(corrupt, "the others stay decoded")
    # A plain array: results computed from it are not maps.
    pixels = np.asarray(records["pixels"])
    images = pixels if len(rows) == len(split) else _Rows(pixels, rows)
    return DecodedSplit(images, split.labels[rows], split.names, tuple(split.images[i].name for i in corrupt))
