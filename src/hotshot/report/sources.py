"""The data and the methods of a stored run, found again where its folder says, and checked by their hashes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.arrays import array_hash, check_features
from hotshot.base import BaseClasses
from hotshot.errors import InputError
from hotshot.estimators import FreeLunchClassifier, HOTClassifier
from hotshot.estimators.classifier import CalibratedClassifier
from hotshot.evaluation.runner import estimator_to_json
from hotshot.evaluation.tasks import labels_hash

KINDS: dict[str, type[CalibratedClassifier]] = {
    f"{kind.__module__}.{kind.__qualname__}": kind for kind in (HOTClassifier, FreeLunchClassifier)
}


@dataclass(frozen=True)
class Source:
    """Files of base and novel classes, or an embedded bank; a file of frozen tasks; the command that used them."""

    base: Path | None = None
    novel: Path | None = None
    bank: str | None = None
    tasks: Path | None = None
    command: str | None = None

    @property
    def name(self) -> str:
        """What people call the data: the bank, or the file of the novel classes."""
        return self.bank or (self.novel.name if self.novel is not None else "features of its own")


# Base classes, features and labels of the novel classes.
Data = tuple[BaseClasses, np.ndarray, np.ndarray]
Reader = Callable[[Source], Data]


def source_of(about: dict[str, Any]) -> Source:
    """The source that a `run.json` names; an empty one where it names none."""
    found = about.get("source")
    if not isinstance(found, dict):
        return Source()
    texts = {key: value for key, value in found.items() if isinstance(value, str) and value}
    paths = {key: Path(texts[key]) for key in ("base", "novel", "tasks") if key in texts}
    return Source(**paths, bank=texts.get("bank"), command=texts.get("command"))


def read_source(source: Source, read: Reader) -> Data:
    """The data, or one sentence on why they cannot be had."""
    if source.bank is None and (source.base is None or source.novel is None):
        raise InputError("The folder does not say where the data are: pass them with --base and --novel.")
    try:
        base, X, y = read(source)
    except InputError as error:
        raise InputError(f"{error} Pass the files of the run with --base and --novel.") from None
    return base, check_features(X, "X_novel"), np.asarray(y)


def method_to_explore(request: dict[str, Any]) -> str:
    """The first method of a run that borrows from base classes."""
    for name, described in request["methods"].items():
        if described.get("class") in KINDS and described.get("parameters", {}).get("base") is not None:
            return str(name)
    raise InputError("None of its methods borrows from base classes: there is no transport to look into.")


def check_novel(request: dict[str, Any], X: np.ndarray, y: np.ndarray) -> None:
    """Raise unless these are the novel samples of the run."""
    if request["data"] != {"X_novel": array_hash(X), "y_novel": labels_hash(y)}:
        raise InputError("The novel samples are not those of the run by their hash: pass the file of the run.")


def has_base(described: dict[str, Any], base: BaseClasses) -> bool:
    """Whether a described method had these base classes, or none."""
    own = described.get("parameters", {}).get("base")
    return own is None or str(own).endswith(base.fingerprint)


def restored_method(described: dict[str, Any], base: BaseClasses, name: str) -> CalibratedClassifier:
    """The estimator that `estimator_to_json` described, with the base classes it had."""
    if not has_base(described, base):
        raise InputError("The base classes are not those of the run by their hash: pass the file of the run.")
    try:
        estimator = KINDS[described["class"]](**{**described["parameters"], "base": base})
        estimator._validate_params()
        if estimator_to_json(estimator) != json.loads(json.dumps(described)):
            raise ValueError("its description is another")
    except (TypeError, ValueError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise InputError(f"The parameters of {name} cannot be restored from the run ({reason}).") from None
    return estimator
