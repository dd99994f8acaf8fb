"""What `train` and `extract` share: flags, PyTorch and its process, splits as decoded images."""

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress

from hotshot.cli.terminal import Console, bar, print_notes
from hotshot.errors import RunError
from hotshot.images.datasets import DecodedSplit, decode, open_dataset
from hotshot.images.datasets.glyphs import make_glyphs

GLYPHS = "glyphs"
# Names of glibc's parameters: blocks mapped one by one, and free memory that is given back.
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4
_MOST = 2**31 - 1

Dataset = Annotated[
    Path | None,
    typer.Argument(
        help="Folder or archive of images. Without a dataset, synthetic characters are rendered.", show_default=False
    ),
]
Kind = Annotated[
    str,
    typer.Option(help="Layout of the dataset: auto, miniimagenet, tieredimagenet, cub, cifar-fs, omniglot or folder."),
]
Cache = Annotated[Path | None, typer.Option(help="Folder for decoded images. Default: OUT/decoded.")]
Device = Annotated[str, typer.Option(help="PyTorch device, such as cpu or cuda.")]
SkipCorrupt = Annotated[bool, typer.Option("--skip-corrupt", help="Leave out images that cannot be read.")]


@contextmanager
def needs_images() -> Iterator[None]:
    """Import PyTorch inside this: the process is prepared for it, and where it is missing a sentence says so."""
    prepare_process()
    try:
        yield
    except ImportError as error:
        reason = str(error).split(": pip install")[0]
        raise RunError(f"This command needs PyTorch and Pillow ({reason}): pip install 'hotshot[images]'.") from None


def prepare_process() -> None:
    """Prepare the process for PyTorch, before it is imported."""
    keep_freed_memory()
    # OpenMP looks once, when PyTorch is imported. By default its threads spin while they wait for each other, and
    # where another process wants one of the cores, most of the time goes to that.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def keep_freed_memory() -> None:
    """Keep what is freed for the next step instead of giving it back to the system.

    Convolutions on a CPU allocate hundreds of megabytes in every step. By default glibc maps each such block anew, and
    much of the time goes to zeroing its pages. Elsewhere than on glibc this does nothing.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            mallopt = ctypes.CDLL(None).mallopt
            mallopt(_M_MMAP_MAX, 0)
            mallopt(_M_TRIM_THRESHOLD, _MOST)


def counting(progress: Progress, what: str) -> Callable[[int, int], None]:
    """A function of what is done and the total that moves a new bar."""
    task = progress.add_task(what, total=None)
    return lambda done, total: progress.update(task, completed=done, total=total)


def decoded_splits(
    dataset: Path | None,
    kind: str,
    size: int,
    cache: Path,
    skip_corrupt: bool,
    console: Console,
    is_done: Callable[[str, str, str | None], bool] = lambda *_: False,
) -> tuple[str, dict[str, DecodedSplit]]:
    """The name of a dataset and its splits at this size; rendered characters where no dataset is named.

    `is_done` is asked with the names of the dataset and of a split and with its fingerprint, before it is decoded;
    what is done is left out.
    """
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
            print_notes(console, [f"{len(corrupt)} corrupt images of '{name}' are left out, {corrupt[0].name} first."])
    return opened.name, found
