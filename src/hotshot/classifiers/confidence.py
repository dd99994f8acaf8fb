"""Confidence of predictions, learned on held-out base classes: temperatures of probabilities, and outlier scores.

New classes may fit worse than held-out base classes, above all if the extractor was trained on the base classes. The
support shows this: each of its samples is compared to the others of its class. Scores are therefore kept together with
the fit of the support in the same tasks, and shift with it: by as many standard deviations over tasks as the support is
from its usual fit. With one shot the support only shows how far samples are from the centre of the bank; scores then
shift in proportion to the correlation of the two.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import softmax
from sklearn.base import clone

from hotshot.arrays import one_thread
from hotshot.bank import BaseClasses, PreparedBase
from hotshot.classifiers import held_out
from hotshot.classifiers.held_out import (
    QUERIES,
    SHOTS,
    WAYS,
    Fold,
    description,
    draw_task,
    fitted_batches,
    for_each_fold,
    keep,
    kept,
    make_folds,
    progress,
)
from hotshot.errors import OpenWorldWarning
from hotshot.method.calibration import class_targets
from hotshot.model.two_covariances import OUTLIER_SHRINKAGE, KnownClasses, log_ratios, support_fits, two_covariances

# Prefix of the keys under which a bank keeps a `Confidence`.
CONFIDENCE = "confidence of "
# Queries that are scored, for tasks of each size, and largest number of ways.
SCORED_QUERIES, MOST_WAYS = 4800, 20
# Shots of the tasks whose scores are kept: one, whose support samples are alone in their class, and two or more.
SCORED_SHOTS = 1, 2, 5
# Largest shift of scores, in standard deviations.
MOST_DEVIATIONS = 2.0
# Smallest value of any standard deviation.
SMALLEST_DEVIATION = 1e-9
# New classes may be harder than held-out ones. The logarithm of the temperature at K shots grows by up to a constant
# plus a part over K, while the support falls below its usual fit by so many standard deviations.
SOFTER = 0.38, 0.34
SOFTER_BETWEEN = 0.5, 1.5
# Logarithms of the smallest and the largest temperature: without errors on held-out classes it would tend to 0.
TEMPERATURES = -1.2, 3.0
# Kinds of scores, see `Confidence`.
KINDS = ALONE, BEST_NEW, BEST_BASE = 0, 1, 2
# Shares of the queries at which scores are kept.
LEVELS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5)
# Samples that fit worse than all but this share of the samples of the classes count less, down to nothing.
DOUBTFUL = 0.05


@dataclass(frozen=True)
class Confidence:
    """Temperatures and outlier scores of tasks of several numbers of ways and shots, from held-out base classes.

    Attributes
    ----------
    ways, shots : tuples of int
    temperatures : array (ways, shots)
        Divisors of the logits that calibrate the probabilities.
    usual : array (ways, scored shots, 2)
        Mean and standard deviation, over tasks, of the fit of the support
        (``hotshot.model.two_covariances.support_fits``).
    moves : array (2, ways, scored shots)
        Shift of the scores per such standard deviation: of the classes of a task alone, and with the base classes.
    scores : array (3, ways, scored shots, levels)
        Quantiles at ``LEVELS`` of the largest ratio (``hotshot.model.two_covariances``) of queries, in tasks with the
        usual fit of the support: over the classes of the task ``ALONE``; and, with the base classes, of the queries
        that fit a class of the task best (``BEST_NEW``) and of those that fit a base class best (``BEST_BASE``).
    best_base : array (ways, scored shots)
        Share of the latter.
    """

    ways: tuple[int, ...]
    shots: tuple[int, ...]
    temperatures: np.ndarray
    usual: np.ndarray
    moves: np.ndarray
    scores: np.ndarray
    best_base: np.ndarray

    def temperature(self, ways: float, shots: float, deviation: float) -> float:
        """The temperature for tasks of any size, interpolated in the logarithms of ways and shots.

        It is higher if the support, by its ``deviation``, fits worse than that of held-out base classes.
        """
        learned = self._between(np.log(self.temperatures), self.shots, ways, shots)
        softer = np.interp(-deviation, SOFTER_BETWEEN, (0, SOFTER[0] + SOFTER[1] / shots))
        return float(np.exp(learned + softer))

    def temperatures_of(self, base: PreparedBase, support: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """The temperatures (tasks,) of tasks with this support (tasks, S, V) in the space of the bank."""
        ways, two = int(labels.max()) + 1, two_covariances(base, *OUTLIER_SHRINKAGE)
        targets = class_targets(support, labels, ways)
        means, sizes = (np.stack([x[at] for x, at in zip(part, labels, strict=True)]) for part in targets)
        centre, means, x = (two.rotated(x.astype(np.float64)) for x in (base.means.mean(axis=0), means, support))
        fits = support_fits(two.ratios, centre, means, sizes, x)
        deviations = [self.support_deviation(ways, *task) for task in zip(fits, sizes, strict=True)]
        return np.array([self.temperature(ways, labels.shape[1] / ways, deviation) for deviation in deviations])

    def support_deviation(self, ways: int, fits: np.ndarray, shots: np.ndarray) -> float:
        """How many standard deviations better than usual support samples fit (S,), with the shots of their class (S,).

        Samples that are alone in their class are used only if all are.
        """
        used = shots > 1 if (shots > 1).any() else shots > 0
        fits, shots = fits[used], shots[used]
        usual = {k: self._between(self.usual, SCORED_SHOTS, ways, k) for k in np.unique(shots)}
        means, deviations = np.array([usual[k] for k in shots]).T
        # The usual fit is from tasks of WAYS classes; with fewer classes the deviation is less certain.
        return float(min(1.0, np.sum(1 / shots) / WAYS) * np.mean((fits - means) / deviations))

    def scores_at(self, ways: int, shots: float, deviation: float, least_shots: int, kind: int = ALONE) -> np.ndarray:
        """The scores (levels,) of a class with these shots, for this deviation of the support.

        The shift of the scores depends on the least number of shots of the support that the deviation is from.
        """
        move = self._between(self.moves[min(kind, 1)], SCORED_SHOTS, ways, max(shots, least_shots))
        within = np.clip(deviation, -MOST_DEVIATIONS, MOST_DEVIATIONS)
        return np.asarray(self._between(self.scores[kind], SCORED_SHOTS, ways, shots) + move * within)

    def scores_with_base(
        self, ways: int, shots: float, deviation: float, least_shots: int, of_base: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The scores (levels,) of a class beside base classes, and those of base classes.

        The share that is rejected is that of each level, over samples of the class that fit a class of the task best
        and over those that fit a base class best. The latter are at most as many as their share of all, or half: the
        scores of base classes are lower than their own, ``of_base`` (levels,), where these would reject more.
        """
        levels, share = np.array(LEVELS), float(self._between(self.best_base, SCORED_SHOTS, ways, shots))
        best_new, best_base = (self.scores_at(ways, shots, deviation, least_shots, k) for k in (BEST_NEW, BEST_BASE))
        if share <= 0:
            return best_new, of_base
        largest = np.interp(levels * max(share, 0.5) / share, levels, best_base, right=np.inf)
        of_base = np.minimum(of_base, largest)
        rejected = share * np.interp(of_base, best_base, levels, left=0.0, right=1.0)
        rest = (levels - rejected) / max(1 - share, SMALLEST_DEVIATION)
        return np.interp(rest, levels, best_new), of_base

    def thresholds(
        self, shots: np.ndarray, deviation: float, is_new: np.ndarray, of_base: np.ndarray | None
    ) -> np.ndarray:
        """The scores (N, levels) of all classes: of the new ones with these shots, and, if there are any, of old ones.

        ``of_base`` are those of the old ones (levels,) alone.
        """
        sizes = [(len(shots), k, deviation, 2 if shots.max() > 1 else 1) for k in shots]
        if of_base is None:
            return np.stack([self.scores_at(*size) for size in sizes])
        of_new, of_old = zip(*(self.scores_with_base(*size, of_base) for size in sizes), strict=True)
        scores = np.tile(np.min(of_old, axis=0), (len(is_new), 1))
        scores[is_new] = of_new
        return scores

    def _between(self, values: np.ndarray, known_shots: tuple[int, ...], ways: float, shots: float) -> np.ndarray:
        """Values (ways, shots, …) interpolated in the logarithms of ways and shots."""
        for known, wanted in ((self.ways, ways), (known_shots, shots)):
            place = np.interp(np.log(wanted), np.log(known), np.arange(len(known)))
            low = min(int(place), len(known) - 2) if len(known) > 1 else 0
            part = place - low
            values = (1 - part) * values[low] + part * values[min(low + 1, len(known) - 1)]
        return values

    def to_json(self) -> dict[str, Any]:
        """As JSON, to be kept with the bank."""
        return {f.name: np.array(getattr(self, f.name)).tolist() for f in fields(self)}


