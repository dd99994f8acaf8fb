"""H-OT and its rivals in two more settings: old and new classes together, and queries of unknown classes.

banking77 has 47 base and 30 novel classes, miniimagenet 64 and 16; of the Omniglot bank that comes with hotshot, 200
base and 50 novel classes are drawn. The open setting also shows H-OT with its largest probability in place of its
outlier score. The outlier score of centroid-cl2n is the cosine, that of lda the Mahalanobis distance.

A method that gives up more base accuracy gets more novel accuracy. With `--losses 1,2,3` the generalised setting is
also compared at equal losses, in points: a constant is added to the scores of the novel classes of each task, for every
method the one with the highest harmonic mean among those that lose at most so much base accuracy. It is chosen on the
queries themselves, so these are upper limits.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer
from joblib import Parallel, delayed
from sklearn.base import clone

from benchmarks.shared import Data, DataFolder, Jobs, Methods, Out, Seed, Sets, Tasks, evaluated, load, say, show
from hotshot import HOTClassifier
from hotshot.arrays import one_thread
from hotshot.classifiers.named import named_method
from hotshot.evaluation.methods import accuracy_over_classes, class_scores, harmonic_mean, with_base_classes
from hotshot.evaluation.tables import Cell, Number, Table, interval, result_table
from hotshot.evaluation.tasks import JointEpisodes, OpenTask, joint_samples

METHODS = "hot,centroid-cl2n,logistic-tuned,lda,plda,softmax-calibration"
SETS = "banking77,miniimagenet,omniglot-small"
# Constants that are tried in each task at equal losses.
SHIFTS = 400


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
    losses: Annotated[str, typer.Option(help="Points of base accuracy to compare at, separated by commas.")] = "",
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
                show(result_table(found, shots))
            if losses and setting == "generalised":
                for shots in found.shots:
                    title = f"{name}, {shots}-shot, {tasks} tasks, seed {seed}: percent, paired 95% over tasks"
                    points = [float(loss) for loss in losses.split(",")]
                    show(equal_loss_table(title, loaded, methods.split(","), shots, points, tasks, seed, jobs))


def queries_of(y: np.ndarray) -> int:
    """Queries per class: 15, or fewer if classes are small, as those of Omniglot with 20 samples."""
    return min(15, int(np.unique(y, return_counts=True)[1].min()) - 5)


def equal_loss_table(
    title: str, data: Data, methods: list[str], shots: int, losses: list[float], tasks: int, seed: int, jobs: int
) -> Table:
    """Harmonic means of methods at equal losses of base accuracy."""
    base, X, y = data
    rest, everything, y_base = joint_samples(base, X, y, seed)
    episodes = JointEpisodes(y, y_base, ways=None, shots=shots, queries=queries_of(y), seed=seed)
    rows: list[tuple[Cell, ...]] = []
    for method, estimator in with_base_classes({name: named_method(name, base) for name in methods}, rest).items():
        run = delayed(best_harmonic_means)
        means = np.array(Parallel(jobs)(run(estimator, everything, episodes[i], losses) for i in range(tasks))).T
        if not rows:
            of_reference = means
        cells: list[Cell] = [method, Number(100 * means[-1].mean()), Number(100 * means[-2].mean())]
        for mine, theirs in zip(of_reference[:-2], means[:-2], strict=True):
            cells += [Number(100 * theirs.mean()), interval(100 * (mine - theirs), signed=True) if rows else None]
        rows.append(tuple(cells))
    heads = (text for loss in losses for text in (f"at {loss:g} points", f"{methods[0]} minus it, {loss:g}"))
    return Table(title, ("method", "own base loss", "own harmonic mean", *heads), tuple(rows))


def best_harmonic_means(estimator: object, X: np.ndarray, task: OpenTask, losses: list[float]) -> list[float]:
    """The best harmonic mean at each loss of base accuracy, the harmonic mean of the method as it is, and its loss."""
    with one_thread():
        model = clone(estimator).fit(X[task.support], task.support_labels)
        scores = class_scores(model, X[np.concatenate([task.query, task.others])])
    labels = np.concatenate([task.query_labels, task.other_labels])
    assert scores is not None
    is_novel = np.isin(model.classes_, task.support_labels)
    best, right = [], []
    for group in (~is_novel, is_novel):
        best.append(scores[:, group].max(axis=1))
        right.append(model.classes_[group][scores[:, group].argmax(axis=1)] == labels)
    lead, novel = best[1] - best[0], np.arange(len(labels)) < len(task.query)

    def accuracies(shift: float) -> tuple[float, float]:
        correct = np.where(lead + shift > 0, right[1], right[0])
        base, new = (accuracy_over_classes(correct[some], labels[some]) for some in (~novel, novel))
        return base, new

    alone = accuracy_over_classes(right[0][~novel], labels[~novel])
    curve = np.array([accuracies(shift) for shift in np.quantile(-lead, np.linspace(0, 1, SHIFTS))])
    means = np.array([harmonic_mean(*pair) for pair in curve])
    base, new = accuracies(0.0)
    limited = [float(means[alone - curve[:, 0] <= loss / 100 + 1e-9].max(initial=0)) for loss in losses]
    return [*limited, harmonic_mean(base, new), alone - base]
