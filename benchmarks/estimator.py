"""Time of one fit and predict on a prepared bank, with features of the paper's size.

The bank has B = 64 base classes of J = 600 samples with V = 640 post-ReLU features in single precision. Times depend on
the machine; scikit-learn's logistic regression on the same support is fitted beside them.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.shared import median_seconds, say, show, synthetic, timed
from hotshot import HOTClassifier
from hotshot.evaluation.tables import Cell, Table

SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "all axes": {"n_components": None},
    "per sample": {"per": "sample"},
    "mean-cosine cost": {"cost": "mean-cosine"},
}


def main() -> None:
    base, X, labels = synthetic(64, 600, 640, seed=0, novel=(20, 20), decay=0.5)
    places = np.arange(len(labels)) % 20
    _, seconds = timed(lambda: HOTClassifier(base).fit(X[places == 0], labels[places == 0]))
    sizes = f"B={len(base.names)}, J={base.counts[0]}, V={base.n_features}"
    say(f"{sizes}, float32, {os.cpu_count()} cores; bank prepared and first fit in {seconds:.1f} s")
    models: dict[str, Any] = {name: HOTClassifier(base, **parameters) for name, parameters in SETTINGS.items()}
    models["scikit-learn's logistic regression"] = LogisticRegression(max_iter=1000)
    rows: list[tuple[Cell, ...]] = []
    for ways, shots in ((5, 1), (5, 5), (20, 5)):
        support = np.flatnonzero((labels < ways) & (places < shots))
        query = np.flatnonzero((labels < ways) & (shots <= places) & (places < shots + 15))
        for name, model in models.items():
            run = lambda model=model, s=support, q=query: model.fit(X[s], labels[s]).predict(X[q])  # noqa: E731
            milliseconds = f"{1000 * median_seconds(run, 7):.1f}"
            rows.append((f"{ways}-way-{shots}-shot", name, milliseconds, str(model.coef_.shape[1])))
    show(Table("fit and predict of 15 queries per class, median time", ("task", "setting", "ms", "axes"), tuple(rows)))
