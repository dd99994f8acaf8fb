"""`hotshot extract` and `hotshot train`: features of images or texts as feature files, and a backbone for images."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hotshot.cli import options
from hotshot.cli.options import RESUME, argument, number, option
from hotshot.cli.terminal import Bar, Console, print_json, print_notes
from hotshot.errors import InputError, ParameterError, RunError

if TYPE_CHECKING:
    from hotshot.backbones.training import Epoch
    from hotshot.encoders import Extraction
    from hotshot.images.decode import DecodedSplit

BASE_SPLITS = ("base", "all")
# Mirrored letters are different letters.
NOT_TO_MIRROR = ("omniglot",)


def extract(
    dataset: Annotated[
        Path,
        argument("Folder or archive of images, or a table of texts, such as a CSV file with columns text and label."),
    ],
    kind: options.Kind = "auto",
    encoder: Annotated[str | None, option(options.ENCODERS)] = None,
    size: Annotated[int | None, number("Side of the input in pixels. Default: the network's own, or 84.")] = None,
    out: Annotated[Path, option(f"Folder for the feature files, one per split. {RESUME}")] = Path("features"),
    device: options.Device = "cpu",
    skip_corrupt: options.SkipCorrupt = False,
    text: options.Text = None,
    label: options.Label = None,
    id_: options.Id = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Extract features of images, one file per split, or of texts."""
    from hotshot.encoders import extract, load_encoder
    from hotshot.images.published import SPLITS
    from hotshot.inputs import Columns
    from hotshot.inputs.inputs import read_texts

    console = Console(stderr=json)
    if encoder is None:
        raise ParameterError("Pass --encoder NAME, such as minilm for texts or efficientnet-lite0 for images.")
    loaded = load_encoder(encoder, device, size)
    for note in loaded.notes:
        console.print(note, markup=False)
    are_texts = loaded.kind == "texts"
    for name in [dataset.stem] if are_texts else SPLITS:
        weights = loaded.name.rpartition("@")[2]
        options.refuse_overwriting(out / f"{name}.safetensors", dataset if are_texts else None, weights)
    inputs: dict[str, Any] = {"inputs": dataset}
    if are_texts:
        texts, warning = read_texts(dataset, Columns(text, label, id_))
        print_notes(console, warning)
        inputs = {"inputs": texts.X, "labels": texts.y, "ids": texts.ids, "name": dataset.name}
    written: list[dict[str, Any]] = []

    def after(done: Extraction) -> None:
        written.append(_row(done, loaded.kind))
        if done.seconds is None:
            console.print(f"{done.path}: already extracted.", markup=False)
            return
        rate = "" if are_texts else f", {done.n_inputs / done.seconds:.0f} per second"
        console.print(f"{done.path}: {done.n_inputs} {loaded.kind} of {done.n_classes} classes{rate}.", markup=False)
        _note_corrupt(console, done.path.stem, done.corrupt)

    with Bar(console, loaded.kind, interrupted=f": finished features are in {out}. {RESUME}") as progress:
        extract(
            **inputs, encoder=loaded, out=out, kind=kind, skip_corrupt=skip_corrupt, force=force, after=after,
            watch=lambda name, *counts: progress.count(f"extracting {name}", *counts),
            note=lambda sentence: print_notes(console, [sentence]),
        )  # fmt: skip
    if json:
        print_json(written)


def _row(done: Extraction, kind: str) -> dict[str, Any]:
    row = {"out": str(done.path), kind: done.n_inputs, "classes": done.n_classes}
    if kind == "texts":
        return row
    rate = None if done.seconds is None else round(done.n_inputs / done.seconds, 1)
    return {"split": done.path.stem, **row, "images_per_second": rate}


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
        from hotshot.backbones.training import train
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
    base, val = splits[next(key for key in BASE_SPLITS if key in splits)], splits.get("val")
    recipe = replace(recipe, flip=name not in NOT_TO_MIRROR if flip is None else flip)
    validation = "no" if val is None else f"{len(val)} of {len(val.names)}"
    console.print(
        f"{name}: {len(base)} images of {len(base.names)} base classes, {validation} validation classes.", markup=False
    )
    done: list[Epoch] = []
    with Bar(console, "batches", interrupted=f": finished epochs are in {out}. {RESUME}") as progress:
        task = progress.named("training")

        def after_batch(batches: int, total: int, loss: float) -> None:
            number = done[-1].number + 1 if done else 1
            progress.update(task, completed=batches, total=total, description=f"epoch {number}, loss {loss:.3f}")

        def after_epoch(epoch: Epoch) -> None:
            done.append(epoch)
            console.print(_line(epoch, epochs), markup=False)

        train(base, val, recipe, out, device=device, watch=after_batch, after_epoch=after_epoch)
    if json:
        print_json({"checkpoint": str(out / "best"), "epochs": list(map(asdict, done))})
    else:
        console.print(f"Checkpoint: {out / 'best'}", markup=False)


def _note_corrupt(console: Console, split: str, corrupt: tuple[str, ...]) -> None:
    if corrupt:
        print_notes(console, [f"left out {len(corrupt)} corrupt images of '{split}', first {corrupt[0]}."])


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
    print_notes(console, opened.notes)
    names = [name for name in (*BASE_SPLITS, "val") if name in opened.splits]
    if not {*BASE_SPLITS} & {*names}:
        raise InputError(
            f"{dataset} has no base classes to train on, only {', '.join(opened.splits)}: use another one."
        )
    splits = {}
    for name in names:
        with Bar(console, "images") as progress:
            splits[name] = decode(opened.splits[name], size, cache, partial(progress.count, f"decoding {name}"))
        _note_corrupt(console, name, splits[name].corrupt)
    return opened.name, splits


def _line(epoch: Epoch, epochs: int) -> str:
    training = "" if epoch.accuracy is None else f", training accuracy {100 * epoch.accuracy:.1f}%"
    few_shot = "" if epoch.validation is None else f", 5-way few-shot accuracy {100 * epoch.validation:.1f}%"
    done = f"epoch {epoch.number} of {epochs}: loss {epoch.loss:.3f}"
    return f"{done}{training}{few_shot}, {epoch.seconds:.0f} s"
