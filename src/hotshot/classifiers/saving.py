"""Fitted classifiers as folders: parameters and classes in ``model.json``, numbers in ``model.safetensors``."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

from hotshot.bank import BaseClasses
from hotshot.bank.space import FeatureTransform, check_feature_space
from hotshot.classifiers.confidence import LEVELS
from hotshot.errors import InputError, ParameterError
from hotshot.files.atomic import replace_folder
from hotshot.files.objects import (
    check_sealed,
    file_in_folder,
    from_json,
    need,
    read_folder,
    read_json_document,
    refuse_damage,
    to_json,
    write_sealed,
)
from hotshot.files.tensors import map_tensors, write_tensors
from hotshot.transport import Status
from hotshot.version import __version__

WHAT, VERSION = "model", 3
DESCRIPTION, NUMBERS = "model.json", "model.safetensors"
REMEDY = "write one with save"
# Shapes of the arrays of a calibrated classifier: N classes, n of them new, B base classes, V features, A axes,
# S support samples, T calibrated means, P parts of these, Q points of the head, L levels.
_SHAPES = {
    "coef_": "NA", "intercept_": "N", "support_": "SV", "support_labels_": "S", "target_labels_": "T",
    "trained_on_.support": "SA", "trained_on_.labels": "S", "trained_on_.means": "TA", "trained_on_.mean_labels": "T",
    "trained_on_.own_parts": "PA", "trained_on_.weights": "TB", "trained_on_.base_means": "BA",
    "trained_on_.slopes": "Qn", "trained_on_.spectrum": "A", "trained_on_.beside": "n",
    "calibrated_means_": "TA", "transfer_weights_": "TB", "base_means_": "BA", "own_share_": "T",
    "outliers_.thresholds": "NL", "outliers_.known.means": "NA", "outliers_.known.sizes": "N",
    "outliers_.known.centre": "A", "outliers_.known.two.deviations": "A", "outliers_.known.two.axes": "AA",
    "outliers_.known.two.ratios": "A", "base_head_": "2",
}  # fmt: skip


class UnloadedBase:
    """Placeholder for the base classes of a model that was loaded without them; ``folder`` is their bank, if known."""

    def __init__(self, fingerprint: str, folder: Path | None = None) -> None:
        self.fingerprint, self.folder = fingerprint, folder

    def load(self) -> BaseClasses:
        """The base classes; raise if it is unknown where they are, or if others are there."""
        if self.folder is None:
            raise ParameterError(
                "This classifier was loaded without its base classes and cannot be fitted: pass base to load."
            )
        base = BaseClasses.load(self.folder)
        _check_base(base, self.fingerprint, self.folder.parent)
        return base

    def __repr__(self) -> str:
        return f"UnloadedBase({self.fingerprint[:12]!r})"

    def __sklearn_clone__(self) -> UnloadedBase:
        return self


def save_model(model: Any, path: str | Path, overwrite: bool) -> None:
    """Write a fitted classifier to a folder of its own."""
    with replace_folder(path, DESCRIPTION, overwrite) as folder:
        write_model(model, folder)


def write_model(model: Any, folder: Path, beside: Iterable[str] = ()) -> str:
    """Write a fitted classifier into a folder, with only the fingerprint of its base classes; the digest of all files.

    `beside` names files that are in the folder already and belong to the model.
    """
    parameters = {name: value for name, value in model.get_params(deep=False).items() if name != "base"}
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_") and name[0] != "_"}
    statuses = fitted.pop("status_counts_", None)
    tensors: dict[str, np.ndarray] = {}
    content = {
        "format": f"hotshot {WHAT}",
        "version": VERSION,
        "versions": {"hotshot": __version__, "numpy": np.__version__, "scikit-learn": sklearn.__version__},
        "class": type(model).__name__,
        "parameters": {name: to_json(value, name, {}) for name, value in parameters.items()},
        "chosen": fitted.pop("chosen_"),
        "base": None if model.base is None else model.base.fingerprint,
        "statuses": None if statuses is None else {status.name: count for status, count in statuses.items()},
        "fitted": {name: to_json(value, name, tensors) for name, value in fitted.items()},
    }
    write_tensors(folder / NUMBERS, tensors, {})
    return write_sealed(folder, DESCRIPTION, content, (NUMBERS, *beside))


def digest_of(folder: Path) -> str:
    """The digest of a saved model: it changes with every file of the model."""
    with refuse_damage(folder, WHAT):
        return str(read_json_document(folder, DESCRIPTION, WHAT, REMEDY, VERSION)["digest"])


def load_model(kind: type, path: str | Path, base: BaseClasses | None) -> Any:
    """Load a saved classifier of this class, with ``base`` if it is the bank it was fitted with."""
    if base is not None and not isinstance(base, BaseClasses):
        raise ParameterError(f"base must be a BaseClasses or None, got {type(base).__name__}.")
    return read_folder(Path(path), partial(_read_model, kind, Path(path), base))


def _read_model(kind: Any, folder: Path, base: BaseClasses | None) -> Any:
    content = read_json_document(folder, DESCRIPTION, WHAT, REMEDY, VERSION)
    with refuse_damage(folder, WHAT):
        if content["class"] != kind.__name__:
            raise InputError(f"{folder} holds a {content['class']!r:.40}: load it with that class.")
        fingerprint, parameters = content["base"], dict(content["parameters"])
        need(isinstance(fingerprint, (str, type(None))), "base is not a fingerprint")
        # A missing parameter must not become its default.
        other = parameters.keys() ^ (kind().get_params(deep=False).keys() - {"base"})
        need(not other, f"unknown or missing parameters: {', '.join(sorted(other))}")
        if base is not None:
            _check_base(base, fingerprint, folder)
        if fingerprint is not None:
            parameters["base"] = base or UnloadedBase(fingerprint)
        model = kind(**parameters)
        model._validate_params()
        model.chosen_ = dict(content["chosen"])
        kind(**{**parameters, **model.chosen_})._validate_params()
        # Copies: a model is small, and its folder may be deleted.
        tensors = {name: np.array(x) for name, x in map_tensors(file_in_folder(folder, NUMBERS)).tensors.items()}
        need(all(np.isfinite(x).all() for x in tensors.values() if x.dtype.kind == "f"), "it holds NaN or infinity")
        for name, value in content["fitted"].items():
            need(name.endswith("_") and not name.startswith("_"), f"{name} is not a fitted attribute")
            setattr(model, name, from_json(value, tensors, {record.__name__: record for record in kind._state_types}))
        if content["statuses"] is not None:
            model.status_counts_ = {Status[name]: int(count) for name, count in content["statuses"].items()}
        # Before an array of that width is made.
        width = model.n_features_in_
        need(type(width) is int and any(width in x.shape for x in tensors.values()), "n_features_in_ is invalid")
        _check(model, width)
        check_sealed(folder, content)
    return model


def _check_base(base: BaseClasses, fingerprint: str | None, folder: Path) -> None:
    """Raise unless this is the bank that the model was fitted with."""
    if fingerprint is None:
        raise InputError(f"{folder} was fitted without base classes: load it without base.")
    if base.fingerprint != fingerprint:
        raise InputError(
            f"{folder} was fitted with other base classes: load it without base, or with the bank of fingerprint "
            f"{fingerprint[:12]}…."
        )


def _check(model: Any, width: int) -> None:
    """Raise ValueError unless the parts of a classifier match each other; it is then applied to one sample."""
    classes, names, transform = model.classes_, getattr(model, "feature_names_in_", np.empty(width)), model.transform_
    is_sorted = isinstance(classes, np.ndarray) and len(classes) and np.array_equal(np.unique(classes), classes)
    need(is_sorted, "classes_ are not sorted labels")
    need(isinstance(names, np.ndarray) and names.shape == (width,), "feature_names_in_ does not match its features")
    need(isinstance(model.extractor_, (str, type(None))), "extractor_ is not text")
    if model.feature_space_ is not None:
        check_feature_space(model.feature_space_, width)
    is_sound = isinstance(transform, FeatureTransform) and type(transform.unit) is bool and 0 < transform.scale < np.inf
    need(is_sound, "transform_ is invalid")
    arrays = [x for x in (transform.centre, transform.axes) if x is not None]
    need(all(isinstance(x, np.ndarray) and len(x) == width for x in arrays), "transform_ does not match its features")
    model._check_state(width)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        # scikit-learn warns that feature names are missing here.
        warnings.simplefilter("ignore")
        # Distinct entries, because 1 to any power is 1.
        logits = model._logits(np.linspace(0.5, 2.0, width)[None] / transform.scale)
        need(logits.shape == (1, len(classes)) and np.isfinite(logits).all(), "its arrays do not match each other")


def check_calibrated(model: Any, width: int) -> None:
    """Raise ValueError unless the attributes of a calibrated classifier match each other."""
    trained, outliers, new = model.trained_on_, model.outliers_, model.classes_[model.new_classes]
    (n_classes, axes), (targets, samples) = model.coef_.shape, map(len, (model.target_labels_, model.support_labels_))
    sizes = {
        "N": n_classes, "n": len(new), "B": len(model.base_names_), "V": width, "A": axes, "S": samples, "T": targets,
        "P": samples if targets else 0, "Q": targets + samples, "L": len(LEVELS), "2": 2,
    }  # fmt: skip
    # Parts that a model may lack.
    absent = {"trained_on_": trained, "outliers_": outliers, "outliers_.thresholds": outliers and outliers.thresholds,
              "base_head_": model.base_head_}  # fmt: skip
    for name, letters in _SHAPES.items():
        if not any(name.startswith(part) for part, value in absent.items() if value is None):
            array, shape = attrgetter(name)(model), tuple(sizes[letter] for letter in letters)
            fits = np.shape(array) == shape and (array.dtype.kind == "f" or "labels" in name)
            need(fits, f"{name} is not of shape {shape}")
    places = [(model.support_labels_, None if trained is None else trained.labels)]
    if targets:
        places.append((model.target_labels_, None if trained is None else trained.mean_labels))
    for labels, numbers in places:
        known, where = np.unique(labels, return_inverse=True)
        need(np.array_equal(known, new), "labels do not match classes_")
        need(numbers is None or np.array_equal(where, numbers), "labels do not match classes_")
    need(targets in (0, len(new), samples), "labels do not match classes_")
    numbers = [model.probability_temperature_, model.balance_, *([] if trained is None else [trained.C])]
    need(all(type(x) is float and np.isfinite(x) for x in numbers) and numbers[0] > 0, "a temperature is invalid")
    need(model.new_classes.shape == (n_classes,) and model.new_classes.dtype == bool, "is_new_ is invalid")
    need((outliers is None) is (model.base is None), "outliers_ does not match base")
    if outliers is not None:
        need(type(outliers.seen_in_training) is bool and type(outliers.deviation) is float, "outliers_ is invalid")
        two = outliers.known.two
        sound = min(outliers.known.sizes.min(), two.deviations.min()) > 0 and two.ratios.min() >= 0
        need(sound, "outliers_ holds invalid values")
    transform = model.transform_
    has_parts = (transform.centre is not None) is transform.unit and (transform.axes is None) is (model.base is None)
    need(has_parts, "transform_ does not match base")
    transform(model.support_)
