"""`hotshot train`: a backbone from scratch on the base classes of a dataset of images."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from hotshot.cli import options
from hotshot.cli.extract import left_out
from hotshot.cli.options import RESUME, argument, number, option
from hotshot.cli.terminal import Console, bar, print_json, print_notes
from hotshot.errors import InputError, InterruptedRunError, ParameterError, RunError

if TYPE_CHECKING:
    from hotshot.backbones.checkpoints import Recipe
    from hotshot.backbones.training import Epoch
    from hotshot.images.decode import DecodedSplit

BASE_SPLITS = ("base", "all")
# Mirrored letters are different letters.
NOT_TO_MIRROR = ("omniglot",)


def train(
    dataset: Annotated[Path, argument("Folder or archive of images.")],
    kind: options.Kind = "auto",
    backbone: Annotated[str, option("Network: conv4, conv6, resnet10, resnet12, resnet18 or wrn28_10.")] = "conv4",
    filters: Annotated[
        str | None, option("Filters per block, such as 32 or 32,64,128,256. Default: as published.")
    ] = None,
    size: Annotated[int, number("Side of the input in pixels.")] = 84,
    epochs: Annotated[int, number("Number of epochs.")] = 60,
    batch_size: Annotated[int, number("Images per optimisation step.")] = 128,
    optimiser: Annotated[str, option("Optimiser: sgd or adam.")] = "sgd",
    learning_rate: Annotated[float, number("Initial learning rate.")] = 0.05,
    weight_decay: Annotated[float, number("Weight decay.")] = 5e-4,
    schedule: Annotated[str, option("Learning rate schedule: cosine, steps or constant.")] = "cosine",
    label_smoothing: Annotated[float, number("Label smoothing: share of the target spread over all classes.")] = 0.0,
    rotation: Annotated[bool, option("Also train on rotations of the images, as in S2M2_R.", "--rotation")] = False,
    mixup: Annotated[float, number("Strength of manifold mixup: 2 as in S2M2, 0 for none.")] = 0.0,
    flip: Annotated[bool | None, option("Mirror half of the images. Default: yes, except for Omniglot.")] = None,
    seed: options.Seed = 0,
    out: Annotated[Path, option(f"Folder for checkpoints. {RESUME}")] = Path("backbone"),
    cache: Annotated[Path | None, option("Folder for decoded images. Default: OUT/decoded.")] = None,
    device: options.Device = "cpu",
    skip_corrupt: options.SkipCorrupt = False,
    json: options.Json = False,
) -> None:
    """Train a backbone on the base classes of a dataset. Interrupted trainings resume."""
    from hotshot.files.atomic import locked

    try:
        from hotshot.backbones import create, feature_width, options_for, require_device
        from hotshot.backbones.checkpoints import Recipe
    except ImportError as error:
        reason = str(error).split(": pip install")[0]
        raise RunError(f"This command needs PyTorch and Pillow ({reason}): pip install 'hotshot[images]'.") from None
    console = Console(stderr=json)
    require_device(device)
    network = options_for(backbone, size) | ({} if filters is None else {"filters": _filters(filters)})
    recipe = Recipe(
        backbone, network, size, epochs, batch_size, optimiser, learning_rate, weight_decay=weight_decay,
        schedule=schedule, label_smoothing=label_smoothing, rotation=rotation, mixup=mixup, seed=seed,
    )  # fmt: skip
    # Refuse a network that cannot be built before an hour of decoding.
    feature_width(create(backbone, **network), size)
    with locked(out):
        pass  # Also refuse a folder that cannot be written, or that another process writes to.
    cache = out / "decoded" if cache is None else cache
    name, splits = _decoded_splits(dataset, kind, recipe.decoded_size, cache, skip_corrupt, console)
    base = splits[next(key for key in BASE_SPLITS if key in splits)]
    recipe = replace(recipe, flip=name not in NOT_TO_MIRROR if flip is None else flip)
    done = _train(name, base, splits.get("val"), recipe, out, device, console)
    if json:
        print_json({"checkpoint": str(out / "best"), "epochs": list(map(asdict, done))})
    else:
        console.print(f"Checkpoint: {out / 'best'}", markup=False)


def _filters(text: str) -> int | list[int]:
    try:
        several = [int(part) for part in text.split(",")]
    except ValueError:
        raise ParameterError(f"--filters must be comma-separated whole numbers, such as 1,5, got {text!r}.") from None
    return several if len(several) > 1 else several[0]


def _decoded_splits(
    dataset: Path, kind: str, size: int, cache: Path, skip_corrupt: bool, console: Console
) -> tuple[str, dict[str, DecodedSplit]]:
    """The name of a dataset and the splits that a training uses, at this size."""
    from hotshot.images.decode import decode
    from hotshot.images.layouts import open_dataset

    opened = open_dataset(dataset, kind, skip_corrupt=skip_corrupt)
    print_notes(console, opened.about["notes"])
    if not set(BASE_SPLITS) & set(opened.splits):
        raise InputError(
            f"{dataset} has no base classes to train on, only {', '.join(opened.splits)}: use another one."
        )
    splits = {}
    for name in (name for name in (*BASE_SPLITS, "val") if name in opened.splits):
        with bar(console, "images") as progress:
            splits[name] = decode(opened.splits[name], size, cache, partial(progress.count, f"decoding {name}"))
        print_notes(console, left_out(name, splits[name].corrupt))
    return opened.name, splits


def _train(
    name: str, base: DecodedSplit, val: DecodedSplit | None, recipe: Recipe, out: Path, device: str, console: Console
) -> list[Epoch]:
    """Train; print and return the epochs of this run."""
    from hotshot.backbones.training import train as train_backbone

    validation = "no" if val is None else f"{len(val)} of {len(val.names)}"
    console.print(
        f"{name}: {len(base)} images of {len(base.names)} base classes, {validation} validation classes.", markup=False
    )
    epochs: list[Epoch] = []
    with bar(console, "batches") as progress:
        task = progress.named("training")

        def after_batch(done: int, total: int, loss: float) -> None:
            number = epochs[-1].number + 1 if epochs else 1
            progress.update(task, completed=done, total=total, description=f"epoch {number}, loss {loss:.3f}")

        def after_epoch(epoch: Epoch) -> None:
            epochs.append(epoch)
            console.print(_line(epoch, recipe), markup=False)

        try:
            train_backbone(base, val, recipe, out, device=device, watch=after_batch, after_epoch=after_epoch)
        except KeyboardInterrupt:
            raise InterruptedRunError(f"Interrupted: finished epochs are in {out}. {RESUME}") from None
    return epochs


def _line(epoch: Epoch, recipe: Recipe) -> str:
    training = "" if epoch.accuracy is None else f", training accuracy {100 * epoch.accuracy:.1f}%"
    few_shot = "" if epoch.validation is None else f", 5-way few-shot accuracy {100 * epoch.validation:.1f}%"
    done = f"epoch {epoch.number} of {recipe.epochs}: loss {epoch.loss:.3f}"
    return f"{done}{training}{few_shot}, {epoch.seconds:.0f} s"
