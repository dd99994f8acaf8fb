"""Encoders of images from other libraries: timm, OpenCLIP (`openclip:`) and vision models of transformers (`hf:`)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from hotshot.encoders.encoder import Encoder, image_encoder
from hotshot.encoders.hubs import absolute, cached_weights, loading, model_folder
from hotshot.encoders.texts import INSTALL, ON_DISK, auto_model
from hotshot.errors import InputError, ParameterError
from hotshot.files.opening import json_object, opened
from hotshot.formatting import did_you_mean, listing

# Of transformers, beside the weights of a vision model: how images enter it.
PREPROCESSING = "preprocessor_config.json"
_LONGEST = 2**20


def timm_encoder(name: str, model: str, weights: str, device: str) -> Encoder:
    """Pooled features of a network of timm, with weights from a file or from the cache of the hub."""
    remedy = f"pass a file of weights, timm:{model}@FILE, or run timm.create_model({model!r}, pretrained=True) once"
    notes = []
    with loading(name, "timm", remedy):
        import timm

        if ":" not in model and not timm.is_model(model.partition(".")[0]):
            close = did_you_mean(model, timm.list_models())
            raise ParameterError(f"timm has no network {model!r}: timm.list_models() lists them.{close}")
        network = _timm_network(timm, model, pretrained=not weights)
        settings = timm.data.resolve_model_data_config(network)
    if weights:
        from hotshot.images.backbones.weights import load_weights

        notes.append(f"{weights}: {load_weights(network, weights)}")
    _, side, width = settings["input_size"]
    if side != width:
        raise InputError(f"{name} takes images of {width}x{side} pixels, not square ones: choose another network.")
    around = int(side / settings["crop_pct"])
    full = f"timm:{model}" + f"@{absolute(weights)}" * bool(weights)
    about = _about(side, settings["mean"], settings["std"], weights)
    return _encoder(full, f"timm:{model}", network.to(device).eval(), about, around, device, notes)


def _timm_network(timm: Any, model: str, pretrained: bool) -> Any:
    schema, _, place = model.rpartition(":")
    if schema in ("hf-hub", "hf_hub"):
        return timm.create_model(
            f"local-dir:{model_folder(place, 'config.json')}", pretrained=pretrained, num_classes=0
        )
    if not pretrained or schema:
        return timm.create_model(model, pretrained=pretrained, num_classes=0)
    import torch

    known = timm.models.get_pretrained_cfg(model, allow_unregistered=False)
    file = cached_weights(
        known.hf_hub_id, known.hf_hub_filename or "pytorch_model.bin", known.url, f"{torch.hub.get_dir()}/checkpoints"
    )
    return timm.create_model(model, pretrained=True, num_classes=0, pretrained_cfg_overlay={"file": file})


def openclip_encoder(name: str, model: str, weights: str, device: str) -> Encoder:
    """The image tower of a model of OpenCLIP, with weights by tag or from a file."""
    schema, _, place = model.rpartition(":")
    if schema and weights:
        raise ParameterError(f"{name} has its own weights: leave {weights} out.")
    remedy = ON_DISK if schema else f"pass a file of weights, openclip:{model}@FILE, or download them once"
    with loading(name, "open_clip_torch", remedy):
        import open_clip

        if not schema and model not in open_clip.list_models():
            close = did_you_mean(model, open_clip.list_models())
            raise ParameterError(f"OpenCLIP has no model {model!r}: open_clip.list_models() lists them.{close}")
        if not schema and not weights:
            tags = listing([*open_clip.list_pretrained_tags_by_model(model), "a file"])
            raise ParameterError(f"{name} needs weights: write openclip:{model}@WEIGHTS with one of {tags}.")
        network = _openclip_network(open_clip, model, weights).eval()
        settings = open_clip.get_model_preprocess_cfg(network)
    side = settings["size"] if isinstance(settings["size"], int) else settings["size"][0]
    full = f"openclip:{schema}:{absolute(place)}" if schema else f"openclip:{model}@{absolute(weights)}"
    short = f"openclip:{Path(place).name if schema else model}"
    about = _about(side, settings["mean"], settings["std"], weights)
    return _encoder(full, short, network.to(device).encode_image, about, side, device)


def _openclip_network(open_clip: Any, model: str, weights: str) -> Any:
    schema, _, place = model.rpartition(":")
    if schema == "hf-hub":
        model = f"local-dir:{model_folder(place, 'open_clip_config.json')}"
    known = open_clip.get_pretrained_cfg(model, weights) if weights else {}
    if known:
        repository, _, file = known.get("hf_hub", "").rpartition("/")
        file = file or "open_clip_pytorch_model.bin"
        weights = cached_weights(repository, file, known.get("url"), Path("~/.cache/clip").expanduser())
    towers = {}
    text = open_clip.get_model_config(model).get("text_cfg", {})
    if "hf_model_name" in text:
        # Of this tower only the shape is needed; its name would be looked up on the hub.
        folder = model_folder(text["hf_model_name"], "config.json")
        towers["text_cfg"] = {**text, "hf_model_name": folder, "hf_model_pretrained": False}
    return open_clip.create_model(
        model, pretrained=weights or None, force_preprocess_cfg=known, require_pretrained=True, **towers
    )


def vision_encoder(name: str, place: str, device: str) -> Encoder:
    """A vision model of transformers: its pooled output, or its first token if its pooling layer was not saved."""
    with loading(name, INSTALL, ON_DISK):
        model, pooled = auto_model(name, place, device)
    with opened(Path(place) / PREPROCESSING, _LONGEST) as file:
        settings = json_object(file.read()) or {}
    resized, crop = settings.get("size"), settings.get("crop_size")
    # Sizes are numbers, {"height": …, "width": …}, or {"shortest_edge": …} of what is then cropped.
    around, side = (next(iter(x.values()), None) if isinstance(x, dict) else x for x in (resized, crop or resized))
    mean, deviation = settings.get("image_mean"), settings.get("image_std")
    if not isinstance(around, int) or not isinstance(side, int) or mean is None or deviation is None:
        raise InputError(f"{name} must have size, image_mean and image_std in {PREPROCESSING}: save it with them.")

    def network(inputs: Any) -> Any:
        output = model(inputs)
        return output.pooler_output.flatten(1) if pooled else output.last_hidden_state[:, 0]

    about = _about(side, mean, deviation)
    return _encoder(f"hf:{absolute(place)}", f"hf:{Path(place).name}", network, about, max(side, around), device)


def is_vision_model(place: str) -> bool:
    """Whether a folder holds a vision model: it has an image processor and no tokenizer."""
    folder = Path(place)
    return os.path.isfile(folder / PREPROCESSING) and not any(folder.glob("tokenizer*"))


def _about(size: int, mean: Any, deviation: Any, weights: str = "") -> dict[str, Any]:
    """The transform and the weights of a network, for the header of its features."""
    from hotshot.images.extraction import check_normalisation

    check_normalisation(mean, deviation)
    known = {"size": size, "mean": list(map(float, mean)), "deviation": list(map(float, deviation))}
    return known | ({"weights": Path(weights).name} if weights else {})


def _encoder(
    name: str, short: str, network: Any, about: dict[str, Any], around: int, device: str, notes: Sequence[str] = ()
) -> Encoder:
    """The encoder of a network that takes the centre of images of `around` pixels."""
    from hotshot.images.extraction import Extractor, tried
    from hotshot.images.training.augmentation import as_input

    prepare = partial(as_input, size=about["size"], mean=about["mean"], deviation=about["deviation"])
    return image_encoder(name, tried(Extractor(short, network, prepare, around, about), device), device, notes)
