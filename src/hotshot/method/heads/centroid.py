r"""The centroid head: nearest calibrated mean, without training.

.. math::
    z_c = (\mu_c^\top x - \lVert \mu_c \rVert^2 / 2) / \sigma^2,

with :math:`\sigma^2` the mean variance within base classes. It uses no covariances. With ``mean_rule="mix"`` and
``mix=0`` the means are those of the support, and nothing is borrowed from the base classes but centre and scale.
"""

from hotshot.arrays import namespace, one_hot
from hotshot.method.heads.problem import FittedHeads, Training

# Least variance, in units of the mean square of the features.
LEAST_VARIANCE = 1e-6


def fit_centroid(training: Training) -> FittedHeads:
    """Mean of the calibrated means of each class."""
    means = training.gaussians.means
    xp = namespace(means)
    members = one_hot(training.gaussians.labels, training.n_classes, means.dtype)
    members = members / xp.sum(members, axis=2, keepdims=True)
    centroids = members @ means
    variance = float(xp.mean(training.base.spectrum))
    variance = max(variance, LEAST_VARIANCE * float(xp.mean(means * means)), float(xp.finfo(means.dtype).tiny) ** 0.5)
    intercepts = -xp.sum(centroids * centroids, axis=2, keepdims=True) / 2
    theta = xp.concat([centroids, intercepts], axis=2) / variance
    # The weights are C times the sum of -slopes times points, as in a head that minimises a loss.
    of_means = -xp.matrix_transpose(members) / (variance * training.method.C)
    members_of_support = one_hot(training.labels, training.n_classes, means.dtype)
    nothing = xp.matrix_transpose(xp.zeros_like(members_of_support))
    slopes = xp.concat([of_means, nothing], axis=1)
    return FittedHeads(theta, xp.all(xp.isfinite(theta[:, 0, :]), axis=1), slopes)
