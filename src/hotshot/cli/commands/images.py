"""`train` and `extract`: their flags."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from hotshot.cli.data import numbers
from hotshot.cli.options import Json
from hotshot.cli.process import keep_freed_memory, let_waiting_threads_sleep
from hotshot.errors import RunError

Dataset = Annotated[
    Path | None,
    typer.Argument(
        help="Folder or archive of images; without one, characters are drawn.", show_default=False
    ),
]
Kind = Annotated[
    str,
    typer.Option(help="auto, or one of miniimagenet, tieredimagenet, cub, cifar-fs, omniglot, folder."),
]
Cache = Annotated[Path | None, typer.Option(help="Folder for decoded images; in OUT by default.")]
Device = Annotated[str, typer.Option(help="Of PyTorch, such as cuda.")]
SkipCorrupt = Annotated[bool, typer.Option("--skip-corrupt", help="Leave out images that cannot be read.")]


def train(
    dataset: Dataset = None,
    kind: Kind = "auto",
    backbone: Annotated[
        str, typer.Option(help="conv4, conv6, resnet10, resnet12, resnet18 or wrn28_10.")
    ] = "conv4",
    filters: Annotated[
        str | None,
        typer.Option(help="Narrower or wider: filters of its blocks, such as 32 or 32,64,128,256."),
    ] = None,
    size: Annotated[
        int | None, typer.Option(help="Side of the input in pixels; 84, or 32 for drawn characters.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="60 by default, 10 for drawn characters.")] = None,
    batch_size: Annotated[int, typer.Option(help="Images per step.")] = 128,
    optimiser: Annotated[str, typer.Option(help="sgd or adam.")] = "sgd",
    learning_rate: Annotated[float, typer.Option(help="At the start.")] = 0.05,
    weight_decay: Annotated[float, typer.Option(help="Of all weights.")] = 5e-4,
    schedule: Annotated[str, typer.Option(help="cosine, steps or constant.")] = "cosine",
    label_smoothing: Annotated[float, typer.Option(help="Share of the loss spread over all classes.")] = 0.0,
    rotation: Annotated[bool, typer.Option("--rotation", help="Learn rotations too, as S2M2_R.")] = False,
    mixup: Annotated[float, typer.Option(help="Strength of manifold mixup, 2 in S2M2.")] = 0.0,
    flip: Annotated[
        bool | None,
        typer.Option(help="Mirror half of the images; by default for all datasets but those of characters."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of weights, order and augmentation.")] = 0,
    out: Annotated[
        Path, typer.Option(help="Folder for checkpoints; the same command goes on with it.")
    ] = Path("backbone"),
    cache: Cache = None,
    device: Device = "cpu",
    skip_corrupt: SkipCorrupt = False,
    json: Json = False,
) -> None:
    """Train a backbone on the base classes of a dataset; interrupted training goes on where it stopped."""
    with needs_images():
        from hotshot.cli.train import run_train
        from hotshot.images.backbones import options_for
        from hotshot.images.training import Recipe
    drawn = dataset is None
    side = size or (32 if drawn else 84)
    narrowed = {} if filters is None else {"filters": _one_or_several(filters)}
    recipe = Recipe(
        backbone=backbone,
        options={**options_for(backbone, side), **narrowed},
        size=side,
        epochs=epochs or (10 if drawn else 60),
        batch_size=batch_size,
        optimiser=optimiser,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        schedule=schedule,
        label_smoothing=label_smoothing,
        rotation=rotation,
        mixup=mixup,
        seed=seed,
    )
    run_train(
        dataset=dataset,
        kind=kind,
        recipe=recipe,
        flip=flip,
        out=out,
        cache=cache,
        device=device,
        skip_corrupt=skip_corrupt,
        as_json=json,
    )


def extract(
    dataset: Dataset = None,
    kind: Kind = "auto",
    checkpoint: Annotated[
        Path | None, typer.Option(help="Checkpoint of hotshot train, such as backbone/best.")
    ] = None,
    pretrained: Annotated[
        str | None, typer.Option(help="Instead: efficientnet-lite0, or minilm for a CSV file of text,label.")
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option(help="Instead: weights that others published, for --backbone or --network."),
    ] = None,
    backbone: Annotated[str | None, typer.Option(help="Network of --weights, such as wrn28_10.")] = None,
    network: Annotated[
        str | None,
        typer.Option(
            help="Instead: a module of your own as package.module:name or file.py:name, or an ONNX file."
        ),
    ] = None,
    size: Annotated[
        int | None, typer.Option(help="Side of its input in pixels; 84, or what an ONNX file says.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for one feature file per split.")] = Path("features"),
    cache: Cache = None,
    device: Device = "cpu",
    skip_corrupt: SkipCorrupt = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite feature files.")] = False,
    json: Json = False,
) -> None:
    """Take features of all images of a dataset, into one file per split that evaluate reads."""
    with needs_images():
        from hotshot.cli.extract import run_extract
    run_extract(
        dataset=dataset,
        kind=kind,
        checkpoint=checkpoint,
        pretrained=pretrained,
        weights=weights,
        backbone=backbone,
        network=network,
        size=size,
        out=out,
        cache=cache,
        device=device,
        skip_corrupt=skip_corrupt,
        force=force,
        as_json=json,
    )


def _one_or_several(text: str) -> int | list[int]:
    found = numbers(text, "--filters")
    return found[0] if len(found) == 1 else found


@contextmanager
def needs_images() -> Iterator[None]:
    """Say in one sentence what to install where PyTorch or Pillow is missing."""
    keep_freed_memory()
    let_waiting_threads_sleep()
    try:
        yield
    except ImportError as error:
        raise RunError(
            f"This command needs PyTorch and Pillow ({error}): pip install 'hotshot[images]'."
        ) from None
