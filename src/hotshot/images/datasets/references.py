"""References to images: light, in a fixed order, decoded only when asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from hotshot.errors import InputError
from hotshot.images.datasets.entries import Entry
from hotshot.images.datasets.pixels import CorruptImageError, centre_square, decoded, pillow

if TYPE_CHECKING:
    from PIL.Image import Image


class ImageReference(Protocol):
    """One image of a dataset."""

    @property
    def name(self) -> str:
        """Where the image is, such as `val.tar:val/n01855672/n0185567200000003.jpg`."""

    @property
    def size(self) -> int:
        """Bytes it takes where it is stored."""

    @property
    def modified(self) -> int:
        """When the file it is in changed, in nanoseconds."""

    def read(self) -> Image:
        """The image, in RGB."""

    def array(self) -> np.ndarray:
        """Its pixels, uint8 (height, width, 3)."""

    def square(self, size: int) -> np.ndarray:
        """Its largest centred square, resized to uint8 (size, size, 3)."""


@dataclass(frozen=True, slots=True)
class EncodedImage:
    """An image file, on the disk or in an archive."""

    entry: Entry

    @property
    def name(self) -> str:
        """Where the image is."""
        return self.entry.name

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.entry.size

    @property
    def modified(self) -> int:
        """When the file, or the archive around it, changed, in nanoseconds."""
        return self.entry.modified

    def read(self) -> Image:
        """The image, in RGB."""
        return self._decoded(None)

    def array(self) -> np.ndarray:
        """Its pixels, uint8 (height, width, 3)."""
        return np.asarray(self.read())

    def square(self, size: int) -> np.ndarray:
        """Its largest centred square, resized to uint8 (size, size, 3)."""
        # Twice the size leaves the filter enough to work with.
        return centre_square(self._decoded(2 * size), size)

    def _decoded(self, at_least: int | None) -> Image:
        try:
            data = self.entry.data()
        except InputError as error:
            # The same sentence about "it", without its remedy.
            reason = str(error).removeprefix(self.name).split(": ")[0]
            raise CorruptImageError(self.name, f"it{reason}") from None
        return decoded(data, self.name, at_least)


@dataclass(frozen=True, slots=True)
class ArrayImage:
    """One image of an array uint8 (images, height, width, 3) that a file holds."""

    entry: Entry
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

    @property
    def modified(self) -> int:
        """When the file of the array changed, in nanoseconds."""
        return self.entry.modified

    def read(self) -> Image:
        """The image, in RGB."""
        return pillow().Image.fromarray(self.array())

    def array(self) -> np.ndarray:
        """Its pixels, uint8 (height, width, 3)."""
        return np.ascontiguousarray(self.rows[self.index])

    def square(self, size: int) -> np.ndarray:
        """Its largest centred square, resized to uint8 (size, size, 3)."""
        if self.rows.shape[1:3] == (size, size):
            return self.array()
        return centre_square(self.read(), size)
