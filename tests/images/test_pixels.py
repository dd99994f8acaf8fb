"""Image files of every usual form become the RGB pixels that a person sees, and squares of them."""

from __future__ import annotations

import io
import struct
import sys
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("PIL", reason="images need Pillow")

from image_copies import as_folder, encoded, jpeg, pixels
from PIL import Image

from bounded import at_most
from hotshot.encoders import read_images, thumbnails
from hotshot.errors import InputError, ParameterError
from hotshot.images.decode import CorruptImageError, centre_square, decoded


def read(data):
    return np.asarray(decoded(data, "x"))


@pytest.mark.parametrize(
    ("form", "error"), [("PNG", 0), ("BMP", 0), ("TIFF", 0), ("PPM", 0), ("JPEG", 8), ("WEBP", 8), ("GIF", 8)]
)
def test_pixels_are_those_that_were_stored(form, error):
    image = pixels(3)
    assert np.abs(read(encoded(image, form)).astype(int) - image).mean() <= error


def test_one_bit_grey_and_palette_images_become_rgb():
    grey = pixels(1)[..., 0]
    np.testing.assert_array_equal(read(encoded(grey)), np.repeat(grey[..., None], 3, axis=2))
    bits = np.where(grey > 60, 255, 0).astype(np.uint8)
    np.testing.assert_array_equal(read(encoded(Image.fromarray(bits).convert("1")))[..., 1], bits)
    palette = Image.fromarray(pixels(1)).quantize(16)
    np.testing.assert_array_equal(read(encoded(palette)), np.asarray(palette.convert("RGB")))


def test_sixteen_bits_are_scaled_and_rounded_as_floats_are():
    deep = np.arange(2**16, dtype=np.uint16).reshape(256, 256)
    np.testing.assert_array_equal(read(encoded(deep))[..., 0], np.rint(deep / 257).astype(np.uint8))


def test_transparent_pixels_are_white():
    image = np.zeros((4, 4, 4), np.uint8)
    image[0, :, 3] = 255
    seen = read(encoded(image))
    assert (seen[0].max(), seen[1:].min()) == (0, 255)
    palette = Image.new("P", (4, 4), 0)
    palette.putpalette([10, 20, 30])
    assert read(encoded(palette, transparency=0)).min() == 255


def test_a_photograph_is_turned_as_its_camera_says():
    exif = Image.Exif()
    exif[0x0112] = 6
    assert read(encoded(pixels(1, 16, 32), "JPEG", exif=exif)).shape == (32, 16, 3)


