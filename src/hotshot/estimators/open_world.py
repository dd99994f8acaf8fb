"""Beyond a closed set of new classes: old classes beside them, classes that come and go, samples of none of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hotshot.arrays import array_hash
from hotshot.base import BaseClasses, PreparedBase
from hotshot.errors import InputError, OpenWorldWarning, ParameterError
from hotshot.estimators.confidence import LEVELS, MOST_DEVIATIONS, TELLING_QUERIES, Confidence, likeliest_temperature
from hotshot.method.familiarity import KnownClasses
from hotshot.method.fit import FittedTasks, calibrate_tasks
from hotshot.method.joint import OldClasses, balance, logits, train_new, train_old
from hotshot.method.parameters import Method

# Fitted attributes that not every fit sets.
SOMETIMES = (
    "is_new_", "balance_", "base_head_", "beside_", "known_", "alarm_scores_", "support_deviation_",
    "probability_temperature_",
)  # fmt: skip


class OpenWorld:
    """What classifiers with a bank know beyond a closed set of classes."""

    # What the classifier that this is a part of has.
    base: Any
    base_loss: float | None
    power_on_base: bool
    support_: np.ndarray
    support_labels_: np.ndarray
    classes_: np.ndarray
    is_new_: np.ndarray
    coef_: np.ndarray
    intercept_: np.ndarray
    balance_: float
    base_head_: np.ndarray
    known_: KnownClasses
    alarm_scores_: np.ndarray | None
    probability_temperature_: float
    support_deviation_: float
    transform_: Any
    choice: Callable[[], Any]
    _confidence: Callable[[Method], Confidence | None]
    _learn: Callable[[np.ndarray, np.ndarray], None]
    _validated: Callable[..., Any]
    _placed: Callable[[np.ndarray], np.ndarray]
    # While a model grows: rows of new classes to start from, by class, and rows of base classes, by `base_head_`.
    _rows: dict[Any, np.ndarray] | None = None
    _old_rows: dict[tuple[float, ...], np.ndarray] | None = None

    def _outliers(self, placed: np.ndarray, reject: float | None) -> tuple[np.ndarray, np.ndarray]:
        """Outlier scores of samples in the space of the model, and whether each is rejected at this rate."""
        best, fit = self._fit_of(placed)
        if reject is None:
            return -fit, np.zeros(len(fit), dtype=bool)
        if not (isinstance(reject, (int, float)) and LEVELS[0] <= reject <= LEVELS[-1]):
            raise ParameterError(f"reject must be a share from {LEVELS[0]} to {LEVELS[-1]} or None, got {reject!r}.")
        scores = getattr(self, "alarm_scores_", None)
        if scores is None:
            raise ParameterError(
                "reject needs a bank to learn from, of at least 20 classes with 10 samples each: pass such a bank, or "
                "choose a threshold for outlier_score yourself."
            )
        self._warn_of_false_alarms(reject)
        limits = np.array([np.interp(reject, LEVELS, own) for own in scores])
        return -fit, fit < limits[best]

    def _warn_of_false_alarms(self, reject: float) -> None:
        """Warn where new classes are so unlike base classes that the share of false alarms is uncertain."""
        deviation = getattr(self, "support_deviation_", 0.0)
        if self.seen_in_training_:
            reason = "The extractor looks trained on the base classes, which are then easier than new ones"
        elif deviation < -MOST_DEVIATIONS:
            reason = f"The support is unlike that of held-out base classes, by {-deviation:.1f} standard deviations"
        else:
            return
        warnings.warn(
            f"{reason}: the share of samples of new classes that are rejected may be far from {reject:g}.",
            OpenWorldWarning,
            stacklevel=4,
        )

    def outlier_score(self, X: Any) -> np.ndarray:
        """How little each sample fits its best class (samples,): the larger, the likelier it is of no class.

        It is the log likelihood of "any class" minus that of the best class, see `hotshot.method.familiarity`; around
        0 both explain the sample equally well.
        """
        return -self._fit_of(self._placed(self._validated(X)))[1]

    def _fit_of(self, placed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The class that each sample in the space of the model fits best, and how well."""
        if getattr(self, "known_", None) is None:
            raise ParameterError(f"{type(self).__name__} without base classes knows no outliers: pass base.")
        return self.known_.best(placed)

    def add_classes(self, X: Any, y: Any) -> Self:
        """Learn more new classes from support samples X (samples, V) with labels y, as if all had come at once.

        The transport couples all new classes, so it is solved again for all of them, which takes little; the head
        starts from where it was. Its minimum does not depend on the start.
        """
        X, y = self._validated(X, y)
        known = np.intersect1d(y, self.classes_)
        if len(known):
            raise InputError(f"'{known[0]}' is a class of this model already: use add_samples, or another name.")
        return self._relearn(np.concatenate([self.support_, X]), np.concatenate([self.support_labels_, y]))

    def add_samples(self, X: Any, y: Any) -> Self:
        """Add support samples X (samples, V) of new classes that the model knows, as if all had come at once."""
        X, y = self._validated(X, y)
        strange = np.setdiff1d(y, self.support_labels_)
        if len(strange):
            raise InputError(f"'{strange[0]}' is no new class of this model: use add_classes for classes that are.")
        return self._relearn(np.concatenate([self.support_, X]), np.concatenate([self.support_labels_, y]))

    def remove_classes(self, names: Any) -> Self:
        """Forget new classes, as if they had never come."""
        check_is_fitted(self)
        names = np.atleast_1d(names)
        strange = np.setdiff1d(names, self.support_labels_)
        if len(strange):
            raise InputError(f"'{strange[0]}' is no new class of this model: name new classes only, base classes stay.")
        kept = ~np.isin(self.support_labels_, names)
        if not kept.any():
            raise InputError("No new class would be left: remove fewer, or use another model.")
        return self._relearn(self.support_[kept], self.support_labels_[kept])

    def _relearn(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Fit to other support samples; a model whose fit fails stays as it was."""
        grown = copy(self)
        if getattr(self, "is_new_", None) is not None:
            theta = np.concatenate([self.coef_, self.intercept_[:, None]], axis=1)
            grown._old_rows = {tuple(getattr(self, "base_head_", ())): theta[~self.is_new_]}
            theta[:, -1] -= self.balance_
            grown._rows = dict(zip(self.classes_[self.is_new_].tolist(), theta[self.is_new_], strict=True))
        grown._learn(X, y)
        for name in ("_rows", "_old_rows"):
            grown.__dict__.pop(name, None)
        self.__dict__.update(grown.__dict__)
        return self

    def _fit_beside(
        self, bank: BaseClasses, base: PreparedBase, method: Method, support: np.ndarray, labels: np.ndarray
    ) -> FittedTasks:
        """Rows of old and new classes in the order of `classes_`, which are the new ones before; a batch of one."""
        names = self.classes_
        _check_joint(bank, method, names, self.power_on_base)
        transfer, gaussians = calibrate_tasks(base, support, labels[None], method, n_classes=len(names))
        old, start = self._old_classes(bank, base, method), None
        if self._rows is not None:
            nothing = np.zeros(old.theta.shape[1], dtype=support.dtype)
            start = np.stack([self._rows.get(name, nothing) for name in names.tolist()])
        new = train_new(base, old, gaussians, support[0], labels, method, start)
        self.beside_ = new.beside
        self.balance_ = balance(old, new.theta, self.base_loss, underrated=self.choice().seen_in_training)
        rows = new.theta.copy()
        rows[:, -1] += self.balance_
        everyone = np.concatenate([bank.names, names])
        order = np.argsort(everyone, kind="stable")
        self.classes_, self.is_new_ = everyone[order], order >= len(bank.names)
        theta = np.concatenate([old.theta, rows])[order]
        return FittedTasks(theta[None], np.array([new.converged]), transfer, gaussians, new.slopes[None])

    def _old_classes(self, bank: BaseClasses, base: PreparedBase, method: Method) -> OldClasses:
        """The classifier of the base classes in this space; the bank keeps it.

        It is trained once. A model that was loaded and grows has its rows already, unless its parameters changed since.
        """
        kept: dict[tuple[Any, ...], OldClasses] = base.__dict__.setdefault("_old_classes", {})
        key: tuple[Any, ...] = float(method.n_generated), float(method.C)
        self.base_head_ = np.array(key)
        rows = (self._old_rows or {}).get(key)
        if rows is None or len(rows) != len(bank.names) or not base.transform.same_as(self.transform_):
            rows = None
        elif key not in kept:
            # Rows from a file are for the model that grows from it.
            key = *key, array_hash(rows)
        if key not in kept:
            kept[key] = train_old(base, needed_samples(bank), bank.counts, method, rows)
        return kept[key]

    def _learn_confidence(self, bank: BaseClasses, base: PreparedBase, method: Method) -> None:
        """What fits a class, and the temperature of the probabilities."""
        confidence = self._confidence(method)
        self.seen_in_training_ = self.choice().seen_in_training
        is_new = getattr(self, "is_new_", np.ones(len(self.classes_), dtype=bool))
        shots = self.known_.sizes[is_new]
        if confidence is not None:
            self._learn_alarm_scores(confidence, shots)
            if not self.seen_in_training_:
                self.probability_temperature_ = confidence.temperature(len(shots), float(shots.mean()))
        if not is_new.all():
            old = self._old_classes(bank, base, method)
            if len(old.held_out):
                self._judge_by_held_out(old)
        if not getattr(self, "calibrate_probabilities", False):
            self.probability_temperature_ = 1.0

    def _learn_alarm_scores(self, confidence: Confidence, shots: np.ndarray) -> None:
        """Scores below which samples fit no class, for new classes of so many shots each and the support at hand."""
        rows, ways = _spread(len(self.support_), TELLING_QUERIES), len(shots)
        labels = np.searchsorted(self.classes_, self.support_labels_[rows])
        fits = self.known_.support_fits(self.transform_(self.support_[rows]), labels)
        deviation = self.support_deviation_ = confidence.support_deviation(ways, fits, self.known_.sizes[labels])
        least = 2 if shots.max() > 1 else 1
        self.alarm_scores_ = np.stack([confidence.scores_at(ways, k, deviation, least) for k in shots])

    def _judge_by_held_out(self, old: OldClasses) -> None:
        """Alarm scores of old classes, and the temperature of a model with them, from their held-out samples."""
        some = _spread(len(old.held_out), TELLING_QUERIES)
        held_out, places = old.held_out[some], np.flatnonzero(~self.is_new_)[old.labels[some]]
        ratios = self.known_.ratios(held_out)
        # The mean of a class knows its held-out samples too: each is left out of it.
        ratios[np.arange(len(ratios)), places] = self.known_.support_fits(held_out, places)
        scores = np.quantile(ratios.max(axis=1), LEVELS)
        of_new = self.alarm_scores_
        if of_new is not None:
            everyone = np.tile(scores, (len(self.classes_), 1))
            everyone[self.is_new_] = of_new
            self.alarm_scores_ = everyone
        theta = np.concatenate([self.coef_, self.intercept_[:, None]], axis=1)[self.is_new_]
        margins = np.concatenate([old.held_out_logits[some], logits(theta, old.held_out[some])], axis=1).astype(
            np.float64
        )
        margins -= margins[np.arange(len(margins)), old.labels[some]][:, None]
        self.probability_temperature_ = likeliest_temperature(margins)


def _spread(count: int, most: int) -> np.ndarray:
    """Places from 0 to count - 1, evenly, at most so many."""
    return np.linspace(0, count - 1, min(count, most)).astype(int)


def _check_joint(bank: BaseClasses, method: Method, names: np.ndarray, power_on_base: bool) -> None:
    """Raise where old and new classes cannot be answered together."""
    needed_samples(bank)
    if method.head != "bound" or not power_on_base or (method.alpha and method.alpha_rule != "diagonal"):
        raise ParameterError(
            "include_base goes with head='bound', power_on_base=True and alpha=0: leave these as they are."
        )
    check_names(bank, names)


def needed_samples(bank: BaseClasses) -> np.ndarray:
    """The samples of a bank (samples, V); raise where it has none."""
    if bank.samples is None:
        raise ParameterError("include_base needs a bank with samples: save it with samples=True.")
    return bank.samples


def check_names(bank: BaseClasses, names: np.ndarray) -> None:
    """Raise unless the names of base classes and of new classes (N,) are of one kind, and no name is both."""
    kinds = {array.dtype.kind for array in (bank.names, names)}
    if len(kinds) > 1 and not kinds <= set("iufb"):
        raise InputError(
            "include_base needs old and new classes named alike: one has text for names and the other has not."
        )
    both = np.intersect1d(bank.names, names)
    if len(both):
        raise InputError(
            f"'{both[0]}' is a base class and a new class: give the new one another name, or leave it out of the bank."
        )
