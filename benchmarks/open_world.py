"""H-OT and its rivals in two more settings: old and new classes together, and queries of unknown classes.

    python -m benchmarks.open_world DATA [--sets miniimagenet] [--tasks 30] [--settings open] [--batch] [--out FOLDER]

DATA is the folder described in `benchmarks.accuracy`. banking77 has 47 base and 30 novel classes, miniimagenet 64 and
16; of the Omniglot bank that comes with hotshot, 200 base and 50 novel classes are drawn. The open setting also shows
H-OT with its largest probability in place of its outlier score. The outlier score of centroid-cl2n is the cosine, that
of lda the Mahalanobis distance.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.accuracy import Data, banking77, miniimagenet, omniglot
from hotshot import BaseClasses, HOTClassifier, evaluate
from hotshot.cli.terminal import Watching
from hotshot.errors import ScaleWarning
from hotshot.estimators.named import named_method
from hotshot.evaluation.results import Evaluation
from hotshot.evaluation.tables import measure_table

METHODS = ("hot", "centroid-cl2n", "logistic-tuned", "lda", "plda", "softmax-calibration")
OMNIGLOT_BASE, OMNIGLOT_NOVEL = 200, 50


class MaximumProbability(HOTClassifier):
    """H-OT whose outlier score is minus its largest probability."""

    def outlier_score(self, X: Any) -> np.ndarray:
        """Minus the largest probability (samples,)."""
        return -self.predict_proba(X).max(axis=1)


def small_omniglot(seed: int) -> Data:
    """The Omniglot bank with random subsets of its base and novel classes."""
    base, X, y = omniglot()
    assert base.samples is not None
    rng = np.random.default_rng(seed)
    old = np.isin(base.labels, rng.choice(len(base.names), OMNIGLOT_BASE, replace=False))
    new = np.isin(y, rng.choice(np.unique(y), OMNIGLOT_NOVEL, replace=False))
    names = base.names[base.labels]
    kept = BaseClasses.from_samples(base.samples[old], names[old], about=base.about)
    return kept, X[new], y[new]


def sets_of(options: argparse.Namespace) -> dict[str, Callable[[], Data]]:
    known: dict[str, Callable[[], Data]] = {
        "banking77": lambda: banking77(options.data, options.seed),
        "miniimagenet": lambda: miniimagenet(options.data),
        "omniglot": lambda: small_omniglot(options.seed),
    }
    return {name: known[name] for name in (known if options.sets == "all" else options.sets.split(","))}


def queries_of(y: np.ndarray) -> int:
    """Queries per class: 15, or fewer if classes are small, as those of Omniglot with 20 samples."""
    return min(15, int(np.unique(y, return_counts=True)[1].min()) - 5)


def run(name: str, setting: str, data: Data, options: argparse.Namespace, console: Console) -> Evaluation:
    base, X, y = data
    methods: dict[str, Any] = {method: named_method(method, base) for method in options.methods.split(",")}
    if setting == "open":
        methods["hot, largest probability"] = MaximumProbability(base)
    with Watching(console, 2 * options.tasks * len(methods)) as watching, warnings.catch_warnings():
        warnings.simplefilter("ignore", ScaleWarning)
        return evaluate(
            methods,
            X,
            y,
            base=base,
            setting=setting,
            queries=queries_of(y),
            tasks=options.tasks,
            batch=options.batch,
            ways=options.ways,
            seed=options.seed,
            n_jobs=options.jobs,
            out=options.out and options.out / f"{name}-{setting}",
            watch=watching,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with the features of banking77 and miniImageNet")
    parser.add_argument("--sets", default="all", help="sets, separated by commas (default: all)")
    parser.add_argument("--settings", default="generalised,open", help="generalised, open or both")
    parser.add_argument("--methods", default=",".join(METHODS), help="methods, separated by commas")
    parser.add_argument("--ways", type=int, help="novel classes of a task (default: 5, or all if generalised)")
    parser.add_argument("--batch", action="store_true", help="classify the queries of a task jointly if a method can")
    parser.add_argument("--tasks", type=int, default=30, help="tasks per number of shots (default: 30)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the tasks (default: 0)")
    parser.add_argument("--jobs", type=int, default=-1, help="processes (default: one per core)")
    parser.add_argument("--out", type=Path, help="folder to save the runs in, to resume them later")
    options = parser.parse_args()
    console = Console(width=150)
    for name, load in sets_of(options).items():
        data = load()
        for setting in options.settings.split(","):
            found = run(name, setting, data, options, console)
            for shots in found.shots:
                table = measure_table(found, shots)
                console.print(f"{name}, {setting}, {table.title}, seed {options.seed}", style="bold")
                console.print(table.to_markdown(), markup=False, soft_wrap=True)
            console.print(*measure_table(found, found.shots[0]).notes, markup=False)


if __name__ == "__main__":
    main()
