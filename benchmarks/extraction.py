"""Time that an extraction spends on decoding and in the network.

    python -m benchmarks.extraction [FOLDER OR ARCHIVE OF IMAGES]

Synthetic JPEG files of 84x84 pixels (as in miniImageNet) and 500x375 (as in ImageNet), and images of the dataset if you
name one, pass through a ResNet12 at 84x84 with an empty cache, as in `hotshot extract`. The table shows images per
second and the share of the total time that is spent in the network. No other program is compared: times depend on the
machine.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from rich.console import Console
from rich.table import Table

from hotshot.images.backbones import create
from hotshot.images.datasets import ImageSplit, decode, open_dataset
from hotshot.images.extraction import Extractor, extract_split
from hotshot.images.training.augmentation import as_input
from hotshot.images.training.checkpoints import Recipe

IMAGES, CLASSES = 384, 8


def synthetic_images(folder: Path, width: int, height: int) -> ImageSplit:
    """Write JPEG files with smooth colours and fine grain, like photographs; returns them as a split."""
    rng = np.random.default_rng(0)
    for i in range(IMAGES):
        place = folder / f"class{i % CLASSES}"
        place.mkdir(parents=True, exist_ok=True)
        coarse = Image.fromarray(rng.integers(0, 256, size=(6, 8, 3)).astype(np.uint8))
        pixels = np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC), dtype=np.int16)
        grained = np.clip(pixels + rng.normal(0, 8, size=pixels.shape), 0, 255).astype(np.uint8)
        Image.fromarray(grained).save(place / f"{i}.jpg", quality=90)
    return next(iter(open_dataset(folder).splits.values()))


def spaced_images(split: ImageSplit) -> ImageSplit:
    """Evenly spaced images of a split."""
    rows = np.linspace(0, len(split.images) - 1, min(IMAGES, len(split.images))).astype(int)
    return replace(split, images=[split.images[i] for i in rows], labels=split.labels[rows])


def measure(split: ImageSplit, folder: Path) -> tuple[float, float, float]:
    """Images per second while decoding and in total, and the share of the total time in the network."""
    recipe = Recipe(backbone="resnet12")
    network = create("resnet12").eval()
    extractor = Extractor("resnet12", network, lambda x: as_input(x, recipe.size), recipe.cached_size, {})
    start = time.perf_counter()
    decoded = decode(split, extractor.size, folder / "cache")
    decoding = time.perf_counter() - start
    share = extract_split(extractor, decoded, folder / "features.safetensors", about={})
    seconds = time.perf_counter() - start
    return len(decoded) / decoding, len(decoded) / seconds, share * (seconds - decoding) / seconds


def main() -> None:
    table = Table(title=f"ResNet12 at 84x84, {IMAGES} images, {torch.get_num_threads()} threads")
    for head in ("images", "decoded per second", "extracted per second, decoding included", "time in the network"):
        table.add_column(head, justify="left" if head == "images" else "right")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        splits = {
            f"JPEG of {width}x{height}": synthetic_images(folder / f"{width}", width, height)
            for width, height in ((84, 84), (500, 375))
        }
        if len(sys.argv) > 1:
            opened = open_dataset(Path(sys.argv[1]))
            splits[opened.name] = spaced_images(next(iter(opened.splits.values())))
        for number, (label, split) in enumerate(splits.items()):
            decoded, extracted, share = measure(split, folder / f"work{number}")
            table.add_row(label, f"{decoded:.0f}", f"{extracted:.1f}", f"{100 * share:.1f}%")
    Console().print(table)


if __name__ == "__main__":
    main()
