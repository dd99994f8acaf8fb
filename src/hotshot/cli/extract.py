"""`hotshot extract`: features of every split of a dataset of images, as native feature files."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from hashlib import sha256
from json import dumps, loads
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotshot.cli.images import Cache, Dataset, Device, Kind, SkipCorrupt, counting, decoded_splits, needs_images
from hotshot.cli.inputs import Json, number
from hotshot.cli.terminal import Console, bar
from hotshot.errors import InterruptedRunError, ParameterError
from hotshot.files import open_features
from hotshot.files.atomic import locked
from hotshot.images.datasets import DecodedSplit
from hotshot.version import __version__

if TYPE_CHECKING:
    from hotshot.images.extraction import Extractor

# Side of the input of networks that do not tell it, in pixels.
SIZE = 84


def extract(
    dataset: Dataset = None,
    kind: Kind = "auto",
    checkpoint: Annotated[Path | None, typer.Option(help="Checkpoint of hotshot train, such as backbone/best.")] = None,
    pretrained: Annotated[
        str | None, typer.Option(help="Pretrained network: efficientnet-lite0, or minilm for a CSV file of text,label.")
    ] = None,
    weights: Annotated[
        Path | None, typer.Option(help="File of published weights, for --backbone or --network.")
    ] = None,
    backbone: Annotated[str | None, typer.Option(help="Network that takes --weights, such as wrn28_10.")] = None,
    network: Annotated[
        str | None,
        typer.Option(
            help="Network of your own: package.module:name or file.py:name of a PyTorch module, or an ONNX file."
        ),
    ] = None,
    size: Annotated[int | None, number("Side of the input in pixels. Default: 84, or what the network says.")] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for one feature file per split. Rerun the command to resume.")
    ] = Path("features"),
    cache: Cache = None,
    device: Device = "cpu",
    skip_corrupt: SkipCorrupt = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing feature files.")] = False,
    json: Json = False,
) -> None:
    """Extract the features of all images of a dataset, one file per split, which evaluate reads."""
    with needs_images():
        from hotshot.images.backbones import require_device
        from hotshot.images.extraction import MINILM
    console = Console(stderr=json)
    named = sum(given is not None for given in (checkpoint, pretrained, backbone, network))
    if named > 1 or (named == 0 and weights is None):
        raise ParameterError(
            "Pass one of --checkpoint FOLDER, --pretrained NAME, and --weights FILE with --backbone NAME, or else "
            "--network NAME."
        )
    if (weights is None) != (backbone is None) and network is None:
        raise ParameterError(
            "--weights FILE and --backbone NAME go together, unless --weights FILE is for --network NAME."
        )
    require_device(device)
    if pretrained == MINILM:
        if dataset is None:
            raise ParameterError(f"--pretrained {MINILM} needs a CSV file of texts and labels.")
        with locked(out):
            written = [_write_texts(dataset, out, device, force, console)]
    else:
        extractor = _extractor(checkpoint, pretrained, weights, backbone, network, size, device, console)
        cache = out / "decoded" if cache is None else cache
        with locked(out):
            name, splits = decoded_splits(dataset, kind, extractor.size, cache, skip_corrupt, console)
            written = [
                _write_split(extractor, split, {"name": name, "split": key}, out, device, force, console)
                for key, split in splits.items()
            ]
    if json:
        print(dumps(written, indent=2))


def _extractor(
    checkpoint: Path | None,
    pretrained: str | None,
    weights: Path | None,
    backbone: str | None,
    network: str | None,
    size: int | None,
    device: str,
    console: Console,
) -> Extractor:
    """The network that is named; how weights were matched is printed."""
    from hotshot.images import extraction

    if checkpoint is not None:
        return extraction.checkpoint_extractor(checkpoint, device)
    if pretrained is not None:
        return extraction.pretrained_extractor(pretrained, device)
    if network is not None and network.lower().endswith(".onnx"):
        if weights is not None:
            raise ParameterError(f"{network} holds its own weights: leave --weights out.")
        return extraction.onnx_extractor(network, size, device)
    side = SIZE if size is None else size
    if network is not None:
        extractor, report = extraction.module_extractor(network, side, device, weights=weights)
    else:
        extractor, report = extraction.weights_extractor(str(backbone), str(weights), side, device)
    if report is not None:
        console.print(f"{weights}: {report}", markup=False)
    return extractor


def _write_split(
    extractor: Extractor,
    split: DecodedSplit,
    source: dict[str, Any],
    out: Path,
    device: str,
    force: bool,
    console: Console,
) -> dict[str, Any]:
    """Write the features of one split; what was written, and how quickly."""
    from hotshot.images.extraction import extract_split, part_of

    path = out / f"{source['split']}.safetensors"
    about = {
        "extractor": extractor.name,
        "transform": "none",
        "network": extractor.about,
        "source": {**source, "images": split.fingerprint},
    }
    written = {
        "split": source["split"],
        "out": str(path),
        "images": len(split),
        "classes": len(split.names),
        "images_per_second": None,
        "share_in_network": None,
    }
    if _is_done(path, about, "images", force, console):
        # Left by a process that was killed when the features were complete.
        part_of(path).unlink(missing_ok=True)
        return written
    start = time.perf_counter()
    with bar(console, "images") as progress:
        watch = counting(progress, f"extracting {source['split']}")
        try:
            share = extract_split(extractor, split, path, about={**about, **_made_now()}, device=device, watch=watch)
        except KeyboardInterrupt:
            raise InterruptedRunError(
                f"Interrupted: what was extracted is in {out}. Rerun the command to resume."
            ) from None
    rate = len(split) / (time.perf_counter() - start)
    console.print(
        f"{path}: {len(split)} images of {len(split.names)} classes, {rate:.0f} a second, "
        f"{100 * share:.0f}% of the time in the network.",
        markup=False,
    )
    return {**written, "images_per_second": round(rate, 1), "share_in_network": round(share, 3)}


def _write_texts(texts: Path, out: Path, device: str, force: bool, console: Console) -> dict[str, Any]:
    """Write the sentence embeddings of a CSV file of texts and labels, into the folder and under its name."""
    from hotshot.images.extraction import extract_texts, load_minilm, read_texts

    sentences, labels = read_texts(texts)
    path = out / f"{texts.stem}.safetensors"
    source = {"name": texts.name, "texts": f"sha256:{sha256(dumps([sentences, labels]).encode()).hexdigest()}"}
    about = {"extractor": "all-MiniLM-L6-v2", "transform": "unit norm", "source": source}
    found = {"out": str(path), "texts": len(sentences), "classes": len(set(labels))}
    if _is_done(path, about, "texts", force, console):
        return found
    embed = load_minilm(device)
    with bar(console, "texts") as progress:
        watch = counting(progress, "embedding")
        extract_texts(embed, sentences, labels, path, about={**about, **_made_now()}, watch=watch)
    console.print(f"{path}: {found['texts']} texts of {found['classes']} classes.", markup=False)
    return found


def _is_done(path: Path, about: dict[str, Any], what: str, force: bool, console: Console) -> bool:
    """Whether the same extraction has written a file before; a file of another one is refused."""
    if force or not path.exists():
        return False
    found = open_features(path).about
    if any(found.get(key) != loads(dumps(value)) for key, value in about.items()):
        raise ParameterError(f"{path} exists, of other {what} or another network: pass --force to overwrite it.")
    console.print(f"{path}: extracted before.", markup=False)
    return True


def _made_now() -> dict[str, str]:
    return {"created": datetime.now(UTC).isoformat(timespec="seconds"), "hotshot": __version__}
