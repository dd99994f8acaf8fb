"""Heads, eq. 12: the N-way linear classifier trained on the support samples and the calibrated Gaussians."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hotshot.method.heads.bound import Training, fit_bound
from hotshot.method.heads.sampled import fit_sampled

__all__ = ["HEADS", "Head", "Training"]


@dataclass(frozen=True)
class Head:
    """An entry of ``HEADS``; ``in_batches`` tells whether many tasks take less time together than one by one.

    ``fit`` returns theta (tasks, N, V + 1), which tasks converged (tasks,), and the derivatives of the loss in the
    logits of the calibrated means and the support samples (tasks, G + S, N), or None if it has none.
    """

    fit: Callable[[Training], tuple[np.ndarray, np.ndarray, np.ndarray | None]]
    in_batches: bool = True


HEADS = {"bound": Head(fit_bound), "sampled": Head(fit_sampled, in_batches=False)}
