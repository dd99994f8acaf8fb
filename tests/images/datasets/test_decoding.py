"""The cache of decoded images: made once, whole or not at all, and made again when the images change."""

from __future__ import annotations

import json
import os
import shutil
import time

import numpy as np
import pytest

pytest.importorskip("PIL", reason="images need Pillow")

from image_copies import PACKERS, as_folder, class_folders, jpeg, mini_caches

from bounded import within
from conftest import real_data
from hotshot.errors import InputError, ParameterError
from hotshot.images.datasets import Corrupt, decode, open_dataset


def split_of(path, **options):
    return next(iter(open_dataset(path, **options).splits.values()))


@pytest.mark.parametrize("kind", ["folder", "tar", "tar.gz", "zip"])
def test_decoded_images_are_the_squares_in_order(tmp_path, kind):
    split = split_of(PACKERS[kind](tmp_path, class_folders(("a", "b", "c"), each=50)))
    steps = []
    found = decode(split, 12, tmp_path / "cache", progress=lambda done, total: steps.append((done, total)))
    assert found.images.shape == (150, 12, 12, 3)
    assert found.images.dtype == np.uint8
    np.testing.assert_array_equal(found.images, [image.square(12) for image in split.images])
    np.testing.assert_array_equal(found.labels, split.labels)
    np.testing.assert_array_equal(found.kept, np.arange(150))
    assert list(found.ids) == [image.name for image in split.images]
    assert found.names == ("a", "b", "c")
    assert found.corrupt == ()
    assert steps == [(64, 150), (128, 150), (150, 150)]
    assert isinstance(found.images.base, np.memmap)


def test_arrays_of_the_right_size_are_kept_pixel_by_pixel(tmp_path):
    split = split_of(as_folder(tmp_path, mini_caches()))
    found = decode(split, 84, tmp_path / "cache")
    np.testing.assert_array_equal(found.images, [np.asarray(image.read()) for image in split.images])
    assert decode(split, 32, tmp_path / "cache").images.shape == (6, 32, 32, 3)


def test_a_cache_is_used_again_and_each_size_has_its_own(tmp_path, monkeypatch):
    path = as_folder(tmp_path, class_folders())
    first = decode(split_of(path), 16, tmp_path / "cache")
    other = decode(split_of(path), 20, tmp_path / "cache")
    assert other.folder != first.folder
    monkeypatch.setattr("hotshot.images.datasets.decoding._make", lambda *_: pytest.fail("decoded again"))
    again = decode(split_of(path), 16, tmp_path / "cache")
    np.testing.assert_array_equal(again.images, first.images)
    np.testing.assert_array_equal(again.labels, first.labels)
    assert list(again.ids) == list(first.ids)


def test_it_is_made_again_when_an_image_changes(tmp_path):
    path = as_folder(tmp_path, class_folders() | {"ant/ant0.jpg": jpeg(1).ljust(2000)})
    first = decode(split_of(path), 16, tmp_path / "cache")
    before = np.array(first.images)
    # The same name and size, and other pixels.
    image = path / "ant" / "ant0.jpg"
    image.write_bytes(jpeg(77).ljust(2000))
    later = time.time() + 5
    os.utime(image, (later, later))
    assert split_of(path).fingerprint() == first.fingerprint
    again = decode(split_of(path), 16, tmp_path / "cache")
    assert not np.array_equal(again.images[0], before[0])
    (path / "ant" / "ant9.jpg").write_bytes(jpeg(5))
    assert len(decode(split_of(path), 16, tmp_path / "cache")) == 7


def test_other_files_beside_the_images_do_not_matter(tmp_path, monkeypatch):
    path = as_folder(tmp_path, class_folders())
    decode(split_of(path), 16, path / ".cache")
    (path / "notes.txt").write_bytes(b"x")
    monkeypatch.setattr("hotshot.images.datasets.decoding._make", lambda *_: pytest.fail("decoded again"))
    assert len(decode(split_of(path), 16, path / ".cache")) == 6


@pytest.mark.parametrize("damage", ["images.npy", "header.json"])
@pytest.mark.parametrize("how", ["truncated", "absent", "other"])
def test_a_damaged_cache_is_made_again(tmp_path, damage, how):
    split = split_of(as_folder(tmp_path, class_folders()))
    first = decode(split, 16, tmp_path / "cache")
    expected = np.array(first.images)
    file = first.folder / damage
    if how == "absent" and damage != "header.json":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-5] if how == "truncated" else b"{}")
    again = decode(split, 16, tmp_path / "cache")
    np.testing.assert_array_equal(again.images, expected)
    assert json.loads((again.folder / "header.json").read_text())["count"] == 6