def png(width, height):
    """A PNG file that claims a size and has no pixels."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(b"", "it is empty", id="empty"),
        pytest.param(b"<html>not found</html>", "its format is unknown", id="page"),
        pytest.param(jpeg(1)[:-200], "(?i:.*truncated)", id="truncated jpeg"),
        pytest.param(encoded(pixels(1))[:-40], "", id="truncated png"),
        pytest.param(png(9_000, 9_000), "it has 9000x9000 pixels", id="large"),
        pytest.param(png(60_000, 60_000), "DecompressionBombError", id="bomb"),
        pytest.param(png(20, 20), "", id="no pixels"),
        pytest.param(encoded(np.ones((3, 3), np.float32), "TIFF"), "its pixels are floating-point", id="floats"),
        pytest.param(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "its format is unknown", id="program"),
    ],
)
def test_files_that_are_no_images_are_named_with_the_reason(tmp_path, data, reason):
    message = f"bad.png is not a readable image, {reason}.*: replace it or leave it out.$"
    with pytest.raises(CorruptImageError, match=message) as raised:
        decoded(data, "bad.png")
    assert raised.value.name == "bad.png"
    as_folder(tmp_path, {"good.png": encoded(pixels(1)), "bad.png": data})
    with pytest.raises(InputError, match=message):
        read_images([tmp_path / "copy" / name for name in ("good.png", "bad.png")], 24)


@given(st.sampled_from(["JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP"]), st.data())
def test_damaged_bytes_give_an_image_or_the_named_error(form, data):
    damaged = bytearray(encoded(pixels(2), form))
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        image = decoded(bytes(damaged), "x")
    except CorruptImageError:
        return
    assert image.mode == "RGB"


def test_without_pillow_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(InputError, match=r"needs Pillow: pip install 'hotshot\[images\]'"):
        decoded(b"", "x")


# --- squares


def test_what_is_no_file_and_impossible_sizes_are_refused(tmp_path):
    assert read_images([], 24).shape == (0, 24, 24, 3)
    with pytest.raises(InputError, match="is a folder"):
        read_images([tmp_path], 24)
    with pytest.raises(InputError, match="There is no file"):
        read_images([tmp_path / "absent.png"], 24)
    for size in (0, -3, 10**9, 2.5):
        with pytest.raises(ParameterError, match="size must be an integer from 1 to 4,096"):
            read_images([], size)


@pytest.mark.parametrize(("height", "width"), [(40, 80), (80, 40), (41, 80), (20, 20)])
def test_the_centre_is_kept(height, width):
    image = np.zeros((height, width, 3), np.uint8)
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    image[top : top + side, left : left + side] = pixels(4, side, side) // 2 + 100
    square = centre_square(Image.fromarray(image), 20)
    assert square.shape == (20, 20, 3)
    assert square[2:-2, 2:-2].min() >= 90
    if side == 20:
        np.testing.assert_array_equal(square, image)


def test_resizing_averages_and_keeps_constants():
    assert (centre_square(Image.new("RGB", (333, 200), (7, 8, 9)), 32) == [7, 8, 9]).all()
    board = np.indices((256, 256)).sum(0) % 2 * 255
    small = centre_square(Image.fromarray(np.repeat(board[..., None], 3, 2).astype(np.uint8)), 32)
    assert np.abs(small.astype(int) - 127).max() < 12


def test_a_large_jpeg_read_at_a_fraction_is_the_same_picture():
    data = encoded(pixels(5, 600, 800), "JPEG", quality=95)
    assert min(decoded(data, "x", at_least=100).size) in range(100, 300)
    whole, part = (centre_square(decoded(data, "x", at_least), 50).astype(int) for at_least in (None, 100))
    assert np.abs(whole - part).max() <= 4


def test_thumbnails_are_small_webp_images_of_the_same_picture():
    x, y = np.mgrid[:224, :224]
    picture = np.stack([x, y, 224 - x], axis=-1).astype(np.uint8)
    small, _ = thumbnails(picture[None].repeat(2, axis=0))
    assert len(small) < 1500
    image = Image.open(io.BytesIO(small))
    assert (image.format, image.size) == ("WEBP", (64, 64))
    shown = np.asarray(image.resize((32, 32))).astype(int)
    assert np.abs(shown - picture[2::7, 2::7]).mean() < 8
    assert Image.open(io.BytesIO(thumbnails(picture[None], side=20)[0])).size == (20, 20)


# --- large images of small files


@pytest.mark.parametrize("mode", ["I;16", "I", "RGBA", "LA", "L", "1", "CMYK", "P"])
def test_an_image_converted_in_strips_equals_the_whole(mode, monkeypatch):
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 2**16, size=(37, 23)).astype(np.uint16)
    if mode in ("I;16", "I"):
        image = Image.fromarray(noise if mode == "I;16" else noise.astype(np.int32))
    elif mode == "P":
        image = Image.fromarray((noise // 257).astype(np.uint8)).convert("P")
    else:
        image = Image.fromarray(rng.integers(0, 256, size=(37, 23, 4)).astype(np.uint8), "RGBA").convert(mode)
    options = {"transparency": 3} if mode == "P" else {}
    data = encoded(image, "TIFF" if mode in ("I", "CMYK") else "PNG", **options)
    whole = read(data)
    monkeypatch.setattr("hotshot.images.decode.STRIP", 50)
    np.testing.assert_array_equal(read(data), whole)


def test_a_webp_may_have_half_the_pixels(monkeypatch):
    """Its decoder holds more copies: 8192x8192 pixels in 178 kB would take over a gigabyte."""
    monkeypatch.setattr("hotshot.images.decode.MOST_PIXELS", 2 * 30 * 40)
    assert read(encoded(pixels(1, 30, 40), "WEBP")).shape == (30, 40, 3)
    assert read(encoded(pixels(1, 31, 40), "PNG")).shape == (31, 40, 3)
    with pytest.raises(CorruptImageError, match="it has 40x31 pixels"):
        read(encoded(pixels(1, 31, 40), "WEBP"))


@pytest.mark.parametrize("mode", ["I;16", "RGBA"])
def test_a_large_image_takes_little_more_than_its_pixels(mode):
    """8192x8192 in a few kilobytes; what Python and NumPy take beyond Pillow's own images is a strip."""
    data = encoded(Image.new(mode, (8192, 1024)))
    with at_most(2**27):
        decoded(data, "x")
