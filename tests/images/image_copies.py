"""Small made-up copies of datasets in their published layouts, as paths and bytes, and ways to pack them."""

from __future__ import annotations

import io
import pickle
import tarfile
import zipfile

import numpy as np
from PIL import Image

from hotshot.images.published import CIFAR_CLASSES


def pixels(seed, height=16, width=20):
    """Smooth colours, so that JPEG keeps them."""
    rng = np.random.default_rng(seed)
    corner, along, down = rng.integers(0, 90, size=(3, 3))
    y, x = np.mgrid[:height, :width]
    return (corner + along * x[..., None] / width + down * y[..., None] / height).astype(np.uint8)


def encoded(image, form="PNG", **options):
    file = io.BytesIO()
    image = image if isinstance(image, Image.Image) else Image.fromarray(image)
    image.save(file, form, **options)
    return file.getvalue()


def jpeg(seed, **size):
    return encoded(pixels(seed, **size), "JPEG", quality=95)


def write_files(folder, files):
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def pack_tar(path, files, mode="w"):
    with tarfile.open(path, mode) as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def pack_zip(path, files, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def as_folder(where, files, name="copy"):
    return write_files(where / name, files)


PACKERS = {
    "folder": as_folder,
    "tar": lambda where, files: pack_tar(where / "copy.tar", files),
    "tar.gz": lambda where, files: pack_tar(where / "copy.tar.gz", files, "w:gz"),
    "tar.xz": lambda where, files: pack_tar(where / "copy.tar.xz", files, "w:xz"),
    "tar.bz2": lambda where, files: pack_tar(where / "copy.tar.bz2", files, "w:bz2"),
    "zip": lambda where, files: pack_zip(where / "copy.zip", files),
    "stored zip": lambda where, files: pack_zip(where / "copy.zip", files, zipfile.ZIP_STORED),
}


# --- layouts

WNIDS = {"train": ("n01532829", "n01558993"), "val": ("n01855672",), "test": ("n01930112",)}


def class_folders(classes=("ant", "bee"), each=3, prefix=""):
    return {f"{prefix}{name}/{name}{i}.jpg": jpeg(10 * c + i) for c, name in enumerate(classes) for i in range(each)}


def split_folders(wnids=WNIDS, each=2):
    files = {}
    for split, classes in wnids.items():
        files |= class_folders(classes, each, f"{split}/")
    return files


def ravi_lists(wnids=WNIDS, each=2):
    return {
        f"{split}.csv": "".join(
            ["filename,label\n", *(f"{name}{i}.jpg,{name}\n" for name in classes for i in range(each))]
        ).encode()
        for split, classes in wnids.items()
    }


def ravi_images(folder="images/{file}", wnids=WNIDS, each=2):
    return {
        folder.format(file=f"{name}{i}.jpg", wnid=name): jpeg(i)
        for classes in wnids.values()
        for name in classes
        for i in range(each)
    }


def mini_caches(wnids=WNIDS, each=3, protocol=2):
    files = {}
    for s, (split, classes) in enumerate(wnids.items()):
        rng = np.random.default_rng(s)
        images = rng.integers(0, 256, size=(each * len(classes), 84, 84, 3), dtype=np.uint8)
        numbers = {name: list(range(each * c, each * (c + 1))) for c, name in enumerate(classes)}
        content = {"image_data": images, "class_dict": numbers}
        files[f"mini-imagenet-cache-{split}.pkl"] = pickle.dumps(content, protocol=protocol)
    return files


def tiered_labels(split, keys="both", classes=2, each=3):
    codes = np.tile(np.arange(classes), each)
    if keys == "labels":
        return pickle.dumps({"labels": codes + 5})
    specific = {"label_specific": codes, "label_specific_str": [f"{split} bird, {c}" for c in range(classes)]}
    general = {"label_general": codes * 0, "label_general_str": ["bird"]}
    return pickle.dumps(specific | general, protocol=2)


def tiered_arrays(save=np.savez, keys="both"):
    files = {}
    for s, split in enumerate(("train", "val", "test")):
        room = io.BytesIO()
        save(room, images=np.random.default_rng(s).integers(0, 256, (6, 84, 84, 3), dtype=np.uint8))
        files[f"{split}_images.npz"] = room.getvalue()
        files[f"{split}_labels.pkl"] = tiered_labels(split, keys)
    return files


def tiered_pngs(as_array=True):
    files = {}
    for s, split in enumerate(("train", "val", "test")):
        pngs = [encoded(pixels(10 * s + i, 84, 84)) for i in range(6)]
        content = [np.frombuffer(png, np.uint8)[:, None] for png in pngs] if as_array else pngs
        files[f"{split}_images_png.pkl"] = pickle.dumps(content, protocol=4)
        files[f"{split}_labels.pkl"] = tiered_labels(split)
    return files


def cub(classes=8, each=2, prefix="CUB_200_2011/"):
    names = [f"{c + 1:03}.Bird_{c}" for c in range(classes)]
    images = [(name, f"{name}/{name[4:]}_{i:04}.jpg") for name in names for i in range(each)]
    files = {f"images/{file}": jpeg(n) for n, (_, file) in enumerate(images)}
    files["classes.txt"] = "".join(f"{c + 1} {name}\n" for c, name in enumerate(names)).encode()
    files["images.txt"] = "".join(f"{n + 1} {file}\n" for n, (_, file) in enumerate(images)).encode()
    labels = (f"{n + 1} {names.index(name) + 1}\n" for n, (name, _) in enumerate(images))
    files["image_class_labels.txt"] = "".join(labels).encode()
    files["README"] = b"Caltech-UCSD Birds-200-2011"
    return {prefix + name: data for name, data in files.items()}


CIFAR_LISTS = {"train": ["apple", "train"], "val": ["otter"], "test": ["whale"]}


def cifar_folders(prefix="cifar100/"):
    files = {f"splits/bertinetto/{s}.txt": "\n".join(c).encode() for s, c in CIFAR_LISTS.items()}
    for names in CIFAR_LISTS.values():
        for name in names:
            files |= {f"data/{name}/{name}_s_00000{i}.png": encoded(pixels(i, 32, 32)) for i in range(2)}
    return {prefix + name: data for name, data in files.items()}


def cifar_pickles(prefix="cifar-100-python/"):
    """One image of each class to train on and one to test, with keys and types as Python 2 left them."""
    names = [*(f"base {i:02}" for i in range(64)), *CIFAR_CLASSES["val"], *CIFAR_CLASSES["novel"]]
    files = {"meta": {b"fine_label_names": [n.encode() for n in names], b"coarse_label_names": [b"fish"]}}
    for s, split in enumerate(("train", "test")):
        files[split] = {
            b"filenames": [f"{n}.png".encode() for n in names],
            b"fine_labels": list(range(100)),
            b"coarse_labels": [0] * 100,
            b"data": np.random.default_rng(s).integers(0, 256, (100, 3072), dtype=np.uint8),
        }
    return {prefix + name: pickle.dumps(content, protocol=2) for name, content in files.items()}


def drawing(seed):
    """One bit, black strokes on white, 105x105."""
    paper = np.full((105, 105), 255, np.uint8)
    paper[20 + seed : 30 + seed, 10:90] = 0
    return encoded(Image.fromarray(paper).convert("1"))


def omniglot(parts=("images_background", "images_evaluation"), prefix=""):
    alphabets = {"images_background": ("Greek", "Latin"), "images_evaluation": ("Tengwar",)}
    return {
        f"{prefix}{part}/{alphabet}/character{c:02}/{a:02}{c:02}_{i:02}.png": drawing(i)
        for part in parts
        for a, alphabet in enumerate(alphabets[part])
        for c in (1, 2)
        for i in (1, 2, 3)
    }
