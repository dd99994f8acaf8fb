"""What held-out base classes teach: settings that are "auto", temperatures of probabilities, scores of outliers.

A quarter of the base classes at a time is held out and treated as novel: tasks are drawn from their samples and
answered with the statistics of the other classes. A bank of too few classes or samples teaches nothing. What is learned
is kept with the bank, together with a hash of the bank and of the code.

**Settings** are tried one after another, starting from the constants; one is taken only if the 95% interval of its gain
over classes is above zero. Base classes that the extractor was trained on have directions of their own, while new
classes lie in directions that base classes share: of a bank that states that it was seen in training, only the power is
chosen.

**Confidence**: new classes may fit worse than held-out base classes, above all if the extractor was trained on the base
classes. The support shows this: each of its samples is compared to the others of its class. Scores are therefore kept
together with the fit of the support in the same tasks, and shift with it: by as many standard deviations over tasks as
the support is from its usual fit. With one shot the support only shows how far samples are from the centre of the bank;
scores then shift in proportion to the correlation of the two.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from scipy.optimize import brentq
from scipy.special import softmax
from sklearn.base import clone

from hotshot.arrays import evenly_spaced, one_thread, slices
from hotshot.bank import BaseClasses, PreparedBase
from hotshot.bank.space import LEAST_HELD_OUT
from hotshot.files.objects import need
from hotshot.intervals import class_interval
from hotshot.method.calibration import class_targets
from hotshot.method.hot import fit_tasks
from hotshot.model.two_covariances import OUTLIER_SHRINKAGE, log_ratios, support_fits, two_covariances
from hotshot.version import __version__

# Parameters that do not affect what is learned on held-out classes.
IRRELEVANT_PARAMETERS = ("base", "random_state", "include_base", "base_loss", "calibrate_probabilities")
FOLDS, WAYS, SHOTS, QUERIES = 4, 5, (1, 5), 15
# Tasks of each fold and number of shots; a third is enough to reject a setting without a gain.
TASKS, FIRST_TASKS = 60, 20
TASKS_AT_ONCE = 20
# Limits; a random part of larger banks is used.
MOST_CLASSES, MOST_SAMPLES = 96, 60
CHOSEN_IF_SEEN = ("power",)
# Of the proportions of queries in held-out tasks, for methods that classify them jointly.
CONCENTRATION = 2.0
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
# Called with a sentence on the progress of choosing.
progress: ContextVar[Callable[[str], None]] = ContextVar("progress", default=lambda sentence: None)
T = TypeVar("T")


# --- tasks of held-out classes


@dataclass(frozen=True)
class Task:
    """Row numbers of the support (S,) and query (Q,) samples, class by class, and their labels."""

    support: np.ndarray
    support_labels: np.ndarray
    query: np.ndarray
    query_labels: np.ndarray


@dataclass(frozen=True)
class Fold:
    """A bank without some classes, samples (n, V) of those with labels (n,), and tasks drawn from them, by shots."""

    number: int
    base: BaseClasses
    samples: np.ndarray
    labels: np.ndarray
    tasks: dict[int, list[Task]]


def make_folds(base: BaseClasses) -> list[Fold]:
    """Folds of a bank: a quarter of the classes held out in turn."""
    samples = base.samples
    assert samples is not None
    rng = np.random.default_rng(0)
    classes = rng.permutation(np.flatnonzero(base.counts >= LEAST_HELD_OUT))[:MOST_CLASSES]
    ends = np.cumsum(base.counts)
    rows = [np.sort(ends[c] - base.counts[c] + rng.permutation(base.counts[c])[:MOST_SAMPLES]) for c in classes]
    folds = []
    for fold in range(FOLDS):
        held, others = rows[fold::FOLDS], [of_class for i, of_class in enumerate(rows) if i % FOLDS != fold]
        labels, other_labels = (np.repeat(np.arange(len(part)), [*map(len, part)]) for part in (held, others))
        tasks = {k: [draw_task(labels, k, WAYS, np.random.default_rng([fold, k, i])) for i in range(TASKS)]
                 for k in SHOTS}  # fmt: skip
        rest = BaseClasses.from_samples(samples[np.concatenate(others)], other_labels)
        folds.append(Fold(fold, rest, samples[np.concatenate(held)], labels, tasks))
    return folds


def draw_task(labels: np.ndarray, shots: int, ways: int, rng: np.random.Generator) -> Task:
    """A task of some of the classes of these samples."""
    counts = np.bincount(labels)
    queries = min(QUERIES, int(counts.min()) - shots)
    classes = rng.choice(len(counts), ways, replace=False)
    drawn = np.stack([rng.choice(np.flatnonzero(labels == c), shots + queries, replace=False) for c in classes])
    support, query = drawn[:, :shots], drawn[:, shots:]
    return Task(support.ravel(), np.repeat(np.arange(ways), shots), query.ravel(), np.repeat(np.arange(ways), queries))


def stacked(tasks: Sequence[Task]) -> list[np.ndarray]:
    """Support, its labels, queries and their labels (tasks, …) of tasks of one size."""
    return [np.stack(part) for part in zip(*(vars(task).values() for task in tasks), strict=True)]


def batches_of_logits(estimator: Any, fold: Fold, tasks: Sequence[Task]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Logits (tasks, Q, N) of queries by a calibrated classifier, and labels (tasks, Q); some tasks at a time."""
    base, method = estimator.parts()
    samples = base.transform(fold.samples)
    for rows in slices(len(tasks), TASKS_AT_ONCE):
        support, labels, query, query_labels = stacked(tasks[rows])
        ways = int(labels.max()) + 1
        fitted = fit_tasks(base, samples[support], labels, method, n_classes=ways, seeds=range(len(labels)))
        yield fitted.decision(samples[query]), query_labels