@dataclass(frozen=True)
class OutlierDetector:
    """What a fitted model knows of its classes, to tell samples that fit none of them.

    ``thresholds`` (N, levels) are the ratios of ``known`` below which samples fit no class, if they were learned;
    ``deviation`` and ``seen_in_training`` tell how far they can be trusted.
    """

    known: KnownClasses
    thresholds: np.ndarray | None
    deviation: float
    seen_in_training: bool

    def scores_and_limits(self, placed: np.ndarray, reject: float | None) -> tuple[np.ndarray, np.ndarray]:
        """Outlier scores (n,) of samples in the space of the model, and the limits above which they are rejected."""
        best, fit = self.known.best(placed)
        if reject is None or self.thresholds is None:
            return -fit, np.full(len(fit), np.inf)
        self._warn_of_false_alarms(reject)
        return -fit, -self._at_level(reject)[best]

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
        assert self.thresholds is not None
        return np.array([np.interp(level, LEVELS, scores) for scores in self.thresholds])

    def _warn_of_false_alarms(self, reject: float) -> None:
        """Warn if new classes are so unlike base classes that the share of false alarms is uncertain."""
        if self.seen_in_training:
            reason = "The extractor was trained on the base classes, which makes them easier than new classes"
        elif self.deviation < -MOST_DEVIATIONS:
            reason = (
                f"The support differs from that of held-out base classes by {-self.deviation:.1f} standard deviations"
            )
        else:
            return
        warnings.warn(
            f"{reason}: the share of rejected samples of new classes may be far from {reject:g}.",
            OpenWorldWarning,
            stacklevel=6,
        )


