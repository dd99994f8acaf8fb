"""How the strength of the entropy, epsilon, compares to the spread of the costs it is added to.

Small tasks are transported as `HOTClassifier` does by default: costs 1 - cos between unit vectors, centred on the
base samples (without the reduction to leading axes, which changes little), and the learned cost of eq. 9.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hotshot.arrays import unit_vectors
from hotshot.base.space import power_transform
from hotshot.estimators import HOTClassifier
from hotshot.evaluation.inspection.sampling import Sample
from hotshot.transport import solve

WAYS = 5
TASKS = 8
# Shares of the way from the hardest to the uniform plan beyond which epsilon hardly matters any more, or all does.
HARD, UNIFORM = 0.05, 0.95


@dataclass(frozen=True)
class CostSpread:
    """Costs of small one-shot tasks, and how many base classes lend to a novel class under them.

    Attributes
    ----------
    epsilon : float
        The default of `HOTClassifier`.
    median, deviation, quartile_range : float
        Of the costs between samples of base classes and targets.
    ways, base_classes : int
        Size of the tasks.
    lenders : float
        Effective number of base classes that lend to a target: exp of the entropy of its transfer weights.
    fewest, most : float
        What `lenders` would be if the plan were a hard assignment, and if it were uniform.
    """

    epsilon: float
    median: float
    deviation: float
    quartile_range: float
    ways: int
    base_classes: int
    lenders: float
    fewest: float
    most: float

    @property
    def evenness(self) -> float:
        """0 where every base class lends to one target only, 1 where all lend the same to all."""
        return (self.lenders - self.fewest) / (self.most - self.fewest)

    @property
    def plan(self) -> str:
        """What the plan is: "hard", "uniform", or "selective" between the two."""
        return "hard" if self.evenness < HARD else "uniform" if self.evenness > UNIFORM else "selective"


def cost_spread(base: Sample, novel: Sample | None, power: float) -> CostSpread | None:
    """Transport tasks from the classes of `novel`, or from held-out classes of `base` where there is none.

    None where there are too few classes for two targets and two base classes.
    """
    if not len(base.X) or (novel is not None and not len(novel.X)):
        return None
    z, z_novel = _space(base, novel, power)
    lending = Sample(z, base.labels).groups()
    borrowing = lending if novel is None else Sample(z_novel, novel.labels).groups()
    ways = min(WAYS, len(borrowing) // 2 if novel is None else len(borrowing))
    if ways < 2 or len(lending) - (ways if novel is None else 0) < 2:
        return None
    epsilon = HOTClassifier().epsilon
    costs, lenders = [], []
    for task in range(TASKS):
        chosen = [(task * ways + i) % len(borrowing) for i in range(ways)]
        targets = np.stack([borrowing[c][1][task % len(borrowing[c][1])] for c in chosen])
        held_out = set(chosen) if novel is None else set()
        rows = [group for b, (_, group) in enumerate(lending) if b not in held_out]
        distances, mass = _distances(rows, targets)
        costs.append(distances[mass > 0])
        weights = _transfer_weights(distances, mass, epsilon)
        lenders.append(np.exp(-np.sum(weights * np.log(np.maximum(weights, 1e-300)), axis=0)))
    entries = np.concatenate(costs)
    low, median, high = np.percentile(entries, [25, 50, 75])
    return CostSpread(
        epsilon=epsilon,
        median=float(median),
        deviation=float(entries.std()),
        quartile_range=float(high - low),
        ways=ways,
        base_classes=len(rows),
        lenders=float(np.mean(lenders)),
        fewest=max(1.0, len(rows) / ways),
        most=float(len(rows)),
    )


def _space(base: Sample, novel: Sample | None, power: float) -> tuple[np.ndarray, np.ndarray]:
    """Samples of both as unit vectors around the mean of the base samples."""
    scale = base.scale if novel is None else min(base.scale, novel.scale)

    def powers(X: np.ndarray) -> np.ndarray:
        return power_transform(X.astype(np.float64) * scale, power)

    z = powers(base.X)
    centre = z.mean(axis=0)
    z_novel = z[:0] if novel is None else unit_vectors(powers(novel.X) - centre)
    return unit_vectors(z - centre), z_novel


def _distances(groups: list[np.ndarray], targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Costs (B, J, S) of all classes, padded to the largest J, and the mass of their samples (B, J)."""
    size = max(len(rows) for rows in groups)
    distances = np.zeros((len(groups), size, len(targets)))
    mass = np.zeros((len(groups), size))
    for b, rows in enumerate(groups):
        distances[b, : len(rows)] = 1 - rows @ targets.T
        mass[b, : len(rows)] = 1 / len(rows)
    return distances, mass


def _transfer_weights(distances: np.ndarray, mass: np.ndarray, epsilon: float) -> np.ndarray:
    """Transfer weights (B, S) under the learned cost, eq. 9 and 6."""
    plans = solve(distances, mass, epsilon=epsilon).plan
    plan = solve(np.sum(distances * plans, axis=1), epsilon=epsilon).plan
    return np.asarray(plan / plan.sum(axis=0))
