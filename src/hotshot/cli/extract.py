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

from hotshot.cli.images import Device, Kind, SkipCorrupt, counting, decoded_splits, needs_images
from hotshot.cli.inputs import Json, number
from hotshot.cli.raw import Id, Label, Text
from hotshot.cli.terminal import Console, bar
from hotshot.encoders import load_encoder
from hotshot.errors import InputError, InterruptedRunError, ParameterError
from hotshot.files import open_features
from hotshot.files.atomic import locked
from hotshot.images.datasets import DecodedSplit
from hotshot.inputs.rows import Columns, open_inputs
from hotshot.version import __version__

if TYPE_CHECKING:
    from hotshot.encoders import Encoder

# Texts of one table, at most.
MOST_TEXTS = 2**31


def extract(
    dataset: Annotated[
        Path | None,
        typer.Argument(
            help="Folder or archive of images, or a CSV file of text,label for an encoder of texts. Without it, "
            "synthetic characters are rendered.",
            show_default=False,
        ),
    ] = None,
    kind: Kind = "auto",
    encoder: Annotated[
        str | None,
        typer.Option(
            help="Encoder: minilm (texts), efficientnet-lite0, timm:NAME, st:NAME, openclip:NAME@WEIGHTS, hf:FOLDER, a "
            "checkpoint, file.onnx, file.py:name or package.module:name."
        ),
    ] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="Checkpoint of hotshot train, such as backbone/best.")] = None,
    pretrained: Annotated[str | None, typer.Option(help="Same as --encoder.")] = None,
    weights: Annotated[
        Path | None, typer.Option(help="File of published weights, for --backbone or --network.")
    ] = None,
    backbone: Annotated[str | None, typer.Option(help="Network that takes --weights, such as wrn28_10.")] = None,
    network: Annotated[str | None, typer.Option(help="Same as --encoder, for a network of your own.")] = None,
    size: Annotated[int | None, number("Side of the input in pixels. Default: 84, or what the network says.")] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for one feature file per split. Rerun the command to resume.")
    ] = Path("features"),
    cache: Annotated[
        Path | None,
        typer.Option(help="Folder that keeps the decoded images. Without it, they are removed after the extraction."),
    ] = None,
    device: Device = "cpu",
    skip_corrupt: SkipCorrupt = False,
    text: Text = None,
    label: Label = None,
    id_: Id = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing feature files.")] = False,
    json: Json = False,
) -> None:
    """Extract the features of a dataset of images, one file per split, or of texts."""
    console = Console(stderr=json)
    name = _encoder_name(encoder, checkpoint, pretrained, weights, backbone, network)
    with needs_images():
        loaded = load_encoder(name, device, size)
    for note in loaded.notes:
        console.print(note, markup=False)
    with locked(out):
        if loaded.kind == "texts":
            written = [_write_texts(loaded, dataset, Columns(text, label, id_), out, force, console)]
        else:
            scratch = out / ".decoded"
            open_splits = partial(
                decoded_splits, dataset, kind, loaded.extractor.size, cache or scratch, skip_corrupt, console
            )
            written = _write_splits(loaded, open_splits, out, device, force, console)
            _remove(scratch)
    if json:
        print(dumps(written, indent=2))


def _encoder_name(
    encoder: str | None,
    checkpoint: Path | None,
    pretrained: str | None,
    weights: Path | None,
    backbone: str | None,
    network: str | None,
) -> str:
    """The one encoder that the flags name."""
    given = [x for x in (encoder, checkpoint, pretrained, backbone, network) if x is not None]
    if len(given) > 1 or (not given and weights is None):
        raise ParameterError(
            "Pass one of --encoder NAME, --checkpoint FOLDER, --pretrained NAME, and --weights FILE with --backbone "
            "NAME, or else --network NAME."
        )
    if (weights is None) != (backbone is None) and network is None:
        raise ParameterError(
            "--weights FILE and --backbone NAME go together, unless --weights FILE is for --network NAME."
        )
    if checkpoint is not None:
        # A folder may be called as an encoder is.
        return str(checkpoint.absolute())
    if weights is not None and str(given[0]).lower().endswith(".onnx"):
        raise ParameterError(f"{given[0]} holds its own weights: leave --weights out.")
    return str(given[0]) if weights is None else f"{given[0]}@{weights}"


