"""Backbones of the few-shot literature as extractors, trained here or elsewhere."""

from __future__ import annotations

from pathlib import Path

from hotshot.images.backbones import create, options_for
from hotshot.images.backbones.weights import Report, load_weights
from hotshot.images.extraction.extractor import Extractor
from hotshot.images.extraction.trial import side_of, tried
from hotshot.images.training import load_backbone
from hotshot.images.training.augmentation import as_input


def checkpoint_extractor(path: str | Path, device: str = "cpu") -> Extractor:
    """The extractor of a checkpoint that `train` wrote."""
    network, recipe, about = load_backbone(path)
    network = network.to(device)
    known = {"backbone": recipe.backbone, "epochs": len(about["history"]), "classes": len(about["names"])}
    extractor = Extractor(
        recipe.backbone, network, lambda pixels: as_input(pixels, recipe.size), recipe.cached_size, known
    )
    return tried(extractor, device)


def weights_extractor(
    backbone: str, path: str | Path, size: int, device: str = "cpu"
) -> tuple[Extractor, Report]:
    """A backbone by name with weights that others have published, and how they were matched."""
    network = create(backbone, **options_for(backbone, size))
    report = load_weights(network, path)
    network = network.to(device).eval()
    known = {"backbone": backbone, "weights": Path(path).name, "matched": len(report.matched)}
    extractor = Extractor(backbone, network, lambda pixels: as_input(pixels, size), side_of(size), known)
    return tried(extractor, device), report
