"""Corrupt images: found, named and counted."""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from hotshot.arrays import slices
from hotshot.errors import InputError
from hotshot.images.datasets.dataset import ImageDataset
from hotshot.images.datasets.pixels import CorruptImageError, pillow
from hotshot.images.datasets.references import ImageReference

# Images that a thread takes at once.
AT_ONCE = 64

Given = TypeVar("Given")
Made = TypeVar("Made")
# Called with the number of images that are done and their total.
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Corrupt:
    """An image that cannot be read, and why."""

    name: str
    reason: str


def check_images(dataset: ImageDataset, progress: Progress | None = None) -> list[Corrupt]:
    """Decode every image of a dataset; those that cannot be read, in order."""
    pillow()
    images = [image for split in dataset.splits.values() for image in split.images]
    batches = [images[some] for some in slices(len(images), AT_ONCE)]
    found: list[Corrupt] = []
    done = 0
    for batch, bad in zip(batches, in_order(_corrupt, batches), strict=True):
        found += bad
        done += len(batch)
        if progress is not None:
            progress(done, len(images))
    return found


def refuse_corrupt(found: Sequence[Corrupt], where: str) -> None:
    """Raise where there are corrupt images."""
    if found:
        raise InputError(
            f"{where} has {len(found)} corrupt images, first {found[0].name} ({found[0].reason}): replace them, or "
            "leave them out with skip_corrupt=True (--skip-corrupt)."
        )


def in_order(function: Callable[[Given], Made], items: Iterable[Given]) -> Iterator[Made]:
    """`function` of each item by threads, in order, and no more than a few ahead.

    Decoders release Python's lock while they work.
    """
    threads = os.cpu_count() or 1
    waiting: deque[Future[Made]] = deque()
    # Remarks of decoders on metadata are not about the pixels; what is damaged raises.
    with warnings.catch_warnings(), ThreadPoolExecutor(threads) as pool:
        warnings.simplefilter("ignore")
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > 2 * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _corrupt(images: Sequence[ImageReference]) -> list[Corrupt]:
    found = []
    for image in images:
        try:
            image.array()
        except CorruptImageError as error:
            found.append(Corrupt(error.name, error.reason))
    return found
