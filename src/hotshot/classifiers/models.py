"""Fitted classifiers as folders: parameters and classes in ``model.json``, numbers in ``model.safetensors``."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

from hotshot.bank import BaseClasses
from hotshot.bank.feature_space import FeatureSpace, check_feature_space
from hotshot.bank.space import FeatureTransform
from hotshot.classifiers.held_out import LEVELS
from hotshot.errors import InputError, ParameterError
from hotshot.files.atomic import replace_folder
from hotshot.files.objects import (
    check_sealed,
    file_in_folder,
    from_json,
    read_folder,
    read_json_document,
    refuse_damage,
    to_json,
    write_sealed,
)
from hotshot.files.tensors import map_tensors, write_tensors
from hotshot.model.two_covariances import KnownClasses, TwoCovariances
from hotshot.transport import Status
from hotshot.version import __version__

WHAT, VERSION = "model", 2
DESCRIPTION, NUMBERS = "model.json", "model.safetensors"
REMEDY = "write one with save"


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


def loaded(base: Any) -> Any:
    """Base classes, which are loaded now if a model was loaded without them."""
    return base.load() if isinstance(base, UnloadedBase) else base


def save_model(model: Any, path: str | Path, overwrite: bool) -> None:
    """Write a fitted classifier to a folder of its own."""
    with replace_folder(path, DESCRIPTION, overwrite) as folder:
        write_model(model, folder)


def write_model(model: Any, folder: Path, beside: Iterable[str] = ()) -> str:
    """Write a fitted classifier into a folder, with only the fingerprint of its base classes; the digest of all files.

    `beside` names files that are in the folder already and belong to the model.
    """
    base = model.base
    parameters = {name: value for name, value in model.get_params(deep=False).items() if name != "base"}
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_") and name[0] != "_"}
    statuses, chosen = fitted.pop("status_counts_", None), fitted.pop("chosen_", None)
    tensors: dict[str, np.ndarray] = {}
    content = {
        "format": f"hotshot {WHAT}",
        "version": VERSION,
        "versions": {"hotshot": __version__, "numpy": np.__version__, "scikit-learn": sklearn.__version__},
        "class": type(model).__name__,
        "parameters": {name: to_json(value, name, {}) for name, value in parameters.items()},
        "chosen": chosen,
        "base": None if base is None else base.fingerprint,
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


def _read_model(kind: type, folder: Path, base: BaseClasses | None) -> Any:
    content = read_json_document(folder, DESCRIPTION, WHAT, REMEDY, VERSION)
    with refuse_damage(folder, WHAT):
        if content["class"] != kind.__name__:
            raise InputError(f"{folder} holds a {content['class']!r:.40}: load it with that class.")
        fingerprint = content["base"]
        if not isinstance(fingerprint, (str, type(None))):
            raise ValueError("base is not a fingerprint")
        parameters = dict(content["parameters"])
        # A missing parameter must not become its default.
        other = parameters.keys() ^ (kind().get_params(deep=False).keys() - {"base"})
        if other:
            raise ValueError(f"unknown or missing parameters: {', '.join(sorted(other))}")
        if base is not None:
            _check_base(base, fingerprint, folder)
        if fingerprint is not None:
            parameters["base"] = base or UnloadedBase(fingerprint)
        model = kind(**parameters)
        model._validate_params()
        if content["chosen"] is not None:
            kind(**{**parameters, **content["chosen"]})._validate_params()
            model.chosen_ = dict(content["chosen"])
        # Copies: a model is small, and its folder may be deleted.
        tensors = {name: np.array(x) for name, x in map_tensors(file_in_folder(folder, NUMBERS)).tensors.items()}
        types = {own.__name__: own for own in (FeatureTransform, FeatureSpace, KnownClasses, TwoCovariances)}
        for name, value in content["fitted"].items():
            if not name.endswith("_") or name.startswith("_"):
                raise ValueError(f"{name} is not a fitted attribute")
            setattr(model, name, from_json(value, tensors, types))
        if content["statuses"] is not None:
            model.status_counts_ = {Status[name]: int(count) for name, count in content["statuses"].items()}
        _check(model, tensors)
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


def _check(model: Any, tensors: dict[str, np.ndarray]) -> None:
    """Raise unless the classifier works: it is applied to one sample."""
    if not all(np.isfinite(x).all() for x in tensors.values() if x.dtype.kind == "f"):
        raise ValueError("its numbers hold NaN or infinity")
    width, classes = model.n_features_in_, model.classes_
    # Before an array of that width is made.
    if type(width) is not int or not any(width in x.shape for x in tensors.values()):
        raise ValueError("n_features_in_ does not match its arrays")
    if not (isinstance(classes, np.ndarray) and len(classes) and np.array_equal(np.unique(classes), classes)):
        raise ValueError("classes_ are not sorted labels")
    names = getattr(model, "feature_names_in_", None)
    if names is not None and not (isinstance(names, np.ndarray) and names.shape == (width,)):
        raise ValueError("feature_names_in_ does not match its features")
    if not isinstance(model.extractor_, (str, type(None))):
        raise ValueError("extractor_ is not text")
    if model.feature_space_ is not None:
        check_feature_space(model.feature_space_, width)
    transform = getattr(model, "transform_", None)
    if transform is not None:
        _check_transform(transform, width, with_axes=model.base is not None)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        # scikit-learn warns that feature names are missing here.
        warnings.simplefilter("ignore")
        # Distinct entries, because 1 to any power is 1.
        sample = np.linspace(0.5, 2.0, width)[None] / (1.0 if transform is None else transform.scale)
        logits = model._logits(sample)
        if logits.shape != (1, len(classes)) or not np.isfinite(logits).all():
            raise ValueError("its arrays do not match each other")
        if hasattr(model, "explain"):
            _check_calibrated(model, width)
            explanation = model.explain(sample)
            numbers = [loan.own_share for loan in explanation.loans]
            numbers += [x for reason in explanation.reasons for x in (reason.own, reason.lent, reason.rest)]
            if not (str(explanation) and np.isfinite(numbers).all()):
                raise ValueError("its explanation is not finite")


def _check_calibrated(model: Any, width: int) -> None:
    """Raise unless the attributes of a calibrated classifier match each other."""
    n_classes, axes = model.coef_.shape
    targets, samples, n_base = (len(x) for x in (model.target_labels_, model.support_labels_, model.base_names_))
    new = model.classes_[model.new_classes]
    shapes: dict[str, tuple[int, ...]] = {
        "intercept_": (n_classes,),
        "support_": (samples, width),
        "support_labels_": (samples,),
        "target_labels_": (targets,),
        "calibrated_means_": (targets, axes),
        "own_parts_": (samples if targets else 0, axes),
        "transfer_weights_": (targets, n_base),
        "base_means_": (n_base, axes),
        "spectrum_": (axes,),
        **({} if model.slopes_ is None else {"slopes_": (targets + samples, len(new))}),
        **({} if model.is_new_ is None else {"beside_": (len(new),)}),
        **({} if model.base_head_ is None else {"base_head_": (2,)}),
        **({} if model.alarm_scores_ is None else {"alarm_scores_": (n_classes, len(LEVELS))}),
    }
    _check_shapes(model, shapes)
    known = [np.array_equal(np.unique(x), new) for x in (model.support_labels_, model.target_labels_)]
    if not (known[0] and (known[1] or not targets) and targets in (0, len(new), samples)):
        raise ValueError("labels do not match classes_")
    numbers = (model.probability_temperature_, model.support_deviation_, model.balance_)
    if not all(type(x) is float and np.isfinite(x) for x in numbers) or model.probability_temperature_ <= 0:
        raise ValueError("a number of the probabilities or of the outlier scores is invalid")
    if type(model.seen_in_training_) is not bool or model.new_classes.shape != (n_classes,):
        raise ValueError("seen_in_training_ or is_new_ is invalid")
    if model.new_classes.dtype != bool:
        raise ValueError("is_new_ is invalid")
    if model.base is not None:
        known_classes, two = model.known_, model.known_.two
        _check_shapes(known_classes, {"means": (n_classes, axes), "sizes": (n_classes,), "centre": (axes,)})
        _check_shapes(two, {"deviations": (axes,), "axes": (axes, axes), "ratios": (axes,)})
        if not (min(known_classes.sizes.min(), two.deviations.min()) > 0 and two.ratios.min() >= 0):
            raise ValueError("known_ holds invalid values")


def _check_shapes(holder: Any, shapes: dict[str, tuple[int, ...]]) -> None:
    """Raise unless these attributes are arrays of these shapes, and numbers if they are not labels."""
    for name, shape in shapes.items():
        array = getattr(holder, name)
        if np.shape(array) != shape or (array.dtype.kind != "f" and not name.endswith("labels_")):
            raise ValueError(f"{name} is not of shape {shape}")


def _check_transform(transform: Any, width: int, with_axes: bool) -> None:
    arrays = (transform.centre, transform.axes)
    if not (
        isinstance(transform, FeatureTransform)
        and type(transform.unit) is bool
        and 0 < transform.scale < np.inf
        and (transform.centre is not None) is transform.unit
        and (transform.axes is not None) is with_axes
        and all(x is None or (isinstance(x, np.ndarray) and len(x) == width) for x in arrays)
    ):
        raise ValueError("transform_ does not match its features")
