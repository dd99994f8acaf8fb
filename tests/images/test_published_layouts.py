"""miniImageNet, tieredImageNet, CUB, CIFAR-FS and Omniglot in the layouts in which they were published."""

from __future__ import annotations

import pickle

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
from hotshot.images.layouts import open_dataset
from hotshot.images.published import CIFAR_CLASSES

MINI = {"base": WNIDS["train"], "val": WNIDS["val"], "novel": WNIDS["test"]}
TIERED = {split: (f"{name} bird, 0", f"{name} bird, 1") for split, name in zip(MINI, WNIDS, strict=True)}
CIFAR = {"base": tuple(CIFAR_LISTS["train"]), "val": ("otter",), "novel": ("whale",)}
CUB = {
    "base": ("001.Bird_0", "003.Bird_2", "005.Bird_4", "007.Bird_6"),
    "val": ("002.Bird_1", "006.Bird_5"),
    "novel": ("004.Bird_3", "008.Bird_7"),
}
OMNIGLOT = {
    "base": ("Greek/character01", "Greek/character02", "Latin/character01", "Latin/character02"),
    "novel": ("Tengwar/character01", "Tengwar/character02"),
}


def classes(dataset):
    return {name: split.names for name, split in dataset.splits.items()}


def pixels_of(split):
    return np.array([np.asarray(image.read()) for image in split.images])


@pytest.mark.parametrize(
    ("name", "files", "expected"),
    [
        pytest.param("miniimagenet", split_folders() | ravi_lists(), MINI, id="mini: splits and lists"),
        pytest.param("miniimagenet", ravi_images("images/{file}") | ravi_lists(), MINI, id="mini: a folder and lists"),
        pytest.param("miniimagenet", ravi_images("{wnid}/{file}") | ravi_lists(), MINI, id="mini: classes and lists"),
        pytest.param("miniimagenet", ravi_images("images/{wnid}/{file}") | ravi_lists(), MINI, id="mini: both"),
        pytest.param("miniimagenet", mini_caches(), MINI, id="mini: caches"),
        pytest.param("miniimagenet", mini_caches(protocol=4), MINI, id="mini: caches of a newer Python"),
        pytest.param("tieredimagenet", tiered_arrays(), TIERED, id="tiered: npz"),
        pytest.param("tieredimagenet", tiered_arrays(np.savez_compressed), TIERED, id="tiered: compressed npz"),
        pytest.param("tieredimagenet", tiered_pngs(), TIERED, id="tiered: arrays of png"),
        pytest.param("tieredimagenet", tiered_pngs(as_array=False), TIERED, id="tiered: bytes of png"),
        # The published archive of CUB has a file beside its folder.
        pytest.param("cub", cub() | {"attributes.txt": b"1 has_bill_shape::dagger\n"}, CUB, id="cub in its folder"),
        pytest.param("cub", cub(prefix=""), CUB, id="cub"),
        pytest.param("cifar-fs", cifar_folders(), CIFAR, id="cifar: folders and lists"),
        pytest.param("omniglot", omniglot(), OMNIGLOT, id="omniglot"),
        pytest.param("omniglot", omniglot(prefix="omniglot/python/"), OMNIGLOT, id="omniglot in its folders"),
    ],
)
@pytest.mark.parametrize("kind", ["folder", "tar.gz", "zip"])
def test_a_published_layout_is_recognised_however_it_is_packed(tmp_path, name, files, expected, kind):
    if kind != "folder" and any(file.endswith("npz") for file in files):
        kind = "folder"
    dataset = open_dataset(PACKERS[kind](tmp_path, files))
    assert dataset.name == name
    assert classes(dataset) == expected
    for split in dataset.splits.values():
        assert pixels_of(split).shape[3] == 3
        assert np.bincount(split.labels).min() == np.bincount(split.labels).max()


# --- notes on what differs from the published numbers


def test_missing_splits_and_other_numbers_of_classes_are_noted(tmp_path):
    wnids = [f"n{i:08}" for i in range(80)]
    files = split_folders({"train": wnids[:64], "val": wnids[64:]}, each=1)
    dataset = open_dataset(as_folder(tmp_path, files, "mini"))
    # By its numbers of classes alone.
    assert (dataset.name, dataset.notes) == ("miniimagenet", ("Split 'novel' is missing.",))
    dataset = open_dataset(as_folder(tmp_path, split_folders(), "tiered"), "tieredimagenet")
    assert (dataset.name, classes(dataset)) == ("tieredimagenet", MINI)
    assert dataset.notes[0] == "Split 'base' has 2 classes, but 351 were published."
    pack_zip(tmp_path / "images_background.zip", {k: v for k, v in omniglot().items() if "Greek" in k})
    dataset = open_dataset(tmp_path / "images_background.zip", "folder")
    assert dataset.notes == ()
    (tmp_path / "omniglot").mkdir()
    (tmp_path / "images_background.zip").rename(tmp_path / "omniglot" / "images_background.zip")
    dataset = open_dataset(tmp_path / "omniglot")
    assert classes(dataset) == {"base": ("Greek/character01", "Greek/character02")}
    assert dataset.notes[-1] == "Split 'novel' is missing."


