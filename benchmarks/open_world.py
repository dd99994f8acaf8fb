"""H-OT and its rivals in two more settings: old and new classes together, and queries of unknown classes.

banking77 has 47 base and 30 novel classes, miniimagenet 64 and 16; of the Omniglot bank that comes with hotshot, 200
base and 50 novel classes are drawn. The open setting also shows H-OT with its largest probability in place of its
outlier score. The outlier score of centroid-cl2n is the cosine, that of lda the Mahalanobis distance.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.shared import DataFolder, Jobs, Methods, Out, Seed, Sets, Tasks, evaluated, load, say, show
from hotshot import HOTClassifier
from hotshot.classifiers.named import named_method
from hotshot.evaluation.tables import measure_table

METHODS = "hot,centroid-cl2n,logistic-tuned,lda,plda,softmax-calibration"
SETS = "banking77,miniimagenet,omniglot-small"


class MaximumProbability(HOTClassifier):
    """H-OT whose outlier score is minus its largest probability."""

    def outlier_score(self, X: Any) -> np.ndarray:
        """Minus the largest probability (samples,)."""
        return -self.predict_proba(X).max(axis=1)


def main(
    data: DataFolder,
    sets: Sets = SETS,
    settings: Annotated[str, typer.Option(help="Settings, separated by commas.")] = "generalised,open",
    methods: Methods = METHODS,
    ways: Annotated[int | None, typer.Option(help="Novel classes per task; 5, or all if generalised.")] = None,
    batch: Annotated[bool, typer.Option(help="Classify the queries of a task jointly if a method can.")] = False,
    tasks: Tasks = 30,
    seed: Seed = 0,
    jobs: Jobs = -1,
    out: Out = None,
) -> None:
    for name in sets.split(","):
        loaded = load(name, data, seed)
        base, _, y = loaded
        for setting in settings.split(","):
            compared: dict[str, Any] = {method: named_method(method, base) for method in methods.split(",")}
            if setting == "open":
                compared["hot, largest probability"] = MaximumProbability(base)
            shared = {"ways": ways, "seed": seed, "n_jobs": jobs, "batch": batch, "queries": queries_of(y)}
            place = out and out / f"{name}-{setting}"
            found = evaluated(compared, loaded, tasks, setting=setting, out=place, **shared)
            say(f"{name}, {setting}, seed {seed}")
            for shots in found.shots:
                show(measure_table(found, shots))


def queries_of(y: np.ndarray) -> int:
    """Queries per class: 15, or fewer if classes are small, as those of Omniglot with 20 samples."""
    return min(15, int(np.unique(y, return_counts=True)[1].min()) - 5)
