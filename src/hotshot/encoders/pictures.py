"""Image files as squares for encoders, and as thumbnails for pages."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path

import numpy as np

from hotshot.arrays import check_numbers
from hotshot.errors import InputError

# Of a thumbnail of 64 pixels this leaves about a kilobyte.
_QUALITY = 50


def read_images(paths: Iterable[str | Path], size: int) -> np.ndarray:
    """Image files as uint8 (n, size, size, 3): resized to the shorter side and cropped, as datasets are decoded."""
    from hotshot.files.source import opened
    from hotshot.images.datasets.entries import LONGEST
    from hotshot.images.datasets.pixels import CorruptImageError, centre_square, decoded, pillow

    check_numbers(size=size)
    pillow()

    def square(path: str | Path) -> np.ndarray:
        with opened(path, LONGEST) as file:
            data = file.read()
        try:
            return centre_square(decoded(data, str(path), at_least=2 * size), size)
        except CorruptImageError as error:
            raise InputError(f"{path} is not a readable image, {error.reason}: replace it or leave it out.") from None

    # Remarks of decoders on metadata are not about the pixels; what is damaged raises.
    with warnings.catch_warnings(), ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        warnings.simplefilter("ignore")
        squares = list(pool.map(square, paths))
    return np.stack(squares) if squares else np.empty((0, size, size, 3), np.uint8)


def thumbnails(pixels: np.ndarray, side: int = 64) -> list[bytes]:
    """Images in uint8 (n, height, width, 3) as WebP files of `side` pixels, each about a kilobyte."""
    from hotshot.images.datasets.pixels import centre_square, pillow

    def small(picture: np.ndarray) -> bytes:
        image, file = pillow().Image, BytesIO()
        square = centre_square(image.fromarray(np.ascontiguousarray(picture)), side)
        image.fromarray(square).save(file, "WEBP", quality=_QUALITY)
        return file.getvalue()

    return [small(picture) for picture in pixels]
