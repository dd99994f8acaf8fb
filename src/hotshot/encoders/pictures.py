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
    """Read image files, resized by their shorter side and cropped to squares.

    Parameters
    ----------
    paths : iterable of paths
        Image files.
    size : int
        Side of the squares in pixels.

    Returns
    -------
    array (n, size, size, 3)
        Images in uint8.

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
    from hotshot.files.opening import opened
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
    """Make thumbnails of images, as WebP files of about a kilobyte.

    Parameters
    ----------
    pixels : array (n, height, width, 3)
        Images in uint8.
    side : int
        Side of the thumbnails in pixels.

    Returns
    -------
    list of bytes
        One WebP file per image.

    Examples
    --------
    >>> import numpy as np
    >>> thumbnails(np.zeros((1, 80, 60, 3), np.uint8))[0][8:12]
    b'WEBP'
    """
    from hotshot.images.datasets.pixels import centre_square, pillow

    def small(picture: np.ndarray) -> bytes:
        image, file = pillow().Image, BytesIO()
        square = centre_square(image.fromarray(np.ascontiguousarray(picture)), side)
        image.fromarray(square).save(file, "WEBP", quality=_QUALITY)
        return file.getvalue()

    return [small(picture) for picture in pixels]
