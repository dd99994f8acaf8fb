"""A limited-memory quasi-Newton method (L-BFGS) for many small problems at once, around a metric of each problem."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Generic, TypeVar

import numpy as np

# Pairs of steps that the optimiser remembers, and settings of its line search.
MEMORY = 12
MAX_ITERATIONS = 500
SHORTEN = 0.3
SHORTEST = 1e-8


@dataclass(frozen=True)
class Point:
    """Value (tasks,) and gradient (tasks, N, V + 1) of an objective at theta, and what its metric needs (tasks, …)."""

    value: np.ndarray
    gradient: np.ndarray


P = TypeVar("P", bound=Point)
# Of theta (tasks, N, V + 1).
Objective = Callable[[np.ndarray], P]
# The inverse of a positive approximation of the Hessian at a point, times x (tasks, N, V + 1).
Metric = Callable[[P, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Minimum(Generic[P]):
    """Theta (tasks, N, V + 1), the objective there, which tasks converged (tasks,), and the number of iterations."""

    theta: np.ndarray
    point: P
    converged: np.ndarray
    iterations: int


def minimise(
    objective: Objective[P], metric: Metric[P], theta: np.ndarray, tolerance: float | None = None
) -> Minimum[P]:
    """Minimise from ``theta``; every task has its own line search and stopping.

    A task has converged when the decrease that its metric predicts is below ``tolerance`` times its value
    (default 1e-8, or 1e-6 in single precision).
    """
    is_single = theta.dtype == np.float32
    if tolerance is None:
        tolerance = 1e-6 if is_single else 1e-8
    noise = 3e-7 if is_single else 1e-15
    here = objective(theta)
    if not np.isfinite(here.value).all():
        raise FloatingPointError
    direction, slope, sound = _downhill(here, metric(here, -here.gradient))
    length = np.ones_like(slope)
    converged = sound & (-slope <= tolerance * np.abs(here.value))
    stuck = np.zeros_like(converged)
    memory: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    iteration = 0
    while iteration < MAX_ITERATIONS and not (converged | stuck).all():
        iteration += 1
        resting = converged | stuck
        step = np.where(resting, 0, length)[:, None, None] * direction
        there = objective(theta + step)
        enough = here.value - there.value >= -1e-4 * length * slope - noise * np.abs(here.value)
        accepted = enough & ~resting
        stuck |= ~enough & ~resting & (length < SHORTEST)

        change = there.gradient - here.gradient
        overlap = _dot(step, change)
        # A pair of a refused step, or one without curvature, is not used.
        curved = accepted & (overlap > 1e-12 * np.sqrt(_dot(step, step) * _dot(change, change)))
        if curved.any():
            rho = np.where(curved, 1 / np.where(curved, overlap, 1), 0)
            memory = [*memory[-MEMORY + 1 :], (step, change, rho)]
        theta = _where(accepted, theta + step, theta)
        here = type(here)(*(_where(accepted, getattr(there, f.name), getattr(here, f.name)) for f in fields(here)))
        proposed, along, sound = _downhill(here, _direction(metric, here, memory))
        direction = _where(accepted, proposed, direction)
        slope = np.where(accepted, along, slope)
        length = np.where(accepted, 1, length * SHORTEN).astype(theta.dtype)
        converged |= accepted & sound & (-slope <= tolerance * np.abs(here.value))
    return Minimum(theta, here, converged, iteration)


def _direction(metric: Metric[P], here: P, memory: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> np.ndarray:
    """The two-loop recursion of L-BFGS, around the metric at this point."""
    direction = -here.gradient
    coefficients = []
    for step, change, rho in reversed(memory):
        alpha = rho * _dot(step, direction)
        direction = direction - alpha[:, None, None] * change
        coefficients.append(alpha)
    direction = metric(here, direction)
    for (step, change, rho), alpha in zip(memory, reversed(coefficients), strict=True):
        beta = rho * _dot(change, direction)
        direction = direction + (alpha - beta)[:, None, None] * step
    return direction


def _downhill(here: Point, direction: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The direction of each task if it leads downhill, else its negative gradient; its slope; and whether it does."""
    slope = _dot(here.gradient, direction)
    sound = slope <= 0
    if sound.all():
        return direction, slope, sound
    direction = _where(sound, direction, -here.gradient)
    return direction, _dot(here.gradient, direction), sound


def _where(tasks: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Arrays (tasks, …): x for the marked tasks, y for the others."""
    if tasks.all():
        return x
    return np.where(tasks.reshape(-1, *[1] * (x.ndim - 1)), x, y)


def _dot(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.asarray(np.sum(x * y, axis=(1, 2)))
