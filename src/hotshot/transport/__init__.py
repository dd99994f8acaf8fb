"""Entropic optimal transport in batches, with a plan, its values and a status per problem."""

from hotshot.transport.costs import pairwise_cost
from hotshot.transport.solve import Solution, Status, count_statuses, solve

__all__ = ["Solution", "Status", "count_statuses", "pairwise_cost", "solve"]