def _write_splits(
    encoder: Encoder, open_splits: Any, out: Path, device: str, force: bool, console: Console
) -> list[dict[str, Any]]:
    """Write the features of all splits that are not there yet; what was written, and how quickly."""
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
    """Write the features of one split; what was written, and how quickly."""
    from hotshot.images.extraction import extract_split

    path = out / f"{source['split']}.safetensors"
    about = _about(encoder, {**source, "images": split.fingerprint}) | _made_now()
    start = time.perf_counter()
    with bar(console, "images") as progress:
        watch = counting(progress, f"extracting {source['split']}")
        try:
            share = extract_split(encoder.extractor, split, path, about=about, device=device, watch=watch)
        except KeyboardInterrupt:
            raise InterruptedRunError(
                f"Interrupted: what was extracted is in {out}. Rerun the command to resume."
            ) from None
    rate = len(split) / (time.perf_counter() - start)
    console.print(f"{path}: {len(split)} images of {len(split.names)} classes, {rate:.0f} a second.", markup=False)
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
    """Write the features of a table of texts, with labels or without, into the folder and under its name."""
    from hotshot.images.extraction import extract_texts

    if texts is None:
        raise ParameterError(f"{encoder.name} needs a table of texts: pass a .csv, .tsv, .jsonl or .txt file.")
    opened = open_inputs(texts, encoder.kind, columns)
    rows = next(opened.batches(MOST_TEXTS))
    sentences, labels = list(rows.content), rows.labels
    if labels is not None and "" in labels:
        raise InputError(f"{opened.name} has no label in row {labels.index('') + 1}: add it, or remove the row.")
    path = out / f"{texts.stem}.safetensors"
    digest = sha256(dumps([sentences, labels]).encode()).hexdigest()
    about = _about(encoder, {"name": texts.name, "texts": f"sha256:{digest}"})
    found = {"out": str(path), "texts": len(sentences), "classes": len(set(labels or ()))}
    if _is_done(path, about, encoder, force, console):
        return found
    with bar(console, "texts") as progress:
        watch = counting(progress, "embedding")
        about |= _made_now()
        extract_texts(encoder.encode, sentences, labels, path, about=about, watch=watch, ids=rows.ids)
    console.print(f"{path}: {found['texts']} texts of {found['classes']} classes.", markup=False)
    return found


def _about(encoder: Encoder, source: dict[str, Any]) -> dict[str, Any]:
    return {**encoder.about, "source": source}


def _is_done(path: Path, about: dict[str, Any], encoder: Encoder, force: bool, console: Console) -> bool:
    """Whether the same extraction has written a file before; a file of another one is refused."""
    from hotshot.images.extraction import part_of

    if force or not path.exists():
        return False
    found, own = open_features(path).about, loads(dumps(about))
    network = found.get("network")
    # Bits of features depend on the processor and its threads, and so do fingerprints of them.
    if isinstance(network, dict) and encoder.same_as(network.get("probe", ())):
        own["network"] |= {key: network[key] for key in ("probe", "fingerprint") if key in network}
    if any(found.get(key) != value for key, value in own.items()):
        raise ParameterError(
            f"{path} exists, of other {encoder.kind} or another encoder: pass --force to overwrite it."
        )
    console.print(f"{path}: extracted before.", markup=False)
    # Left by a process that was killed when the features were complete.
    part_of(path).unlink(missing_ok=True)
    return True


def _remove(scratch: Path) -> None:
    """Remove decoded images; a process that is killed meanwhile leaves them under another name."""
    old = scratch.with_suffix(".old")
    shutil.rmtree(old, ignore_errors=True)
    with suppress(OSError):
        scratch.replace(old)
        shutil.rmtree(old, ignore_errors=True)


def _made_now() -> dict[str, str]:
    return {"created": datetime.now(UTC).isoformat(timespec="seconds"), "hotshot": __version__}
