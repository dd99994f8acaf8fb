"""Pairwise costs agree with SciPy and keep the laws of distances at every scale."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.spatial.distance import cdist

from hotshot.arrays import to_numpy
from hotshot.errors import InputError, ParameterError
from hotshot.transport import pairwise_cost

SCIPY = {"cosine": "cosine", "euclidean": "euclidean", "squared-euclidean": "sqeuclidean"}
KINDS = pytest.mark.parametrize("kind", SCIPY)
POINTS = arrays.arrays(
    np.float64, st.tuples(st.integers(1, 6), st.just(4)), elements=st.floats(-100, 100, allow_subnormal=False)
)


def points(batch=()):
    rng = np.random.default_rng(0)
    return rng.normal(size=(*batch, 12, 5)), rng.normal(size=(*batch, 4, 5))


@pytest.mark.parametrize("dtypes", [("float64", "float64"), ("float32", "float32"), ("float32", "float64")])
@KINDS
def test_costs_agree_with_scipy_in_the_wider_precision(xp, kind, dtypes):
    x, y = (xp.asarray(points.astype(dtype)) for points, dtype in zip(points(), dtypes, strict=True))
    cost = pairwise_cost(x, y, kind)
    assert cost.dtype == getattr(xp, max(dtypes))
    expected = cdist(*points(), SCIPY[kind])
    np.testing.assert_allclose(to_numpy(cost), expected, atol=1e-12 if dtypes[0] == "float64" else 1e-4)


@KINDS
def test_batches_of_points_of_which_one_set_may_be_shared(kind):
    x, y = points(batch=(2, 3))
    together, shared = pairwise_cost(x, y, kind), pairwise_cost(x, y[0, 0], kind)
    for index in np.ndindex(2, 3):
        np.testing.assert_allclose(together[index], pairwise_cost(x[index], y[index], kind), atol=1e-12)
        np.testing.assert_allclose(shared[index], pairwise_cost(x[index], y[0, 0], kind), atol=1e-12)


@given(x=POINTS, y=POINTS, power=st.floats(-250, 250))
def test_cosine_is_between_zero_and_two_and_ignores_positive_scale(x, y, power):
    x = np.where(np.abs(x) < 1e-3, 0, x)
    cost = pairwise_cost(x, y)
    assert ((cost >= 0) & (cost <= 2)).all()
    np.testing.assert_allclose(pairwise_cost(x * 10.0**power, y), cost, atol=1e-12)


@pytest.mark.parametrize("kind", ["euclidean", "squared-euclidean"])
def test_distances_far_from_the_origin(kind):
    x, y = points()
    np.testing.assert_allclose(pairwise_cost(x + 1e6, y + 1e6, kind), pairwise_cost(x, y, kind), rtol=1e-8)


def test_under_cosine_zero_vectors_cost_one_and_opposites_two(xp):
    x = xp.asarray([[0.0, 0.0], [3.0, 4.0], [-0.3, -0.4]])
    expected = [[1.0, 1.0, 1.0], [1.0, 0.0, 2.0], [1.0, 2.0, 0.0]]
    np.testing.assert_allclose(to_numpy(pairwise_cost(x, x)), expected, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-37, 1e-30, 1e-3, 1e3, 1e30, 1e37])
def test_cosine_at_huge_and_tiny_scales_of_single_precision(xp, scale):
    x, y = points()
    scaled = xp.asarray((scale * x).astype("float32")), xp.asarray((scale * y).astype("float32"))
    np.testing.assert_allclose(to_numpy(pairwise_cost(*scaled)), cdist(x, y, "cosine"), atol=1e-5)


@pytest.mark.parametrize("kind", ["manhattan", "Cosine", "", None, 1, ["cosine"]], ids=repr)
def test_unknown_kinds(kind):
    with pytest.raises(ParameterError, match="'cosine', 'euclidean', 'squared-euclidean'"):
        pairwise_cost(*points(), kind)


BAD_POINTS = {
    "widths that differ": (np.ones((3, 4)), np.ones((2, 5))),
    "one point without its axis": (np.ones(4), np.ones((2, 4))),
    "strings": ([["a", "b"]], [["a", "b"]]),
    "array of strings": (np.array([["a", "b"]]), np.ones((1, 2))),
    "complex": (np.ones((3, 4)) + 1j, np.ones((2, 4))),
    "ragged": ([[1.0, 2.0], [3.0]], np.ones((1, 2))),
    "no width": (np.ones((3, 0)), np.ones((2, 0))),
    "batches that differ": (np.ones((2, 3, 4)), np.ones((3, 2, 4))),
}


@KINDS
@pytest.mark.parametrize(("x", "y"), BAD_POINTS.values(), ids=BAD_POINTS)
def test_bad_points(x, y, kind):
    with pytest.raises(InputError):
        pairwise_cost(x, y, kind)


@KINDS
def test_lists_integers_and_half_precision(kind):
    x, y = [[1, 2], [3, -4]], [[2, 1]]
    expected = cdist(x, y, SCIPY[kind])
    np.testing.assert_allclose(pairwise_cost(x, y, kind), expected, atol=1e-12)
    half = pairwise_cost(np.array(x, dtype="float16"), np.array(y, dtype="float16"), kind)
    assert half.dtype == np.float32
    np.testing.assert_allclose(half, expected, atol=1e-5)
