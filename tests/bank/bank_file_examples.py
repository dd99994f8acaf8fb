"""Small banks to save, and what is looked at when they come back."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

import numpy as np

from conftest import make_bank
from few_shot_problems import RAGGED, ragged_bank
from hotshot import BaseClasses, HOTClassifier

WIDTH = 6
STATISTICS = ("low-rank", "dense", "diagonal", "pooled")
# How a bank may be saved.
HOW = {"samples": {}, "statistics": {"samples": False, "covariance": "diagonal"}}


def features(sizes=RAGGED, power=1, dtype=np.float64, seed=0):
    """Samples of ragged classes, never negative where the power is not 1, and their labels."""
    bank = ragged_bank(sizes=sizes, width=WIDTH, dtype=dtype, seed=seed)
    return bank.samples if power == 1 else np.abs(bank.samples) + dtype(0.01), bank.labels


def task(power=1, dtype=np.float64):
    """Support, labels and queries."""
    X, y = make_bank(3, 9, WIDTH, seed=9, spread=0.8)
    X = (X if power == 1 else np.abs(X) + 0.01).astype(dtype)
    return X[::3], y[::3], X


def probabilities(bank, **settings):
    """Predictions for the task with that bank."""
    X, y, queries = task(settings.get("power", 1), bank.dtype)
    return HOTClassifier(bank, random_state=0, **settings).fit(X, y).predict_proba(queries)


def saved(bank, path, **how):
    bank.save(path, **how)
    return BaseClasses.load(path)


def backing(array):
    """What an array is a view of in the end."""
    while isinstance(array, np.ndarray) and array.base is not None:
        array = array.base
    return array.obj if isinstance(array, memoryview) else array


def arrays_of(value):
    """All arrays of floats in a prepared bank."""
    if isinstance(value, tuple):
        return [x for item in value for x in arrays_of(item)]
    if is_dataclass(value):
        return [x for field in fields(value) for x in arrays_of(getattr(value, field.name))]
    return [value] if isinstance(value, np.ndarray) and value.dtype.kind == "f" else []
