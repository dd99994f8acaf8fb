"""Time and memory to fit a model of old and new classes, and to add one class to it.

    python -m benchmarks.adding_classes [--base 1000] [--samples 50] [--new 100] [--shots 5] [--features 384] [--double]

Classes are Gaussians with one covariance of decreasing spectrum. The first fit prepares the bank, learns thresholds on
it and trains the rows of the base classes; the second fit reuses all three. A bank loaded from disk has no trained
rows, so that a fit trains them again; a model loaded from disk has them. Settings are constants, so that none are
chosen. The last lines compare the model that was grown by a class to the one fitted at once.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hotshot import BaseClasses, HOTClassifier

CONSTANTS: dict[str, Any] = {"mean_rule": "posterior", "power": 1.0, "epsilon": 0.02}
CONSTANTS |= {"n_generated": 300, "support_weight": 20.0}


def timed(what: str, run: Callable[[], Any]) -> tuple[Any, float]:
    """The result of `run` and its CPU time in seconds, which other programs affect less than wall time."""
    begin, begin_work = time.perf_counter(), time.process_time()
    found = run()
    seconds, work = time.perf_counter() - begin, time.process_time() - begin_work
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{what}: {seconds:.2f} s, CPU {work:.2f} s, peak memory so far {memory:.2f} GiB", flush=True)
    return found, work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value, text in (
        ("base", 1000, "base classes"),
        ("samples", 50, "samples per base class"),
        ("new", 100, "new classes"),
        ("shots", 5, "samples per new class"),
        ("features", 384, "number of features"),
    ):
        parser.add_argument(f"--{name}", type=int, default=value, help=f"{text} (default: {value})")
    parser.add_argument("--double", action="store_true", help="features in double precision")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    n_classes, width = options.base + options.new, options.features
    spectrum = np.exp(-np.arange(width) / (width / 4))
    centres = rng.normal(size=(n_classes, width)) * spectrum
    dtype = np.float64 if options.double else np.float32

    def draw(classes: range, n: int) -> tuple[np.ndarray, np.ndarray]:
        labels = np.repeat(list(classes), n)
        X = centres[labels] + 0.8 * rng.normal(size=(len(labels), width)) * spectrum
        return X.astype(dtype), labels

    base = BaseClasses.from_samples(*draw(range(options.base), options.samples))
    new = range(options.base, n_classes)
    (X, y), (queries, labels) = draw(new, options.shots), draw(range(n_classes), 4)

    def model(bank: BaseClasses) -> HOTClassifier:
        return HOTClassifier(bank, include_base=True, **CONSTANTS)

    whole, _ = timed("first fit", lambda: model(base).fit(X, y))
    whole, fresh = timed("second fit", lambda: model(base).fit(X, y))
    is_last = y == y[-1]
    growing = model(base).fit(X[~is_last], y[~is_last])
    with tempfile.TemporaryDirectory() as folder:
        bank, saved = Path(folder) / "classes.bank", Path(folder) / "classes.model"
        base.save(bank)
        growing.save(saved)

        def grown_from_disk() -> HOTClassifier:
            return HOTClassifier.load(saved, base=BaseClasses.load(bank)).add_classes(X[is_last], y[is_last])

        _, fitted = timed("load the bank, fit", lambda: model(BaseClasses.load(bank)).fit(X, y))
        _, loaded = timed("load bank and model, add one class", grown_from_disk)
    _, added = timed("add one class", lambda: growing.add_classes(X[is_last], y[is_last]))
    print(f"Time of a fit / time to add a class: {fresh / added:.1f} in memory, {fitted / loaded:.1f} from disk")
    difference = np.abs(growing.predict_proba(queries) - whole.predict_proba(queries)).max()
    print(f"Largest difference between their probabilities: {difference:.1e}")
    right, is_new = whole.predict(queries) == labels, labels >= options.base
    print(f"Accuracy: base classes {100 * right[~is_new].mean():.2f}%, new classes {100 * right[is_new].mean():.2f}%")


if __name__ == "__main__":
    main()