def broken(tmp_path):
    files = class_folders(each=4)
    files["ant/ant1.jpg"] = b"<html>"
    files["bee/bee3.jpg"] = files["bee/bee3.jpg"][:-100]
    return as_folder(tmp_path, files)


def test_corrupt_images_are_all_named(tmp_path):
    found = decode(split_of(broken(tmp_path), skip_corrupt=True), 16, tmp_path / "cache").corrupt
    assert [one.name for one in found] == ["ant/ant1.jpg", "bee/bee3.jpg"]
    assert found[0] == Corrupt("ant/ant1.jpg", "its format is unknown or its start is damaged")
    assert "runcated" in found[1].reason


def test_corrupt_images_stop_decoding_unless_they_are_to_be_skipped(tmp_path):
    path = broken(tmp_path)
    message = (
        r"copy-all has 2 corrupt images, ant/ant1.jpg \(.*\), bee/bee3.jpg \(.*\): replace them, or .*--skip-corrupt"
    )
    with pytest.raises(InputError, match=message):
        decode(split_of(path), 16, tmp_path / "cache")
    # The others are not decoded again.
    (cache,) = (tmp_path / "cache").iterdir()
    before = (cache / "images.npy").stat().st_ino
    split = split_of(path, skip_corrupt=True)
    assert decode(split, 16, tmp_path / "cache").folder == cache
    assert (cache / "images.npy").stat().st_ino == before
    for _ in range(2):
        found = decode(split, 16, tmp_path / "cache")
        assert found.kept.tolist() == [0, 2, 3, 4, 5, 6]
        assert list(found.ids) == [split.images[i].name for i in (0, 2, 3, 4, 5, 6)]
        assert found.labels.tolist() == [0, 0, 0, 1, 1, 1]
        assert [one.name for one in found.corrupt] == ["ant/ant1.jpg", "bee/bee3.jpg"]
        np.testing.assert_array_equal(found.images, [split.images[i].square(16) for i in found.kept])
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
    (path / "bee" / "bee2.jpg").rename(tmp_path / "kept.jpg")
    with pytest.raises(InputError, match=r"1 corrupt image, bee/bee2.jpg \(it cannot be read, No such file"):
        decode(split, 16, tmp_path / "cache")
    shutil.copy2(tmp_path / "kept.jpg", path / "bee" / "bee2.jpg")
    assert len(decode(split, 16, tmp_path / "cache")) == len(split)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_a_file_that_becomes_a_pipe_is_named_and_not_waited_for(tmp_path):
    path = as_folder(tmp_path, class_folders())
    split = split_of(path)
    (path / "bee" / "bee2.jpg").unlink()
    os.mkfifo(path / "bee" / "bee2.jpg")
    pipe = next(image for image in split.images if image.name == "bee/bee2.jpg")
    with within(10), pytest.raises(InputError, match=r"it cannot be read, it is not a regular file: replace it"):
        pipe.read()


def test_an_interrupted_decoding_leaves_nothing_and_starts_again(tmp_path):
    split = split_of(as_folder(tmp_path, class_folders()))

    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        decode(split, 16, tmp_path / "cache", progress=interrupt)
    assert list((tmp_path / "cache").iterdir()) == []
    assert len(decode(split, 16, tmp_path / "cache")) == 6


def test_leftovers_of_a_killed_process_are_removed(tmp_path):
    split = split_of(as_folder(tmp_path, class_folders()))
    place = decode(split, 16, tmp_path / "cache").folder
    (place / "header.json").write_text("{}")
    part = place.with_name(f".{place.name[:60]}.0123abcd.part")
    part.mkdir()
    (part / "images.npy").write_bytes(b"x")
    decode(split, 16, tmp_path / "cache")
    assert list(place.parent.iterdir()) == [place]


@pytest.mark.parametrize("size", [0, 7, 5000, 84.0, True, "84", None])
def test_invalid_sizes_are_refused(tmp_path, size):
    with pytest.raises(ParameterError, match="size must be an integer from 8 to 2048"):
        decode(split_of(as_folder(tmp_path, class_folders())), size, tmp_path)


def test_a_folder_that_cannot_be_written_is_reported(tmp_path):
    (tmp_path / "cache").write_bytes(b"x")
    with pytest.raises(InputError, match="cannot be written"):
        decode(split_of(as_folder(tmp_path, class_folders())), 16, tmp_path / "cache")


def test_real_images_decode_to_themselves(tmp_path):
    split = open_dataset(real_data("miniimagenet/val.tar")).splits["val"]
    found = decode(split, 84, tmp_path)
    assert found.images.shape == (3200, 84, 84, 3)
    for i in (0, 1234, 3199):
        np.testing.assert_array_equal(found.images[i], np.asarray(split.images[i].read()))
    assert found.corrupt == ()
