"""What a transport solve returns: the plan and how well it did, problem by problem."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from hotshot.arrays import Array, namespace, to_numpy
from hotshot.errors import TransportError


class Status(IntEnum):
    """How the solve of one problem ended; `explanation` says what that means and what to do."""

    CONVERGED = 0
    MAX_ITERATIONS = 1
    NOT_FINITE = 2
    BAD_MASS = 3

    @property
    def explanation(self) -> str:
        """What happened, why it usually happens, and the remedy."""
        return _EXPLANATIONS[self]


_EXPLANATIONS = {
    Status.CONVERGED: "The plan meets both marginals to the tolerance.",
    Status.MAX_ITERATIONS: (
        "The iterations ran out before the marginals were met, because epsilon is tiny against the spread of "
        "the costs or the tolerance is below what the precision of the numbers allows: raise epsilon, "
        "the tolerance or max_iterations, or pass float64."
    ),
    Status.NOT_FINITE: (
        "The cost, alone or divided by epsilon, or a marginal holds NaN or infinity, so nothing was transported: "
        "the plan is zero; remove or repair those entries."
    ),
    Status.BAD_MASS: (
        "The marginals are negative, empty or of different totals, so nothing was transported: the plan "
        "is zero; pass non-negative marginals of equal, positive total."
    ),
}


@dataclass(frozen=True)
class Solution:
    """Solutions of a batch of entropic transport problems.

    Attributes
    ----------
    plan : array (…, J, S)
        Non-negative, rows sum to `a` and columns to `b`; zero where the status is NOT_FINITE or BAD_MASS.
    cost : array (…)
        Transport cost sum(C * plan); infinite where nothing was transported.
    primal, dual : array (…)
        Value of the regularised problem, sum(C * plan) + epsilon * sum(plan * log plan), and of its dual;
        they meet at the solution and the dual is the lower.
    marginal_error : array (…)
        Sum of absolute violations of both marginals, as a share of the mass.
    iterations : integer array (…)
        Iterations spent on the problem's block.
    status : integer array (…)
        `Status` of each problem.
    """

    plan: Array
    cost: Array
    primal: Array
    dual: Array
    marginal_error: Array
    iterations: Array
    status: Array

    @property
    def converged(self) -> bool:
        """Whether every problem of the batch converged."""
        return bool(namespace(self.status).all(self.status == int(Status.CONVERGED)))

    def status_counts(self) -> dict[Status, int]:
        """How many problems ended in each status, the absent ones left out."""
        return count_statuses(self.status)

    def raise_for_status(self) -> Solution:
        """Return self, or raise `TransportError` where a plan is unusable: nothing was transported."""
        counts = self.status_counts()
        for status in (Status.NOT_FINITE, Status.BAD_MASS):
            if status in counts:
                raise TransportError(f"{counts[status]} transport problem(s) failed: {status.explanation}")
        return self


def count_statuses(status: Array) -> dict[Status, int]:
    """How many problems ended in each status, the absent ones left out."""
    values, counts = np.unique(to_numpy(status), return_counts=True)
    return {Status(int(v)): int(n) for v, n in zip(values, counts, strict=True)}


@dataclass(frozen=True)
class BlockSolution:
    """What a solver returns for a block of P problems of unit mass, in units of epsilon.

    The plan is `(P, S, J)` and meets the marginal of the large side; `potential` `(P, S)` belongs to the small
    side, relative to the logarithm of its marginal; `value` `(P,)` is that of the semi-dual; `converged` `(P,)`
    says which problems met the tolerance at the epsilon asked for.
    """

    plan: Array
    potential: Array
    value: Array
    iterations: int
    converged: Array
