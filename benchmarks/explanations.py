"""Rank correlation between the parts of an explanation and the gap to the runner-up.

Tasks are 5-way with 15 queries per class, from the novel classes of the embedded bank banking77. If a part explains the
decisions, it is large where the gap is large (Spearman's correlation over all queries of all tasks). The remainder
should be small.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import spearmanr

from benchmarks.shared import Seed, Tasks, show
from hotshot.bank.embedded import load_bank
from hotshot.classifiers import HOTClassifier
from hotshot.evaluation.tables import Table
from hotshot.evaluation.tasks import Episodes

SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "mean_rule='mix'": {"mean_rule": "mix"},
    "per='sample'": {"per": "sample"},
    "head='sampled'": {"head": "sampled", "random_state": 0},
    "base=None": {"base": None},
}


def main(tasks: Tasks = 40, seed: Seed = 0) -> None:
    bank = load_bank("banking77")
    rows = []
    for name, settings in SETTINGS.items():
        for shots in (1, 5):
            reasons = []
            for task in Episodes(bank.y_novel, ways=5, shots=shots, queries=15, seed=seed).take(tasks):
                model = HOTClassifier(**{"base": bank.base, **settings})
                model.fit(bank.X_novel[task.support], task.support_labels)
                reasons += model.explain(bank.X_novel[task.query]).reasons
            parts = np.array([[r.own, r.lent, r.rest] for r in reasons])
            gaps = np.array([r.gap for r in reasons])
            correlations = [f"{spearmanr(part, gaps)[0]:.2f}" if np.ptp(part) else "–" for part in parts.T]
            means = " ".join(f"{mean:.2f}" for mean in parts.mean(axis=0))
            rows.append((name, str(shots), *correlations, means, f"{gaps.mean():.2f}"))
    columns = ("settings", "shots", "correlation: examples", "lent means", "rest", "mean of each part", "mean gap")
    show(Table(f"Explanations, {tasks} tasks, seed {seed}", columns, tuple(rows)))
