"""What held-out base classes teach about probabilities and outliers: temperatures, and quantiles of outlier scores.

New classes may fit worse than held-out base classes, above all if the extractor was trained on the base classes. The
support shows this: each of its samples is compared to the others of its class. Scores are therefore kept together with
the fit of the support in the same tasks, and shift with it: by as many standard deviations over tasks as the support is
from its usual fit. With one shot the support only shows how far samples are from the centre of the bank; scores then
shift in proportion to the correlation of the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import softmax
from sklearn.base import clone

from hotshot.arrays import evenly_spaced, one_thread
from hotshot.bank import BaseClasses, PreparedBase
from hotshot.classifiers import held_out
from hotshot.classifiers.held_out import QUERIES, SHOTS, WAYS, Fold, draw_task, stacked
from hotshot.files.objects import need
from hotshot.method.calibration import class_targets
from hotshot.model.two_covariances import OUTLIER_SHRINKAGE, log_ratios, support_fits, two_covariances

# Prefix of the keys under which a bank keeps a `Confidence`.
CONFIDENCE = "confidence of "
# Queries that are scored, for tasks of each size, and largest number of ways.
SCORED_QUERIES, MOST_WAYS = 4800, 20
# Shots of the tasks whose scores are kept: one, whose support samples are alone in their class, and two or more.
SCORED_SHOTS = 1, 2, 5
# Shares of the queries at which scores are kept.
LEVELS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5)
# Kinds of scores, see `Confidence`.
ALONE, BEST_NEW, BEST_BASE = 0, 1, 2
# Largest shift of scores, in standard deviations, and the smallest value of any standard deviation.
MOST_DEVIATIONS, SMALLEST_DEVIATION = 2.0, 1e-9
# New classes may be harder than held-out ones. The logarithm of the temperature at K shots grows by up to a constant
# plus a part over K, while the support falls below its usual fit by so many standard deviations.
SOFTER, SOFTER_BETWEEN = (0.38, 0.34), (0.5, 1.5)
# Logarithms of the smallest and the largest temperature: without errors on held-out classes it would tend to 0.
TEMPERATURES = -1.2, 3.0


@dataclass(frozen=True)
class Confidence:
    """Temperatures and outlier scores of tasks of several numbers of ways and shots, from held-out base classes.

    ``scores`` are quantiles at ``LEVELS`` of the largest ratio (``hotshot.model.two_covariances``) of queries, in tasks
    with the usual fit of the support: over the classes of the task ``ALONE``; and, with the base classes, of the
    queries that fit a class of the task best (``BEST_NEW``) and of those that fit a base class best (``BEST_BASE``).
    """

    ways: tuple[int, ...]
    # (ways, shots): divisors of the logits that calibrate the probabilities.
    temperatures: np.ndarray
    # (ways, scored shots, 2): mean and standard deviation, over tasks, of the fit of the support.
    usual: np.ndarray
    # (ways, scored shots, 2): shift of the scores per such deviation, of the task alone and with the base classes.
    moves: np.ndarray
    # (ways, scored shots, 3, levels), and (ways, scored shots): share of the queries that fit a base class best.
    scores: np.ndarray
    best_base: np.ndarray

    def temperature(self, ways: float, shots: float, deviation: float) -> float:
        """The temperature for tasks of any size; higher if the support fits worse than that of held-out classes."""
        learned = self._at(np.log(self.temperatures), ways, shots)
        softer = np.interp(-deviation, SOFTER_BETWEEN, (0, SOFTER[0] + SOFTER[1] / shots))
        return float(np.exp(learned + softer))

    def temperatures_of(self, base: PreparedBase, support: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """The temperatures (tasks,) of tasks with this support (tasks, S, V) in the space of the bank."""
        ways = int(labels.max()) + 1
        deviations = self.support_deviations(base, support, labels)
        return np.array([self.temperature(ways, labels.shape[1] / ways, x) for x in deviations])

    def support_deviations(self, base: PreparedBase, support: np.ndarray, labels: np.ndarray) -> list[float]:
        """How many standard deviations better than usual the support (tasks, S, V) of each task fits."""
        ways, two = int(labels.max()) + 1, two_covariances(base, *OUTLIER_SHRINKAGE)
        targets, some = class_targets(support, labels, ways), evenly_spaced(labels.shape[1], SCORED_QUERIES)
        means, sizes = (
            np.stack([of_class[own] for of_class, own in zip(part, labels[:, some], strict=True)]) for part in targets
        )
        parts = (base.means.mean(axis=0), means, support[:, some])
        centre, means, x = (two.rotated(part.astype(np.float64)) for part in parts)
        fits = support_fits(two.ratios, centre, means, sizes, x)
        return [self._deviation(ways, *task) for task in zip(fits, sizes, strict=True)]

    def _deviation(self, ways: int, fits: np.ndarray, shots: np.ndarray) -> float:
        """The deviation of support samples with these fits (S,), with the shots of their class (S,).

        Samples that are alone in their class are used only if all are.
        """
        used = shots > 1 if (shots > 1).any() else shots > 0
        fits, shots = fits[used], shots[used]
        usual = {k: self._at(self.usual, ways, k) for k in np.unique(shots)}
        means, deviations = np.array([usual[k] for k in shots]).T
        # The usual fit is from tasks of WAYS classes; with fewer classes the deviation is less certain.
        return float(min(1.0, np.sum(1 / shots) / WAYS) * np.mean((fits - means) / deviations))

    def scores_at(self, ways: int, shots: float, deviation: float, least_shots: int, kind: int = ALONE) -> np.ndarray:
        """The scores (levels,) of a class with these shots, for this deviation of the support.

        The shift of the scores depends on the least number of shots of the support that the deviation is from.
        """
        move = self._at(self.moves, ways, max(shots, least_shots))[min(kind, 1)]
        within = np.clip(deviation, -MOST_DEVIATIONS, MOST_DEVIATIONS)
        return np.asarray(self._at(self.scores, ways, shots)[kind] + move * within)

    def scores_with_base(
        self, ways: int, shots: float, deviation: float, least_shots: int, of_base: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The scores (levels,) of a class beside base classes, and those of base classes.

        The share that is rejected is that of each level, over samples of the class that fit a class of the task best
        and over those that fit a base class best. The latter are at most as many as their share of all, or half: the
        scores of base classes are lower than their own, ``of_base`` (levels,), where these would reject more.
        """
        levels, share = np.array(LEVELS), float(self._at(self.best_base, ways, shots))
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

    def _at(self, values: np.ndarray, ways: float, shots: float) -> Any:
        """Values (ways, shots, …) interpolated in the logarithms of ways and shots."""
        learned_shots = SHOTS if values.shape[1] == len(SHOTS) else SCORED_SHOTS
        for learned, wanted in ((self.ways, ways), (learned_shots, shots)):
            place = np.interp(np.log(wanted), np.log(learned), np.arange(len(learned)))
            low = min(int(place), len(learned) - 2) if len(learned) > 1 else 0
            part = place - low
            values = (1 - part) * values[low] + part * values[min(low + 1, len(learned) - 1)]
        return values

    @classmethod
    def from_json(cls, stored: Any) -> Confidence:
        """The one that a bank has kept; raises a LookupError, TypeError or ValueError if anything is damaged."""
        ways = tuple(int(n) for n in stored["ways"])
        arrays = [np.array(stored[f.name], float) for f in fields(cls)[1:]]
        of_size = [(2,), (2,), (3, len(LEVELS)), ()]
        shapes = [(len(ways), len(SHOTS)), *((len(ways), len(SCORED_SHOTS), *shape) for shape in of_size)]
        need([x.shape for x in arrays] == shapes and all(np.isfinite(x).all() for x in arrays), "not of these shapes")
        need(min(arrays[0].min(), arrays[1][..., 1].min(), *ways) > 0, "not positive")
        return cls(ways, *arrays)


