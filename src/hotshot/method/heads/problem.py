"""The training problem of a head: its objective, its gradient and its minimum, for many tasks at once.

The Hessian of every head is approximately, class by class, a multiple of the pooled base covariance, which is
diagonal in the axes of the bank, plus the penalty, plus one rank-one term ("ray") per point: h x x', with x the point
and h = n p (1 - p) for weight n and probability p. A limited-memory quasi-Newton method (L-BFGS) starts from that
metric and corrects it in a few steps. On normalised features of 640 dimensions a task takes about ten evaluations.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from hotshot.arrays import Array, choose, is_single, map_arrays, namespace, one_hot, small_identity
from hotshot.bank import PreparedBase
from hotshot.bank.covariances import Covariances, Product
from hotshot.method.calibration import CalibratedGaussians, head_covariances
from hotshot.method.parameters import Method

# With more rays and axes than this only the diagonal of the rays enters the metric.
MOST_RAYS = 256
INTERCEPT_CURVATURE = 1e-3
# In units of the penalty: beyond it the penalty is below the tolerance of single precision.
LARGEST_SINGLE_CURVATURE = 1e6
# Pairs of steps that the optimiser remembers, and settings of its line search.
MEMORY = 12
MAX_ITERATIONS = 500
SHORTEN = 0.3
SHORTEST = 1e-8


@dataclass(frozen=True)
class Training:
    """What heads are trained on, for a batch of tasks.

    Attributes
    ----------
    base : PreparedBase
    gaussians : CalibratedGaussians
    support, labels : arrays (tasks, S, V) and (tasks, S)
        Support samples in the space of the bank, and their classes from 0.
    n_classes : int
    method : Method
    seeds : sequence of seeds, one per task
        Seeds of the sampled head.
    """

    base: PreparedBase
    gaussians: CalibratedGaussians
    support: Array
    labels: Array
    n_classes: int
    method: Method
    seeds: Sequence[int]


@dataclass(frozen=True)
class FittedHeads:
    """Weights and, last, intercepts theta (tasks, N, V + 1), and which tasks converged (tasks,).

    ``slopes`` (tasks, P, N) are the derivatives of the loss in the logits of the points of a ``HeadProblem``, at the
    minimum; None if a head solves another problem. ``iterations`` are those of the optimiser.
    """

    theta: Array
    converged: Array
    slopes: Array | None = None
    iterations: int = 0


@dataclass(frozen=True)
class HeadProblem:
    r"""Training problem of linear classifiers for a batch of tasks, N classes and V axes.

    .. math::
        \min_{W, c} \sum_g n_g\, E_{x \sim N(\mu_g, \Sigma_g)}[\ell(W x + c, y_g)]
        + \sum_n u\, \ell(W x_n + c, y_n) + \frac{1}{2C} \lVert W \rVert^2

    with the cross-entropy :math:`\ell` of eq. 12; a support sample is a Gaussian without variance.

    Attributes
    ----------
    points : array (tasks, P, V + 1)
        Means of the G Gaussians, then the support samples, each with a last entry of 1 for the intercept.
    members : array (tasks, P, N)
        One-hot classes of the points.
    counts : array (tasks, P)
        Weights n_g and u.
    covariances : Covariances
        K of them, for all tasks or for each.
    mixing : array (tasks, G, K) or None
        How each Gaussian mixes the covariances; None if each has its own and K = G.
    n_gaussians : int
    spectrum : array (V,)
        Variances of a typical covariance along these axes, from which the optimiser takes its metric.
    C : float
        Inverse strength of the penalty, as in scikit-learn's LogisticRegression.
    shift_ray : array (V + 1,) or None
        The direction that alpha in every entry adds to every covariance, for the metric.
    """

    points: Array
    members: Array
    counts: Array
    covariances: Covariances
    mixing: Array | None
    n_gaussians: int
    spectrum: Array
    C: float
    shift_ray: Array | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes, N."""
        return int(self.members.shape[2])

    @property
    def rays(self) -> Array:
        """Directions of curvature other than the axes (tasks, P or P + 1, V + 1): the points and the shift."""
        if self.shift_ray is None:
            return self.points
        xp = namespace(self.points)
        tasks, _, width = self.points.shape
        return xp.concat([self.points, xp.broadcast_to(self.shift_ray, (tasks, 1, width))], axis=1)


