"""The method of a stored run, restored from what the run says of it, on data that are the run's own."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from hotshot.arrays import array_hash
from hotshot.base import BaseClasses
from hotshot.errors import InputError
from hotshot.estimators import FreeLunchClassifier, HOTClassifier
from hotshot.estimators.classifier import CalibratedClassifier
from hotshot.evaluation.runner import estimator_to_json
from hotshot.evaluation.tasks import labels_hash

KINDS: dict[str, type[CalibratedClassifier]] = {
    f"{kind.__module__}.{kind.__qualname__}": kind for kind in (HOTClassifier, FreeLunchClassifier)
}


def method_to_explore(request: dict[str, Any]) -> str:
    """The first method of a run that borrows from base classes."""
    for name, described in request["methods"].items():
        if described.get("class") in KINDS and described.get("parameters", {}).get("base") is not None:
            return str(name)
    raise InputError("None of its methods borrows from base classes: there is no transport to look into.")


def check_novel(request: dict[str, Any], X: np.ndarray, y: np.ndarray) -> None:
    """Raise unless these are the novel samples of the run."""
    if request["data"] != {"X_novel": array_hash(X), "y_novel": labels_hash(y)}:
        raise InputError(
            "The novel samples are not those of the run, by their hashes: pass the files of the run."
        )


def lent_by(described: dict[str, Any], base: BaseClasses) -> bool:
    """Whether these are the base classes that a described method had; one without any had none other."""
    own = described.get("parameters", {}).get("base")
    return own is None or str(own).endswith(base.fingerprint)


def restore(described: dict[str, Any], base: BaseClasses, name: str) -> CalibratedClassifier:
    """The estimator that `estimator_to_json` described, with the base classes it had."""
    if not lent_by(described, base):
        raise InputError(
            "The base classes are not those of the run, by their hash: pass the file of the run."
        )
    try:
        estimator = KINDS[described["class"]](**{**described["parameters"], "base": base})
        estimator._validate_params()
        if estimator_to_json(estimator) != json.loads(json.dumps(described)):
            raise ValueError("its description is another")
    except (TypeError, ValueError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise InputError(f"The parameters of {name} cannot be restored from the run ({reason}).") from None
    return estimator
