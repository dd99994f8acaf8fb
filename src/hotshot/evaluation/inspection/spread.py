"""How samples spread within classes, and how the method transports between classes, measured on some of the rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpstrf
from scipy.special import entr

from hotshot.arrays import cast
from hotshot.bank import BaseClasses, Space, class_means
from hotshot.bank.space import choose_power, power_of_two_scale
from hotshot.classifiers import HOTClassifier
from hotshot.errors import InputError
from hotshot.method.hierarchy import transfer_weights
from hotshot.transport.costs import cosine

# Tasks whose costs are looked at, and how many features of wide files.
WAYS, TASKS, MOST_FEATURES = 5, 8, 1024
# From the hardest plan, 0, to the uniform one, 1: where epsilon is too small and where it is too large.
HARD, UNIFORM = 0.05, 0.95

# Part of the JSON document.
Section = dict[str, Any]


@dataclass(frozen=True)
class Sample:
    """Rows (rows, V) as they are stored and the number of the class of each (rows,), sorted by class.

    `whole` are the numbers of the classes none of whose rows was left out.
    """

    X: np.ndarray
    labels: np.ndarray
    whole: frozenset[int] = frozenset()

    def groups(self) -> dict[int, np.ndarray]:
        """Rows of each class, by its number."""
        numbers, starts = np.unique(self.labels, return_index=True)
        return dict(zip(numbers.tolist(), np.split(self.X, starts)[1:], strict=True))


def class_ranks(*samples: Sample) -> Section | None:
    """Ranks of the covariances of classes that a sample holds well enough: whole, or with 2 V rows.

    A class of J samples can have a rank of min(J - 1, V); below V it is singular, below that number deficient.
    """
    found: dict[int, tuple[int, int]] = {}
    width = samples[0].X.shape[1]
    for sample in samples:
        for number, rows in sample.groups().items():
            enough = number in sample.whole or len(rows) >= 2 * width
            if number not in found and len(rows) > 1 and enough:
                found[number] = covariance_rank(rows), min(len(rows) - 1, width)
    if not found:
        return None
    ranks, most = np.array(list(found.values())).T
    return {
        "looked_at": len(ranks),
        "smallest": int(ranks.min()),
        "median": float(np.median(ranks)),
        "largest": int(ranks.max()),
        "possible": [int(most.min()), int(most.max())],
        "singular": int(np.sum(ranks < width)),
        "deficient": int(np.sum(ranks < most)),
    }


def covariance_rank(rows: np.ndarray) -> int:
    """Rank of the covariance of rows (J, V), by the pivoted Cholesky factor of the smaller of its two products."""
    centred, _ = _scaled(rows)
    size = float(np.abs(centred).max())
    centred -= centred.mean(axis=0)
    products = centred @ centred.T if centred.shape[0] <= centred.shape[1] else centred.T @ centred
    largest = float(products.diagonal().max())
    if largest == 0:
        return 0
    # Products square what rounding leaves of features that depend on each other.
    precision = np.finfo(np.float64 if rows.dtype.itemsize > 4 else np.float32).eps
    tolerance = largest * max(max(rows.shape) * np.finfo(np.float64).eps, (max(rows.shape) * precision) ** 2)
    # And what it left of them before they were centred.
    tolerance = max(tolerance, rows.size * (precision * size) ** 2)
    _, _, rank, _ = dpstrf(products, tol=tolerance)
    return int(rank)


def deviation_within_classes(sample: Sample) -> float | None:
    """Root of the mean variance of a feature within classes; of all samples where no class has two."""
    if not len(sample.X):
        return None
    X, scale = _scaled(sample.X)
    counts = np.unique(sample.labels, return_counts=True)[1]
    if counts.max() == 1:
        counts = np.array([len(X)])
    X -= np.repeat(class_means(X, counts), counts, axis=0)
    freedom = max(len(X) - len(counts), 1)
    return float(np.sqrt(np.vdot(X, X) / (freedom * X.shape[1]))) / scale


def _scaled(X: np.ndarray) -> tuple[np.ndarray, float]:
    """X in float64, times a power of two that brings its largest entry near 1, and that power."""
    scale = power_of_two_scale(max(float(X.max()), -float(X.min())), np.dtype(np.float64))
    return X * np.float64(scale), scale


def transport_costs(base: Sample, novel: Sample | None, smallest: float) -> Section | None:
    """Costs and plans of one-shot tasks under the defaults of `HOTClassifier`, for features down to `smallest`.

    Targets are samples of the novel classes, or of base classes that are held out where there is no novel file. None
    where there are too few classes for two targets and two base classes, or where no space holds both files.
    """
    lending = base.groups()
    borrowing = novel.groups() if novel is not None else {}
    ways = min(WAYS, len(borrowing) if novel is not None else len(lending) // 2)
    if novel is None:
        n_held_out = max(ways, min(WAYS * TASKS, len(lending) // 5))
        places = np.linspace(0, max(len(lending) - 1, 0), n_held_out).astype(int)
        borrowing = {number: lending.pop(number) for number in np.array(list(lending))[places].tolist()}
    if ways < 2 or len(lending) < 2:
        return None
    features = slice(None, None, -(-base.X.shape[1] // MOST_FEATURES))
    labels = np.repeat(list(lending), [len(rows) for rows in lending.values()])
    bank = BaseClasses.from_samples(np.concatenate(list(lending.values()))[:, features], labels)
    # Covariances are not looked at here: one for all classes is the quickest.
    prepared = bank.prepare(Space(power=choose_power("auto", smallest), covariance="pooled"))
    classes = list(borrowing.values())
    turns = [(turn // ways, classes[turn % len(classes)]) for turn in range(TASKS * ways)]
    targets = np.stack([rows[task % len(rows), features] for task, rows in turns])
    try:
        targets = prepared.transform(cast(targets, bank.dtype))
    except InputError:
        return None
    method = HOTClassifier()._method(HOTClassifier().settings())
    weights = transfer_weights(prepared, targets.reshape(TASKS, ways, -1), method).weights.astype(np.float64)
    units = np.concatenate([bucket.units[bucket.mass > 0] for bucket in prepared.buckets])
    costs = cosine(units, targets).astype(np.float64)
    low, median, high = np.percentile(costs, [25, 50, 75]).tolist()
    deviation = float(costs.std())
    # Under a hard assignment and under a uniform plan.
    fewest, most = max(1.0, len(lending) / ways), float(len(lending))
    # The effective number of lenders is exp of the entropy of a target's transfer weights.
    lenders = float(np.exp(entr(weights).sum(axis=1)).mean())
    evenness = (lenders - fewest) / (most - fewest)
    return {
        "epsilon": method.epsilon,
        "median": median,
        "deviation": deviation,
        "quartile_range": high - low,
        "ways": ways,
        "base_classes": len(lending),
        "lenders": lenders,
        "fewest": fewest,
        "most": most,
        "epsilon_over_deviation": method.epsilon / deviation if deviation else None,
        "plan": "hard" if evenness < HARD else "uniform" if evenness > UNIFORM else "selective",
    }
