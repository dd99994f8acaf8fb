"""Heads: the N-way linear classifier trained on the support samples and the calibrated Gaussians."""

from collections.abc import Callable
from dataclasses import dataclass

from hotshot.method.heads.bound import fit_bound
from hotshot.method.heads.problem import FittedHeads, Training
from hotshot.method.heads.sampled import fit_sampled


@dataclass(frozen=True)
class Head:
    """An entry of ``HEADS``.

    Attributes
    ----------
    fit : function
        Trains the heads of a batch of tasks.
    in_batches : bool
        Whether many tasks are fitted together in less time than one by one.
    """

    fit: Callable[[Training], FittedHeads]
    in_batches: bool = True


HEADS = {"bound": Head(fit_bound), "sampled": Head(fit_sampled, in_batches=False)}
