"""A limited-memory quasi-Newton method (L-BFGS) around a metric, for many tasks at once, each with its own line search.

Theta is (tasks, N, V + 1): weights and, last, the intercept of every class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hotshot.arrays import choose
from hotshot.method.heads.problem import Point

# Pairs of steps that are remembered, and settings of the line search.
MEMORY = 12
MAX_ITERATIONS = 500
SHORTEN = 0.3
SHORTEST = 1e-8
# Rounding noise of a value, and default tolerance.
SINGLE, DOUBLE = (3e-7, 1e-6), (1e-15, 1e-8)


@dataclass(frozen=True)
class Minimum:
    """Theta (tasks, N, V + 1), the point there, which tasks converged (tasks,), and the number of iterations."""

    theta: np.ndarray
    point: Point
    converged: np.ndarray
    iterations: int


Objective = Callable[[np.ndarray], Point]
# The inverse of a positive approximation of the Hessian at a point, times x (tasks, N, V + 1).
Metric = Callable[[Point, np.ndarray], np.ndarray]
# Steps, changes of the gradient, and the inverses of their products (tasks,).
Memory = list[tuple[np.ndarray, np.ndarray, np.ndarray]]


def minimise(objective: Objective, metric: Metric, theta: np.ndarray, tolerance: float | None = None) -> Minimum:
    """Minimise from ``theta``.

    A task has converged when the decrease that its metric predicts is below ``tolerance`` times its value
    (default 1e-8, or 1e-6 in single precision).
    """
    noise, usual_tolerance = SINGLE if theta.dtype == np.float32 else DOUBLE
    tolerance = usual_tolerance if tolerance is None else tolerance
    memory: Memory = []
    here = objective(theta)
    if not np.isfinite(here.value).all():
        raise FloatingPointError
    direction, slope, is_downhill = _direction(metric, here, memory)
    length = np.ones_like(slope)
    converged = is_downhill & (-slope <= tolerance * np.abs(here.value))
    stuck = np.zeros_like(converged)

    iteration = 0
    while iteration < MAX_ITERATIONS and not (converged | stuck).all():
        iteration += 1
        resting = converged | stuck
        step = np.where(resting, 0, length)[:, None, None] * direction
        there = objective(theta + step)
        is_enough = here.value - there.value >= -1e-4 * length * slope - noise * np.abs(here.value)
        accepted = is_enough & ~resting
        stuck |= ~is_enough & ~resting & (length < SHORTEST)

        change = there.gradient - here.gradient
        overlap = _dot(step, change)
        # A pair of a refused step, or one without curvature, is not used.
        is_curved = accepted & (overlap > 1e-12 * np.sqrt(_dot(step, step) * _dot(change, change)))
        if is_curved.any():
            inverse = np.where(is_curved, 1 / np.where(is_curved, overlap, 1), 0)
            memory = [*memory[-MEMORY + 1 :], (step, change, inverse)]
        theta = _where(accepted, theta + step, theta)
        here = there if accepted.all() else choose(np, accepted, there, here)
        next_direction, next_slope, is_downhill = _direction(metric, here, memory)
        direction = _where(accepted, next_direction, direction)
        slope = np.where(accepted, next_slope, slope)
        length = np.where(accepted, 1, length * SHORTEN).astype(theta.dtype)
        converged |= accepted & is_downhill & (-slope <= tolerance * np.abs(here.value))
    return Minimum(theta, here, converged, iteration)


def _direction(metric: Metric, here: Point, memory: Memory) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The direction of each task, its slope, and whether L-BFGS found it: one uphill gives way to the gradient.

    It is the two-loop recursion around the metric at this point.
    """
    direction, coefficients = -here.gradient, []
    for step, change, inverse in reversed(memory):
        coefficients.append(inverse * _dot(step, direction))
        direction = direction - coefficients[-1][:, None, None] * change
    direction = metric(here, direction)
    for (step, change, inverse), coefficient in zip(memory, reversed(coefficients), strict=True):
        direction = direction + (coefficient - inverse * _dot(change, direction))[:, None, None] * step
    slope = _dot(here.gradient, direction)
    is_downhill = slope <= 0
    if not is_downhill.all():
        direction = _where(is_downhill, direction, -here.gradient)
        slope = _dot(here.gradient, direction)
    return direction, slope, is_downhill


def _where(tasks: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Arrays (tasks, N, V + 1): x for the marked tasks, y for the others."""
    return x if tasks.all() else np.where(tasks[:, None, None], x, y)


def _dot(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.asarray(np.sum(x * y, axis=(1, 2)))
