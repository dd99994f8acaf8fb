"""Image files as squares: the same as datasets decode, and every file that is none by name."""

from __future__ import annotations

import struct
import zlib
from io import BytesIO

import numpy as np
import pytest

Image = pytest.importorskip("PIL.Image", reason="images need Pillow")

from hotshot.encoders import read_images, thumbnails
from hotshot.errors import InputError, ParameterError
from hotshot.images.decode import decode
from hotshot.images.layouts import open_dataset


@pytest.fixture
def pictures(tmp_path):
    """Files of several formats, modes and shapes, in a folder of one class and another."""
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        (tmp_path / "set" / name).mkdir(parents=True)
    for i, (kind, mode, size) in enumerate(
        [("png", "RGB", (40, 30)), ("jpg", "RGB", (90, 200)), ("webp", "RGB", (33, 33)), ("gif", "L", (20, 50)),
         ("png", "RGBA", (25, 25)), ("tiff", "L", (64, 10)), ("bmp", "RGB", (9, 9))]
    ):  # fmt: skip
        pixels = rng.integers(0, 256, size=(size[1], size[0], 4)).astype(np.uint8)
        Image.fromarray(pixels).convert(mode).save(tmp_path / "set" / "ab"[i % 2] / f"{i}.{kind}")
    return tmp_path / "set"


def test_files_are_decoded_as_datasets_are(pictures, tmp_path):
    split = open_dataset(pictures).splits["all"]
    expected = decode(split, 24, tmp_path / "cache").images
    found = read_images([pictures / image.name for image in split.images], 24)
    assert (found.shape, found.dtype) == ((7, 24, 24, 3), np.uint8)
    np.testing.assert_array_equal(found, expected)
    assert read_images([], 24).shape == (0, 24, 24, 3)


def png(width, height):
    """A PNG file that claims a size and has no pixels."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a readable image, it is empty: replace it or leave it out"),
        (b"<html>", "is not a readable image, its format is unknown"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "is not a readable image"),
        (png(10000, 10000), "is not a readable image, it has 10000x10000 pixels"),
        (png(30000, 30000), "is not a readable image, DecompressionBombError"),
        (png(20, 20), "is not a readable image"),
        (None, "There is no file"),
    ],
    ids=["empty", "page", "program", "large", "bomb", "no pixels", "absent"],
)
def test_files_that_are_not_images_are_named(pictures, tmp_path, content, message):
    path = tmp_path / "hostile.png"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=message) as raised:
        read_images([pictures / "a" / "0.png", path], 24)
    assert "hostile.png" in str(raised.value)
    assert "skip" not in str(raised.value)


def test_folders_and_impossible_sizes_are_refused(pictures):
    with pytest.raises(InputError, match="is a folder"):
        read_images([pictures], 24)
    for size in (0, -3, 10**9, 2.5):
        with pytest.raises(ParameterError, match="size must be an integer from 1 to 4,096"):
            read_images([pictures / "a" / "0.png"], size)


def test_thumbnails_are_small_webp_images_of_the_same_picture():
    x, y = np.mgrid[:224, :224]
    pixels = np.stack([x, y, 224 - x], axis=-1).astype(np.uint8)[None].repeat(2, axis=0)
    small = thumbnails(pixels)
    assert len(small) == 2
    assert len(small[0]) < 1500
    image = Image.open(BytesIO(small[0]))
    assert (image.format, image.size) == ("WEBP", (64, 64))
    expected = pixels[0, 2::7, 2::7].astype(int)
    found = np.asarray(image.resize((32, 32))).astype(int)
    assert np.abs(found - expected).mean() < 8
    assert Image.open(BytesIO(thumbnails(pixels, side=20)[0])).size == (20, 20)
