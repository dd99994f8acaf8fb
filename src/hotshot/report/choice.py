"""Which tasks are worth a look: the worst, those around the median, and the best."""

from __future__ import annotations

import numpy as np

WORST, MEDIAN, BEST = "worst", "median", "best"


def choose_tasks(accuracies: np.ndarray, most: int) -> dict[int, str]:
    """Indices of at most so many tasks and which group each is of, from the worst to the best.

    Examples
    --------
    >>> choose_tasks(np.array([0.9, 0.2, 0.5, 0.6, 0.4]), 3)
    {1: 'worst', 2: 'median', 0: 'best'}
    """
    order = np.argsort(accuracies, kind="stable")
    size = min(most, len(order))
    outer = size // 3
    inner = size - 2 * outer
    start = (len(order) - inner) // 2
    groups = {
        WORST: order[:outer],
        MEDIAN: order[start : start + inner],
        BEST: order[len(order) - outer :],
    }
    return {int(index): group for group, indices in groups.items() for index in indices}
