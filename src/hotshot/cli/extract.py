"""`hotshot extract`: features of every split of a dataset of images, or of a table of texts, as feature files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hotshot.cli import options
from hotshot.cli.options import RESUME, argument, number, option
from hotshot.cli.terminal import Console, bar, print_json, print_notes
from hotshot.errors import InterruptedRunError, ParameterError

if TYPE_CHECKING:
    from hotshot.encoders import Extraction


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
    from hotshot.images.layouts import SPLITS
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
        print_notes(console, left_out(done.path.stem, done.corrupt))

    with bar(console, loaded.kind) as progress:
        try:
            extract(
                **inputs, encoder=loaded, out=out, kind=kind, skip_corrupt=skip_corrupt, force=force, after=after,
                watch=lambda name, *counts: progress.count(f"extracting {name}", *counts),
                note=lambda sentence: print_notes(console, [sentence]),
            )  # fmt: skip
        except KeyboardInterrupt:
            raise InterruptedRunError(f"Interrupted: finished features are in {out}. {RESUME}") from None
    if json:
        print_json(written)


def left_out(split: str, corrupt: tuple[str, ...]) -> list[str]:
    """A note on images that could not be read, if any."""
    return [f"left out {len(corrupt)} corrupt images of '{split}', first {corrupt[0]}."] if corrupt else []


def _row(done: Extraction, kind: str) -> dict[str, Any]:
    """The summary of a file, as JSON."""
    row = {"out": str(done.path), kind: done.n_inputs, "classes": done.n_classes}
    if kind == "texts":
        return row
    return {
        "split": done.path.stem,
        **row,
        "images_per_second": None if done.seconds is None else round(done.n_inputs / done.seconds, 1),
    }
