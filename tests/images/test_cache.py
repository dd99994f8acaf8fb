"""The file of decoded images: made once, resumed, and made again when the images change."""

from __future__ import annotations

import os
import shutil
import time

import numpy as np
import pytest

pytest.importorskip("PIL", reason="images need Pillow")

from image_copies import PACKERS, as_folder, class_folders, jpeg, mini_caches

from hotshot.errors import InputError, ParameterError
from hotshot.images.decode import decode, squares
from hotshot.images.layouts import open_dataset


def split_of(path, **options):
    return next(iter(open_dataset(path, **options).splits.values()))


@pytest.mark.parametrize("kind", ["folder", "tar.gz", "zip"])
def test_decoded_images_are_the_squares_in_order(tmp_path, kind):
    split = split_of(PACKERS[kind](tmp_path, class_folders(("a", "b", "c"), each=50)))
    steps = []
    decoded = decode(split, 12, tmp_path / "cache", progress=lambda *now: steps.append(now))
    assert (decoded.images.shape, decoded.images.dtype) == ((150, 12, 12, 3), np.uint8)
    np.testing.assert_array_equal(decoded.images, squares(split.images, 12)[0])
    np.testing.assert_array_equal(decoded.labels, split.labels)
    assert (decoded.names, decoded.corrupt) == (("a", "b", "c"), ())
    assert steps == [(64, 150), (128, 150), (150, 150)]
    # Mapped from the disk.
    assert not decoded.images.flags.owndata


def test_a_cache_is_used_again_whatever_lies_beside_the_images(tmp_path, monkeypatch):
    path = as_folder(tmp_path, class_folders())
    first = [decode(split_of(path), size, path / ".cache") for size in (16, 20)]
    (path / "notes.txt").write_bytes(b"x")
    monkeypatch.setattr("hotshot.images.decode.centre_square", lambda *_: pytest.fail("decoded again"))
    for size, decoded in zip((16, 20), first, strict=True):
        np.testing.assert_array_equal(decode(split_of(path), size, path / ".cache").images, decoded.images)


def test_it_is_made_again_when_an_image_changes(tmp_path):
    path = as_folder(tmp_path, class_folders() | {"ant/ant0.jpg": jpeg(1).ljust(2000)})
    before = np.array(decode(split_of(path), 16, tmp_path / "cache").images)
    # The same name and size, and other pixels.
    image = path / "ant" / "ant0.jpg"
    image.write_bytes(jpeg(77).ljust(2000))
    later = time.time() + 5
    os.utime(image, (later, later))
    assert not np.array_equal(decode(split_of(path), 16, tmp_path / "cache").images[0], before[0])
    (path / "ant" / "ant9.jpg").write_bytes(jpeg(5))
    assert len(decode(split_of(path), 16, tmp_path / "cache")) == 7


@pytest.mark.parametrize("content", [b"", b"{}", b"{}\n" + bytes(9000), None])
def test_a_damaged_file_is_made_again(tmp_path, content):
    split = split_of(as_folder(tmp_path, class_folders()))
    expected = np.array(decode(split, 16, tmp_path / "cache").images)
    (place,) = (tmp_path / "cache").iterdir()
    place.write_bytes(place.read_bytes()[:-5] if content is None else content)
    np.testing.assert_array_equal(decode(split, 16, tmp_path / "cache").images, expected)
    assert list((tmp_path / "cache").iterdir()) == [place]


def test_corrupt_images_stop_decoding_unless_they_are_to_be_skipped(tmp_path):
    files = class_folders(each=4)
    path = as_folder(tmp_path, files | {"ant/ant1.jpg": b"<html>", "bee/bee3.jpg": files["bee/bee3.jpg"][:-100]})
    message = (
        r"copy-all has 2 corrupt images, ant/ant1.jpg \(its format is unknown or its start is damaged\), "
        r"bee/bee3.jpg \(.*runcated.*\): replace them, or .*--skip-corrupt\); the others stay decoded"
    )
    with pytest.raises(InputError, match=message):
        decode(split_of(path), 16, tmp_path / "cache")
    split = split_of(path, skip_corrupt=True)
    decoded = decode(split, 16, tmp_path / "cache")
    assert decoded.corrupt == ("ant/ant1.jpg", "bee/bee3.jpg")
    assert decoded.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert len(decoded.images) == 6
    expected = squares([split.images[i] for i in (0, 2, 3, 4, 5, 6)], 16)[0]
    for some in (slice(None), np.array([1, 4])):
        np.testing.assert_array_equal(decoded.images[some], expected[some])
    # What was left out before is not forgotten by one who does not skip.
    with pytest.raises(InputError, match=message):
        decode(split_of(path), 16, tmp_path / "cache")


def test_a_class_that_loses_all_its_images_is_refused(tmp_path):
    path = as_folder(tmp_path, class_folders(each=1) | {"cow/1.jpg": b"x"})
    with pytest.raises(InputError, match="copy-all has no readable image of class 'cow'"):
        decode(split_of(path, skip_corrupt=True), 16, tmp_path / "cache")


def test_a_file_that_vanishes_is_named_and_read_when_it_is_back(tmp_path):
    path = as_folder(tmp_path, class_folders())
    split = split_of(path)
    (path / "bee" / "bee2.jpg").rename(tmp_path / "away.jpg")
    with pytest.raises(InputError, match=r"1 corrupt image, bee/bee2.jpg \(it cannot be read, No such file"):
        decode(split, 16, tmp_path / "cache")
    shutil.copy2(tmp_path / "away.jpg", path / "bee" / "bee2.jpg")
    assert len(decode(split, 16, tmp_path / "cache")) == len(split)


def test_an_interrupted_decoding_resumes(tmp_path, monkeypatch):
    monkeypatch.setattr("hotshot.images.decode._AT_ONCE", 2)
    split, steps = split_of(as_folder(tmp_path, class_folders())), []

    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        decode(split, 16, tmp_path / "cache", progress=interrupt)
    decoded = decode(split, 16, tmp_path / "cache", progress=lambda *now: steps.append(now))
    assert steps == [(4, 6), (6, 6)]
    np.testing.assert_array_equal(decoded.images, squares(split.images, 16)[0])


@pytest.mark.parametrize("size", [0, 5000, 84.0, True, "84", None])
def test_invalid_sizes_are_refused(tmp_path, size):
    with pytest.raises(ParameterError, match="size must be an integer from 1 to 4,096"):
        decode(split_of(as_folder(tmp_path, class_folders())), size, tmp_path)


def test_a_folder_that_cannot_be_written_is_reported(tmp_path):
    (tmp_path / "cache").write_bytes(b"x")
    with pytest.raises(InputError, match="cannot be written"):
        decode(split_of(as_folder(tmp_path, class_folders())), 16, tmp_path / "cache")


def test_images_of_the_right_size_decode_to_themselves(tmp_path):
    split = split_of(as_folder(tmp_path, mini_caches()))
    decoded = decode(split, 84, tmp_path / "cache")
    np.testing.assert_array_equal(decoded.images, [np.asarray(image.read()) for image in split.images])
