"""What is in no new class: base classes that are predicted too, and samples that fit no class at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hotshot.arrays import LIMITS, array_hash, check_number, evenly_spaced
from hotshot.bank import BaseClasses, PreparedBase
from hotshot.classifiers.classifier import joined_classes
from hotshot.classifiers.confidence import LEVELS, MOST_DEVIATIONS, SCORED_QUERIES, fit_temperature
from hotshot.classifiers.rival import require_samples
from hotshot.errors import OpenWorldWarning, ParameterError, warn_user
from hotshot.method import Method
from hotshot.method.heads.joint import OldClasses, balance, logits, train_new, train_old
from hotshot.method.hot import FittedTasks, calibrate_tasks
from hotshot.model.two_covariances import KnownClasses

# Samples that fit worse than all but this share of the samples of the classes count less, down to nothing.
DOUBTFUL = 0.05


@dataclass(frozen=True)
class OutlierDetector:
    """What a fitted model knows of its classes, to tell samples that fit none of them.

    ``thresholds`` (N, levels) are the ratios of ``known`` below which samples fit no class, if they were learned;
    ``deviation`` (of the support from that of held-out base classes, in standard deviations) and ``seen_in_training``
    tell how far they can be trusted.
    """

    known: KnownClasses
    thresholds: np.ndarray | None
    deviation: float
    seen_in_training: bool

    def scores_and_limits(self, placed: np.ndarray, reject: float | None) -> tuple[np.ndarray, np.ndarray]:
        """Outlier scores (n,) of samples in the space of the model, and the limits above which they are rejected."""
        best, fit = self.known.best(placed)
        if reject is None:
            return -fit, np.full(len(fit), np.inf)
        check_number("reject", reject, *LIMITS["reject"])
        limits = -self._at_level(reject)[best]
        self._warn_of_false_alarms(reject)
        return -fit, limits

    def fits_no_class(self, placed: np.ndarray, level: float) -> np.ndarray:
        """Whether samples fit no class, with this share of false alarms; none does where nothing was learned."""
        if self.thresholds is None:
            return np.zeros(len(placed), dtype=bool)
        best, fit = self.known.best(placed)
        return np.asarray(fit < np.minimum(self._at_level(level)[best], 0))

    def weights(self, placed: np.ndarray) -> np.ndarray:
        """Weights of samples, 0 to 1: less than 1 if few samples of a class fit worse."""
        if self.thresholds is None:
            return np.ones(len(placed))
        best, fit = self.known.best(placed)
        levels = np.array([level for level in LEVELS if level <= DOUBTFUL])
        weights = (levels - levels[0]) / (levels[-1] - levels[0])
        scores = self.thresholds[:, : len(levels)]
        return np.array([np.interp(x, scores[place], weights) for x, place in zip(fit, best, strict=True)])

    def _at_level(self, level: float) -> np.ndarray:
        if self.thresholds is None:
            raise ParameterError(
                "reject needs at least 20 base classes with 10 samples each, and another head than 'sampled', to learn "
                "thresholds: fit with these, or choose a threshold for the outlier scores yourself."
            )
        return np.array([np.interp(level, LEVELS, scores) for scores in self.thresholds])

    def _warn_of_false_alarms(self, reject: float) -> None:
        """Warn if new classes are so unlike base classes that the share of false alarms is uncertain."""
        if self.seen_in_training:
            reason = "The extractor was trained on the base classes, which makes them easier than new classes"
        elif self.deviation < -MOST_DEVIATIONS:
            differs = f"{-self.deviation:.1f} standard deviations"
            reason = f"The support differs from that of held-out base classes by {differs}"
        else:
            return
        warn_user(
            f"{reason}: the share of rejected samples of new classes may be far from {reject:g}.", OpenWorldWarning
        )


def fit_with_base(
    model: Any, bank: BaseClasses, base: PreparedBase, method: Method, support: np.ndarray, labels: np.ndarray
) -> tuple[FittedTasks, OldClasses, np.ndarray]:
    """Make a classifier of new classes predict base classes too; support (1, S, V) and labels (S,) of new classes.

    It sets ``classes_`` and what tells old and new ones apart, and returns the head of all classes, as of a batch of
    one; the classifier of the base classes, whose rows stay when a model grows; and the slopes beside new classes (N,).
    """
    require_samples(bank)
    if method.head != "bound" or not model.power_on_base or (method.alpha and method.alpha_rule != "diagonal"):
        raise ParameterError(
            "include_base needs head='bound', power_on_base=True and alpha=0: leave these at their defaults."
        )
    transfer, gaussians = calibrate_tasks(base, support, labels[None], method, n_classes=len(model.classes_))
    model.base_head_ = np.array([float(method.n_generated), float(method.C)])
    old = _old_classes(model, bank, base, method)
    new = train_new(base, old, gaussians, support[0], labels, method)
    # What new classes take from old ones is measured on samples that no row was trained on.
    apart, new_apart = old.without_held_out or old, new
    if apart is not old:
        new_apart = train_new(base, apart, gaussians, support[0], labels, method, new.theta)
    rows_apart = _shifted(new_apart.theta, new_apart.shift)
    further = balance(apart, rows_apart, model.base_loss, underrated=bank.seen_in_training is True)
    if len(apart.held_out):
        model.probability_temperature_ = _temperature(apart, _shifted(rows_apart, further))
    model.balance_ = new.shift + further
    model.classes_, model.is_new_, order = joined_classes(bank.names, model.classes_)
    theta = np.concatenate([old.theta, _shifted(new.theta, model.balance_)])[order]
    fitted = FittedTasks(theta[None], np.array([new.converged]), new.slopes[None], transfer, gaussians)
    return fitted, old, new.beside


def scores_of_base(old: OldClasses, known: KnownClasses, is_new: np.ndarray) -> np.ndarray:
    """Quantiles (levels,) of the largest ratio of held-out samples of base classes."""
    rows = evenly_spaced(len(old.held_out), SCORED_QUERIES)
    held_out, places = old.held_out[rows], np.flatnonzero(~is_new)[old.labels[rows]]
    ratios = known.ratios(held_out)
    # The mean of a class includes its held-out samples: each is left out for its own score.
    ratios[np.arange(len(ratios)), places] = known.support_fits(held_out, places)
    return np.asarray(np.quantile(ratios.max(axis=1), LEVELS))


def _old_classes(model: Any, bank: BaseClasses, base: PreparedBase, method: Method) -> OldClasses:
    """The classifier of the base classes in this space, trained once and kept with the bank."""
    trained: dict[tuple[Any, ...], OldClasses] = base.__dict__.setdefault("_old_classes", {})
    key, rows = tuple(model.base_head_.tolist()), _rows_before(model, bank, base)
    if rows is not None and key not in trained:
        # Rows from a file are used only by the model of that file.
        key = *key, array_hash(rows)
    if key not in trained:
        trained[key] = train_old(base, require_samples(bank), bank.counts, method, rows)
    return trained[key]


def _rows_before(model: Any, bank: BaseClasses, base: PreparedBase) -> np.ndarray | None:
    """Rows of the base classes (B, V + 1) in the model before it grew; None if its bank or parameters have changed."""
    before = model._before
    if (
        before is None
        or before.is_new_ is None
        or before.base.fingerprint != bank.fingerprint
        or not np.array_equal(before.base_head_, model.base_head_)
        or not base.transform.same_as(before.transform_)
    ):
        return None
    rows = np.concatenate([before.coef_, before.intercept_[:, None]], axis=1)[~before.is_new_]
    order = np.argsort(bank.names, kind="stable")
    return np.asarray(rows[np.argsort(order)])


def _shifted(rows: np.ndarray, shift: float) -> np.ndarray:
    """Rows (N, V + 1) with this added to their intercepts."""
    rows = rows.copy()
    rows[:, -1] += shift
    return rows


def _temperature(old: OldClasses, new: np.ndarray) -> float:
    """The temperature of a model with these new rows (N, V + 1), from held-out samples of base classes."""
    rows = evenly_spaced(len(old.held_out), SCORED_QUERIES)
    margins = np.concatenate([old.held_out_logits[rows], logits(new, old.held_out[rows])], axis=1).astype(np.float64)
    return fit_temperature(margins - margins[np.arange(len(rows)), old.labels[rows]][:, None])
