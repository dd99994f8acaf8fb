"""Image files of every usual form become the RGB pixels that a person sees."""

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

from image_copies import encoded, jpeg, pixels
from PIL import Image

from bounded import at_most
from hotshot.errors import InputError
from hotshot.images.decode import CorruptImageError, centre_square, decoded


def read(data):
    return np.asarray(decoded(data, "x"))


@pytest.mark.parametrize("form", ["PNG", "BMP", "TIFF", "PPM"])
def test_lossless_formats_keep_every_pixel(form):
    image = pixels(3)
    np.testing.assert_array_equal(read(encoded(image, form)), image)


@pytest.mark.parametrize("form", ["JPEG", "WEBP", "GIF"])
def test_lossy_formats_keep_almost_every_pixel(form):
    image = pixels(3)
    assert np.abs(read(encoded(image, form)).astype(int) - image).mean() < 8


def test_one_bit_grey_and_palette_images_become_rgb():
    grey = pixels(1)[..., 0]
    np.testing.assert_array_equal(read(encoded(grey)), np.repeat(grey[..., None], 3, axis=2))
    bits = np.where(grey > 60, 255, 0).astype(np.uint8)
    np.testing.assert_array_equal(read(encoded(Image.fromarray(bits).convert("1")))[..., 1], bits)
    palette = Image.fromarray(pixels(1)).quantize(16)
    np.testing.assert_array_equal(read(encoded(palette)), np.asarray(palette.convert("RGB")))


def test_sixteen_bits_are_scaled_not_clipped():
    deep = np.array([[0, 257, 40 * 257, 65535]], dtype=np.uint16)
    assert read(encoded(deep))[0, :, 0].tolist() == [0, 1, 40, 255]


def test_transparent_pixels_are_white():
    image = np.zeros((4, 4, 4), np.uint8)
    image[0, :, 3] = 255
    seen = read(encoded(image))
    assert seen[0].max() == 0
    assert seen[1:].min() == 255
    palette = Image.new("P", (4, 4), 0)
    palette.putpalette([10, 20, 30])
    assert read(encoded(palette, transparency=0)).min() == 255


def test_a_photograph_is_turned_as_its_camera_says():
    exif = Image.Exif()
    exif[0x0112] = 6
    assert read(encoded(pixels(1, 16, 32), "JPEG", exif=exif)).shape == (32, 16, 3)


def test_floating_point_pixels_are_refused():
    with pytest.raises(CorruptImageError, match="x is not a readable image, its pixels are floating-point"):
        read(encoded(np.ones((3, 3), np.float32), "TIFF"))


def huge_png():
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(b"", "it is empty", id="empty"),
        pytest.param(b"<html>not found</html>", "format is unknown", id="html"),
        pytest.param(jpeg(1)[:-200], "(?i:truncated)", id="truncated jpeg"),
        pytest.param(encoded(pixels(1))[:-40], "", id="truncated png"),
        pytest.param(huge_png(), "pixels|Bomb", id="bomb"),
        pytest.param(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "format is unknown", id="postscript"),
    ],
)
def test_unreadable_images_are_named_with_the_reason(data, reason):
    with pytest.raises(CorruptImageError, match=f"pic.jpg is not a readable image, .*({reason})") as caught:
        decoded(data, "pic.jpg")
    assert caught.value.name == "pic.jpg"
    assert "--skip-corrupt" in str(caught.value)


@given(st.sampled_from(["JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP"]), st.data())
def test_damaged_bytes_give_an_image_or_the_named_error(form, data):
    damaged = bytearray(encoded(pixels(2), form))
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = decoded(bytes(damaged), "x")
    except CorruptImageError:
        return
    assert found.mode == "RGB"


def test_a_square_of_the_right_size_is_not_touched():
    image = pixels(4, 84, 84)
    np.testing.assert_array_equal(centre_square(Image.fromarray(image), 84), image)


@pytest.mark.parametrize(("height", "width"), [(40, 80), (80, 40), (41, 80)])
def test_the_centre_is_kept(height, width):
    image = np.zeros((height, width, 3), np.uint8)
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    image[top : top + side, left : left + side] = 200
    square = centre_square(Image.fromarray(image), 20)
    assert square.shape == (20, 20, 3)
    assert square[2:-2, 2:-2].min() >= 190


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


def test_without_pillow_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(InputError, match=r"needs Pillow: pip install 'hotshot\[images\]'"):
        decoded(io.BytesIO().getvalue(), "x")


# --- large images of small files


@pytest.mark.parametrize("mode", ["I;16", "I", "RGBA", "LA", "L", "1", "CMYK", "P"])
def test_an_image_converted_in_strips_equals_the_whole(mode, monkeypatch):
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 2**16, size=(37, 23)).astype(np.uint16)
    if mode == "I;16":
        image = Image.fromarray(noise)
    elif mode == "I":
        image = Image.fromarray(noise.astype(np.int32))
    elif mode == "P":
        image = Image.fromarray((noise // 257).astype(np.uint8)).convert("P")
    else:
        image = Image.fromarray(rng.integers(0, 256, size=(37, 23, 4)).astype(np.uint8), "RGBA").convert(mode)
    data = io.BytesIO()
    image.save(data, "TIFF" if mode in ("I", "CMYK") else "PNG", **({"transparency": 3} if mode == "P" else {}))
    whole = np.asarray(decoded(data.getvalue(), "x"))
    monkeypatch.setattr("hotshot.images.decode.STRIP", 50)
    np.testing.assert_array_equal(np.asarray(decoded(data.getvalue(), "x")), whole)


def test_sixteen_bits_are_rounded_as_floats_are():
    deep = np.arange(2**16, dtype=np.uint16).reshape(256, 256)
    data = io.BytesIO()
    Image.fromarray(deep).save(data, "PNG")
    found = np.asarray(decoded(data.getvalue(), "x"))[..., 0]
    np.testing.assert_array_equal(found, np.rint(deep / 257).astype(np.uint8))


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
    data = io.BytesIO()
    Image.new(mode, (8192, 1024)).save(data, "PNG")
    with at_most(2**27):
        decoded(data.getvalue(), "x")