def for_each_fold(work: Callable[[Fold], T], folds: Sequence[Fold]) -> list[T]:
    """What `work` returns for every fold, computed in threads."""
    with ThreadPoolExecutor(min(FOLDS, os.cpu_count() or 1)) as pool:
        return list(pool.map(work, folds))


# --- what a bank keeps


def description(estimator: Any) -> str:
    """Class and parameters of an estimator, apart from its bank."""
    parameters = {name: x for name, x in estimator.get_params(deep=False).items() if name not in IRRELEVANT_PARAMETERS}
    return f"{type(estimator).__name__} {json.dumps(parameters, sort_keys=True, default=repr)}"


def learned_on(base: BaseClasses, key: str, restore: Callable[[Any], T], learn: Callable[[], T]) -> T | None:
    """What `learn` learns on a bank, which keeps it; None if no class can be held out.

    It is learned again if it is damaged, or was learned by other code or on other samples.
    """
    with base.choosing:
        stored: Any = base.choices.get(key)
        with suppress(LookupError, TypeError, ValueError, AttributeError):
            if stored.get("origin") == _origin(base) or not base.can_hold_out:
                return restore(stored)
        if not base.can_hold_out:
            return None
        learned = learn()
        keep(base, key, learned)
        return learned


def keep(base: BaseClasses, key: str, learned: Any) -> None:
    """Keep with a bank, as JSON, what was learned on it: a `Choice` or a `Confidence`."""
    values = {name: x.tolist() if isinstance(x, np.ndarray) else x for name, x in asdict(learned).items()}
    base.choices[key] = {**values, "origin": _origin(base)}


def _origin(base: BaseClasses) -> str:
    """Hash of a bank and of the code that learns on it."""
    return sha256(f"{_code_hash()} {base.chosen_on} {base.seen_in_training}".encode()).hexdigest()


