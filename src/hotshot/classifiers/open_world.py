"""Base classes in the predictions of a calibrated classifier: their rows of the head, and the balance with new ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hotshot.arrays import array_hash, evenly_spaced
from hotshot.bank import BaseClasses, PreparedBase
from hotshot.classifiers.confidence import LEVELS, SCORED_QUERIES, fit_temperature
from hotshot.classifiers.rival import require_samples
from hotshot.errors import ParameterError
from hotshot.method import Method
from hotshot.method.heads.joint import OldClasses, balance, logits, train_new, train_old
from hotshot.method.hot import FittedTasks, calibrate_tasks
from hotshot.model.two_covariances import KnownClasses


@dataclass(frozen=True)
class Joined:
    """A head of base and new classes (N in all), sorted.

    Attributes
    ----------
    classes, is_new : arrays (N,)
    fitted : FittedTasks
        The head, as of a batch of one, with the transfer and the Gaussians of the new classes.
    balance : float
        What is added to the intercepts of new classes.
    beside : array (new classes,)
        Slopes of their Gaussians in the logits of base classes, for explanations.
    base_head : array (2,)
        The parameters that the rows of base classes depend on.
    temperature : float
        Of the probabilities.
    old : OldClasses
    """

    classes: np.ndarray
    is_new: np.ndarray
    fitted: FittedTasks
    balance: float
    beside: np.ndarray
    base_head: np.ndarray
    temperature: float
    old: OldClasses

    def scores_of_old(self, known: KnownClasses) -> np.ndarray:
        """Quantiles (levels,) of the largest ratio of held-out samples of base classes."""
        some = evenly_spaced(len(self.old.held_out), SCORED_QUERIES)
        held_out, places = self.old.held_out[some], np.flatnonzero(~self.is_new)[self.old.labels[some]]
        ratios = known.ratios(held_out)
        # The mean of a class includes its held-out samples: each is left out for its own score.
        ratios[np.arange(len(ratios)), places] = known.support_fits(held_out, places)
        return np.asarray(np.quantile(ratios.max(axis=1), LEVELS))


def fit_with_base(
    model: Any, bank: BaseClasses, base: PreparedBase, method: Method, support: np.ndarray, labels: np.ndarray
) -> Joined:
    """Rows of base and new classes for a classifier whose ``classes_`` are new; support (1, S, V), labels (S,).

    The classifier may have grown from one before, whose rows are the start or, of base classes, stay.
    """
    require_samples(bank)
    if method.head != "bound" or not model.power_on_base or (method.alpha and method.alpha_rule != "diagonal"):
        raise ParameterError(
            "include_base needs head='bound', power_on_base=True and alpha=0: leave these at their defaults."
        )
    names = model.classes_
    transfer, gaussians = calibrate_tasks(base, support, labels[None], method, n_classes=len(names))
    base_head = np.array([float(method.n_generated), float(method.C)])
    old, start = _old_classes(model._before, bank, base, method, base_head), None
    if rows := _rows_before(model._before, bank, is_new=True):
        nothing = np.zeros(old.theta.shape[1], dtype=support.dtype)
        start = np.stack([rows.get(name, nothing) for name in names.tolist()])
    new = train_new(base, old, gaussians, support[0], labels, method, start)
    # What new classes take from old ones is measured on samples that no row was trained on.
    apart, new_apart = old.without_held_out or old, new
    if apart is not old:
        new_apart = train_new(base, apart, gaussians, support[0], labels, method, new.theta)
    rows_apart = _shifted(new_apart.theta, new_apart.shift)
    further = balance(apart, rows_apart, model.base_loss, underrated=bank.seen_in_training is True)
    temperature = _temperature(apart, _shifted(rows_apart, further)) if len(apart.held_out) else 1.0
    shift = new.shift + further
    all_names = np.concatenate([bank.names, names])
    order = np.argsort(all_names, kind="stable")
    theta = np.concatenate([old.theta, _shifted(new.theta, shift)])[order]
    fitted = FittedTasks(theta[None], np.array([new.converged]), new.slopes[None], transfer, gaussians)
    is_new = order >= len(bank.names)
    return Joined(all_names[order], is_new, fitted, shift, new.beside, base_head, temperature, old)


def _old_classes(before: Any, bank: BaseClasses, base: PreparedBase, method: Method, head: np.ndarray) -> OldClasses:
    """The classifier of the base classes in this space, trained once and kept with the bank.

    A loaded model has its rows already, unless its parameters have changed since.
    """
    trained: dict[tuple[Any, ...], OldClasses] = base.__dict__.setdefault("_old_classes", {})
    key, rows, by_name = tuple(head.tolist()), None, _rows_before(before, bank, is_new=False)
    if (
        by_name.keys() == set(bank.names.tolist())
        and np.array_equal(before.base_head_, head)
        and base.transform.same_as(before.transform_)
    ):
        rows = np.stack([by_name[name] for name in bank.names.tolist()])
    if rows is not None and key not in trained:
        # Rows from a file are used only by the model of that file.
        key = *key, array_hash(rows)
    if key not in trained:
        trained[key] = train_old(base, require_samples(bank), bank.counts, method, rows)
    return trained[key]


def _rows_before(before: Any, bank: BaseClasses, is_new: bool) -> dict[Any, np.ndarray]:
    """Rows of new classes, or of base classes, by class, of the model before it grew; none if its bank grew."""
    if before is None or before.is_new_ is None or before.base.fingerprint != bank.fingerprint:
        return {}
    rows = np.concatenate([before.coef_, before.intercept_[:, None]], axis=1)
    rows[before.is_new_, -1] -= before.balance_
    some = before.is_new_ == is_new
    return dict(zip(before.classes_[some].tolist(), rows[some], strict=True))


def _shifted(rows: np.ndarray, shift: float) -> np.ndarray:
    """Rows (N, V + 1) with this added to their intercepts."""
    rows = rows.copy()
    rows[:, -1] += shift
    return rows


def _temperature(old: OldClasses, new: np.ndarray) -> float:
    """The temperature of a model with these new rows (N, V + 1), from held-out samples of base classes."""
    some = evenly_spaced(len(old.held_out), SCORED_QUERIES)
    margins = np.concatenate([old.held_out_logits[some], logits(new, old.held_out[some])], axis=1).astype(np.float64)
    return fit_temperature(margins - margins[np.arange(len(some)), old.labels[some]][:, None])
