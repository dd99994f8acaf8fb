"""miniImageNet, tieredImageNet, CUB, CIFAR-FS and Omniglot in the layouts in which they were published."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest

pytest.importorskip("PIL", reason="images need Pillow")

from image_copies import (
    CIFAR_LISTS,
    PACKERS,
    WNIDS,
    as_folder,
    cifar_folders,
    cifar_pickles,
    class_folders,
    cub,
    mini_caches,
    omniglot,
    pack_tar,
    pack_zip,
    ravi_images,
    ravi_lists,
    split_folders,
    tiered_arrays,
    tiered_labels,
    tiered_pngs,
    write_files,
)

from children import no_child  # noqa: F401
from conftest import real_data
from hotshot.errors import InputError
from hotshot.images.layouts import CIFAR_CLASSES as CLASSES
from hotshot.images.layouts import open_dataset

MINI = {"base": WNIDS["train"], "val": WNIDS["val"], "novel": WNIDS["test"]}


def classes(dataset):
    return {split: found.names for split, found in dataset.splits.items()}


def refused(folder, kind, message):
    with pytest.raises(InputError, match=message) as caught:
        open_dataset(folder, kind)
    assert "\n" not in str(caught.value)


# --- miniImageNet


@pytest.mark.parametrize(
    "files",
    [
        pytest.param(split_folders() | ravi_lists(), id="folders of splits, and lists"),
        pytest.param(ravi_images("images/{file}") | ravi_lists(), id="one folder and lists"),
        pytest.param(ravi_images("{wnid}/{file}") | ravi_lists(), id="folders of classes and lists"),
        pytest.param(ravi_images("images/{wnid}/{file}") | ravi_lists(), id="both"),
        pytest.param(mini_caches(), id="caches"),
        pytest.param(mini_caches(protocol=4), id="caches of a newer Python"),
    ],
)
def test_miniimagenet_is_recognised(tmp_path, files):
    dataset = open_dataset(as_folder(tmp_path, files))
    assert dataset.name == "miniimagenet"
    assert classes(dataset) == MINI
    assert "research" in dataset.about["licence"]
    assert "Split 'base' has 2 classes, but 64 were published." in dataset.about["notes"]


def test_miniimagenet_by_its_numbers_of_classes_alone(tmp_path):
    wnids = [f"n{i:08}" for i in range(80)]
    files = split_folders({"train": wnids[:64], "val": wnids[64:]}, each=1)
    dataset = open_dataset(as_folder(tmp_path, files))
    assert dataset.name == "miniimagenet"
    assert dataset.about["notes"] == ["Split 'novel' (test) is missing."]


def test_cached_images_are_the_arrays_of_their_classes(tmp_path):
    files = mini_caches()
    stored = pickle.loads(files["mini-imagenet-cache-train.pkl"])
    split = open_dataset(as_folder(tmp_path, files), "miniimagenet").splits["base"]
    for name, label in (("n01532829", 0), ("n01558993", 1)):
        found = [
            np.asarray(image.read()) for image, own in zip(split.images, split.labels, strict=True) if own == label
        ]
        np.testing.assert_array_equal(found, stored["image_data"][stored["class_dict"][name]])
    assert split.images[4].name == "mini-imagenet-cache-train.pkl[4]"


def cache(**changes):
    content = {"image_data": np.zeros((4, 84, 84, 3), np.uint8), "class_dict": {"a": [0, 1], "b": [2, 3]}} | changes
    return {"mini-imagenet-cache-train.pkl": pickle.dumps(content)}


class Runs:
    def __reduce__(self):
        return eval, ("1/0",)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        pytest.param({"a.txt": b"x"}, "is not miniImageNet, it has no train.csv", id="nothing"),
        pytest.param(ravi_lists(), "it has no images: give the folder", id="lists only"),
        pytest.param(
            {k: v for k, v in (ravi_images() | ravi_lists()).items() if not k.endswith("n018556720.jpg")},
            "lacks 1 of the 8 images in its lists, first 'n018556720.jpg'",
            id="an image is lost",
        ),
        pytest.param(
            ravi_images() | {"train.csv": b"name;class\n"},
            "not a valid list of 'filename,label' lines",
            id="other list",
        ),
        pytest.param(
            split_folders() | {"val.csv": b"filename,label\nx.jpg,n99999999\n"},
            "class 'n01855672' in val, which val.csv does not name",
            id="list of other classes",
        ),
        pytest.param(cache(class_dict={"a": [0, 1], "b": [1, 2]}), "lists images twice", id="shared image"),
        pytest.param(cache(class_dict={"a": [0, 4]}), "not exactly the 4", id="image beyond"),
        pytest.param(cache(class_dict={"a": [0, -1]}), "not exactly the 4", id="negative"),
        pytest.param(cache(class_dict={"a": []}), "1 classes without images, 'a' first", id="empty class"),
        pytest.param(cache(class_dict={"a": ["x"]}), "numbers of images that are not integers", id="text for numbers"),
        pytest.param(cache(class_dict=[1]), "not a valid cache of miniImageNet", id="no dictionary"),
        pytest.param(cache(image_data=np.zeros((4, 84, 84))), "float64 .* instead of uint8", id="floats"),
        pytest.param(cache(image_data=np.zeros((4, 84), np.uint8)), r"uint8 \(4, 84\) instead of", id="flat"),
        pytest.param(cache(image_data=[1, 2]), "int64 .* instead of uint8", id="list"),
        pytest.param(cache(image_data=Runs()), "eval.*nothing of it was run", id="hostile"),
        pytest.param(
            {"mini-imagenet-cache-val.pkl": pickle.dumps({"x": 1})},
            "not a valid cache of miniImageNet .KeyError 'image_data'",
            id="other",
        ),
        pytest.param({"mini-imagenet-cache-val.pkl": b""}, "empty", id="empty"),
    ],
)
def test_what_is_not_miniimagenet_is_refused(tmp_path, files, message):
    refused(as_folder(tmp_path, files), "miniimagenet", message)


def test_real_miniimagenet():
    dataset = open_dataset(real_data("miniimagenet/val.tar"))
    assert dataset.name == "miniimagenet"
    split = dataset.splits["val"]
    assert (len(split.names), len(split)) == (16, 3200)
    assert split.names[0] == "n01855672"
    assert split.images[0].name == "val.tar:val/n01855672/n0185567200000003.jpg"
    assert np.asarray(split.images[0].read()).shape == (84, 84, 3)


# --- tieredImageNet


@pytest.mark.parametrize(
    ("files", "first"),
    [
        pytest.param(tiered_arrays(), "train bird, 0", id="npz"),
        pytest.param(tiered_arrays(np.savez_compressed), "train bird, 0", id="compressed npz"),
        pytest.param(tiered_arrays(keys="labels"), "train/005", id="labels without names"),
        pytest.param(tiered_pngs(), "train bird, 0", id="png arrays"),
        pytest.param(tiered_pngs(as_array=False), "train bird, 0", id="png bytes"),
    ],
)
def test_tieredimagenet_is_recognised(tmp_path, files, first):
    dataset = open_dataset(as_folder(tmp_path, files))
    assert dataset.name == "tieredimagenet"
    assert list(dataset.splits) == ["base", "val", "novel"]
    split = dataset.splits["base"]
    assert split.names[0] == first
    assert split.labels.tolist() == [0, 0, 0, 1, 1, 1]
    # Labels alternate in the files: the first class has images 0, 2, 4.
    assert [image.name.split("[")[1] for image in split.images] == ["0]", "2]", "4]", "1]", "3]", "5]"]
    assert np.asarray(split.images[0].read()).shape == (84, 84, 3)


def test_stored_and_compressed_arrays_hold_the_same_images(tmp_path):
    one, two = (
        open_dataset(as_folder(tmp_path, tiered_arrays(save), name)).splits["val"]
        for name, save in (("stored", np.savez), ("compressed", np.savez_compressed))
    )
    # The authors' arrays have blue before red.
    expected = np.random.default_rng(1).integers(0, 256, (6, 84, 84, 3), dtype=np.uint8)[..., ::-1]
    np.testing.assert_array_equal([np.asarray(image.read()) for image in one.images], expected[[0, 2, 4, 1, 3, 5]])
    np.testing.assert_array_equal([np.asarray(image.read()) for image in two.images], expected[[0, 2, 4, 1, 3, 5]])


def test_arrays_beside_labels_of_others_are_rgb_already(tmp_path):
    split = open_dataset(as_folder(tmp_path, tiered_arrays(keys="labels"))).splits["val"]
    expected = np.random.default_rng(1).integers(0, 256, (6, 84, 84, 3), dtype=np.uint8)
    np.testing.assert_array_equal(np.asarray(split.images[1].read()), expected[2])


def test_a_word_for_two_classes_of_imagenet_is_no_shared_class(tmp_path):
    files = tiered_arrays()
    for split in ("train", "test"):
        files[f"{split}_labels.pkl"] = pickle.dumps(
            {"label_specific": np.tile([0, 1], 3), "label_specific_str": ["crane", f"{split} bird"]}
        )
    dataset = open_dataset(as_folder(tmp_path, files))
    assert dataset.splits["base"].names == ("crane (train 0)", "train bird")
    assert dataset.splits["novel"].names == ("crane (test 0)", "test bird")


def test_tieredimagenet_in_folders(tmp_path):
    dataset = open_dataset(as_folder(tmp_path, split_folders()), "tieredimagenet")
    assert dataset.name == "tieredimagenet"
    assert classes(dataset) == MINI
    assert dataset.about["notes"][0] == "Split 'base' has 2 classes, but 351 were published."


def without(files, name):
    return {key: value for key, value in files.items() if key != name}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        pytest.param({"a.txt": b"x"}, "is not tieredImageNet, it has neither folders", id="nothing"),
        pytest.param(
            without(tiered_arrays(), "val_labels.pkl"), "images of split 'val' and no val_labels.pkl", id="labels"
        ),
        pytest.param(
            tiered_arrays() | {"train_labels.pkl": tiered_labels("train", each=2)},
            "train_images.npz .*it has 6 images, and train_labels.pkl 4 labels",
            id="other number",
        ),
        pytest.param(
            tiered_arrays(lambda file, images: np.savez(file, X=images)), "no array 'images'", id="other name"
        ),
        pytest.param(tiered_arrays(lambda file, images: np.savez(file, images=images / 255)), "float64", id="floats"),
        pytest.param(
            tiered_arrays() | {"train_labels.pkl": pickle.dumps({"label_specific": [0], "label_specific_str": []})},
            "not among its 0 classes",
            id="no names",
        ),
        pytest.param(
            tiered_pngs() | {"train_images_png.pkl": pickle.dumps([1, 2])}, "not a valid file of images", id="no bytes"
        ),
        pytest.param(
            tiered_pngs() | {"train_images_png.pkl": pickle.dumps({})}, "not a valid file of images", id="no list"
        ),
    ],
)
def test_what_is_not_tieredimagenet_is_refused(tmp_path, files, message):
    refused(as_folder(tmp_path, files), "tieredimagenet", message)


# --- CUB-200-2011


@pytest.mark.parametrize("pack", [PACKERS["folder"], PACKERS["tar.gz"]], ids=["folder", "tgz"])
@pytest.mark.parametrize("prefix", ["CUB_200_2011/", ""])
def test_cub_is_split_by_class_number(tmp_path, pack, prefix):
    # The published archive has a file beside its folder.
    path = pack(tmp_path, cub(prefix=prefix) | {"attributes.txt": b"1 has_bill_shape::dagger\n"})
    dataset = open_dataset(path)
    assert dataset.name == "cub"
    assert classes(dataset) == {
        "base": ("001.Bird_0", "003.Bird_2", "005.Bird_4", "007.Bird_6"),
        "val": ("002.Bird_1", "006.Bird_5"),
        "novel": ("004.Bird_3", "008.Bird_7"),
    }
    assert np.asarray(dataset.splits["base"].images[0].read()).shape == (16, 20, 3)


def test_all_200_classes_are_split_as_published(tmp_path):
    dataset = open_dataset(as_folder(tmp_path, cub(classes=200, each=1)))
    assert [len(split.names) for split in dataset.splits.values()] == [100, 50, 50]
    assert dataset.about["notes"] == []


@pytest.mark.parametrize(
    ("files", "message"),
    [
        pytest.param(without(cub(prefix=""), "classes.txt"), "is not CUB-200-2011, it lacks classes.txt", id="list"),
        pytest.param(class_folders(), "lacks images.txt, image_class_labels.txt, classes.txt, images/", id="other"),
        pytest.param(
            without(cub(prefix=""), "images/002.Bird_1/Bird_1_0000.jpg"),
            "lacks 1 of the 16 images in its lists, first '002.Bird_1/Bird_1_0000.jpg'",
            id="an image is lost",
        ),
        pytest.param(
            cub(prefix="") | {"image_class_labels.txt": b"1 1\n"}, "has no class for image", id="labels are lost"
        ),
        pytest.param(cub(prefix="") | {"classes.txt": b"x y\n"}, "not a valid list of numbers", id="no list"),
        pytest.param(cub(prefix="") | {"classes.txt": b"1 y\n1 z\n"}, "a number twice", id="twice"),
        pytest.param(cub(prefix="") | {"classes.txt": b"\xff\xfe"}, "not a list in UTF-8", id="binary"),
        pytest.param(
            cub(prefix="") | {"classes.txt": b"1" * 5000 + b" y\n"}, "not a valid list of numbers", id="digits"
        ),
        pytest.param(cub(prefix="") | {"classes.txt": b"00 y\n"}, "a number below 1", id="class zero"),
        pytest.param(
            cub(prefix="") | {"classes.txt": cub(prefix="")["classes.txt"] + b"\n9 009.Bird_8\n"},
            "1 classes without images, '009.Bird_8' first",
            id="a class without images",
        ),
    ],
)
def test_what_is_not_cub_is_refused(tmp_path, files, message):
    refused(as_folder(tmp_path, files), "cub", message)


# --- CIFAR-FS


@pytest.mark.parametrize("kind", ["folder", "zip", "tar.gz"])
def test_cifar_fs_in_folders_with_lists(tmp_path, kind):
    dataset = open_dataset(PACKERS[kind](tmp_path, cifar_folders()))
    assert dataset.name == "cifar-fs"
    assert classes(dataset) == {"base": tuple(CIFAR_LISTS["train"]), "val": ("otter",), "novel": ("whale",)}


def test_the_lists_kept_here_are_the_published_numbers_of_classes():
    assert {split: len(names) for split, names in CLASSES.items()} == {"base": 64, "val": 16, "novel": 20}
    assert len({name for names in CLASSES.values() for name in names}) == 100


@pytest.mark.parametrize("kind", ["folder", "tar.gz", "archive in a folder"])
def test_cifar_100_for_python_is_split_by_the_lists(tmp_path, kind):
    files = cifar_pickles()
    if kind == "archive in a folder":
        pack_tar(tmp_path / "cifar-100-python.tar.gz", files, "w:gz")
        (tmp_path / "README.md").write_bytes(b"x")
        path = tmp_path
    else:
        path = PACKERS[kind](tmp_path, files)
    dataset = open_dataset(path)
    assert dataset.name == "cifar-fs"
    assert {split: list(found.names) for split, found in dataset.splits.items()} == CLASSES
    assert [len(split) for split in dataset.splits.values()] == [128, 32, 40]


def test_cifar_pixels_are_turned_from_planes_to_colours(tmp_path):
    files = cifar_pickles("")
    dataset = open_dataset(as_folder(tmp_path, files), "cifar-fs")
    rows = pickle.loads(files["train"])[b"data"]
    image = dataset.splits["base"].images[0]
    assert image.name == "train[0]"
    np.testing.assert_array_equal(np.asarray(image.read()), rows[0].reshape(3, 32, 32).transpose(1, 2, 0))


@pytest.mark.parametrize(
    ("files", "message"),
    [
        pytest.param(class_folders(), "is not CIFAR-FS, it has neither data/class/image.png", id="other"),
        pytest.param(
            without(cifar_folders(""), "splits/bertinetto/val.txt"), "lacks the list splits/bertinetto/val", id="list"
        ),
        pytest.param(
            cifar_folders("") | {"splits/bertinetto/val.txt": b"otter\nunicorn\n"},
            "no images of 1 classes that the lists name, 'unicorn' first",
            id="a class is lost",
        ),
        pytest.param(
            cifar_folders("") | {"splits/bertinetto/val.txt": b"apple\n"},
            "1 classes in both 'base' and 'val', 'apple' first",
            id="shared class",
        ),
        pytest.param(
            cifar_pickles("") | {"train": pickle.dumps({"fine_labels": [0], "data": np.zeros((1, 5), np.uint8)})},
            "train is not a valid file of CIFAR-100 .*cannot reshape",
            id="shape",
        ),
        pytest.param(
            cifar_pickles("") | {"train": pickle.dumps({"fine_labels": [100], "data": np.zeros((1, 3072), np.uint8)})},
            "labels beyond its 100 classes",
            id="label",
        ),
    ],
)
def test_what_is_not_cifar_fs_is_refused(tmp_path, files, message):
    refused(as_folder(tmp_path, files), "cifar-fs", message)


# --- Omniglot


@pytest.mark.parametrize("kind", PACKERS)
@pytest.mark.parametrize("prefix", ["", "omniglot/python/"])
def test_omniglot_is_recognised(tmp_path, kind, prefix):
    check_omniglot(open_dataset(PACKERS[kind](tmp_path, omniglot(prefix=prefix))))


def test_omniglot_in_the_two_published_zips(tmp_path):
    for part in ("images_background", "images_evaluation"):
        pack_zip(tmp_path / f"{part}.zip", omniglot([part]))
    (tmp_path / "strokes_background.zip").write_bytes(b"x")
    check_omniglot(open_dataset(tmp_path))


def check_omniglot(dataset):
    assert dataset.name == "omniglot"
    assert classes(dataset) == {
        "base": ("Greek/character01", "Greek/character02", "Latin/character01", "Latin/character02"),
        "novel": ("Tengwar/character01", "Tengwar/character02"),
    }
    assert dataset.about["licence"] == "MIT"
    image = np.asarray(dataset.splits["base"].images[0].read())
    assert image.shape == (105, 105, 3)
    # Black strokes on white.
    assert np.unique(image).tolist() == [0, 255]
    assert image.mean() > 200


def test_one_alphabet_is_enough(tmp_path):
    files = {k: v for k, v in omniglot(["images_background"]).items() if "Greek" in k}
    pack_zip(tmp_path / "images_background.zip", files)
    dataset = open_dataset(tmp_path)
    assert dataset.splits["base"].names == ("Greek/character01", "Greek/character02")
    assert dataset.about["notes"][-1] == "Split 'novel' (images_evaluation) is missing."


@pytest.mark.parametrize(
    ("files", "message"),
    [
        pytest.param(class_folders(), "has neither images_background nor images_evaluation", id="other"),
        pytest.param(
            omniglot() | {"images_background/Greek/x.png": b"x"},
            "'Greek/x.png' outside the folders of classes: copy or download it again as published, alphabet/char",
            id="flat",
        ),
        pytest.param(
            omniglot() | {"images_background/Greek/character03/x.txt": b"x"},
            "1 classes without images, 'Greek/character03' first",
            id="empty",
        ),
    ],
)
def test_what_is_not_omniglot_is_refused(tmp_path, files, message):
    refused(as_folder(tmp_path, files), "omniglot", re.escape(message))


def test_real_omniglot():
    dataset = open_dataset(real_data("omniglot/omniglot.tar.xz"))
    assert dataset.about["notes"] == []
    assert {split: (len(found.names), len(found)) for split, found in dataset.splits.items()} == {
        "base": (964, 19280),
        "novel": (659, 13180),
    }
    image = np.asarray(dataset.splits["novel"].images[-1].read())
    assert image.shape == (105, 105, 3)
    assert image.mean() > 200


# --- all of them


def test_a_dataset_is_the_same_whenever_it_is_opened(tmp_path):
    folder = write_files(tmp_path, omniglot())
    one, two = (open_dataset(folder).splits["base"] for _ in range(2))
    assert one.fingerprint() == two.fingerprint()
    assert [image.name for image in one.images] == [image.name for image in two.images]
    (folder / "images_background/Greek/character01/extra.png").write_bytes(b"x")
    assert open_dataset(folder).splits["base"].fingerprint() != one.fingerprint()