def head_problem(training: Training) -> HeadProblem:
    """The problem of the sampled head with ``n_generated`` features per class, in expectation.

    Each Gaussian of a class with K of them represents n_generated / K features.
    """
    gaussians, support, method = training.gaussians, training.support, training.method
    n_classes = training.n_classes
    xp = namespace(support)
    members = xp.matrix_transpose(one_hot(gaussians.labels, n_classes, support.dtype))
    per_class = xp.sum(members, axis=1, keepdims=True)
    counts = method.n_generated / xp.sum(members * per_class, axis=2)
    support_members = xp.matrix_transpose(one_hot(training.labels, n_classes, support.dtype))
    points = xp.concat([gaussians.means, support], axis=1)
    points = xp.concat([points, xp.ones_like(points[..., :1])], axis=2)
    covariances, mixing = head_covariances(training.base, gaussians)
    spectrum, shift_ray = gaussians.typical_spectrum(training.base)
    return HeadProblem(
        points=points,
        members=xp.concat([members, support_members], axis=1),
        counts=xp.concat([counts, xp.full_like(support[..., 0], method.support_weight)], axis=1),
        covariances=covariances,
        mixing=mixing,
        n_gaussians=gaussians.means.shape[1],
        spectrum=spectrum,
        C=symmetric_penalty(method.C, n_classes),
        shift_ray=shift_ray,
    )


def symmetric_penalty(C: float, n_classes: int) -> float:
    """C for one vector per class; with two, scikit-learn fits one vector, and two opposite halves cost half as much."""
    return C / 2 if n_classes == 2 else C


def zeros(problem: HeadProblem) -> Array:
    """The start of the optimisation: theta (tasks, N, V + 1) of zeros."""
    xp = namespace(problem.points)
    return xp.zeros_like(xp.matrix_transpose(problem.members) @ problem.points)


def logit_covariances(problem: HeadProblem, weights: Array) -> tuple[Array, Product]:
    """A_g = W Sigma_g W' of every Gaussian (tasks, G, N, N), and the product with the covariances kept."""
    product = problem.covariances.apply(weights)
    return mix(problem, problem.covariances.quadratic(product, weights)), product


def through_covariances(problem: HeadProblem, slopes: Array, product: Product) -> Array:
    """Gradient in W of a function of the A_g, given its symmetric derivatives in them: 2 sum_k X_k W Sigma_k."""
    return problem.covariances.gradient(unmix(problem, slopes), product)


def mix(problem: HeadProblem, per_covariance: Array) -> Array:
    """sum_k m_gk X_k: from one matrix per covariance kept to one per Gaussian."""
    if problem.mixing is None:
        return per_covariance
    return _combine(problem.mixing, per_covariance)


def unmix(problem: HeadProblem, per_gaussian: Array) -> Array:
    """sum_g m_gk X_g: the transpose of ``mix``, for gradients."""
    if problem.mixing is None:
        return per_gaussian
    return _combine(namespace(per_gaussian).matrix_transpose(problem.mixing), per_gaussian)


def _combine(coefficients: Array, matrices: Array) -> Array:
    xp = namespace(matrices)
    tasks, count, rows, columns = matrices.shape
    flat = coefficients @ xp.reshape(matrices, (tasks, count, rows * columns))
    return xp.reshape(flat, (tasks, coefficients.shape[1], rows, columns))