def _restored(stored: Any) -> Confidence | None:
    """The confidence that ``to_json`` wrote; None if it is damaged or of an older version."""
    with suppress(LookupError, TypeError, ValueError):
        ways, shots = (tuple(int(n) for n in stored[name]) for name in ("ways", "shots"))
        size = len(ways), len(SCORED_SHOTS)
        shapes = {
            "temperatures": (len(ways), len(shots)),
            "usual": (*size, 2),
            "moves": (2, *size),
            "scores": (len(KINDS), *size, len(LEVELS)),
            "best_base": size,
        }
        arrays = {name: np.array(stored[name], float) for name in shapes}
        sound = all(x.shape == shapes[name] and np.isfinite(x).all() for name, x in arrays.items())
        positive = arrays["temperatures"].min(), arrays["usual"][..., 1].min(), *ways, *shots
        if sound and min(positive) > 0:
            return Confidence(ways, shots, **arrays)
    return None


def confidence_on(
    base: BaseClasses, estimator: Any, settings: Mapping[str, Any], folds: Sequence[Fold] | None = None
) -> Confidence | None:
    """The confidence of an estimator of these settings on this bank, which keeps it; None if no class is held out."""
    key = CONFIDENCE + description(estimator)
    with base.choosing:
        confidence = _restored(kept(base, key))
        if confidence is None and base.can_hold_out:
            progress.get()("checking probabilities on the base classes")
            settled = clone(estimator).set_params(**{name: x for name, x in settings.items() if name != "base"})
            confidence = measure_confidence(settled, folds or make_folds(base))
            keep(base, key, confidence.to_json())
    return confidence