def test_all_200_classes_of_cub_are_split_as_published(tmp_path):
    dataset = open_dataset(as_folder(tmp_path, cub(classes=200, each=1)))
    assert [len(split.names) for split in dataset.splits.values()] == [100, 50, 50]
    assert dataset.notes == ()


# --- arrays


def test_cached_images_are_the_arrays_of_their_classes(tmp_path):
    files = mini_caches()
    stored = pickle.loads(files["mini-imagenet-cache-train.pkl"])
    split = open_dataset(as_folder(tmp_path, files), "miniimagenet").splits["base"]
    for label, name in enumerate(("n01532829", "n01558993")):
        expected = stored["image_data"][stored["class_dict"][name]]
        np.testing.assert_array_equal(pixels_of(split)[split.labels == label], expected)
    assert split.images[4].name == "mini-imagenet-cache-train.pkl[4]"


def test_arrays_of_the_authors_have_blue_before_red_and_those_of_others_not(tmp_path):
    stored = np.random.default_rng(1).integers(0, 256, (6, 84, 84, 3), dtype=np.uint8)
    for keys, expected in (("both", stored[..., ::-1]), ("labels", stored)):
        split = open_dataset(as_folder(tmp_path, tiered_arrays(keys=keys), keys)).splits["val"]
        assert split.names[0] == ("val bird, 0" if keys == "both" else "val/005")
        # Labels alternate in the files.
        np.testing.assert_array_equal(pixels_of(split), expected[[0, 2, 4, 1, 3, 5]])


def test_a_word_for_two_classes_of_imagenet_is_no_shared_class(tmp_path):
    files = tiered_arrays()
    for split in ("train", "test"):
        labels = {"label_specific": np.tile([0, 1], 3), "label_specific_str": ["crane", f"{split} bird"]}
        files[f"{split}_labels.pkl"] = pickle.dumps(labels)
    names = classes(open_dataset(as_folder(tmp_path, files)))
    assert (names["base"], names["novel"]) == (("crane (train 0)", "train bird"), ("crane (test 0)", "test bird"))


@pytest.mark.parametrize("kind", ["folder", "tar.gz", "archive in a folder"])
def test_cifar_100_for_python_is_split_by_the_lists(tmp_path, kind):
    files = cifar_pickles()
    if kind == "archive in a folder":
        pack_tar(tmp_path / "cifar-100-python.tar.gz", files, "w:gz")
        (tmp_path / "README.md").write_bytes(b"x")
    path = tmp_path if kind == "archive in a folder" else PACKERS[kind](tmp_path, files)
    dataset = open_dataset(path)
    assert dataset.name == "cifar-fs"
    names = {name: list(split.names) for name, split in dataset.splits.items()}
    assert names == names | CIFAR_CLASSES
    assert [len(split) for split in dataset.splits.values()] == [128, 32, 40]
    # Stored plane by plane.
    rows = pickle.loads(files["cifar-100-python/train"])[b"data"]
    expected = rows[0].reshape(3, 32, 32).transpose(1, 2, 0)
    np.testing.assert_array_equal(np.asarray(dataset.splits["base"].images[0].read()), expected)


def test_drawings_of_omniglot_are_black_on_white_in_two_published_zips(tmp_path):
    for part in ("images_background", "images_evaluation"):
        pack_zip(tmp_path / f"{part}.zip", omniglot([part]))
    (tmp_path / "strokes_background.zip").write_bytes(b"x")
    dataset = open_dataset(tmp_path)
    assert classes(dataset) == OMNIGLOT
    image = np.asarray(dataset.splits["base"].images[0].read())
    assert (image.shape, np.unique(image).tolist()) == ((105, 105, 3), [0, 255])
    assert image.mean() > 200


# --- what is not a dataset


class Runs:
    def __reduce__(self):
        return eval, ("1/0",)


def without(files, *names):
    return {key: value for key, value in files.items() if key not in names}


def cache(**changes):
    content = {"image_data": np.zeros((4, 84, 84, 3), np.uint8), "class_dict": {"a": [0, 1], "b": [2, 3]}} | changes
    return {"mini-imagenet-cache-train.pkl": pickle.dumps(content)}


def tiered(**files):
    return tiered_pngs() | {f"train_{name}.pkl": pickle.dumps(content) for name, content in files.items()}


def cifar(**content):
    return cifar_pickles("") | {"train": pickle.dumps(content)}


def lists_of_cub(**lists):
    return cub(prefix="") | {f"{name}.txt": content for name, content in lists.items()}


