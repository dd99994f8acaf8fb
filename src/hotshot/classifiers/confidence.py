"""Confidence of predictions, learned on held-out base classes: temperatures of probabilities, and outlier scores.

New classes may fit worse than held-out base classes, above all if the extractor was trained on the base classes. The
support shows this: each of its samples is compared to the others of its class. Scores are therefore kept together with
the fit of the support in the same tasks, and shift with it: by as many standard deviations over tasks as the support is
from its usual fit. With one shot the support only shows how far samples are from the centre of the bank; scores then
shift in proportion to the correlation of the two.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from sklearn.base import clone

from hotshot.arrays import one_thread
from hotshot.bank import BaseClasses, PreparedBase
from hotshot.classifiers.held_out import (
    FOLDS,
    QUERIES,
    SHOTS,
    TASKS,
    WAYS,
    Fold,
    description,
    draw_task,
    fitted_batches,
    keep,
    kept,
    make_folds,
)
from hotshot.method.calibration import class_targets
from hotshot.method.heads.problem import softmax
from hotshot.model.two_covariances import OUTLIER_SHRINKAGE, log_ratios, support_fits, two_covariances

# Prefix of the keys under which a bank keeps it.
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
        means, sizes = (np.stack([own[at] for own, at in zip(x, labels, strict=True)]) for x in targets)
        centre, means, x = (two.rotated(x.astype(np.float64)) for x in (base.means.mean(axis=0), means, support))
        fits = support_fits(two.ratios, centre, means, sizes, x)
        deviations = [self.support_deviation(ways, *own) for own in zip(fits, sizes, strict=True)]
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

    def _between(self, values: np.ndarray, known_shots: tuple[int, ...], ways: float, shots: float) -> np.ndarray:
        for known, wanted in ((self.ways, ways), (known_shots, shots)):
            place = np.interp(np.log(wanted), np.log(known), np.arange(len(known)))
            low = min(int(place), len(known) - 2) if len(known) > 1 else 0
            part = place - low
            values = (1 - part) * values[low] + part * values[min(low + 1, len(known) - 1)]
        return values

    def to_json(self) -> dict[str, Any]:
        """As JSON, to be kept with the bank."""
        arrays = {name: getattr(self, name).tolist() for name in _ARRAYS}
        return {"ways": list(self.ways), "shots": list(self.shots), **arrays}


_ARRAYS = "temperatures", "usual", "moves", "scores", "best_base"


def _confidence_from(found: Any) -> Confidence | None:
    """The confidence that ``to_json`` wrote; None if it is damaged or of an older version."""
    with suppress(LookupError, TypeError, ValueError):
        ways, shots = (tuple(int(n) for n in found[name]) for name in ("ways", "shots"))
        known = Confidence(ways, shots, *(np.array(found[name], float) for name in _ARRAYS))
        size = len(ways), len(SCORED_SHOTS)
        shapes = (len(ways), len(shots)), (*size, 2), (2, *size), (len(KINDS), *size, len(LEVELS)), size
        arrays = [getattr(known, name) for name in _ARRAYS]
        sound = all(x.shape == shape and np.isfinite(x).all() for x, shape in zip(arrays, shapes, strict=True))
        if sound and (known.temperatures > 0).all() and (known.usual[..., 1] > 0).all() and min(*ways, *shots) > 0:
            return known
    return None


@one_thread()
def measure_confidence(estimator: Any, folds: Sequence[Fold]) -> Confidence:
    """Temperatures and scores of a calibrated classifier, from held-out tasks of few and of many ways."""
    most = min(MOST_WAYS, *(int(fold.labels.max()) + 1 for fold in folds))
    ways = (WAYS, most) if most > WAYS else (WAYS,)
    sizes = [(n, k) for n in ways for k in SHOTS]
    scored = [(n, k) for n in ways for k in SCORED_SHOTS]

    def of_fold(number: int) -> tuple[list[np.ndarray], list[tuple[np.ndarray, np.ndarray]]]:
        fold = folds[number]
        own = clone(estimator).set_params(base=fold.base)
        found = []
        for n, k in sizes:
            count = max(1, SCORED_QUERIES // (len(folds) * n * QUERIES))
            tasks = [draw_task(fold.labels, k, n, np.random.default_rng([number, k, n, i])) for i in range(count)]
            margins = []
            for batch in fitted_batches(own, fold, tasks):
                logits = batch.fitted.decision(batch.queries).astype(np.float64)
                right = np.take_along_axis(logits, batch.labels[..., None], axis=2)
                margins.append((logits - right).reshape(-1, n))
            found.append(np.concatenate(margins))
        base = own.parts()[0]
        two = two_covariances(base, *OUTLIER_SHRINKAGE)
        centre, means, samples = map(two.rotated, (base.means.mean(axis=0), base.means, base.transform(fold.samples)))
        of_base = log_ratios(two.ratios, centre, means, fold.base.counts.astype(samples.dtype), samples).max(axis=1)
        rng = np.random.default_rng([number, len(scored)])
        return found, [
            _fits_and_scores(two.ratios, centre, samples, fold.labels, of_base, k, n, rng) for n, k in scored
        ]

    with ThreadPoolExecutor(min(FOLDS, os.cpu_count() or 1)) as pool:
        margins, fits = zip(*pool.map(of_fold, range(len(folds))), strict=True)
    temperatures = [fit_temperature(np.concatenate(parts)) for parts in zip(*margins, strict=True)]
    moving = [_moving_scores(parts, k) for parts, (_, k) in zip(zip(*fits, strict=True), scored, strict=True)]
    usual, moves, scores, best_base = (
        np.reshape(x, (len(ways), len(SCORED_SHOTS), *np.shape(x[0]))) for x in zip(*moving, strict=True)
    )
    moves, scores = np.moveaxis(moves, 2, 0), np.moveaxis(scores, 2, 0)
    return Confidence(ways, SHOTS, np.reshape(temperatures, (len(ways), -1)), usual, moves, scores, best_base)


def _fits_and_scores(
    ratios: np.ndarray,
    centre: np.ndarray,
    samples: np.ndarray,
    labels: np.ndarray,
    of_base: np.ndarray,
    shots: int,
    ways: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Fit of the support of tasks of one size (tasks,), and both scores of their queries (2, tasks, Q).

    Tasks are drawn from samples (n, V) with labels (n,), in the axes of ``log_ratios``. The scores of samples
    ``of_base`` (n,) are those of their best base class.
    """
    tasks = [draw_task(labels, shots, ways, rng) for _ in range(TASKS * WAYS // ways)]
    support, queries = (samples[np.stack(rows)] for rows in zip(*((t.support, t.query) for t in tasks), strict=True))
    own = tasks[0].support_labels
    means, sizes = class_targets(support, np.tile(own, (len(tasks), 1)), ways)
    fits = support_fits(ratios, centre, means[:, own], sizes[:, own], support)
    scores = log_ratios(ratios, centre, means, sizes, queries).max(axis=2)
    beside = np.maximum(scores, of_base[np.stack([task.query for task in tasks])])
    return fits.mean(axis=1).astype(np.float64), np.stack([scores, beside]).astype(np.float64)


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
        return float(np.mean(np.sum(softmax(margins / np.exp(log_temperature))[0] * margins, axis=1)))

    low, high = TEMPERATURES
    if slope(low) <= 0 or slope(high) >= 0:
        return float(np.exp(low if slope(low) <= 0 else high))
    return float(np.exp(brentq(slope, low, high, xtol=1e-12)))


def confidence_on(base: BaseClasses, estimator: Any) -> Confidence | None:
    """The confidence of an estimator on this bank, which keeps it; None if classes cannot be held out."""
    key = CONFIDENCE + description(estimator)
    with base.choosing:
        known = _confidence_from(kept(base, key))
        if known is None and base.can_hold_out:
            settled = {name: value for name, value in estimator.settings().items() if name != "base"}
            known = measure_confidence(clone(estimator).set_params(**settled), make_folds(base))
            keep(base, key, known.to_json())
    return known
