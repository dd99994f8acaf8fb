r"""The expected head: the cross-entropy under the calibrated Gaussians, integrated.

Logits W x + c of a Gaussian x are Gaussian in N dimensions, so the expected loss, which is the limit of infinitely
many generated features, is an integral over N and not V dimensions. Only differences of logits matter, so N - 1
dimensions are left: with Q an orthonormal basis of the vectors that sum to zero,

.. math::
    E[\ell(z, y)] = E_{e \sim N(0, I)}[\ell(m + Q L e, y)], \qquad L L^\top = Q^\top W \Sigma W^\top Q .

The nodes e are fixed and quasi-random, and the gradient is that of the finite sum, through the Cholesky factor.
"""

from functools import cache

import numpy as np
from scipy.stats import norm, qmc

from hotshot.arrays import Array, is_single, like, namespace, small_identity
from hotshot.method.heads.problem import (
    JITTER,
    HeadProblem,
    LocalModel,
    assemble,
    logit_covariances,
    softmax,
    through_covariances,
)

N_NODES = 1024


@cache
def quadrature_nodes(dimension: int, n_nodes: int) -> np.ndarray:
    """Fixed nodes (n_nodes or more, dimension) of equal weight whose odd moments vanish and covariance is the identity.

    Half are Sobol points taken to the normal distribution and whitened, half their mirror images.
    """
    # Sobol points come in powers of two, and whitening needs more of them than dimensions.
    power = max(n_nodes // 2, 2 * dimension) - 1
    half = norm.ppf(qmc.Sobol(dimension, seed=0).random_base2(power.bit_length()))
    factor = np.linalg.cholesky(half.T @ half / len(half))
    half = np.linalg.solve(factor, half.T).T
    return np.concatenate([half, -half])


@cache
def contrasts(n_classes: int) -> np.ndarray:
    """Orthonormal basis (N, N - 1) of the vectors that sum to zero."""
    basis, _ = np.linalg.qr(np.eye(n_classes)[:, :-1] - 1 / n_classes)
    return basis


def expected_objective(problem: HeadProblem, theta: Array) -> LocalModel:
    """Value and gradient of the expected loss at theta (tasks, N, V + 1)."""
    xp = namespace(theta)
    n_gaussians, n_classes = problem.n_gaussians, problem.n_classes
    members, counts = problem.members, problem.counts
    nodes = like(quadrature_nodes(n_classes - 1, N_NODES), theta)
    basis = like(contrasts(n_classes), theta)
    logits = problem.points @ xp.matrix_transpose(theta)
    weights = theta[..., :-1]
    covariances, product = logit_covariances(problem, weights)
    # As in the sampled head: in single precision a covariance of few samples may have negative eigenvalues.
    ridge = JITTER * xp.max(problem.spectrum)
    covariances = covariances + ridge * (weights @ xp.matrix_transpose(weights))[:, None, :, :]

    factor, jitter = _factor(xp.matrix_transpose(basis) @ covariances @ basis)
    deviations = nodes @ xp.matrix_transpose(basis @ factor)
    own = members[:, :n_gaussians, None, :]
    at_nodes = logits[:, :n_gaussians, None, :] + deviations
    p, log_total = softmax(at_nodes)
    node_losses = log_total - xp.sum(at_nodes * own, axis=3)
    weight = counts[:, :n_gaussians] / nodes.shape[0]
    node_gradient = weight[..., None, None] * (p - own)
    uncertain = weight[..., None] * xp.sum(p * (1 - p), axis=2)

    factor_gradient = xp.matrix_transpose(basis) @ (xp.matrix_transpose(node_gradient) @ nodes)
    reduced = _through_cholesky(factor, factor_gradient)
    trace = xp.linalg.trace(reduced)[..., None, None]
    reduced = reduced + jitter * trace * small_identity(n_classes - 1, theta)
    slopes = basis @ reduced @ xp.matrix_transpose(basis)

    support_logits, support_counts = logits[:, n_gaussians:, :], counts[:, n_gaussians:]
    support_members = members[:, n_gaussians:, :]
    support_p, support_total = softmax(support_logits)
    support_losses = support_counts * (support_total - xp.sum(support_logits * support_members, axis=2))
    support_gradient = support_counts[..., None] * (support_p - support_members)
    support_rays = support_counts[..., None] * support_p * (1 - support_p)
    losses = xp.concat([weight * xp.sum(node_losses, axis=2), support_losses], axis=1)
    return assemble(
        problem,
        theta,
        losses,
        xp.concat([xp.sum(node_gradient, axis=2), support_gradient], axis=1),
        through_covariances(problem, slopes, product) + 2 * ridge * xp.sum(slopes, axis=1) @ weights,
        xp.sum(uncertain, axis=1),
        xp.concat([uncertain, support_rays], axis=1),
    )


def _factor(covariance: Array) -> tuple[Array, float]:
    """Cholesky factor of A + jitter * trace(A) * I, which exists for identical classes too.

    If rounding has left a matrix with a negative eigenvalue, more is added to that matrix only.
    """
    xp = namespace(covariance)
    jitter, smallest = (1e-6, 1e-12) if is_single(covariance) else (1e-12, 1e-24)
    identity = small_identity(covariance.shape[-1], covariance)
    added = jitter * xp.linalg.trace(covariance)[..., None, None] + smallest
    try:
        return xp.linalg.cholesky(covariance + added * identity), jitter
    except (ValueError, RuntimeError):  # NumPy raises the first, torch the second.
        least = xp.linalg.eigvalsh(covariance)[..., :1, None]
        added = xp.where(least < -added / 2, 2 * (added - least), added)
        return xp.linalg.cholesky(covariance + added * identity), jitter


def _through_cholesky(factor: Array, gradient: Array) -> Array:
    """Symmetric gradient in A of a function of its Cholesky factor L, given the gradient in L."""
    xp = namespace(factor)
    size = factor.shape[-1]
    inner = xp.tril(xp.matrix_transpose(factor) @ gradient)
    inner = inner * (1 - small_identity(size, factor) / 2)
    inverse = xp.linalg.inv(factor)
    outer = xp.matrix_transpose(inverse) @ inner @ inverse
    return (outer + xp.matrix_transpose(outer)) / 2
