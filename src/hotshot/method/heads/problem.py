"""What a head is trained on: calibrated Gaussians and support samples, each with its weight."""

from __future__ import annotations

from dataclasses import dataclass

from hotshot.arrays import Array, map_arrays, namespace, one_hot
from hotshot.base import PreparedBase
from hotshot.base.covariances import Covariances, Lent
from hotshot.method.calibration import CalibratedGaussians, head_covariances

# Share of the largest variance added to all, so that a covariance of few samples has a Cholesky factor.
JITTER = 1e-6


@dataclass(frozen=True)
class HeadProblem:
    r"""Training problem of linear classifiers for a batch of tasks, N classes and V axes.

    .. math::
        \min_{W, c} \sum_g n_g\, E_{x \sim N(\mu_g, \Sigma_g)}[\ell(W x + c, y_g)]
        + \sum_n u\, \ell(W x_n + c, y_n) + \frac{1}{2C} \lVert W \rVert^2

    with the cross-entropy :math:`\ell` of eq. 12; a support sample is a Gaussian without spread.

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
        How each Gaussian mixes the covariances; None where they are its own and K = G.
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
        """Directions of curvature beside the axes (tasks, P or P + 1, V + 1): the points and the shift."""
        if self.shift_ray is None:
            return self.points
        xp = namespace(self.points)
        tasks, _, width = self.points.shape
        return xp.concat([self.points, xp.broadcast_to(self.shift_ray, (tasks, 1, width))], axis=1)


def head_problem(
    base: PreparedBase,
    gaussians: CalibratedGaussians,
    support: Array,
    labels: Array,
    *,
    n_classes: int,
    n_generated: float,
    support_weight: float,
    C: float,
) -> HeadProblem:
    """The problem that the sampled head solves with `n_generated` features per class, in expectation.

    Each Gaussian of a class with K of them stands for n_generated / K features.
    """
    xp = namespace(support)
    members = xp.matrix_transpose(one_hot(gaussians.labels, n_classes, support.dtype))
    per_class = xp.sum(members, axis=1, keepdims=True)
    counts = n_generated / xp.sum(members * per_class, axis=2)
    support_members = xp.matrix_transpose(one_hot(labels, n_classes, support.dtype))
    points = xp.concat([gaussians.means, support], axis=1)
    points = xp.concat([points, xp.ones_like(points[..., :1])], axis=2)
    covariances, mixing = head_covariances(base, gaussians)
    spectrum, shift_ray = _metric(base, gaussians)
    return HeadProblem(
        points=points,
        members=xp.concat([members, support_members], axis=1),
        counts=xp.concat([counts, xp.full_like(support[..., 0], support_weight)], axis=1),
        covariances=covariances,
        mixing=mixing,
        n_gaussians=gaussians.means.shape[1],
        spectrum=spectrum,
        C=C,
        shift_ray=shift_ray,
    )


def _metric(base: PreparedBase, gaussians: CalibratedGaussians) -> tuple[Array, Array | None]:
    """Spectrum and shift ray: alpha in every entry is one more ray, on the diagonal more spectrum."""
    xp = namespace(base.spectrum)
    spectrum = base.spectrum * xp.sum(gaussians.weights[0, 0, :])
    factor = gaussians.shift_factor
    if factor is None:
        return spectrum, None
    if factor.shape[1] > 1:
        return spectrum + xp.sum(factor * factor, axis=1), None
    return spectrum, xp.concat([factor[:, 0], xp.zeros_like(factor[:1, 0])], axis=0)


def in_double(problem: HeadProblem) -> HeadProblem:
    """The same problem in double precision."""
    xp = namespace(problem.points)
    return map_arrays(problem, lambda x: xp.astype(x, xp.float64))


def spread_of_logits(problem: HeadProblem, weights: Array) -> tuple[Array, Lent]:
    """A_g = W Sigma_g W' of every Gaussian (tasks, G, N, N), and what the covariances lend."""
    lent = problem.covariances.lend(weights)
    return mix(problem, problem.covariances.spread(lent, weights)), lent


def mix(problem: HeadProblem, per_covariance: Array) -> Array:
    """sum_k m_gk X_k: from one matrix per covariance kept to one per Gaussian."""
    if problem.mixing is None:
        return per_covariance
    return _combine(problem.mixing, per_covariance)


def unmix(problem: HeadProblem, per_gaussian: Array) -> Array:
    """sum_g m_gk X_g: the transpose of `mix`, for gradients."""
    if problem.mixing is None:
        return per_gaussian
    return _combine(namespace(per_gaussian).matrix_transpose(problem.mixing), per_gaussian)


def _combine(coefficients: Array, matrices: Array) -> Array:
    xp = namespace(matrices)
    tasks, count, rows, columns = matrices.shape
    flat = coefficients @ xp.reshape(matrices, (tasks, count, rows * columns))
    return xp.reshape(flat, (tasks, coefficients.shape[1], rows, columns))


def pull_back(problem: HeadProblem, spread_gradient: Array, lent: Lent) -> Array:
    """Gradient in W of a function of the A_g, given its symmetric gradient in them: 2 sum_k X_k W Sigma_k."""
    return problem.covariances.pull(unmix(problem, spread_gradient), lent)