def confidence_on(base: BaseClasses, estimator: Any, settings: Mapping[str, Any]) -> Confidence | None:
    """The confidence of an estimator of these settings on this bank, which keeps it; None if no class is held out."""

    def measured() -> Confidence:
        held_out.progress.get()("checking probabilities on the base classes")
        settled = clone(estimator).set_params(**{name: x for name, x in settings.items() if name != "base"})
        return measure_confidence(settled, held_out.make_folds(base))

    return held_out.learned_on(base, CONFIDENCE + held_out.description(estimator), Confidence.from_json, measured)


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

    margins, fits = zip(*held_out.for_each_fold(of_fold, folds), strict=True)
    temperatures = [fit_temperature(np.concatenate(parts)) for parts in zip(*margins, strict=True)]
    by_size = [_quantiles(parts, k) for parts, (_, k) in zip(zip(*fits, strict=True), scored, strict=True)]
    arrays = (np.reshape(x, (len(ways), len(SCORED_SHOTS), *np.shape(x[0]))) for x in zip(*by_size, strict=True))
    return Confidence(ways, np.reshape(temperatures, (len(ways), -1)), *arrays)


def _margins(model: Any, fold: Fold, ways: int, shots: int, count: int) -> np.ndarray:
    """Logits of the queries of so many tasks of one size, minus that of the true class (n, ways)."""
    rngs = [np.random.default_rng([fold.number, shots, ways, i]) for i in range(count)]
    margins = []
    for logits, labels in model.held_out_logits(fold, [draw_task(fold.labels, shots, ways, rng) for rng in rngs]):
        logits = logits.astype(np.float64)
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
        support, labels, query, _ = stacked(tasks)
        means, shots_of = class_targets(samples[support], labels, ways)
        own_means, own_shots = means[:, labels[0]], shots_of[:, labels[0]]
        fits = support_fits(two.ratios, centre, own_means, own_shots, samples[support])
        scores = log_ratios(two.ratios, centre, means, shots_of, samples[query]).max(axis=2)
        both = np.stack([scores, np.maximum(scores, of_base[query])])
        pairs.append((fits.mean(axis=1).astype(np.float64), both.astype(np.float64)))
    return pairs


def _quantiles(
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
