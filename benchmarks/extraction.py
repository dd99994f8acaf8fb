"""Time that an extraction spends on decoding and in the network.

Synthetic JPEG files of 84x84 pixels (as in miniImageNet) and 500x375 (as in ImageNet), and images of the dataset if you
name one, pass through a ResNet12 at 84x84 with an empty cache, as in `hotshot extract`. The table shows images per
second and the share of the total time that is spent in the network. No other program is compared: times depend on the
machine.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from PIL import Image

from benchmarks.shared import show, timed
from hotshot.evaluation.tables import Cell, Table
from hotshot.images.backbones import create
from hotshot.images.datasets import ImageSplit, decode, open_dataset
from hotshot.images.extraction import Extractor, extract_split
from hotshot.images.training.augmentation import as_input
from hotshot.images.training.checkpoints import Recipe

CLASSES = 8


def main(
    dataset: Annotated[Path | None, typer.Argument(help="Folder or archive of images.")] = None, images: int = 384
) -> None:
    rows: list[tuple[Cell, ...]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        splits = {
            f"JPEG of {width}x{height}": synthetic_images(folder / f"{width}", width, height, images)
            for width, height in ((84, 84), (500, 375))
        }
        if dataset is not None:
            opened = open_dataset(dataset)
            splits[opened.name] = spaced_images(next(iter(opened.splits.values())), images)
        for number, (label, split) in enumerate(splits.items()):
            decoded, extracted, share = measure(split, folder / f"work{number}")
            rows.append((label, f"{decoded:.0f}", f"{extracted:.1f}", f"{share:.1%}"))
    columns = ("images", "decoded per second", "extracted per second, decoding included", "time in the network")
    show(Table(f"ResNet12 at 84x84, {images} images, {torch.get_num_threads()} threads", columns, tuple(rows)))


def synthetic_images(folder: Path, width: int, height: int, n: int) -> ImageSplit:
    """Write JPEG files with smooth colours and fine grain, like photographs; returns them as a split."""
    rng = np.random.default_rng(0)
    for i in range(n):
        place = folder / f"class{i % CLASSES}"
        place.mkdir(parents=True, exist_ok=True)
        coarse = Image.fromarray(rng.integers(0, 256, size=(6, 8, 3)).astype(np.uint8))
        pixels = np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC), dtype=np.int16)
        grained = np.clip(pixels + rng.normal(0, 8, size=pixels.shape), 0, 255).astype(np.uint8)
        Image.fromarray(grained).save(place / f"{i}.jpg", quality=90)
    return next(iter(open_dataset(folder).splits.values()))


def spaced_images(split: ImageSplit, n: int) -> ImageSplit:
    """Evenly spaced images of a split."""
    rows = np.linspace(0, len(split.images) - 1, min(n, len(split.images))).astype(int)
    return replace(split, images=[split.images[i] for i in rows], labels=split.labels[rows])


def measure(split: ImageSplit, folder: Path) -> tuple[float, float, float]:
    """Images per second while decoding and in total, and the share of the total time in the network."""
    recipe = Recipe(backbone="resnet12")
    network = create("resnet12").eval()
    extractor = Extractor("resnet12", network, lambda x: as_input(x, recipe.size), recipe.cached_size, {})
    decoded, decoding = timed(lambda: decode(split, extractor.size, folder / "cache"))
    share, extracting = timed(lambda: extract_split(extractor, decoded, folder / "features.safetensors", about={}))
    seconds = decoding + extracting
    return len(decoded) / decoding, len(decoded) / seconds, share * extracting / seconds
