r"""H-OT against nearest centroids on samples without labels: tasks of clusters.

Clusters of the samples take the place of classes, and the gain is the mean over tasks of the accuracy of H-OT minus
that of nearest centroids. A cluster is a set of near samples, which suits nearest centroids: the gain is usually below
that on tasks of classes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.cluster import KMeans

from hotshot.arrays import slices
from hotshot.base import PreparedBase
from hotshot.method.fit import fit_tasks
from hotshot.method.parameters import Method

WAYS, QUERIES = 5, 15
TASKS_AT_ONCE = 20


def gains_on_clusters(
    base: PreparedBase, method: Method, pool: np.ndarray, plain: np.ndarray, shots: Sequence[int], tasks: int
) -> np.ndarray:
    """Accuracy of H-OT minus that of nearest centroids on tasks of clusters (shots, tasks).

    It is 0 if there are no WAYS clusters with more samples than shots.

    Parameters
    ----------
    pool : array (n, V)
        Samples in the space of the bank.
    plain : array (n, W)
        The same samples as nearest centroids have them.
    shots : sequence of int
        Numbers of support samples per cluster.
    tasks : int
        Number of tasks for each number of shots.
    """
    labels = clusters(plain)
    found = np.zeros((len(shots), tasks))
    for i, k in enumerate(shots):
        drawn = draw_tasks(labels, k, tasks)
        if drawn is not None:
            found[i] = gains_on_tasks(base, method, pool, plain, *drawn)
    return found


def clusters(x: np.ndarray) -> np.ndarray:
    """Index of the cluster of each sample (n,), by k-means: about sqrt(n) clusters of about sqrt(n) samples."""
    found = KMeans(max(WAYS, round(len(x) ** 0.5)), n_init=1, random_state=0).fit(x.astype(np.float64))
    return np.asarray(found.labels_)


def draw_tasks(labels: np.ndarray, shots: int, tasks: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Rows of support (tasks, WAYS * shots) and queries (tasks, WAYS * QUERIES), cluster by cluster."""
    rows = [np.flatnonzero(labels == c) for c in range(int(labels.max()) + 1)]
    rows = [own for own in rows if len(own) > shots]
    if len(rows) < WAYS:
        return None
    support, queries = [], []
    for task in range(tasks):
        rng = np.random.default_rng([shots, task])
        drawn = [rng.permutation(rows[c]) for c in rng.choice(len(rows), WAYS, replace=False)]
        support.append(np.concatenate([own[:shots] for own in drawn]))
        # With replacement, so that all clusters have as many.
        queries.append(np.concatenate([rng.choice(own[shots:], QUERIES) for own in drawn]))
    return np.stack(support), np.stack(queries)


def gains_on_tasks(
    base: PreparedBase, method: Method, pool: np.ndarray, plain: np.ndarray, support: np.ndarray, queries: np.ndarray
) -> np.ndarray:
    """Accuracy of H-OT minus that of nearest centroids on each task (tasks,); rows as from ``draw_tasks``."""
    shots, per_class = support.shape[1] // WAYS, queries.shape[1] // WAYS
    labels, right = (np.repeat(np.arange(WAYS), k) for k in (shots, per_class))
    found = []
    for some in slices(len(support), TASKS_AT_ONCE):
        own, asked = support[some], queries[some]
        of_support = np.broadcast_to(labels, own.shape)
        fitted = fit_tasks(base, pool[own], of_support, method, n_classes=WAYS, seeds=range(len(own)))
        ours = np.argmax(fitted.decision(pool[asked]), axis=2)
        means = plain[own].reshape(len(own), WAYS, shots, -1).mean(axis=2)
        logits = plain[asked] @ np.swapaxes(means, 1, 2) - np.sum(means * means, axis=2)[:, None] / 2
        theirs = np.argmax(logits, axis=2)
        found.append(np.mean(ours == right, axis=1) - np.mean(theirs == right, axis=1))
    return np.concatenate(found)