REFUSED = {
    "miniimagenet": [
        ({"a.txt": b"x"}, "is not in the layout miniimagenet: give a folder or archive with train, val"),
        (without(ravi_images() | ravi_lists(), "images/n018556720.jpg"), "lacks 1 of the 8 .* first 'n018556720.jpg'"),
        (ravi_images() | {"train.csv": b"name;class\n"}, "train.csv is not a valid list of 'filename,label' lines"),
        (ravi_images() | {"train.csv": b"filename,label\na,b,c\n"}, "train.csv is not a valid list"),
        (cache(class_dict={"a": [0, 1], "b": [1, 2]}), "lists images twice"),
        (cache(class_dict={"a": [0, 4]}), "not exactly the 4"),
        (cache(class_dict={"a": [0, -1]}), "not exactly the 4"),
        (cache(class_dict={"a": ["x"]}), "numbers of images that are not integers"),
        (cache(class_dict=[1]), "not a valid cache of miniImageNet"),
        (cache(image_data=np.zeros((4, 84, 84))), "float64 .* instead of uint8"),
        (cache(image_data=Runs()), "eval.*nothing of it was run"),
        ({"mini-imagenet-cache-val.pkl": pickle.dumps({"x": 1})}, "cache-val.pkl is not .* .KeyError 'image_data'"),
    ],
    "tieredimagenet": [
        (without(tiered_arrays(), "val_labels.pkl"), "images of split 'val' and no val_labels.pkl"),
        (tiered_arrays() | {"train_labels.pkl": tiered_labels("train", each=2)}, "6 images, and train_labels.pkl 4"),
        (tiered_arrays(lambda file, images: np.savez(file, X=images)), "no array 'images'"),
        (tiered(labels={"label_specific": [0], "label_specific_str": []}), "not among its 0 classes"),
        (tiered(images_png=[1, 2]), "it is no list of PNG files"),
        (tiered(images_png={}), "train_images_png.pkl is not a valid file of images"),
    ],
    "cub": [
        (without(cub(prefix=""), "classes.txt"), "is not in the layout cub: give .* classes.txt"),
        (class_folders(), "with images/ and images.txt, image_class_labels.txt, classes.txt"),
        (without(cub(prefix=""), "images/002.Bird_1/Bird_1_0000.jpg"), "lacks 1 of the 16 images in its lists, first"),
        (lists_of_cub(image_class_labels=b"1 1\n"), "has no class for image"),
        (lists_of_cub(classes=b"x y\n"), "classes.txt is not a valid list of numbers"),
        (lists_of_cub(classes=b"1 y\n1 z\n"), "a number twice"),
        (lists_of_cub(classes=b"\xff\xfe"), "not a list in UTF-8"),
        (lists_of_cub(classes=b"1" * 5000 + b" y\n"), "classes.txt is not a valid list of numbers"),
    ],
    "cifar-fs": [
        (class_folders(), "is not in the layout cifar-fs: give .* data/class/image.png"),
        (without(cifar_folders(""), "splits/bertinetto/val.txt"), "lacks the list splits/bertinetto/val"),
        (cifar_folders("") | {"splits/bertinetto/val.txt": b"otter\nunicorn\n"}, "of 1 classes .*, 'unicorn' first"),
        (cifar_folders("") | {"splits/bertinetto/val.txt": b"apple\n"}, "in both 'base' and 'val', 'apple' first"),
        (cifar(fine_labels=[0], data=np.zeros((1, 5), np.uint8)), "train is not a valid file .*cannot reshape"),
        (cifar(fine_labels=[100], data=np.zeros((1, 3072), np.uint8)), "labels beyond its 100 classes"),
    ],
    "omniglot": [
        (class_folders(), "is not in the layout omniglot: .* images_background and images_evaluation"),
        (
            omniglot() | {"images_background/Greek/x.png": b"x"},
            "'Greek/x.png' outside the folders of classes: download",
        ),
    ],
}


@pytest.mark.parametrize(
    ("kind", "files", "message"),
    [pytest.param(kind, *case, id=f"{kind} {i}") for kind, cases in REFUSED.items() for i, case in enumerate(cases)],
)
def test_what_is_no_such_dataset_is_refused_in_one_sentence(tmp_path, kind, files, message):
    with pytest.raises(InputError, match=message) as caught:
        open_dataset(as_folder(tmp_path, files), kind)
    assert str(caught.value).isprintable()


# --- all of them


def test_a_dataset_is_the_same_whenever_it_is_opened(tmp_path):
    folder = write_files(tmp_path, omniglot())
    one, two = (open_dataset(folder).splits["base"] for _ in range(2))
    assert one.fingerprint() == two.fingerprint()
    (folder / "images_background/Greek/character01/extra.png").write_bytes(b"x")
    assert open_dataset(folder).splits["base"].fingerprint() != one.fingerprint()


def test_real_images():
    dataset = open_dataset(real_data("miniimagenet/val.tar"))
    assert dataset.name == "miniimagenet"
    assert {name: (len(split.names), len(split)) for name, split in dataset.splits.items()} == {"val": (16, 3200)}
    image = dataset.splits["val"].images[0]
    assert image.name == "val.tar:val/n01855672/n0185567200000003.jpg"
    assert np.asarray(image.read()).shape == (84, 84, 3)
