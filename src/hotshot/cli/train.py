"""`hotshot train`: a backbone from scratch on the base classes of a dataset of images."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

from rich.console import Console

from hotshot.cli.images import GLYPHS, bar, decoded_splits
from hotshot.errors import InputError, InterruptedRunError
from hotshot.images.backbones.devices import require_device
from hotshot.images.training import Epoch, Recipe, train

BASE_SPLITS = ("base", "all")
# Mirrored letters are other letters.
NOT_TO_MIRROR = (GLYPHS, "omniglot")


def run_train(
    *,
    dataset: Path | None,
    kind: str,
    recipe: Recipe,
    flip: bool | None,
    out: Path,
    cache: Path | None,
    device: str,
    skip_corrupt: bool,
    as_json: bool,
) -> None:
    """Train, print a line for each epoch, and say where the checkpoint is."""
    console = Console(stderr=as_json)
    require_device(device)
    cache = cache or out / "decoded"
    name, splits = decoded_splits(dataset, kind, recipe.cached_size, cache, skip_corrupt, console)
    base = next((splits[key] for key in BASE_SPLITS if key in splits), None)
    if base is None:
        raise InputError(f"{dataset} has no base classes to train on: it has {', '.join(splits)}.")
    recipe = replace(recipe, flip=name not in NOT_TO_MIRROR if flip is None else flip)
    val = splits.get("val")
    console.print(
        f"{name}: {len(base)} images of {len(base.names)} base classes"
        + (f", {len(val)} of {len(val.names)} validation classes." if val else ", no validation classes."),
        markup=False,
    )
    epochs: list[Epoch] = []
    with bar(console, "batches") as progress:
        task = progress.add_task("training", total=None)

        def watch(done: int, total: int, loss: float) -> None:
            number = epochs[-1].number + 1 if epochs else 1
            progress.update(task, completed=done, total=total, description=f"epoch {number}, loss {loss:.3f}")

        def told(epoch: Epoch) -> None:
            epochs.append(epoch)
            progress.console.print(_line(epoch, recipe), markup=False)

        try:
            train(base, val, recipe, out, device=device, watch=watch, told=told)
        except KeyboardInterrupt:
            raise InterruptedRunError(
                f"Interrupted: finished epochs are in {out}; the same command goes on from there."
            ) from None
    if as_json:
        print(
            json.dumps(
                {"checkpoint": str(out / "best"), "epochs": [asdict(epoch) for epoch in epochs]}, indent=2
            )
        )
        return
    console.print(f"Checkpoint: {out / 'best'}", markup=False)


def _line(epoch: Epoch, recipe: Recipe) -> str:
    recognised = "" if epoch.accuracy is None else f", {100 * epoch.accuracy:.1f}% of images recognised"
    few_shot = "" if epoch.validation is None else f", 5-way few-shot accuracy {100 * epoch.validation:.1f}%"
    done = f"epoch {epoch.number} of {recipe.epochs}: loss {epoch.loss:.3f}"
    return f"{done}{recognised}{few_shot}, {epoch.seconds:.0f} s"
