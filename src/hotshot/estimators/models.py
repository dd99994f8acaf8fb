"""Fitted classifiers as folders: parameters, classes and versions in `model.json`, numbers in `model.safetensors`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

from hotshot.base import BaseClasses
from hotshot.errors import InputError
from hotshot.features import FeatureTransform
from hotshot.records import describe, new_folder, read_description, restore, sound
from hotshot.tensors import map_tensors, write_tensors
from hotshot.transport.solution import Status
from hotshot.version import __version__

WHAT, VERSION = "model", 1
DESCRIPTION, NUMBERS = "model.json", "model.safetensors"
REMEDY = "write one with save"


class BaseLeftBehind:
    """Stands in for the base classes of a model that was loaded without them: it predicts and explains, no more."""

    def __init__(self, fingerprint: str) -> None:
        self.fingerprint = fingerprint

    def __repr__(self) -> str:
        return f"BaseLeftBehind({self.fingerprint[:12]!r})"

    def __sklearn_clone__(self) -> BaseLeftBehind:
        return self


def save_model(model: Any, path: str | Path, overwrite: bool) -> None:
    """Write a fitted classifier; its base classes stay out, but for their fingerprint."""
    base = getattr(model, "base", None)
    parameters = {name: value for name, value in model.get_params(deep=False).items() if name != "base"}
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_") and name[0] != "_"}
    statuses = fitted.pop("status_counts_", None)
    tensors: dict[str, np.ndarray] = {}
    content = {
        "format": f"hotshot {WHAT}",
        "version": VERSION,
        "versions": {"hotshot": __version__, "numpy": np.__version__, "scikit-learn": sklearn.__version__},
        "class": type(model).__name__,
        "parameters": {name: describe(value, name, {}) for name, value in parameters.items()},
        "base": None if base is None else base.fingerprint,
        "statuses": None if statuses is None else {status.name: count for status, count in statuses.items()},
        "fitted": {name: describe(value, name, tensors) for name, value in fitted.items()},
    }
    with new_folder(path, DESCRIPTION, overwrite) as folder:
        write_tensors(folder / NUMBERS, tensors, {})
        text = json.dumps(content, ensure_ascii=False, indent=1)
        (folder / DESCRIPTION).write_text(text + "\n", encoding="utf-8")


def load_model(kind: type, path: str | Path, base: BaseClasses | None) -> Any:
    """A classifier of this kind as it was when saved, with `base` if it is the bank it was fitted with."""
    folder = Path(path)
    content = read_description(folder, DESCRIPTION, WHAT, REMEDY, VERSION)
    with sound(folder, WHAT):
        if content["class"] != kind.__name__:
            raise InputError(f"{folder} holds a {content['class']}: load it with {content['class']}.load.")
        parameters = dict(content["parameters"])
        fingerprint = content["base"]
        if base is not None and base.fingerprint != fingerprint:
            raise InputError(
                f"{folder} was fitted with other base classes: load it without base, or with the bank of fingerprint "
                f"{str(fingerprint)[:12]}…."
            )
        if fingerprint is not None:
            parameters["base"] = base or BaseLeftBehind(str(fingerprint))
        model = kind(**parameters)
        # Copies: a model is small, and its folder may go.
        tensors = {name: np.array(x) for name, x in map_tensors(folder / NUMBERS).tensors.items()}
        types = {"FeatureTransform": FeatureTransform}
        for name, value in content["fitted"].items():
            if not name.endswith("_") or name.startswith("_"):
                raise ValueError(f"{name} is no fitted attribute")
            setattr(model, name, restore(value, tensors, types))
        if content["statuses"] is not None:
            model.status_counts_ = {Status[name]: int(count) for name, count in content["statuses"].items()}
        _check(model)
    return model


def _check(model: Any) -> None:
    """Raise unless the classifier can answer: it is asked about one sample."""
    logits = model._logits(np.ones((1, model.n_features_in_)))
    if logits.shape != (1, len(model.classes_)) or not np.isfinite(logits).all():
        raise ValueError("its numbers do not fit each other")
