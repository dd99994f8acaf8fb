"""`hotshot extract`: features of every split of a dataset of images, as native feature files."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from hotshot.cli.images import bar, counting, decoded_splits
from hotshot.errors import InterruptedRunError, ParameterError
from hotshot.images.backbones.devices import require_device
from hotshot.images.backbones.weights import Report
from hotshot.images.extraction import (
    MINILM,
    Extractor,
    checkpoint_extractor,
    extract_split,
    extract_texts,
    load_minilm,
    module_extractor,
    onnx_extractor,
    pretrained_extractor,
    read_texts,
    weights_extractor,
)
from hotshot.version import __version__

# Side of the input of networks that do not tell it, in pixels.
SIZE = 84


def run_extract(
    *,
    dataset: Path | None,
    kind: str,
    checkpoint: Path | None,
    pretrained: str | None,
    weights: Path | None,
    backbone: str | None,
    network: str | None,
    size: int | None,
    out: Path,
    cache: Path | None,
    device: str,
    skip_corrupt: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Write one file for each split, and say how quickly."""
    console = Console(stderr=as_json)
    _check_flags(checkpoint, pretrained, weights, backbone, network)
    require_device(device)
    if pretrained == MINILM:
        _extract_texts(dataset, out, device, force, as_json, console)
        return
    extractor = _extractor(checkpoint, pretrained, weights, backbone, network, size, device, console)
    out.mkdir(parents=True, exist_ok=True)
    name, splits = decoded_splits(
        dataset, kind, extractor.size, cache or out / "decoded", skip_corrupt, console
    )
    written: list[dict[str, Any]] = []
    for split_name, split in splits.items():
        path = out / f"{split_name}.safetensors"
        if path.exists() and not force:
            raise ParameterError(f"{path} exists: pass --force to overwrite it.")
        about = {
            "extractor": extractor.name,
            "transform": "none",
            "network": extractor.about,
            "source": {"name": name, "split": split_name, "images": split.fingerprint},
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "hotshot": __version__,
        }
        start = time.perf_counter()
        with bar(console, "images") as progress:
            watch = counting(progress, f"extracting {split_name}")
            try:
                share = extract_split(extractor, split, path, about=about, device=device, watch=watch)
            except KeyboardInterrupt:
                raise InterruptedRunError(
                    f"Interrupted: what was extracted is in {out}; the same command goes on from there."
                ) from None
        seconds = time.perf_counter() - start
        written.append(
            {
                "split": split_name,
                "out": str(path),
                "images": len(split),
                "classes": len(split.names),
                "images_per_second": round(len(split) / seconds, 1),
                "share_in_network": round(share, 3),
            }
        )
        console.print(
            f"{path}: {len(split)} images of {len(split.names)} classes, {len(split) / seconds:.0f} a second, "
            f"{100 * share:.0f}% of the time in the network.",
            markup=False,
        )
    if as_json:
        print(json.dumps(written, indent=2))


def _check_flags(
    checkpoint: Path | None,
    pretrained: str | None,
    weights: Path | None,
    backbone: str | None,
    network: str | None,
) -> None:
    """One network is named, and weights where they belong to one."""
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
    if checkpoint is not None:
        return checkpoint_extractor(checkpoint, device)
    if pretrained is not None:
        return pretrained_extractor(pretrained, device)
    if network is not None and network.lower().endswith(".onnx"):
        if weights is not None:
            raise ParameterError(f"{network} holds its own weights: leave --weights out.")
        return onnx_extractor(network, size, device)
    side = SIZE if size is None else size
    report: Report | None
    if network is not None:
        extractor, report = module_extractor(network, side, device, weights=weights)
    else:
        extractor, report = weights_extractor(str(backbone), str(weights), side, device)
    if report is not None:
        console.print(f"{weights}: {report}", markup=False)
    return extractor


def _extract_texts(
    texts: Path | None, out: Path, device: str, force: bool, as_json: bool, console: Console
) -> None:
    """Sentence embeddings of a CSV file of texts and labels, into the folder and under its name."""
    if texts is None:
        raise ParameterError(f"--pretrained {MINILM} needs a CSV file of texts and labels.")
    sentences, labels = read_texts(texts)
    path = out / f"{texts.stem}.safetensors"
    if path.exists() and not force:
        raise ParameterError(f"{path} exists: pass --force to overwrite it.")
    out.mkdir(parents=True, exist_ok=True)
    about = {
        "extractor": "all-MiniLM-L6-v2",
        "transform": "unit norm",
        "source": {"name": texts.name},
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "hotshot": __version__,
    }
    embed = load_minilm(device)
    with bar(console, "texts") as progress:
        extract_texts(embed, sentences, labels, path, about=about, watch=counting(progress, "embedding"))
    found = {"out": str(path), "texts": len(sentences), "classes": len(set(labels))}
    if as_json:
        print(json.dumps([found], indent=2))
        return
    console.print(f"{path}: {len(sentences)} texts of {len(set(labels))} classes.", markup=False)
