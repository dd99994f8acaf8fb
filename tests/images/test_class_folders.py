"""`split/class/image` and `class/image`, in folders and archives, and what is said of what is not quite that."""

from __future__ import annotations

import re

import numpy as np
import pytest

pytest.importorskip("PIL", reason="images need Pillow")

from image_copies import PACKERS, as_folder, class_folders, jpeg, pack_tar, split_folders, write_files

from hotshot.errors import InputError, ParameterError
from hotshot.images.layouts import open_dataset


@pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS)
def test_classes_are_the_folders_however_they_are_packed(tmp_path, pack):
    dataset = open_dataset(pack(tmp_path, class_folders(("bee", "ant"), each=3)))
    assert (dataset.name, list(dataset.splits)) == ("copy", ["all"])
    split = dataset.splits["all"]
    assert split.names == ("ant", "bee")
    assert split.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert [image.name.split("/")[-1] for image in split.images[:3]] == ["ant0.jpg", "ant1.jpg", "ant2.jpg"]
    # The same pixels come from every packing.
    plain = open_dataset(as_folder(tmp_path, class_folders(("bee", "ant"), each=3), "plain")).splits["all"]
    for one, two in zip(split.images, plain.images, strict=True):
        np.testing.assert_array_equal(np.asarray(one.read()), np.asarray(two.read()))
        assert one.size == two.size


@pytest.mark.parametrize("prefix", ["train/", "", "some/where/train/"])
def test_an_archive_per_split_is_packed_with_or_without_its_folder(tmp_path, prefix):
    pack_tar(tmp_path / "train.tar", class_folders(("a", "b"), prefix=prefix))
    pack_tar(tmp_path / "test.tgz", class_folders(("c",), prefix="test/"), "w:gz")
    dataset = open_dataset(tmp_path)
    assert {split: found.names for split, found in dataset.splits.items()} == {"base": ("a", "b"), "novel": ("c",)}
    assert dataset.splits["base"].images[0].name == f"train.tar:{prefix}a/a0.jpg"


def test_a_folder_that_holds_only_an_archive_is_that_archive(tmp_path):
    pack_tar(tmp_path / "zoo.tar.gz", class_folders(), "w:gz")
    assert open_dataset(tmp_path).splits["all"].names == ("ant", "bee")


@pytest.mark.parametrize(
    ("files", "splits"),
    [
        (
            split_folders({"train": ("a", "b"), "val": ("c",), "test": ("d",)}),
            {"base": ("a", "b"), "val": ("c",), "novel": ("d",)},
        ),
        (split_folders({"val": ("c", "d")}), {"val": ("c", "d")}),
        (class_folders(prefix="outer/inner/"), {"all": ("ant", "bee")}),
        (class_folders(("bus", "train")), {"all": ("bus", "train")}),
        (
            split_folders({"train": ("a",), "test": ("b",)}) | {"train/list.txt": b"x"},
            {"base": ("a",), "novel": ("b",)},
        ),
        ({"a/1.JPEG": jpeg(1), "a/2.Jpg": jpeg(2)}, {"all": ("a",)}),
    ],
    ids=["splits", "one split", "in folders", "a class called train", "a list in a split", "suffixes in any case"],
)
def test_splits_and_classes_are_those_of_the_folders(tmp_path, files, splits):
    dataset = open_dataset(as_folder(tmp_path, files))
    assert {name: split.names for name, split in dataset.splits.items()} == splits


def test_litter_and_other_files_are_left_out(tmp_path):
    files = class_folders() | {
        ".DS_Store": b"x",
        "ant/Thumbs.db": b"x",
        "ant/notes.txt": b"x",
        "__MACOSX/ant/._ant0.jpg": b"x",
        "README.md": b"x",
    }
    for pack in (PACKERS["folder"], PACKERS["tar"], PACKERS["zip"]):
        dataset = open_dataset(pack(tmp_path, files))
        assert len(dataset.splits["all"]) == 6


def test_images_outside_the_splits_are_noted(tmp_path):
    files = split_folders({"train": ("a",), "test": ("b",)}) | class_folders(("c",), prefix="holdout/")
    dataset = open_dataset(as_folder(tmp_path, files))
    assert dataset.notes == ("left out 3 images outside the splits, first 'holdout/c/c0.jpg'.",)


def test_links_to_folders_are_followed_and_circles_refused(tmp_path):
    as_folder(tmp_path, class_folders(prefix=""), "real")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "ant").symlink_to(tmp_path / "real" / "ant")
    assert len(open_dataset(tmp_path / "linked").splits["all"]) == 3
    (tmp_path / "linked" / "again").symlink_to(tmp_path / "linked")
    with pytest.raises(InputError, match=r"again/again.* is nested too deeply, or a link.*remove"):
        open_dataset(tmp_path / "linked")


def test_two_archives_of_one_split_are_refused(tmp_path):
    pack_tar(tmp_path / "train.tar", class_folders())
    pack_tar(tmp_path / "train.tar.gz", class_folders(), "w:gz")
    with pytest.raises(InputError, match=r"both train.tar and train.tar.gz: keep one"):
        open_dataset(tmp_path)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        pytest.param({}, "no folders of images: use split/class/image", id="nothing"),
        pytest.param({"a.txt": b"x"}, "no folders of images", id="no images"),
        pytest.param({"a.jpg": b"x"}, "'a.jpg' outside the folders of classes", id="flat"),
        pytest.param(class_folders() | {"bee/more/x.jpg": b"x"}, "'bee/more/x.jpg' deeper than", id="nested"),
        pytest.param(
            class_folders(prefix="train/") | {"train/ant/more/x.jpg": b"x"},
            "train has the image 'ant/more/x.jpg' deeper",
            id="nested in a split",
        ),
        pytest.param(class_folders() | {"cow/x.txt": b"x"}, "1 classes without images, 'cow' first", id="no image"),
        pytest.param(class_folders() | {"cow": None}, "1 classes without images, 'cow' first", id="empty folder"),
        pytest.param(
            split_folders({"train": ("a", "b"), "test": ("b", "c")}),
            "1 classes in both 'base' and 'novel', 'b' first: keep each class in one split",
            id="shared class",
        ),
        pytest.param(class_folders(prefix="val/") | class_folders(prefix="valid/"), "two splits for 'val'", id="two"),
        pytest.param(
            class_folders(prefix="one/") | class_folders(prefix="two/"), "deeper than in the folders", id="odd splits"
        ),
    ],
)
def test_errors_are_one_sentence(tmp_path, files, message):
    folder = tmp_path / "data"
    folder.mkdir()
    write_files(folder, {name: data for name, data in files.items() if data is not None})
    for name in [name for name, data in files.items() if data is None]:
        (folder / name).mkdir()
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        open_dataset(folder)
    assert str(caught.value).startswith(str(folder))
    assert "\n" not in str(caught.value)


def test_missing_paths_and_unknown_kinds_are_refused(tmp_path):
    with pytest.raises(InputError, match="There is no folder or archive"):
        open_dataset(tmp_path / "absent")
    with pytest.raises(InputError, match=r"There is no folder or archive|cannot be read"):
        open_dataset("a\0b")
    (tmp_path / "page.zip").write_bytes(b"<!DOCTYPE html><html>" * 40)
    with pytest.raises(InputError, match=r"neither a folder nor a tar or zip.*DOCTYPE"):
        open_dataset(tmp_path / "page.zip")
    with pytest.raises(ParameterError, match=r"kind must be 'auto' or one of.*got 'imagenet'"):
        open_dataset(tmp_path, "imagenet")
