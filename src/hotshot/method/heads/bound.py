r"""The bound head: Jensen's closed form of the expected cross-entropy.

.. math::
    E[-\log p_y] = E \log \sum_j e^{z_j - z_y} \le \log \sum_j \exp(m_j - m_y + v_j / 2),

with m the logits of the mean and v_j the variance of z_j - z_y, :math:`A_{jj} + A_{yy} - 2 A_{jy}`. It is
convex in the weights and needs no samples.
"""

from hotshot.arrays import Array, is_single, namespace, small_identity
from hotshot.errors import ParameterError
from hotshot.method.heads.problem import (
    FittedHeads,
    HeadProblem,
    LocalModel,
    Training,
    assemble,
    head_problem,
    logit_covariances,
    minimise,
    refined,
    softmax,
    through_covariances,
    zeros,
)

# Arrays (Gaussians, N, N) that one evaluation holds, and the most bytes of them.
ARRAYS, MOST_BYTES = 6, 2**33


def fit_bound(training: Training) -> FittedHeads:
    """Minimise the bound for every task."""
    tasks, n_gaussians = training.gaussians.labels.shape
    n_classes = training.n_classes
    needed = ARRAYS * tasks * n_gaussians * n_classes**2 * (4 if is_single(training.support) else 8)
    if needed > MOST_BYTES:
        raise ParameterError(
            f"A classifier of {n_classes:,} new classes alone needs about {needed / 1e9:.0f} GB of memory: pass "
            "include_base=True, whose memory is proportional to the number of classes, or fit fewer classes."
        )
    problem = head_problem(training)
    return refined(problem, bound_objective, minimise(problem, bound_objective, zeros(problem)))


def bound_objective(problem: HeadProblem, theta: Array) -> LocalModel:
    """Value and gradient of the bound at theta (tasks, N, V + 1)."""
    xp = namespace(theta)
    n_gaussians = problem.n_gaussians
    members, counts = problem.members, problem.counts
    own = members[:, :n_gaussians, :]
    covariances, product = logit_covariances(problem, theta[..., :-1])
    identity = small_identity(problem.n_classes, theta)
    variance = xp.sum(covariances * identity, axis=3)
    with_own = xp.sum(covariances * own[..., None, :], axis=3)
    of_own = xp.sum(with_own * own, axis=2, keepdims=True)
    relative_variance = variance + of_own - 2 * with_own

    logits = problem.points @ xp.matrix_transpose(theta)
    margins = logits - xp.sum(logits * members, axis=2, keepdims=True)
    widened = margins[:, :n_gaussians, :] + relative_variance / 2
    margins = xp.concat([widened, margins[:, n_gaussians:, :]], axis=1)
    probabilities, losses = softmax(margins)
    logit_gradient = counts[..., None] * (probabilities - members)

    # d v_j / d A = (e_j - e_y)(e_j - e_y)', weighed by half the probability of j.
    p = probabilities[:, :n_gaussians, :]
    diagonal = (p + own)[..., None] * identity
    cross = p[..., :, None] * own[..., None, :]
    slopes = (diagonal - cross - xp.matrix_transpose(cross)) / 2
    slopes = counts[:, :n_gaussians, None, None] * slopes
    class_curvature = 2 * xp.sum(xp.sum(slopes * identity, axis=3), axis=1)
    rays = counts[..., None] * probabilities * (1 - probabilities)
    return assemble(
        problem,
        theta,
        counts * losses,
        logit_gradient,
        through_covariances(problem, slopes, product),
        class_curvature,
        rays,
    )
