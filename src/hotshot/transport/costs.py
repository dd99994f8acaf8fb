"""Costs between two sets of points: cosine, Euclidean and squared Euclidean distances."""

import numpy as np

from hotshot.arrays import Array, as_floats, namespace, unit_vectors
from hotshot.errors import InputError, ParameterError


def cosine(x: Array, y: Array) -> Array:
    r""":math:`1 - \cos(x_j, y_n)`, the cost of eq. 8: (…, J, S) from (…, J, V) and (…, S, V). Zero vectors cost 1."""
    x, y = _checked(x, y)
    xp = namespace(x, y)
    return xp.clip(1 - unit_vectors(x) @ xp.matrix_transpose(unit_vectors(y)), 0.0, 2.0)


def squared_euclidean(x: Array, y: Array) -> Array:
    r""":math:`\lVert x_j - y_n \rVert^2`: (…, J, S) from (…, J, V) and (…, S, V)."""
    x, y = _checked(x, y)
    xp = namespace(x, y)
    # Distances do not depend on the origin; one near the points loses less to cancellation.
    origin = xp.mean(y, axis=-2, keepdims=True)
    x, y = x - origin, y - origin
    squares_x = xp.sum(x * x, axis=-1)[..., :, None]
    squares_y = xp.sum(y * y, axis=-1)[..., None, :]
    return xp.clip(squares_x + squares_y - 2 * (x @ xp.matrix_transpose(y)), 0.0, None)


def euclidean(x: Array, y: Array) -> Array:
    r""":math:`\lVert x_j - y_n \rVert`: (…, J, S) from (…, J, V) and (…, S, V)."""
    distance = squared_euclidean(x, y)
    return namespace(distance).sqrt(distance)


COSTS = {"cosine": cosine, "euclidean": euclidean, "squared-euclidean": squared_euclidean}


def pairwise_cost(x: Array, y: Array, kind: str = "cosine") -> Array:
    """Costs (…, J, S) between two sets of points (…, J, V) and (…, S, V); leading shapes broadcast.

    ``kind`` is "cosine", which is 1 minus the cosine similarity, from 0 to 2, and 1 for zero vectors; "euclidean" or
    "squared-euclidean".
    """
    if not isinstance(kind, str) or kind not in COSTS:
        raise ParameterError(f"kind must be one of {', '.join(map(repr, COSTS))}, got {kind!r}.")
    return COSTS[kind](x, y)


def _checked(x: Array, y: Array) -> tuple[Array, Array]:
    x, y = as_floats(x, "x"), as_floats(y, "y")
    xp = namespace(x, y)
    shapes = f"got shapes {tuple(x.shape)} and {tuple(y.shape)}"
    if x.ndim < 2 or y.ndim < 2 or x.shape[-1] != y.shape[-1] or not x.shape[-1]:
        raise InputError(
            f"Points must be (…, points, V) arrays of one width, {shapes}: extract both with the same model."
        )
    try:
        np.broadcast_shapes(tuple(x.shape[:-2]), tuple(y.shape[:-2]))
    except ValueError:
        raise InputError(f"Batches of points must have shapes that broadcast, {shapes}.") from None
    dtype = xp.result_type(x, y)
    return xp.astype(x, dtype, copy=False), xp.astype(y, dtype, copy=False)
