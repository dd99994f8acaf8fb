"""`hotshot extract`: features of every split of a dataset of images, or of a table of texts, as feature files."""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from json import dumps, loads
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotshot.cli.images import decoded_splits, needs_images
from hotshot.cli.options import (
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
from hotshot.cli.terminal import Console, bar, counting, print_notes
from hotshot.errors import InputError, InterruptedRunError, ParameterError
from hotshot.version import __version__

if TYPE_CHECKING:
    from hotshot.encoders import Encoder
    from hotshot.images.datasets import DecodedSplit
    from hotshot.inputs.rows import Columns

# Texts of one table, at most.
MOST_TEXTS = 2**31


def extract(
    dataset: Annotated[
        Path | None,
        typer.Argument(
            help="Folder or archive of images, or a table of texts, such as a CSV file with columns text and label. "
            "Without a dataset, synthetic characters are rendered.",
            show_default=False,
        ),
    ] = None,
    kind: Kind = "auto",
    encoder: Annotated[
        str | None,
        typer.Option(
            help="Encoder: minilm (texts), efficientnet-lite0, timm:NAME, st:NAME, openclip:NAME@WEIGHTS, hf:FOLDER, a "
            "checkpoint of hotshot train, BACKBONE@WEIGHTS, FILE.onnx, FILE.py:NAME or PACKAGE.MODULE:NAME."
        ),
    ] = None,
    size: Annotated[int | None, number("Side of the input in pixels. Default: the network's own, or 84.")] = None,
    out: Annotated[Path, typer.Option(help=f"Folder for the feature files, one per split. {RESUME}")] = Path(
        "features"
    ),
    cache: Annotated[Path | None, typer.Option(help="Folder for decoded images. Default: a temporary one.")] = None,
    device: Device = "cpu",
    skip_corrupt: SkipCorrupt = False,
    text: Text = None,
    label: Label = None,
    id_: Id = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Extract features of images, one file per split, or of texts."""
    from hotshot.encoders import load_encoder
    from hotshot.files.atomic import locked
    from hotshot.inputs.rows import Columns

    console = Console(stderr=json)
    if encoder is None:
        raise ParameterError("Pass --encoder NAME, such as minilm for texts or efficientnet-lite0 for images.")
    with needs_images():
        loaded = load_encoder(encoder, device, size)
    scratch = out / ".decoded"
    refuse_overwriting(scratch, dataset)
    for note in loaded.notes:
        console.print(note, markup=False)
    with locked(out):
        if loaded.kind == "texts":
            written = [_write_texts(loaded, dataset, Columns(text, label, id_), out, force, console)]
        else:
            open_splits = partial(
                decoded_splits, dataset, kind, loaded.extractor.size, cache or scratch, skip_corrupt, console
            )
            written = _write_splits(loaded, open_splits, out, device, force, console)
            _remove(scratch)
    if json:
        print(dumps(written, indent=2))


def _write_splits(
    encoder: Encoder, open_splits: Any, out: Path, device: str, force: bool, console: Console
) -> list[dict[str, Any]]:
    """Write the features of all missing splits; return a summary of each split."""
    from hotshot.files import open_features

    written: dict[str, dict[str, Any]] = {}

    def is_done(name: str, split: str, fingerprint: str | None) -> bool:
        path = out / f"{split}.safetensors"
        about = _about(encoder, {"name": name, "split": split, "images": fingerprint})
        if not _is_done(path, about, encoder, force, console):
            return False
        X, y = open_features(path).read()
        written[split] = _row(split, path, len(X), len(set(y.tolist())))
        return True

    name, splits = open_splits(is_done)
    for key, split in splits.items():
        written[key] = _write_split(encoder, split, {"name": name, "split": key}, out, device, console)
    return list(written.values())


def _write_split(
    encoder: Encoder, split: DecodedSplit, source: dict[str, Any], out: Path, device: str, console: Console
) -> dict[str, Any]:
    """Write the features of one split; return a summary."""
    from hotshot.images.extraction import extract_split

    path = out / f"{source['split']}.safetensors"
    about = _about(encoder, {**source, "images": split.fingerprint}) | _made_now()
    start = time.perf_counter()
    with bar(console, "images") as progress:
        watch = counting(progress, f"extracting {source['split']}")
        try:
            share = extract_split(encoder.extractor, split, path, about=about, device=device, watch=watch)
        except KeyboardInterrupt:
            raise InterruptedRunError(f"Interrupted: finished features are in {out}. {RESUME}") from None
    rate = len(split) / (time.perf_counter() - start)
    console.print(f"{path}: {len(split)} images of {len(split.names)} classes, {rate:.0f} per second.", markup=False)
    return _row(source["split"], path, len(split), len(split.names), round(rate, 1), round(share, 3))


def _row(
    split: str, path: Path, images: int, classes: int, rate: float | None = None, share: float | None = None
) -> dict[str, Any]:
    return {
        "split": split,
        "out": str(path),
        "images": images,
        "classes": classes,
        "images_per_second": rate,
        "share_in_network": share,
    }


def _write_texts(
    encoder: Encoder, texts: Path | None, columns: Columns, out: Path, force: bool, console: Console
) -> dict[str, Any]:
    """Write the features of a table of texts, with or without labels, to the folder, under the name of the table."""
    from hotshot.images.extraction import extract_texts
    from hotshot.inputs.rows import open_inputs, unreadable

    if texts is None:
        raise ParameterError(f"{encoder.name} needs a table of texts: pass a .csv, .tsv, .jsonl or .txt file.")
    opened = open_inputs(texts, encoder.kind, columns)
    rows = next(opened.batches(MOST_TEXTS))
    if rows.labels is not None and "" in rows.labels:
        raise InputError(f"{opened.name} has no label in row {rows.labels.index('') + 1}: add it, or remove the row.")
    sentences, ids = ([values[row] for row in rows.readable] for values in (rows.content, rows.ids))
    labels = None if rows.labels is None else [rows.labels[row] for row in rows.readable]
    if rows.errors:
        print_notes(console, [f"{unreadable(rows.errors, len(rows), opened.name)}."])
    path = out / f"{texts.stem}.safetensors"
    digest = sha256(dumps([sentences, labels]).encode()).hexdigest()
    about = _about(encoder, {"name": texts.name, "texts": f"sha256:{digest}"})
    found = {"out": str(path), "texts": len(sentences), "classes": len(set(labels or ()))}
    if _is_done(path, about, encoder, force, console):
        return found
    with bar(console, "texts") as progress:
        watch = counting(progress, "embedding")
        about |= _made_now()
        extract_texts(encoder.encode, sentences, labels, path, about=about, watch=watch, ids=ids)
    console.print(f"{path}: {found['texts']} texts of {found['classes']} classes.", markup=False)
    return found


def _about(encoder: Encoder, source: dict[str, Any]) -> dict[str, Any]:
    return {**encoder.about, "source": source}


def _is_done(path: Path, about: dict[str, Any], encoder: Encoder, force: bool, console: Console) -> bool:
    """Whether the same extraction has already written a file; the file of another extraction is refused."""
    from hotshot.files import open_features
    from hotshot.images.extraction import part_of

    refuse_overwriting(path, encoder.name.rpartition("@")[2])
    if force or not path.exists():
        return False
    found, own = open_features(path).about, loads(dumps(about))
    network = found.get("network")
    # Bits of features depend on the processor and its threads, and so do fingerprints of them.
    if isinstance(network, dict) and encoder.same_as(network.get("probe", ())):
        own["network"] |= {key: network[key] for key in ("probe", "fingerprint") if key in network}
    if any(found.get(key) != value for key, value in own.items()):
        raise ParameterError(
            f"{path} exists, from other {encoder.kind} or another encoder: pass --force to overwrite it."
        )
    console.print(f"{path}: already extracted.", markup=False)
    # Left by a process that was killed when the features were complete.
    part_of(path).unlink(missing_ok=True)
    return True


def _remove(scratch: Path) -> None:
    """Remove decoded images; if the process is killed meanwhile, they stay under another name."""
    old = scratch.with_suffix(".old")
    shutil.rmtree(old, ignore_errors=True)
    with suppress(OSError):
        scratch.replace(old)
        shutil.rmtree(old, ignore_errors=True)


def _made_now() -> dict[str, str]:
    return {"created": datetime.now(UTC).isoformat(timespec="seconds"), "hotshot": __version__}
