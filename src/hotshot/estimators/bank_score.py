r"""Score of a bank on samples without labels: the expected gain of H-OT over nearest centroids.

Tasks of clusters (``hotshot.method.pseudo_tasks``) replace tasks of classes, and clusters suit nearest centroids. Where
base classes can be held out, tasks of their classes and tasks of their clusters show how much the gain differs:

.. math::
    \text{gain} = g_{\text{clusters}}(\text{pool})
        + g_{\text{classes}}(\text{held-out}) - g_{\text{clusters}}(\text{held-out}).

Base classes that the extractor was trained on are no guide to new classes: for them, and for small banks, the gain on
the clusters of the pool is used as it is, a cautious estimate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from hotshot.arrays import cast, check_features, one_thread, unit_vectors
from hotshot.base import BaseClasses, PreparedBase
from hotshot.base.space import power_transform
from hotshot.errors import InputError, ParameterError
from hotshot.estimators.baselines import CentroidClassifier
from hotshot.estimators.held_out import make_folds
from hotshot.formatting import shortened
from hotshot.method.heads import HEADS
from hotshot.method.hierarchy import COSTS, transfer_weights
from hotshot.method.parameters import Method
from hotshot.method.pseudo_tasks import WAYS, gains_on_clusters, gains_on_tasks

if TYPE_CHECKING:
    from hotshot.estimators.hot import HOTClassifier

SHOTS = (1, 5)
# Tasks of clusters for each number of shots: of the pool, and of each fold of the bank.
TASKS, FOLD_TASKS = 300, 100
# Samples of the pool that are used, at least and at most.
LEAST_SAMPLES, MOST_SAMPLES = 50, 1000
HELPS, NEUTRAL, HARMS = "helps", "neutral", "harms"
# Nearest centroids as parameters of `HOTClassifier`: nothing is borrowed but the centre.
CENTROIDS: Mapping[str, Any] = {
    "head": "centroid", "mean_rule": "mix", "mix": 0.0, "normalize": "centre-l2", "power_offset": 0.0,
    "power_on_base": True, "per": "class", "cost": "mean-cosine",
}  # fmt: skip


@dataclass(frozen=True)
class ExpectedGain:
    """Expected gain of H-OT over nearest centroids in accuracy points, and half the width of its 95% interval."""

    shots: int
    points: float
    half_width: float

    @property
    def verdict(self) -> str:
        """Whether the interval is above zero ("helps"), below ("harms"), or neither ("neutral")."""
        if abs(self.points) <= self.half_width:
            return NEUTRAL
        return HELPS if self.points > 0 else HARMS


@dataclass(frozen=True)
class Carrier:
    """A base class: its share of what is lent to the pool, and the share of the pool that is nearest to it."""

    name: Any
    share: float
    nearest: float


@dataclass(frozen=True)
class BankScore:
    """How much a bank helps on a pool of samples without labels; ``HOTClassifier.score_bank`` returns it.

    Attributes
    ----------
    gains : tuple of ExpectedGain
        For one and for five shots.
    carriers : tuple of Carrier
        Base classes, the one that lends most first.
    distance : float
        Mean distance from the pool to the nearest base mean, in the space of the bank.
    samples : int
        Samples of the pool that were used.
    held_out : bool
        Whether held-out base classes correct the gains.
    settings : dict
        Parameters of ``HOTClassifier`` for this pool: none if the bank "helps", else those of nearest centroids.
    """

    gains: tuple[ExpectedGain, ...]
    carriers: tuple[Carrier, ...]
    distance: float
    samples: int
    held_out: bool
    settings: dict[str, Any]

    @property
    def points(self) -> float:
        """The score: expected gain at one shot, in accuracy points."""
        return self.gains[0].points

    @property
    def verdict(self) -> str:
        """The words for the score: "helps", "neutral" or "harms"."""
        return self.gains[0].verdict

    def __repr__(self) -> str:
        gain, most = self.gains[0], shortened(str(self.carriers[0].name))
        return f"BankScore({gain.verdict}: {gain.points:+.1f} ± {gain.half_width:.1f} points, most from '{most}')"

    def to_dict(self) -> dict[str, Any]:
        """The score as JSON values.

        Returns
        -------
        dict
            Verdict, points, gains, distance, samples, whether base classes were held out, settings, and base classes.
        """
        return {
            "verdict": self.verdict,
            "points": self.points,
            "gains": [{**asdict(gain), "verdict": gain.verdict} for gain in self.gains],
            "distance": self.distance,
            "samples": self.samples,
            "held_out": self.held_out,
            "settings": dict(self.settings),
            "base_classes": [{**asdict(carrier), "name": str(carrier.name)} for carrier in self.carriers],
        }


@one_thread()
def score_bank(classifier: HOTClassifier, X_pool: Any) -> BankScore:
    """Score the bank of a classifier on samples without labels (n, V)."""
    bank = classifier.base
    if not isinstance(bank, BaseClasses):
        raise ParameterError("A score needs base classes: pass base.")
    X = _checked_pool(X_pool, bank)
    base, method = _parts(classifier)
    power = None if bank.samples is None else float(CentroidClassifier(bank).settings()["power"])
    pool = np.asarray(base.transform(X, "X_pool"))
    plain = pool if power is None else _plain(bank, X, power)
    found = 100 * gains_on_clusters(base, method, pool, plain, SHOTS, TASKS)
    means, variances = found.mean(axis=1), found.var(axis=1, ddof=1) / TASKS
    held_out = bank.can_hold_out and not _seen(bank)
    if held_out and power is not None:
        differences = _differences(classifier, bank, power)
        means = means + differences.mean(axis=0)
        variances = variances + differences.var(axis=0, ddof=1) / len(differences)
    gains = tuple(
        ExpectedGain(k, float(mean), float(1.96 * variance**0.5))
        for k, mean, variance in zip(SHOTS, means, variances, strict=True)
    )
    distances = np.sum(pool**2, axis=1)[:, None] + np.sum(base.means**2, axis=1) - 2 * pool @ base.means.T
    distance = float(np.sqrt(np.maximum(distances.min(axis=1), 0)).mean())
    # In a bank without samples, centroids are in the axes that it keeps.
    own = {} if power is None else {"power": power, "n_components": None}
    settings = {} if gains[0].verdict == HELPS else {**CENTROIDS, **own}
    return BankScore(gains, _carriers(base, method, pool, distances), distance, len(X), held_out, settings)


def _seen(bank: BaseClasses) -> bool:
    """Whether the extractor was trained on the base classes: as the bank states, or as the choice of settings finds."""
    from hotshot.estimators.hot import HOTClassifier  # Here, because it imports this module.

    return HOTClassifier(bank).choice().seen_in_training if bank.seen_in_training is None else bank.seen_in_training


def _checked_pool(X_pool: Any, bank: BaseClasses) -> np.ndarray:
    """At most ``MOST_SAMPLES`` different samples, the same for any order of the pool."""
    X = check_features(X_pool, "X_pool")
    if X.shape[1] != bank.n_features:
        raise InputError(
            f"X_pool has {X.shape[1]} features and the base classes have {bank.n_features}: "
            "extract both with the same model."
        )
    X = np.unique(X, axis=0)
    if len(X) < LEAST_SAMPLES:
        raise InputError(f"X_pool has {len(X)} different samples, and a score needs {LEAST_SAMPLES}: pass more.")
    return cast(X[np.random.default_rng(0).permutation(len(X))[:MOST_SAMPLES]], bank.dtype)


def _parts(classifier: HOTClassifier) -> tuple[PreparedBase, Method]:
    """Prepared bank and method, with a cost and a head that take little time and have the same accuracy."""
    settings = classifier.settings()
    cost, head = settings["cost"], settings["head"]
    quick = {
        "cost": COSTS[cost].proxy if cost in COSTS and COSTS[cost].needs_samples else cost,
        "head": head if HEADS[head].in_batches else "bound",
    }
    found: tuple[PreparedBase, Method] = clone(classifier).set_params(**{**settings, **quick}).parts()
    return found


def _plain(bank: BaseClasses, X: np.ndarray, power: float) -> np.ndarray:
    """Samples as ``CentroidClassifier`` has them: centred unit vectors in all features."""
    found: np.ndarray = unit_vectors(power_transform(X, power, name="X_pool") - bank.centre(power).astype(X.dtype))
    return found


def _differences(classifier: HOTClassifier, bank: BaseClasses, power: float) -> np.ndarray:
    """Gain on tasks of held-out classes minus gain on tasks of their clusters, in points (folds, shots)."""
    settings, found = classifier.settings(), []
    for fold in make_folds(bank):
        base, method = _parts(clone(classifier).set_params(**{**settings, "base": fold.base}))
        samples = cast(fold.samples, bank.dtype)
        features = np.asarray(base.transform(samples)), _plain(fold.base, samples, power)
        of_classes = [
            gains_on_tasks(
                base,
                method,
                *features,
                np.stack([task.support for task in fold.tasks[k]]),
                np.stack([task.query for task in fold.tasks[k]]),
            ).mean()
            for k in SHOTS
        ]
        some = np.random.default_rng(0).permutation(len(samples))[:MOST_SAMPLES]
        of_clusters = gains_on_clusters(base, method, features[0][some], features[1][some], SHOTS, FOLD_TASKS)
        found.append(100 * (np.array(of_classes) - of_clusters.mean(axis=1)))
    return np.stack(found)


def _carriers(base: PreparedBase, method: Method, pool: np.ndarray, distances: np.ndarray) -> tuple[Carrier, ...]:
    r"""Shares :math:`\sum_n w_{bn} \max(\cos(x_n, \mu_b), 0)` of the base classes, which sum to 1.

    The balance of the transport makes all base classes lend equally; what is lent from far away is of no use.
    """
    targets = pool[: len(pool) // WAYS * WAYS].reshape(-1, WAYS, pool.shape[1])
    weights = transfer_weights(base, targets, method).weights
    similarity = unit_vectors(base.means) @ np.swapaxes(unit_vectors(targets), 1, 2)
    lent = np.sum(weights * np.maximum(similarity, 0), axis=(0, 2), dtype=np.float64)
    shares = lent / max(lent.sum(), np.finfo(np.float64).tiny)
    nearest = np.bincount(distances.argmin(axis=1), minlength=len(shares)) / len(distances)
    order = np.argsort(-shares, kind="stable")
    return tuple(Carrier(base.names[b].item(), float(shares[b]), float(nearest[b])) for b in order)
