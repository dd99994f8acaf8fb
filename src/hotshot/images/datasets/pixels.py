"""Images of a dataset: references, and their RGB pixels or the reason why they cannot be read."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import dataclass
from io import BytesIO
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.arrays import slices
from hotshot.errors import InputError
from hotshot.formatting import reason

if TYPE_CHECKING:
    from PIL.Image import Image

    from hotshot.images.datasets.entries import Entry

# The formats in which people keep photographs and scans; Pillow knows others that start programs.
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM")
SUFFIXES = (
    ".jpg", ".jpeg", ".jpe", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".pbm",
)  # fmt: skip
# From here on Pillow suspects a bomb too; the decoder of WEBP holds as many copies as take twice the memory.
MOST_PIXELS = 2**26
# Pixels that are turned to RGB at once; larger images are decoded one by one, however many threads there are.
STRIP = 2**22
_LARGE = Lock()


class CorruptImageError(InputError):
    """One image cannot be read; `name` says which and `reason` why."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(
            f"{name} is not a readable image, {reason}: replace it, or leave out corrupt images with "
            "skip_corrupt=True (--skip-corrupt)."
        )
        self.name = name
        self.reason = reason

    def __reduce__(self) -> Any:
        return CorruptImageError, (self.name, self.reason)


@dataclass(frozen=True, slots=True)
class ImageReference:
    """One image of a dataset, decoded when it is used."""

    entry: Entry

    @property
    def name(self) -> str:
        """The location of the image, such as `val.tar:val/n01855672/n0185567200000003.jpg`."""
        return self.entry.name

    @property
    def size(self) -> int:
        """Stored size in bytes."""
        return self.entry.size

    @property
    def modified(self) -> int:
        """Last change of its file, in nanoseconds."""
        return self.entry.modified

    def read(self, at_least: int | None = None) -> Image:
        """The image in RGB; a large JPEG may be read at reduced size, but no side below `at_least`."""
        raise NotImplementedError

    def square(self, size: int) -> np.ndarray:
        """Its largest centred square, resized to uint8 (size, size, 3)."""
        # Twice the size leaves the filter enough to work with.
        return centre_square(self.read(at_least=2 * size), size)


class EncodedImage(ImageReference):
    """An image file, on the disk or in an archive."""

    __slots__ = ()

    def read(self, at_least: int | None = None) -> Image:
        """The decoded file."""
        try:
            data = self.entry.data()
        except InputError as error:
            # The same sentence about "it", without its remedy.
            reason = str(error).removeprefix(self.name).split(": ")[0]
            raise CorruptImageError(self.name, f"it{reason}") from None
        return decoded(data, self.name, at_least)


@dataclass(frozen=True, slots=True)
class ArrayImage(ImageReference):
    """One image of an array uint8 (images, height, width, 3) that a file holds."""

    rows: np.ndarray
    index: int

    @property
    def name(self) -> str:
        """The file and the number in it."""
        return f"{self.entry.name}[{self.index}]"

    @property
    def size(self) -> int:
        """Bytes of the pixels."""
        return self.rows.nbytes // len(self.rows)

    def read(self, at_least: int | None = None) -> Image:
        """The image, always at full size."""
        return pillow().Image.fromarray(np.ascontiguousarray(self.rows[self.index]))


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


def decoded(data: bytes, name: str, at_least: int | None = None) -> Image:
    """An image in RGB, rotated as its metadata says, on white if it is transparent.

    A large JPEG may be read at a half, a quarter or an eighth of its size, but no side below `at_least`.
    """
    library = pillow()
    try:
        known = [name for name in FORMATS if name in library.Image.OPEN]
        with library.Image.open(BytesIO(data), formats=known) as image:
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
        raise CorruptImageError(name, _reason(error, data)) from None


def centre_square(image: Image, size: int) -> np.ndarray:
    """The largest centred square of an image, resized to uint8 (size, size, 3)."""
    library = pillow()
    return np.asarray(library.ImageOps.fit(image, (size, size), library.Image.Resampling.BICUBIC))


def _rgb(image: Any, name: str, library: Any) -> Image:
    """The image in RGB, converted a few rows at a time: some conversions take much memory."""
    if image.mode == "RGB" and "transparency" not in image.info:
        return image
    found = library.Image.new("RGB", image.size)
    for rows in slices(image.height, max(1, STRIP // max(1, image.width))):
        strip = image.crop((0, rows.start, image.width, rows.stop))
        found.paste(_strip_in_rgb(strip, name, library), (0, rows.start))
    return found


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


def _reason(error: Exception, data: bytes) -> str:
    if not data:
        return "it is empty"
    if isinstance(error, MemoryError):
        return "it needs too much memory"
    if type(error).__name__ == "UnidentifiedImageError":
        return "its format is unknown or its start is damaged"
    return reason(error, 100)
