"""Limited-memory quasi-Newton minimisation of the problems of many tasks at once.

The metric knows the bank and the points (see `problem`); what it does not know, the memory learns in a few
steps. On normalised features of 640 dimensions a task takes about ten evaluations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hotshot.arrays import Array, is_single, namespace
from hotshot.errors import InputError
from hotshot.method.heads.problem import FittedHeads, HeadProblem, LocalModel, apply_metric, in_double

MEMORY = 12
MAX_ITERATIONS = 500
SHORTEN = 0.3
SHORTEST = 1e-8


@dataclass(frozen=True)
class Minimum:
    """Where a minimisation ended: theta (tasks, N, V + 1), iterations, which tasks converged (tasks,)."""

    theta: Array
    iterations: int
    converged: Array


def minimise(
    problem: HeadProblem,
    objective: Callable[[HeadProblem, Array], LocalModel],
    theta: Array,
    *,
    tolerance: float | None = None,
) -> Minimum:
    """Minimise from `theta`; every task has its own line search and stops by itself.

    A task has converged when the decrease that its metric predicts is below `tolerance` times its value
    (default 1e-8, or 1e-6 in single precision).
    """
    xp = namespace(theta)
    if tolerance is None:
        tolerance = 1e-6 if is_single(theta) else 1e-8
    noise = 3e-7 if is_single(theta) else 1e-15
    here = objective(problem, theta)
    check_finite(here.value)
    direction = apply_metric(problem, here, -here.gradient)
    slope = _dot(here.gradient, direction)
    length = one = xp.ones_like(slope)
    zero = xp.zeros_like(slope)
    converged = -slope <= tolerance * xp.abs(here.value)
    stuck = xp.zeros_like(converged)
    memory: list[tuple[Array, Array, Array]] = []

    iteration = 0
    while iteration < MAX_ITERATIONS and not bool(xp.all(converged | stuck)):
        iteration += 1
        resting = converged | stuck
        step = xp.where(resting, zero, length)[:, None, None] * direction
        there = objective(problem, theta + step)
        enough = here.value - there.value >= -1e-4 * length * slope - noise * xp.abs(here.value)
        accepted = enough & ~resting
        stuck = stuck | (~enough & ~resting & (length < SHORTEST))

        kept = accepted[:, None, None]
        change = there.gradient - here.gradient
        overlap = _dot(step, change)
        # A pair of a refused step, or one that shows no curvature, counts for nothing.
        sound = accepted & (overlap > 1e-12 * xp.sqrt(_dot(step, step) * _dot(change, change)))
        rho = xp.where(sound, 1 / xp.where(sound, overlap, one), zero)
        if bool(xp.any(sound)):
            memory = [*memory[-MEMORY + 1 :], (step, change, rho)]
        theta = xp.where(kept, theta + step, theta)
        here = LocalModel(
            xp.where(accepted, there.value, here.value),
            xp.where(kept, there.gradient, here.gradient),
            xp.where(kept, there.diagonal, here.diagonal),
            xp.where(kept, there.rays, here.rays),
        )
        direction = xp.where(kept, _direction(problem, here, memory), direction)
        slope = xp.where(accepted, _dot(here.gradient, direction), slope)
        length = xp.where(accepted, one, length * SHORTEN)
        converged = converged | (accepted & (-slope <= tolerance * xp.abs(here.value)))
    return Minimum(theta, iteration, converged)


def refined(problem: HeadProblem, objective: Callable[[HeadProblem, Array], LocalModel], found: Minimum) -> FittedHeads:
    """The minimum as found; in double from there where a weak penalty or long axes used up single precision."""
    xp, dtype = namespace(found.theta), found.theta.dtype
    if not bool(xp.all(found.converged)) and is_single(found.theta):
        found = minimise(in_double(problem), objective, xp.astype(found.theta, xp.float64))
    return FittedHeads(xp.astype(found.theta, dtype, copy=False), found.converged)


def check_finite(x: Array) -> None:
    """Samples are checked where they enter: only a bank whose file was damaged brings other numbers here."""
    xp = namespace(x)
    if not bool(xp.all(xp.isfinite(x))):
        raise InputError("The base classes hold NaN or infinity: make the bank again.")


def _direction(problem: HeadProblem, here: LocalModel, memory: list[tuple[Array, Array, Array]]) -> Array:
    """The two-loop recursion of L-BFGS, around the metric at this point."""
    direction = -here.gradient
    coefficients = []
    for step, change, rho in reversed(memory):
        alpha = rho * _dot(step, direction)
        direction = direction - alpha[:, None, None] * change
        coefficients.append(alpha)
    direction = apply_metric(problem, here, direction)
    for (step, change, rho), alpha in zip(memory, reversed(coefficients), strict=True):
        beta = rho * _dot(change, direction)
        direction = direction + (alpha - beta)[:, None, None] * step
    return direction


def _dot(x: Array, y: Array) -> Array:
    return namespace(x).sum(x * y, axis=(1, 2))