@cache
def _code_hash() -> str:
    """Hash of the sources of all packages that take part in a fit."""
    root, digest = Path(__file__).parents[1], sha256(__version__.encode())
    for package in ("transport", "bank", "method", "model", "classifiers"):
        for path in sorted((root / package).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


# --- settings


@dataclass(frozen=True)
class Trial:
    """One setting that was tried: its gain over the current settings, in accuracy points, and whether it was taken.

    ``half_width`` is that of the 95% interval of the gain, over classes.
    """

    parameter: str
    value: Any
    gain: float
    half_width: float
    classes: int
    taken: bool


@dataclass(frozen=True)
class Choice:
    """Settings chosen on a bank, the trials that led to them, and whether it states that it was seen in training."""

    settings: dict[str, Any]
    trials: tuple[Trial, ...] = ()
    seen_in_training: bool = False


def choice_on(base: BaseClasses, estimator: Any, candidates: Mapping[str, Sequence[Any]]) -> Choice:
    """Settings chosen for an estimator on this bank, which keeps them; each list begins with the constant."""

    def restored(stored: Any) -> Choice:
        settings, trials = dict(stored["settings"]), tuple(Trial(**trial) for trial in stored["trials"])
        need(settings.keys() == candidates.keys(), "other settings are chosen")
        need(all(value in candidates[name] for name, value in settings.items()), "a setting is no candidate")
        return Choice(settings, trials, stored["seen_in_training"])

    def chosen() -> Choice:
        with one_thread():
            return choose(estimator, candidates, HeldOut(make_folds(base)), base.seen_in_training is True)

    choice = learned_on(base, description(estimator), restored, chosen)
    return choice or Choice({name: values[0] for name, values in candidates.items()})


def choose(estimator: Any, candidates: Mapping[str, Sequence[Any]], held_out: HeldOut, seen: bool) -> Choice:
    """Try one value after another, in the order of ``candidates``, each against the current settings."""
    current = {name: values[0] for name, values in candidates.items()}
    open_names = [name for name in candidates if not seen or name in CHOSEN_IF_SEEN]
    values_to_try = [(name, value) for name in open_names for value in candidates[name][1:]]
    trials = []
    for number, (name, value) in enumerate(values_to_try):
        progress.get()(f"choosing settings on the base classes, {number + 1} of {len(values_to_try)}")
        trials.append(try_setting(estimator, held_out, current, name, value))
        if trials[-1].taken:
            current[name] = value
    return Choice(current, tuple(trials), seen)


def try_setting(estimator: Any, held_out: HeldOut, current: dict[str, Any], name: str, value: Any) -> Trial:
    """One change of the current settings; it is taken if its gain is significant."""
    before = clone(estimator).set_params(**current)
    after = clone(before).set_params(**{name: value})
    for tasks in (FIRST_TASKS, TASKS):
        gains = 100 * (held_out.accuracies(after, tasks) - held_out.accuracies(before, tasks))
        gain = class_interval(gains.ravel(), held_out.classes(tasks))
        if gain.mean <= 0:
            break
    return Trial(name, value, round(gain.mean, 3), round(gain.half_width, 3), gain.n, gain.low > 0)


@dataclass(frozen=True)
class HeldOut:
    """Folds of a bank, and accuracies (folds, shots, tasks) on their first tasks, by description of the estimator."""

    folds: list[Fold]
    computed: dict[str, np.ndarray] = field(default_factory=dict)

    def classes(self, tasks: int) -> np.ndarray:
        """Classes (folds * shots * tasks, ways) of the first tasks, in the order of their accuracies."""
        drawn = ((n, fold, t) for n, fold in enumerate(self.folds) for k in SHOTS for t in fold.tasks[k][:tasks])
        return np.array([n * MOST_CLASSES + np.unique(fold.labels[task.support]) for n, fold, task in drawn])

    def accuracies(self, estimator: Any, tasks: int) -> np.ndarray:
        """Accuracies (folds, shots, tasks); those that are computed already are not computed again."""
        key = description(estimator)
        before = self.computed.get(key, np.empty((len(self.folds), len(SHOTS), 0)))
        if before.shape[2] < tasks:

            def of_fold(fold: Fold) -> np.ndarray:
                model = clone(estimator).set_params(base=fold.base)
                if model.include_base:
                    model.set_params(include_base=False)
                return np.stack([_accuracies(model, fold, fold.tasks[k][before.shape[2] : tasks]) for k in SHOTS])

            self.computed[key] = np.concatenate([before, for_each_fold(of_fold, self.folds)], axis=2)
        return self.computed[key][:, :, :tasks]


def _accuracies(estimator: Any, fold: Fold, tasks: Sequence[Task]) -> np.ndarray:
    """Accuracy of each task (tasks,)."""
    if hasattr(estimator, "parts"):
        batches = batches_of_logits(estimator, fold, tasks)
        return np.concatenate([np.mean(logits.argmax(axis=2) == labels, axis=1) for logits, labels in batches])
    accuracies = []
    for task in tasks:
        model = clone(estimator).fit(fold.samples[task.support], task.support_labels)
        rows = queries_to_classify(model, task)
        predict = getattr(model, "predict_batch", model.predict)
        accuracies.append(np.mean(predict(fold.samples[task.query[rows]]) == task.query_labels[rows]))
    return np.array(accuracies)


def queries_to_classify(model: Any, task: Task) -> np.ndarray:
    """Places of queries of a held-out task: all, or unequal numbers per class for a joint method without balance.

    A class keeps its share of its queries, as a part of the largest share. The shares are from a Dirichlet distribution
    and depend on the task alone.
    """
    places = np.arange(len(task.query))
    if not hasattr(model, "predict_batch") or getattr(model, "assumes_balance", False):
        return places
    classes, labels = np.unique(task.query_labels, return_inverse=True)
    shares = np.random.default_rng(task.query.tolist()).dirichlet(np.full(len(classes), CONCENTRATION))
    most = np.ceil(len(places) / len(classes) * shares / shares.max())
    # Queries are drawn class by class.
    return np.flatnonzero(places % (len(places) // len(classes)) < most[labels])


# --- confidence


@dataclass(frozen=True)
class Confidence:
    """Temperatures and outlier scores of tasks of several numbers of ways and shots, from held-out base classes.

    ``scores`` are quantiles at ``LEVELS`` of the largest ratio (``hotshot.model.two_covariances``) of queries, in tasks
    with the usual fit of the support: over the classes of the task ``ALONE``; and, with the base classes, of the
    queries that fit a class of the task best (``BEST_NEW``) and of those that fit a base class best (``BEST_BASE``).
    """

    ways: tuple[int, ...]
    shots: tuple[int, ...]
    # (ways, shots): divisors of the logits that calibrate the probabilities.
    temperatures: np.ndarray
    # (ways, scored shots, 2): mean and standard deviation, over tasks, of the fit of the support.
    usual: np.ndarray
    # (2, ways, scored shots): shift of the scores per such deviation, of the task alone and with the base classes.
    moves: np.ndarray
    # (3, ways, scored shots, levels), and (ways, scored shots): share of the queries that fit a base class best.
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
        ways, shots = int(labels.max()) + 1, labels.shape[1] / (int(labels.max()) + 1)
        return np.array([self.temperature(ways, shots, x) for x in self.support_deviations(base, support, labels)])

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

    def _between(self, values: np.ndarray, learned_shots: tuple[int, ...], ways: float, shots: float) -> np.ndarray:
        """Values (ways, shots, …) interpolated in the logarithms of ways and shots."""
        for learned, wanted in ((self.ways, ways), (learned_shots, shots)):
            place = np.interp(np.log(wanted), np.log(learned), np.arange(len(learned)))
            low = min(int(place), len(learned) - 2) if len(learned) > 1 else 0
            part = place - low
            values = (1 - part) * values[low] + part * values[min(low + 1, len(learned) - 1)]
        return values

    @classmethod
    def from_json(cls, stored: Any) -> Confidence:
        """The one that a bank has kept; raises a LookupError, TypeError or ValueError if anything is damaged."""
        ways, shots = (tuple(int(n) for n in stored[name]) for name in ("ways", "shots"))
        size = len(ways), len(SCORED_SHOTS)
        shapes = [(len(ways), len(shots)), (*size, 2), (2, *size), (len(KINDS), *size, len(LEVELS)), size]
        arrays = [np.array(stored[f.name], float) for f in fields(cls)[2:]]
        need([x.shape for x in arrays] == shapes and all(np.isfinite(x).all() for x in arrays), "not of these shapes")
        temperatures, usual = arrays[:2]
        need(min(temperatures.min(), usual[..., 1].min(), *ways, *shots) > 0, "not positive")
        return cls(ways, shots, *arrays)


def confidence_on(base: BaseClasses, estimator: Any, settings: Mapping[str, Any]) -> Confidence | None:
    """The confidence of an estimator of these settings on this bank, which keeps it; None if no class is held out."""

    def measured() -> Confidence:
        progress.get()("checking probabilities on the base classes")
        settled = clone(estimator).set_params(**{name: x for name, x in settings.items() if name != "base"})
        return measure_confidence(settled, make_folds(base))

    return learned_on(base, CONFIDENCE + description(estimator), Confidence.from_json, measured)


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
    for logits, labels in batches_of_logits(model, fold, [draw_task(fold.labels, shots, ways, rng) for rng in rngs]):
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
        tasks = [draw_task(fold.labels, shots, ways, rng) for _ in range(max(1, TASKS * WAYS // ways))]
        support, labels, query, _ = stacked(tasks)
        means, shots_of = class_targets(samples[support], labels, ways)
        own_means, own_shots = means[:, labels[0]], shots_of[:, labels[0]]
        fits = support_fits(two.ratios, centre, own_means, own_shots, samples[support])
        scores = log_ratios(two.ratios, centre, means, shots_of, samples[query]).max(axis=2)
        both = np.stack([scores, np.maximum(scores, of_base[query])])
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