@dataclass(frozen=True)
class LocalModel:
    """Value (tasks,), gradient (tasks, N, V + 1) and metric of a head's problem at one point theta.

    The metric is a positive diagonal (tasks, N, V + 1) and the curvature along each ray (tasks, N, P or P + 1).
    ``slopes`` (tasks, P, N) is the gradient in the logits of the points.
    """

    value: Array
    gradient: Array
    diagonal: Array
    rays: Array
    slopes: Array


def softmax(logits: Array) -> tuple[Array, Array]:
    """Probabilities along the last axis, and log sum exp."""
    xp = namespace(logits)
    peak = xp.max(logits, axis=-1, keepdims=True)
    exponentials = xp.exp(logits - peak)
    total = xp.sum(exponentials, axis=-1, keepdims=True)
    return exponentials / total, (peak + xp.log(total))[..., 0]


def assemble(
    problem: HeadProblem,
    theta: Array,
    losses: Array,
    logit_gradient: Array,
    covariance_gradient: Array,
    class_curvature: Array,
    rays: Array,
) -> LocalModel:
    """Add up the points, the penalty and the metric.

    Parameters
    ----------
    theta : array (tasks, N, V + 1)
        Weights and, last, intercepts.
    losses, logit_gradient, rays : arrays (tasks, P), (tasks, P, N) and (tasks, P, N)
        Weighted losses of the points, their derivatives in the logits of the means, and curvatures there.
    covariance_gradient : array (tasks, N, V)
        Gradient in the weights through the covariances of the logits.
    class_curvature : array (tasks, N)
        Curvature per unit of variance of each class's logit, summed over Gaussians.
    """
    xp = namespace(theta)
    weights = theta[..., :-1]
    value = xp.sum(losses, axis=1) + xp.sum(weights * weights, axis=(1, 2)) / (2 * problem.C)
    gradient = xp.matrix_transpose(logit_gradient) @ problem.points
    slopes = gradient[..., :-1] + covariance_gradient + weights / problem.C
    gradient = xp.concat([slopes, gradient[..., -1:]], axis=2)
    diagonal = class_curvature[..., None] * problem.spectrum + 1 / problem.C
    intercept = xp.full_like(diagonal[..., :1], INTERCEPT_CURVATURE)
    diagonal = xp.concat([diagonal, intercept], axis=2)
    along = xp.matrix_transpose(rays)
    if problem.shift_ray is not None:
        along = xp.concat([along, class_curvature[..., None]], axis=2)
    return LocalModel(value, gradient, diagonal, along, logit_gradient)


def apply_metric(problem: HeadProblem, at: LocalModel, x: Array) -> Array:
    """(diag(d) + sum_p h_p x_p x_p')^-1 x for each class: (tasks, N, V + 1)."""
    xp = namespace(x)
    directions = problem.rays
    n_rays, width = directions.shape[1:]
    if min(n_rays, width) > MOST_RAYS:
        return x / (at.diagonal + at.rays @ (directions * directions))
    rays = xp.sqrt(at.rays)[..., None] * directions[:, None, ...]
    if n_rays >= width:
        identity = small_identity(width, x)
        matrix = xp.matrix_transpose(rays) @ rays + at.diagonal[..., None] * identity
        return xp.linalg.solve(matrix, x[..., None])[..., 0]
    # Woodbury's identity: a system of the rays, which are fewer than the axes.
    inverse = 1 / at.diagonal
    direct = x * inverse
    kernel = (rays * inverse[:, :, None, :]) @ xp.matrix_transpose(rays)
    kernel = kernel + small_identity(n_rays, x)
    along = xp.linalg.solve(kernel, rays @ direct[..., None])
    return direct - inverse * (xp.matrix_transpose(rays) @ along)[..., 0]


