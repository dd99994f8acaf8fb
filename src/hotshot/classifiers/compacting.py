"""Compact banks: without samples, but with the settings that were chosen on them."""

from pathlib import Path

from sklearn.base import clone

from hotshot.bank import BaseClasses
from hotshot.bank.low_rank import LOW_RANK
from hotshot.classifiers.confidence import CONFIDENCE, confidence_on
from hotshot.classifiers.held_out import description
from hotshot.classifiers.hot import HOTClassifier
from hotshot.errors import InputError
from hotshot.method.hierarchy import COSTS


def save_compact(base: BaseClasses, path: str | Path, *, overwrite: bool = False) -> None:
    """Write means and low-rank covariances of a bank in the space that ``HOTClassifier`` chooses on it.

    Settings, temperatures and outlier scores are learned first, while there are samples. They also apply to the cost
    that replaces the hierarchical one without samples.
    """
    if base.samples is None:
        raise InputError("This bank is compact already: copy its folder.")
    model = HOTClassifier(base)
    settings = model.settings()
    confidence_on(base, model)
    proxy = clone(model).set_params(cost=COSTS[model.cost].proxy)
    for kept in ("", CONFIDENCE):
        if kept + description(model) in base.choices:
            base.choices[kept + description(proxy)] = base.choices[kept + description(model)]
    base.save(path, samples=False, covariance=LOW_RANK, spaces=[model._space(settings)], overwrite=overwrite)
