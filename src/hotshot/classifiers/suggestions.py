"""Suggestions of samples to label next, with reasons in words and as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.metrics import pairwise_distances_argmin

from hotshot.arrays import LIMITS, cast, check_number
from hotshot.formatting import count, shortened, whole_percentage
from hotshot.model.suggestion import Labelled, Pool, choose, similar_groups

# Smallest probability of a runner-up that is named in a reason.
LEAST_RIVAL = 0.1
# Kinds of reasons.
TYPICAL, INFORMATIVE, GROUP, OUTSIDE = "typical", "informative", "group", "outside"
# Rate of false alarms among outliers of the pool.
FALSE_ALARMS = 0.02
# Outliers that are compared with one another.
MOST_OUTLIERS = 2**11
# Smallest group of outliers, and by how many standard deviations it must exceed the false alarms.
SMALLEST_GROUP, DEVIATIONS = 3, 3.0


@dataclass(frozen=True)
class Suggestion:
    """One sample to label, and why.

    It is row ``index`` of the pool, with its most probable class and the runner-up (``rival``). The ``kind`` is why it
    is suggested: "typical" of its class; "informative" about other samples; one of a "group" of similar samples that
    fit no class; or, if nothing better is left, "outside". It ``stands_for`` so many samples of the pool, itself
    included: those closer to it than to any labelled or other suggested sample, or those of its group.
    """

    index: int
    label: Any
    probability: float
    rival: Any
    rival_probability: float
    kind: str
    stands_for: int

    @property
    def reason(self) -> str:
        """Why the sample is suggested, in words."""
        first, second = shortened(self.label), shortened(self.rival)
        is_close = self.rival != self.label and self.rival_probability >= LEAST_RIVAL
        others = f"from `{second}`" if is_close else "from other classes"
        alike = f"{count(self.stands_for, 'sample')} {'is' if self.stands_for == 1 else 'are'} closest to it"
        return {
            TYPICAL: f"typical of `{first}`: {alike}",
            INFORMATIVE: f"separates `{first}` {others}: {alike}",
            GROUP: f"{count(self.stands_for, 'similar sample')} fit no class: perhaps a new class",
            OUTSIDE: "fits no new class",
        }[self.kind]

    def in_words(self) -> str:
        """One sentence: the row, its two most probable classes and the reason."""
        return f"Row {self.index}: {', '.join(self.classes())}; {self.reason}."

    def classes(self) -> list[str]:
        """The two most probable classes with their probabilities; the only class of a model is alone."""
        both = {self.rival: self.rival_probability, self.label: self.probability}
        return [f"{shortened(name)} {whole_percentage(both[name])}" for name in dict.fromkeys((self.label, self.rival))]


@dataclass(frozen=True, repr=False)
class Suggestions(Sequence[Suggestion]):
    """Samples of a pool of ``pool_size`` to label next, the most useful first; ``print`` shows a sentence for each."""

    items: tuple[Suggestion, ...]
    pool_size: int

    @property
    def rows(self) -> np.ndarray:
        """Rows of the pool, the most useful first."""
        return np.array([item.index for item in self.items], dtype=np.int64)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, place: Any) -> Any:
        return self.items[place]

    def __repr__(self) -> str:
        return "\n".join(item.in_words() for item in self.items)

    def to_dict(self) -> dict[str, Any]:
        """The suggestions as dictionaries, lists, strings and numbers, for JSON."""
        items = [{**asdict(item), "reason": item.reason} for item in self.items]
        return {"pool_size": self.pool_size, "suggestions": [plain(item) for item in items]}


def plain(value: Any) -> Any:
    """The same without tuples and NumPy's types, for JSON."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def suggest(model: Any, X: Any, n: int) -> Suggestions:
    """Suggestions of a fitted classifier with a bank, for raw samples; see ``HOTClassifier.suggest``."""
    X = cast(model._checked(X), model.support_.dtype)
    check_number("n", n, *LIMITS["number"])
    detector = model.detector("makes no suggestions: pass base (in the shell --base)")
    known, probabilities, placed = detector.known, model.answers(X)[0], model._in_space(X)
    parts = (placed, known.centre, model._in_space(model.support_))
    pool, centre, support = (known.two.rotated(x.astype(np.float64)) for x in parts)
    labelled = Labelled(known.two.ratios, centre, support, np.unique(model.support_labels_, return_inverse=True)[1])
    # With no probability for any new class, all are equally probable.
    of_new = probabilities[:, model.new_classes] + np.finfo(np.float64).tiny
    outlying = detector.fits_no_class(placed, FALSE_ALARMS)
    weights = np.where(outlying, 0, probabilities[:, model.new_classes].sum(axis=1))

    candidates = _first_copies(model.support_, X)
    groups = _groups(labelled, pool, np.intersect1d(candidates, np.flatnonzero(outlying)))[: n // 2]
    grouped = np.concatenate([candidates[:0], *(members for _, members in groups)])
    rest = np.setdiff1d(candidates, grouped)
    of_new /= of_new.sum(axis=1, keepdims=True)
    picks = choose(labelled, Pool(pool, of_new, weights, rest), min(n - len(groups), len(rest)))
    kinds = np.where(picks.typical >= picks.informative, TYPICAL, INFORMATIVE)
    kinds[picks.typical + picks.informative <= 0] = OUTSIDE
    counted = np.setdiff1d(np.flatnonzero(weights > 0.5), grouped)
    closest = _closest_counts(pool, np.concatenate([support, pool[picks.rows]]), counted)[len(support) :]
    suggested = [(row, GROUP, len(members)) for row, members in groups]
    suggested += zip(picks.rows.tolist(), kinds.tolist(), np.maximum(closest, 1).tolist(), strict=True)

    items = []
    for row, kind, stands_for in suggested:
        best = np.argsort(-probabilities[row], kind="stable")
        # The only class is its own runner-up.
        first, second = best[0], best[:2][-1]
        label, rival = model.classes_[first], model.classes_[second]
        shares = float(probabilities[row, first]), float(probabilities[row, second])
        items.append(Suggestion(row, label, shares[0], rival, shares[1], kind, stands_for))
    return Suggestions(tuple(items), len(X))


def _first_copies(support: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Rows of X that are copies neither of support samples nor of rows before them."""
    both = np.concatenate([support, X])
    first = np.unique(both, axis=0, return_index=True)[1]
    return np.sort(first[first >= len(support)]) - len(support)


def _groups(labelled: Labelled, pool: np.ndarray, outliers: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """Groups among outliers that are larger than false alarms would be: row of the centre, and rows."""
    alarms = FALSE_ALARMS * len(pool)
    least = max(SMALLEST_GROUP, int(np.ceil(alarms + DEVIATIONS * np.sqrt(alarms))))
    some = outliers[np.linspace(0, len(outliers) - 1, min(len(outliers), MOST_OUTLIERS)).astype(int)]
    groups = similar_groups(labelled, pool[some], least)
    return [(int(some[centre]), some[members]) for centre, members in groups]


def _closest_counts(pool: np.ndarray, examples: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """How many of these rows are closest to each example (examples, V)."""
    closest = pairwise_distances_argmin(pool[rows], examples) if len(rows) else rows
    return np.bincount(closest, minlength=len(examples))
