"""Heads: the N-way linear classifier trained on the support samples and the calibrated Gaussians."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from hotshot.method.heads.bound import bound_objective
from hotshot.method.heads.expected import expected_objective
from hotshot.method.heads.problem import FittedHeads, Training, fit_objectives
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


HEADS = {
    "bound": Head(partial(fit_objectives, objectives=(bound_objective,))),
    # From the minimum of the bound.
    "expected": Head(partial(fit_objectives, objectives=(bound_objective, expected_objective))),
    "sampled": Head(fit_sampled, in_batches=False),
}
