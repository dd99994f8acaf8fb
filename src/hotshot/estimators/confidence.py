"""How sure answers are, learned on held-out base classes: temperatures of probabilities, and what fits no class."""

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
from hotshot.base import BaseClasses
from hotshot.estimators.held_out import (
    FOLDS,
    QUERIES,
    SHOTS,
    WAYS,
    Fold,
    description,
    draw_task,
    fitted_batches,
    keep,
    make_folds,
    read_kept,
)
from hotshot.method.calibration import class_targets
from hotshot.method.familiarity import SHRINKAGE, class_ratios
from hotshot.method.heads.problem import softmax

# Beginning of the names under which a bank keeps it.
CONFIDENCE = "confidence of "
# Queries that tell, of tasks of each size, and ways at most.
TELLING_QUERIES, MOST_WAYS = 4800, 20
# Logarithms of the smallest and of the largest: where held-out classes are told apart without fail, none is too small.
TEMPERATURES = -1.2, 3.0
# Shares of the queries whose scores are kept.
LEVELS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5)


@dataclass(frozen=True)
class Confidence:
    """What held-out base classes say of the answers in tasks of some numbers of ways and shots.

    Attributes
    ----------
    ways, shots : tuples of int
    temperatures : array (ways, shots)
        By which logits are to be divided for probabilities that come true.
    scores : array (ways, shots, levels)
        Below which the largest ratio of `hotshot.method.familiarity` is for such a share of the queries, `LEVELS`.
    """

    ways: tuple[int, ...]
    shots: tuple[int, ...]
    temperatures: np.ndarray
    scores: np.ndarray

    def temperature(self, ways: float, shots: float) -> float:
        """The temperature of tasks of any size, between those known by the logarithms of ways and shots."""
        return float(np.exp(self._between(np.log(self.temperatures)[..., None], ways, shots)[0]))

    def scores_at(self, ways: float, shots: float) -> np.ndarray:
        """The scores (levels,) of tasks of any size."""
        return self._between(self.scores, ways, shots)

    def _between(self, values: np.ndarray, ways: float, shots: float) -> np.ndarray:
        for known, wanted in ((self.ways, ways), (self.shots, shots)):
            place = np.interp(np.log(wanted), np.log(known), np.arange(len(known)))
            low = min(int(place), len(known) - 2) if len(known) > 1 else 0
            part = place - low
            values = (1 - part) * values[low] + part * values[min(low + 1, len(known) - 1)]
        return values

    def to_json(self) -> dict[str, Any]:
        """As JSON, to be kept with the bank."""
        return {
            "ways": list(self.ways),
            "shots": list(self.shots),
            "temperatures": self.temperatures.tolist(),
            "scores": self.scores.tolist(),
        }


def _confidence_from(found: Any) -> Confidence | None:
    """What `to_json` wrote, unless it is damaged."""
    with suppress(LookupError, TypeError, ValueError):
        ways, shots = (tuple(int(n) for n in found[name]) for name in ("ways", "shots"))
        known = Confidence(ways, shots, np.array(found["temperatures"], float), np.array(found["scores"], float))
        shape = len(known.ways), len(known.shots)
        sound = known.temperatures.shape == shape and known.scores.shape == (*shape, len(LEVELS))
        if sound and np.isfinite(known.scores).all() and (known.temperatures > 0).all() and min(*ways, *shots) > 0:
            return known
    return None


def measure_confidence(estimator: Any, folds: Sequence[Fold]) -> Confidence:
    """Temperatures and scores of a calibrated classifier, from held-out tasks of few and of many ways."""
    most = min(MOST_WAYS, *(int(fold.labels.max()) + 1 for fold in folds))
    ways = (WAYS, most) if most > WAYS else (WAYS,)
    sizes = [(n, k) for n in ways for k in SHOTS]
    shape = len(ways), len(SHOTS)

    def of_fold(number: int) -> list[tuple[np.ndarray, np.ndarray]]:
        fold = folds[number]
        own = clone(estimator).set_params(base=fold.base)
        found = []
        for n, k in sizes:
            count = max(1, TELLING_QUERIES // (len(folds) * n * QUERIES))
            tasks = [draw_task(fold.labels, k, n, np.random.default_rng([number, k, n, i])) for i in range(count)]
            margins, scores = [], []
            for batch in fitted_batches(own, fold, tasks):
                logits = batch.fitted.decision(batch.queries).astype(np.float64)
                right = np.take_along_axis(logits, batch.labels[..., None], axis=2)
                margins.append((logits - right).reshape(-1, n))
                means, shots = class_targets(batch.support, batch.support_labels, n)
                two, centre = batch.base.two_covariances(*SHRINKAGE), batch.base.means.mean(axis=0)
                ratios = class_ratios(two, centre, means, shots, batch.queries)
                scores.append(ratios.max(axis=2).ravel())
            found.append((np.concatenate(margins), np.concatenate(scores)))
        return found

    with ThreadPoolExecutor(min(FOLDS, os.cpu_count() or 1)) as pool:
        of_folds = list(pool.map(of_fold, range(len(folds))))
    temperatures, quantiles = [], []
    for parts in zip(*of_folds, strict=True):
        temperatures.append(likeliest_temperature(np.concatenate([margins for margins, _ in parts])))
        quantiles.append(np.quantile(np.concatenate([scores for _, scores in parts]).astype(np.float64), LEVELS))
    return Confidence(ways, SHOTS, np.reshape(temperatures, shape), np.reshape(quantiles, (*shape, len(LEVELS))))


def likeliest_temperature(margins: np.ndarray) -> float:
    """The temperature T under which the true classes are likeliest, for logits minus that of the true class (n, N).

    The derivative of the loss in 1 / T is the mean margin under the probabilities, and increases: its root is found to
    the last digits, so that models which differ by rounding have the same probabilities.
    """

    def slope(log_temperature: float) -> float:
        return float(np.mean(np.sum(softmax(margins / np.exp(log_temperature))[0] * margins, axis=1)))

    low, high = TEMPERATURES
    if slope(low) <= 0 or slope(high) >= 0:
        return float(np.exp(low if slope(low) <= 0 else high))
    return float(np.exp(brentq(slope, low, high, xtol=1e-12)))


def confidence_on(base: BaseClasses, estimator: Any) -> Confidence | None:
    """How sure the answers of an estimator are on this bank, which keeps it; None where classes cannot be held out."""
    key = CONFIDENCE + description(estimator)
    with base.choosing:
        known = _confidence_from(base.choices.get(key))
        if known is None and base.can_hold_out:
            base.choices.update(read_kept(base))
            known = _confidence_from(base.choices.get(key))
        if known is None and base.can_hold_out:
            with one_thread():
                settled = {name: value for name, value in estimator.settings().items() if name != "base"}
                known = measure_confidence(clone(estimator).set_params(**settled), make_folds(base))
            base.choices[key] = known.to_json()
            keep(base)
    return known
