"""Entropic optimal transport in batches, with a plan, its values and a status per problem."""

from hotshot.transport.costs import pairwise_cost
from hotshot.transport.solution import Solution, Status
from hotshot.transport.solve import solve

__all__ = ["Solution", "Status", "pairwise_cost", "solve"]
