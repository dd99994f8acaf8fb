"""Shared by `train` and `extract`: flags, decoded splits of a dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hotshot.cli.terminal import Console, bar, counting, print_notes
from hotshot.errors import RunError

if TYPE_CHECKING:
    from hotshot.images.datasets import DecodedSplit

GLYPHS = "glyphs"

Dataset = Annotated[
    Path | None,
    typer.Argument(
        help="Folder or archive of images. Without a dataset, synthetic characters are rendered.", show_default=False
    ),
]
Cache = Annotated[Path | None, typer.Option(help="Folder for decoded images. Default: OUT/decoded.")]


@contextmanager
def needs_images() -> Iterator[None]:
    """Import PyTorch inside this, for a clear error if it is missing."""
    try:
        yield
    except ImportError as error:
        reason = str(error).split(": pip install")[0]
        raise RunError(f"This command needs PyTorch and Pillow ({reason}): pip install 'hotshot[images]'.") from None


def decoded_splits(
    dataset: Path | None,
    kind: str,
    size: int,
    cache: Path,
    skip_corrupt: bool,
    console: Console,
    is_done: Callable[[str, str, str | None], bool] = lambda *_: False,
) -> tuple[str, dict[str, DecodedSplit]]:
    """The name of a dataset and its splits at this size; synthetic characters without a dataset.

    Splits for which `is_done(name of the dataset, name of the split, its fingerprint)` is true are left out.
    """
    from hotshot.images.datasets import decode, open_dataset
    from hotshot.images.datasets.glyphs import make_glyphs

    if dataset is None:
        with console.status("rendering characters"):
            rendered = make_glyphs(size)
        return GLYPHS, {key: x for key, x in rendered.items() if not is_done(GLYPHS, key, x.fingerprint)}
    opened = open_dataset(dataset, kind, skip_corrupt=skip_corrupt)
    print_notes(console, opened.about["notes"])
    found = {}
    for name, split in opened.splits.items():
        if is_done(opened.name, name, split.fingerprint()):
            continue
        with bar(console, "images") as progress:
            found[name] = decode(split, size, cache, counting(progress, f"decoding {name}"))
        if corrupt := found[name].corrupt:
            print_notes(console, [f"left out {len(corrupt)} corrupt images of '{name}', first {corrupt[0].name}."])
    return opened.name, found