@one_thread()
def measure_confidence(estimator: Any, folds: Sequence[Fold]) -> Confidence:
    """Temperatures and scores of a calibrated classifier, from held-out tasks of few and of many ways."""
    most = min(MOST_WAYS, *(int(fold.labels.max()) + 1 for fold in folds))
    ways = (WAYS, most) if most > WAYS else (WAYS,)
    scored = [(n, k) for n in ways for k in SCORED_SHOTS]

    def of_fold(fold: Fold) -> tuple[list[np.ndarray], list[tuple[np.ndarray, np.ndarray]]]:
        model = clone(estimator).set_params(base=fold.base)
        count = SCORED_QUERIES // (len(folds) * QUERIES)
        margins = [_margins(model, fold, n, k, max(1, count // n)) for n in ways for k in SHOTS]
        return margins, _fits_and_scores(model.parts()[0], fold, scored)

    margins, fits = zip(*for_each_fold(of_fold, folds), strict=True)
    temperatures = [fit_temperature(np.concatenate(parts)) for parts in zip(*margins, strict=True)]
    moving = [_moving_scores(parts, k) for parts, (_, k) in zip(zip(*fits, strict=True), scored, strict=True)]
    usual, moves, scores, best_base = (
        np.reshape(x, (len(ways), len(SCORED_SHOTS), *np.shape(x[0]))) for x in zip(*moving, strict=True)
    )
    moves, scores = np.moveaxis(moves, 2, 0), np.moveaxis(scores, 2, 0)
    return Confidence(ways, SHOTS, np.reshape(temperatures, (len(ways), -1)), usual, moves, scores, best_base)


def _margins(model: Any, fold: Fold, ways: int, shots: int, count: int) -> np.ndarray:
    """Logits of the queries of so many tasks of one size, minus that of the true class (n, ways)."""
    rngs = [np.random.default_rng([fold.number, shots, ways, i]) for i in range(count)]
    margins = []
    for fitted, queries, labels in fitted_batches(
        model, fold, [draw_task(fold.labels, shots, ways, rng) for rng in rngs]
    ):
        logits = fitted.decision(queries).astype(np.float64)
        margins.append((logits - np.take_along_axis(logits, labels[..., None], axis=2)).reshape(-1, ways))
    return np.concatenate(margins)


def _fits_and_scores(
    base: PreparedBase, fold: Fold, sizes: Sequence[tuple[int, int]]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Of tasks of each size: fit of the support (tasks,), and both scores of the queries (2, tasks, Q)."""
    two = two_covariances(base, *OUTLIER_SHRINKAGE)
    centre, means, samples = map(two.rotated, (base.means.mean(axis=0), base.means, base.transform(fold.samples)))
    counts = fold.base.counts.astype(samples.dtype)
    of_base = log_ratios(two.ratios, centre, means, counts, samples).max(axis=1)
    rng, pairs = np.random.default_rng([fold.number, len(sizes)]), []
    for ways, shots in sizes:
        tasks = [draw_task(fold.labels, shots, ways, rng) for _ in range(max(1, held_out.TASKS * WAYS // ways))]
        rows, query_rows = (np.stack([getattr(task, part) for task in tasks]) for part in ("support", "query"))
        places = tasks[0].support_labels
        means, shots_of = class_targets(samples[rows], np.tile(places, (len(tasks), 1)), ways)
        fits = support_fits(two.ratios, centre, means[:, places], shots_of[:, places], samples[rows])
        scores = log_ratios(two.ratios, centre, means, shots_of, samples[query_rows]).max(axis=2)
        both = np.stack([scores, np.maximum(scores, of_base[query_rows])])
        pairs.append((fits.mean(axis=1).astype(np.float64), both.astype(np.float64)))
    return pairs


def _moving_scores(
    parts: Sequence[tuple[np.ndarray, np.ndarray]], shots: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """``usual``, ``moves``, ``scores`` and ``best_base`` of tasks of one size; see ``Confidence``."""
    fits = np.concatenate([fits for fits, _ in parts])
    usual = np.array([fits.mean(), max(fits.std(), SMALLEST_DEVIATION)])
    deviations = (fits - usual[0]) / usual[1]
    # With more shots the shift is not reduced by the correlation: a deviation shared by all new classes is not noise.
    both = np.concatenate([scores for _, scores in parts], axis=1)
    means = both.mean(axis=2)
    moves = means.std(axis=1) if shots > 1 else np.mean(deviations * (means - means.mean(axis=1)[:, None]), axis=1)
    still = both - (moves[:, None] * np.clip(deviations, -MOST_DEVIATIONS, MOST_DEVIATIONS))[..., None]
    of_base = both[1] > both[0]
    # Where no query is of a kind, all stand for it.
    kinds = still[0], still[1][~of_base], still[1][of_base]
    scores = np.stack([np.quantile(x if x.size else still[1], LEVELS) for x in kinds])
    return usual, moves, scores, of_base.mean()


def fit_temperature(margins: np.ndarray) -> float:
    """The maximum-likelihood temperature T, for logits minus that of the true class (n, N).

    The derivative of the loss in 1 / T is the mean margin under the probabilities, which is increasing: its root is
    found to the last digits, so that models that differ by rounding have the same probabilities.
    """

    def slope(log_temperature: float) -> float:
        return float(np.mean(np.sum(softmax(margins / np.exp(log_temperature), axis=1) * margins, axis=1)))

    low, high = TEMPERATURES
    if slope(low) <= 0 or slope(high) >= 0:
        return float(np.exp(low if slope(low) <= 0 else high))
    return float(np.exp(brentq(slope, low, high, xtol=1e-12)))