def minimise(
    problem: Any,
    objective: Callable[[Any, Array], LocalModel],
    theta: Array,
    *,
    tolerance: float | None = None,
    metric: Callable[[Any, LocalModel, Array], Array] | None = None,
) -> FittedHeads:
    """Minimise from ``theta``; every task has its own line search and stopping.

    A task has converged when the decrease that its metric predicts is below ``tolerance`` times its value
    (default 1e-8, or 1e-6 in single precision). ``metric`` is ``apply_metric`` unless given.
    """
    metric = apply_metric if metric is None else metric
    xp = namespace(theta)
    if tolerance is None:
        tolerance = 1e-6 if is_single(theta) else 1e-8
    noise = 3e-7 if is_single(theta) else 1e-15
    here = objective(problem, theta)
    check_finite(here.value)
    direction, slope, sound = _downhill(here, metric(problem, here, -here.gradient))
    length = one = xp.ones_like(slope)
    zero = xp.zeros_like(slope)
    converged = sound & (-slope <= tolerance * xp.abs(here.value))
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
        # A pair of a refused step, or one without curvature, is not used.
        curved = accepted & (overlap > 1e-12 * xp.sqrt(_dot(step, step) * _dot(change, change)))
        rho = xp.where(curved, 1 / xp.where(curved, overlap, one), zero)
        if bool(xp.any(curved)):
            memory = [*memory[-MEMORY + 1 :], (step, change, rho)]
        theta = xp.where(kept, theta + step, theta)
        here = choose(xp, accepted, there, here)
        proposed, along, sound = _downhill(here, _direction(partial(metric, problem, here), here, memory))
        direction = xp.where(kept, proposed, direction)
        slope = xp.where(accepted, along, slope)
        length = xp.where(accepted, one, length * SHORTEN)
        converged = converged | (accepted & sound & (-slope <= tolerance * xp.abs(here.value)))
    return FittedHeads(theta, converged, here.slopes, iteration)


def refined(
    problem: HeadProblem, objective: Callable[[HeadProblem, Array], LocalModel], found: FittedHeads
) -> FittedHeads:
    """The fitted heads, continued in double precision if single precision did not resolve the minimum."""
    xp, dtype = namespace(found.theta), found.theta.dtype
    curvature = xp.max(problem.spectrum) * xp.max(xp.sum(problem.counts, axis=1))
    resolved = bool(xp.all(found.converged)) and float(problem.C * curvature) < LARGEST_SINGLE_CURVATURE
    if is_single(found.theta) and not resolved:
        double = map_arrays(problem, lambda x: xp.astype(x, xp.float64))
        found = minimise(double, objective, xp.astype(found.theta, xp.float64))
    return map_arrays(found, lambda x: xp.astype(x, dtype, copy=False))


def check_finite(x: Array) -> None:
    """Raise unless finite: samples are checked on input, but a damaged bank or extreme parameters can overflow."""
    xp = namespace(x)
    if not bool(xp.all(xp.isfinite(x))):
        raise FloatingPointError


def _direction(metric: Callable[[Array], Array], here: LocalModel, memory: list[tuple[Array, Array, Array]]) -> Array:
    """The two-loop recursion of L-BFGS, around the metric at this point."""
    direction = -here.gradient
    coefficients = []
    for step, change, rho in reversed(memory):
        alpha = rho * _dot(step, direction)
        direction = direction - alpha[:, None, None] * change
        coefficients.append(alpha)
    direction = metric(direction)
    for (step, change, rho), alpha in zip(memory, reversed(coefficients), strict=True):
        beta = rho * _dot(change, direction)
        direction = direction + (alpha - beta)[:, None, None] * step
    return direction


def _downhill(here: LocalModel, direction: Array) -> tuple[Array, Array, Array]:
    """The direction of each task if it leads downhill, else its negative gradient; its slope; and whether it does."""
    xp = namespace(direction)
    sound = _dot(here.gradient, direction) <= 0
    direction = xp.where(sound[:, None, None], direction, -here.gradient)
    return direction, _dot(here.gradient, direction), sound


def _dot(x: Array, y: Array) -> Array:
    return namespace(x).sum(x * y, axis=(1, 2))
