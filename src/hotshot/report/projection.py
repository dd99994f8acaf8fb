"""A task as its classifier sees it: support and queries in the plane."""

from __future__ import annotations

import numpy as np

from hotshot.estimators.classifier import CalibratedClassifier


def project(
    model: CalibratedClassifier, support: np.ndarray, queries: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Places in [0, 1] x [0, 1] of support (S, 2) and queries (Q, 2).

    The plane is that of the two principal axes of the logits, in which classes that the model confuses overlap. Two
    classes have one such axis only; the other is then the principal axis of the features across it.
    """
    both = np.concatenate([support, queries])
    features = model.transform_(both).astype(np.float64)
    directions = model.coef_ - model.coef_.mean(axis=0)
    places = _principal(features @ directions.T, 2)
    if len(model.classes_) == 2:
        along = directions[0] / (np.linalg.norm(directions[0]) or 1.0)
        across = features - np.outer(features @ along, along)
        places = np.concatenate([places[:, :1], _principal(across, 1)], axis=1)
    low, high = places.min(axis=0), places.max(axis=0)
    places = ((places - low) / np.where(high > low, high - low, 1)).round(3)
    return places[: len(support)], places[len(support) :]


def _principal(values: np.ndarray, n: int) -> np.ndarray:
    """Values (samples, n) along their principal axes, whose signs do not depend on the library."""
    centred = values - values.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2][:n]
    largest = axes[np.arange(len(axes)), np.argmax(np.abs(axes), axis=1)]
    return centred @ (axes * np.sign(largest)[:, None]).T
