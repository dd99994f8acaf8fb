"""Time and memory to fit a model of old and new classes, and to add one class to it.

Classes are Gaussians with one covariance of decreasing spectrum. The first fit prepares the bank, learns thresholds on
it and trains the rows of the base classes; the second fit reuses all three. A bank loaded from disk has no trained
rows, so that a fit trains them again; a model loaded from disk has them. Settings are constants, so that none are
chosen. The last lines compare the model that was grown by a class to the one fitted at once. Times are of the
processor, which other programs affect less than wall time.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.shared import peak_memory, say, timed
from hotshot import BaseClasses, HOTClassifier

CONSTANTS: dict[str, Any] = {"mean_rule": "posterior", "power": 1.0, "epsilon": 0.02}
CONSTANTS |= {"n_generated": 300, "support_weight": 20.0}


def main(
    base: int = 1000, samples: int = 50, new: int = 100, shots: int = 5, width: int = 384, double: bool = False
) -> None:
    rng = np.random.default_rng(0)
    spectrum = np.exp(-np.arange(width) / (width / 4))
    centres = rng.normal(size=(base + new, width)) * spectrum

    def draw(classes: range, n: int) -> tuple[np.ndarray, np.ndarray]:
        labels = np.repeat(list(classes), n)
        X = centres[labels] + 0.8 * rng.normal(size=(len(labels), width)) * spectrum
        return X.astype(np.float64 if double else np.float32), labels

    bank = BaseClasses.from_samples(*draw(range(base), samples))
    (X, y), (queries, labels) = draw(range(base, base + new), shots), draw(range(base + new), 4)

    def model(old: BaseClasses) -> HOTClassifier:
        return HOTClassifier(old, include_base=True, **CONSTANTS)

    _reported("first fit", lambda: model(bank).fit(X, y))
    whole, fresh = _reported("second fit", lambda: model(bank).fit(X, y))
    is_last = y == y[-1]
    growing = model(bank).fit(X[~is_last], y[~is_last])
    with tempfile.TemporaryDirectory() as name:
        stored, saved = Path(name) / "classes.bank", Path(name) / "classes.model"
        bank.save(stored)
        growing.save(saved)

        def grown_from_disk() -> HOTClassifier:
            return HOTClassifier.load(saved, base=BaseClasses.load(stored)).add_classes(X[is_last], y[is_last])

        _, fitted = _reported("load the bank, fit", lambda: model(BaseClasses.load(stored)).fit(X, y))
        _, loaded = _reported("load bank and model, add one class", grown_from_disk)
    _, added = _reported("add one class", lambda: growing.add_classes(X[is_last], y[is_last]))
    say(f"Time of a fit / time to add a class: {fresh / added:.1f} in memory, {fitted / loaded:.1f} from disk")
    difference = np.abs(growing.predict_proba(queries) - whole.predict_proba(queries)).max()
    say(f"Largest difference between their probabilities: {difference:.1e}")
    right, is_new = whole.predict(queries) == labels, labels >= base
    say(f"Accuracy: base classes {100 * right[~is_new].mean():.2f}%, new classes {100 * right[is_new].mean():.2f}%")


def _reported(what: str, run: Callable[[], Any]) -> tuple[Any, float]:
    result, seconds = timed(run, time.process_time)
    say(f"{what}: {seconds:.2f} s, peak memory so far {peak_memory()}")
    return result, seconds
