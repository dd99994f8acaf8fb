"""`hotshot extract`: features of every split of a dataset of images, or of a table of texts, as feature files."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotshot.cli.options import (
    ENCODERS,
    RESUME,
    Device,
    Force,
    Id,
    Json,
    Kind,
    Label,
    SkipCorrupt,
    Text,
    number,
    refuse_overwriting,
)
from hotshot.cli.terminal import Console, bar, print_notes
from hotshot.errors import InputError, InterruptedRunError, ParameterError

if TYPE_CHECKING:
    from hotshot.encoders import Extraction
    from hotshot.inputs import Columns

# Texts of one table, at most.
MOST_TEXTS = 2**31


def extract(
    dataset: Annotated[
        Path,
        typer.Argument(
            help="Folder or archive of images, or a table of texts, such as a CSV file with columns text and label.",
            show_default=False,
        ),
    ],
    kind: Kind = "auto",
    encoder: Annotated[str | None, typer.Option(help=ENCODERS)] = None,
    size: Annotated[int | None, number("Side of the input in pixels. Default: the network's own, or 84.")] = None,
    out: Annotated[Path, typer.Option(help=f"Folder for the feature files, one per split. {RESUME}")] = Path(
        "features"
    ),
    device: Device = "cpu",
    skip_corrupt: SkipCorrupt = False,
    text: Text = None,
    label: Label = None,
    id_: Id = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Extract features of images, one file per split, or of texts."""
    from hotshot.encoders import extract, load_encoder
    from hotshot.images.layouts import SPLITS
    from hotshot.inputs import Columns

    console = Console(stderr=json)
    if encoder is None:
        raise ParameterError("Pass --encoder NAME, such as minilm for texts or efficientnet-lite0 for images.")
    loaded = load_encoder(encoder, device, size)
    for note in loaded.notes:
        console.print(note, markup=False)
    are_texts = loaded.kind == "texts"
    for name in [dataset.stem] if are_texts else SPLITS:
        refuse_overwriting(out / f"{name}.safetensors", dataset if are_texts else None, loaded.name.rpartition("@")[2])
    inputs = _read_texts(dataset, Columns(text, label, id_), console) if are_texts else {"inputs": dataset}
    written: list[dict[str, Any]] = []

    def after(done: Extraction) -> None:
        written.append(_row(done, loaded.kind))
        if done.seconds is None:
            console.print(f"{done.path}: already extracted.", markup=False)
            return
        rate = "" if are_texts else f", {done.n_inputs / done.seconds:.0f} per second"
        console.print(f"{done.path}: {done.n_inputs} {loaded.kind} of {done.n_classes} classes{rate}.", markup=False)
        if done.corrupt:
            left_out = f"left out {len(done.corrupt)} corrupt images of '{done.path.stem}', first {done.corrupt[0]}."
            print_notes(console, [left_out])

    with bar(console, loaded.kind) as progress:
        tasks: dict[str, Any] = {}

        def watch(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = progress.add_task(f"extracting {name}", total=total)
            progress.update(tasks[name], completed=done)

        try:
            extract(
                **inputs, encoder=loaded, out=out, kind=kind, skip_corrupt=skip_corrupt, force=force, watch=watch,
                after=after, note=lambda sentence: print_notes(console, [sentence]),
            )  # fmt: skip
        except KeyboardInterrupt:
            raise InterruptedRunError(f"Interrupted: finished features are in {out}. {RESUME}") from None
    if json:
        print(dumps(written, indent=2))


def _row(done: Extraction, kind: str) -> dict[str, Any]:
    """The summary of a file, as JSON."""
    if kind == "texts":
        return {"out": str(done.path), "texts": done.n_inputs, "classes": done.n_classes}
    return {
        "split": done.path.stem,
        "out": str(done.path),
        "images": done.n_inputs,
        "classes": done.n_classes,
        "images_per_second": None if done.seconds is None else round(done.n_inputs / done.seconds, 1),
        "share_in_network": None if done.share_in_encoder is None else round(done.share_in_encoder, 3),
    }


def _read_texts(path: Path, columns: Columns, console: Console) -> dict[str, Any]:
    """The texts of a table, with their labels, if any, and ids."""
    from hotshot.inputs.inputs import TEXTS, open_inputs, readable, unreadable

    opened = open_inputs(path, TEXTS, columns)
    rows = next(opened.batches(MOST_TEXTS))
    if rows.y is not None and "" in rows.y:
        raise InputError(f"{opened.name} has no label in row {rows.y.index('') + 1}: add it, or remove the row.")
    if rows.errors:
        print_notes(console, [f"{unreadable(rows.errors, len(rows), opened.name)}."])
    rows = rows[readable(rows)]
    return {"inputs": rows.X, "labels": rows.y, "ids": list(map(str, rows.columns[opened.id])), "name": path.name}
