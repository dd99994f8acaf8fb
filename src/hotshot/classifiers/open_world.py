"""Beyond a closed set of new classes: base classes predicted too, classes added and removed, outliers rejected."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from hotshot.arrays import array_hash, evenly_spaced
from hotshot.bank import BaseClasses, PreparedBase
from hotshot.classifiers.classifier import assign, snapshot, unfitted
from hotshot.classifiers.confidence import LEVELS, MOST_DEVIATIONS, SCORED_QUERIES, Confidence, fit_temperature
from hotshot.classifiers.models import loaded
from hotshot.classifiers.rival import require_samples
from hotshot.errors import InputError, OpenWorldWarning, ParameterError
from hotshot.labels import joined_labels
from hotshot.method.fit import FittedTasks, calibrate_tasks
from hotshot.method.joint import OldClasses, balance, logits, train_new, train_old
from hotshot.method.parameters import Method
from hotshot.model.two_covariances import KnownClasses


class OpenWorld(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types.
    """Mixin of classifiers with a bank: base classes in predictions, added and removed classes, outliers."""

    classes_: np.ndarray
    is_new_: np.ndarray | None
    known_: KnownClasses
    alarm_scores_: np.ndarray | None
    # While classes are added: the model before.
    _before: OpenWorld | None = None

    def _outliers(self, placed: np.ndarray, reject: float | None) -> tuple[np.ndarray, np.ndarray]:
        """Outlier scores of samples in the space of the model, and the limits above which they are rejected."""
        best, fit = self._best_fit(placed)
        if reject is None:
            return -fit, np.full(len(fit), np.inf)
        if not (isinstance(reject, Real) and LEVELS[0] <= reject <= LEVELS[-1]):
            raise ParameterError(f"reject must be a number from {LEVELS[0]} to {LEVELS[-1]} or None, got {reject!r}.")
        scores = getattr(self, "alarm_scores_", None)
        if scores is None:
            sampled = self.settings().get("head") == "sampled"
            needs = "another head than 'sampled'" if sampled else "at least 20 base classes with 10 samples each"
            raise ParameterError(
                f"reject needs {needs}, on which thresholds are learned: fit with these, or choose a threshold for "
                "the outlier scores yourself."
            )
        self._warn_of_false_alarms(reject)
        limits = np.array([np.interp(reject, LEVELS, own) for own in scores])
        return -fit, -limits[best]

    def _warn_of_false_alarms(self, reject: float) -> None:
        """Warn if new classes are so unlike base classes that the share of false alarms is uncertain."""
        deviation = getattr(self, "support_deviation_", 0.0)
        if self.seen_in_training_:
            reason = "The extractor was trained on the base classes, which makes them easier than new classes"
        elif deviation < -MOST_DEVIATIONS:
            reason = f"The support differs from that of held-out base classes by {-deviation:.1f} standard deviations"
        else:
            return
        warnings.warn(
            f"{reason}: the share of rejected samples of new classes may be far from {reject:g}.",
            OpenWorldWarning,
            stacklevel=4,
        )

    def outlier_score(self, X: Any) -> np.ndarray:
        """Outlier score of each sample: the larger, the less likely it belongs to any class.

        It is the log-likelihood of an unknown class minus that of the best class; at 0 both explain the sample equally
        well.

        Parameters
        ----------
        X : array (samples, V)
            Samples to score.

        Returns
        -------
        array (samples,)
            Scores.
        """
        model = snapshot(self)
        return -model._best_fit(model._in_space(model._validated(X)))[1]

    def _best_fit(self, placed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Index of the class that each sample in the space of the model fits best, and its log-likelihood ratio."""
        if getattr(self, "known_", None) is None:
            raise ParameterError(
                f"{type(self).__name__} without base classes has no outlier scores: pass base (in the shell --base)."
            )
        return self.known_.best(placed)

    def add_classes(self, X: Any, y: Any) -> Self:
        """Add new classes; the model is then that of a fit to all support samples at once.

        The transport is solved again for all new classes, because it couples them. With ``include_base`` the rows of
        base classes are kept and those of new classes are trained from their current weights, which does not change
        their minimum; without it the head is trained from the start.

        Parameters
        ----------
        X : array (samples, V)
            Support samples of the new classes.
        y : array (samples,)
            Their labels; none may be a class of the model.

        Returns
        -------
        self
            The classifier.
        """
        X, y = self._validated(X, y)
        known = np.intersect1d(y, self.classes_)
        if len(known):
            raise InputError(f"'{known[0]}' is a class of this model already: use add_samples, or another name.")
        return self.add(X, y)

    def add_samples(self, X: Any, y: Any) -> Self:
        """Add samples of classes of the model, new or old; it is then that of a fit to all samples at once.

        Samples of old classes, with ``include_base``, go into the bank: ``base`` becomes a bank that holds them too.

        Parameters
        ----------
        X : array (samples, V)
            Further samples.
        y : array (samples,)
            Their labels; all must be classes of the model.

        Returns
        -------
        self
            The classifier.
        """
        X, y = self._validated(X, y)
        unknown_names = np.setdiff1d(y, self.classes_)
        if len(unknown_names):
            raise InputError(f"'{unknown_names[0]}' is not a class of this model: use add_classes to add it.")
        return self.add(X, y)

    def add(self, X: Any, y: Any) -> Self:
        """Add samples of any classes, of the model or not, as ``add_classes`` and ``add_samples`` do.

        Parameters
        ----------
        X : array (samples, V)
            Further samples.
        y : array (samples,)
            Their labels.

        Returns
        -------
        self
            The classifier.
        """
        X, y = self._validated(X, y)
        joined_labels(self.classes_, y)
        is_old = np.isin(
            y, self.classes_[~(np.ones(len(self.classes_), dtype=bool) if self.is_new_ is None else self.is_new_)]
        )
        base = loaded(self.base)
        if is_old.any():
            base = base.with_samples(X[is_old], y[is_old])
        labels = np.concatenate([self.support_labels_, y[~is_old]])
        return self.learn_again(np.concatenate([self.support_, X[~is_old]]), labels, base)

    def remove_classes(self, names: Any) -> Self:
        """Remove new classes; the model is then that of a fit without them.

        Parameters
        ----------
        names : label or array of labels
            New classes of the model; base classes cannot be removed.

        Returns
        -------
        self
            The classifier.
        """
        check_is_fitted(self)
        names = np.atleast_1d(names)
        unknown_names = np.setdiff1d(names, self.support_labels_)
        if len(unknown_names):
            raise InputError(f"'{unknown_names[0]}' is not a new class of this model: base classes cannot be removed.")
        kept = ~np.isin(self.support_labels_, names)
        if not kept.any():
            raise InputError("No new class would be left: remove fewer classes.")
        return self.learn_again(self.support_[kept], self.support_labels_[kept], self.base)

    def learn_again(self, X: np.ndarray, y: np.ndarray, base: Any) -> Self:
        """Fit to other support samples, or another bank, from the current weights; a fit that fails changes nothing.

        Parameters
        ----------
        X : array (samples, V)
            All support samples.
        y : array (samples,)
            Their labels.
        base : BaseClasses or None
            The bank.

        Returns
        -------
        self
            The classifier.
        """
        grown = unfitted(self, same_features=True)
        grown.base, grown._before = base, snapshot(self)
        grown._learn(X, y)
        del grown._before
        assign(self, grown)
        return self

    def _rows_before(self, bank: BaseClasses, is_new: bool) -> dict[Any, np.ndarray]:
        """Rows of new classes, or of base classes, by class, of the model before it grew; none if its bank grew."""
        before = self._before
        if before is None or getattr(before, "is_new_", None) is None or before.base.fingerprint != bank.fingerprint:
            return {}
        rows = np.concatenate([before.coef_, before.intercept_[:, None]], axis=1)
        rows[before.is_new_, -1] -= before.balance_
        some = before.is_new_ == is_new
        return dict(zip(before.classes_[some].tolist(), rows[some], strict=True))

    def _fit_with_base(
        self, bank: BaseClasses, base: PreparedBase, method: Method, support: np.ndarray, labels: np.ndarray
    ) -> FittedTasks:
        """Rows of base and new classes in the order of ``classes_``, which gains the base classes; a batch of one."""
        names = self.classes_
        _check_include_base(bank, method, self.power_on_base)
        transfer, gaussians = calibrate_tasks(base, support, labels[None], method, n_classes=len(names))
        old, start = self._old_classes(bank, base, method), None
        rows_before = self._rows_before(bank, is_new=True)
        if rows_before:
            nothing = np.zeros(old.theta.shape[1], dtype=support.dtype)
            start = np.stack([rows_before.get(name, nothing) for name in names.tolist()])
        new = train_new(base, old, gaussians, support[0], labels, method, start)
        self.beside_ = new.beside
        # What new classes take from old ones is measured on samples that no row was trained on.
        apart, new_apart = old.without_held_out or old, new
        if apart is not old:
            new_apart = train_new(base, apart, gaussians, support[0], labels, method, new.theta)
        rows_apart = _shifted(new_apart.theta, new_apart.shift)
        further = balance(apart, rows_apart, self.base_loss, underrated=bank.seen_in_training is True)
        if len(apart.held_out):
            self.probability_temperature_ = _temperature(apart, _shifted(rows_apart, further))
        self.balance_ = new.shift + further
        rows = _shifted(new.theta, self.balance_)
        all_names = np.concatenate([bank.names, names])
        order = np.argsort(all_names, kind="stable")
        self.classes_, self.is_new_ = all_names[order], order >= len(bank.names)
        theta = np.concatenate([old.theta, rows])[order]
        return FittedTasks(theta[None], np.array([new.converged]), transfer, gaussians, new.slopes[None])

    def _old_classes(self, bank: BaseClasses, base: PreparedBase, method: Method) -> OldClasses:
        """The classifier of the base classes in this space, trained once and kept with the bank.

        A loaded model has its rows already, unless its parameters have changed since.
        """
        kept: dict[tuple[Any, ...], OldClasses] = base.__dict__.setdefault("_old_classes", {})
        key: tuple[Any, ...] = float(method.n_generated), float(method.C)
        self.base_head_ = np.array(key)
        known, before, rows = self._rows_before(bank, is_new=False), self._before, None
        if (
            known.keys() == set(bank.names.tolist())
            and tuple(getattr(before, "base_head_", ())) == key
            and base.transform.same_as(getattr(before, "transform_", None))
        ):
            rows = np.stack([known[name] for name in bank.names.tolist()])
        if rows is not None and key not in kept:
            # Rows from a file are used only by the model of that file.
            key = *key, array_hash(rows)
        if key not in kept:
            kept[key] = train_old(base, require_samples(bank), bank.counts, method, rows)
        return kept[key]

    def _learn_confidence(self, bank: BaseClasses, base: PreparedBase, method: Method) -> None:
        """Learn the thresholds of outlier scores and the temperature of the probabilities."""
        confidence = self._confidence(method)
        is_new = np.ones(len(self.classes_), dtype=bool) if self.is_new_ is None else self.is_new_
        shots = self.known_.sizes[is_new]
        # The classes that the header names matter at one shot only: with several, the thresholds follow the support.
        self.seen_in_training_ = bank.seen_in_training is True or (bank.trained_on and bool(shots.min() == 1))
        if confidence is not None:
            self._learn_alarm_scores(confidence, shots, None if is_new.all() else self._old_classes(bank, base, method))
            if is_new.all():
                self.probability_temperature_ = confidence.temperature(
                    len(shots), float(shots.mean()), self.support_deviation_
                )
        if not getattr(self, "calibrate_probabilities", False):
            self.probability_temperature_ = 1.0

    def _learn_alarm_scores(self, confidence: Confidence, shots: np.ndarray, old: OldClasses | None) -> None:
        """Set the scores below which samples fit no class: of new classes with these shots, and of old ones, if any."""
        rows, ways = evenly_spaced(len(self.support_), SCORED_QUERIES), len(shots)
        labels = np.searchsorted(self.classes_, self.support_labels_[rows])
        fits = self.known_.support_fits(self.transform_(self.support_[rows]), labels)
        deviation = self.support_deviation_ = confidence.support_deviation(ways, fits, self.known_.sizes[labels])
        sizes = [(ways, k, deviation, 2 if shots.max() > 1 else 1) for k in shots]
        if old is None:
            self.alarm_scores_ = np.stack([confidence.scores_at(*size) for size in sizes])
            return
        of_base = self._scores_of_old(old)
        of_new, of_old = zip(*(confidence.scores_with_base(*size, of_base) for size in sizes), strict=True)
        self.alarm_scores_ = np.tile(np.min(of_old, axis=0), (len(self.classes_), 1))
        self.alarm_scores_[self.is_new_] = of_new

    def _scores_of_old(self, old: OldClasses) -> np.ndarray:
        """Quantiles (levels,) of the largest ratio of held-out samples of old classes."""
        assert self.is_new_ is not None
        some = evenly_spaced(len(old.held_out), SCORED_QUERIES)
        held_out, places = old.held_out[some], np.flatnonzero(~self.is_new_)[old.labels[some]]
        ratios = self.known_.ratios(held_out)
        # The mean of a class includes its held-out samples: each is left out for its own score.
        ratios[np.arange(len(ratios)), places] = self.known_.support_fits(held_out, places)
        return np.asarray(np.quantile(ratios.max(axis=1), LEVELS))


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


def _check_include_base(bank: BaseClasses, method: Method, power_on_base: bool) -> None:
    """Raise unless base and new classes can be predicted together."""
    require_samples(bank)
    if method.head != "bound" or not power_on_base or (method.alpha and method.alpha_rule != "diagonal"):
        raise ParameterError(
            "include_base needs head='bound', power_on_base=True and alpha=0: leave these at their defaults."
        )
