"""Pairwise costs agree with SciPy and keep the laws of distances at every scale."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.spatial.distance import cdist

from hotshot.arrays import to_numpy
from hotshot.errors import InputError, NamespaceError, ParameterError
from hotshot.transport import pairwise_cost

SCIPY = {"cosine": "cosine", "euclidean": "euclidean", "squared-euclidean": "sqeuclidean"}
POINTS = arrays.arrays(
    np.float64, st.tuples(st.integers(1, 6), st.just(4)), elements=st.floats(-100, 100, allow_subnormal=False)
)


def points(seed=0, batch=(), dtype="float64"):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(*batch, 12, 5)), rng.normal(size=(*batch, 4, 5))
    return x.astype(dtype), y.astype(dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", SCIPY)
def test_costs_agree_with_scipy(xp, kind, dtype):
    x, y = points(dtype=dtype)
    cost = pairwise_cost(xp.asarray(x), xp.asarray(y), kind)
    assert cost.dtype == getattr(xp, dtype)
    expected = cdist(x.astype(float), y.astype(float), SCIPY[kind])
    np.testing.assert_allclose(to_numpy(cost), expected, atol=1e-12 if dtype == "float64" else 1e-4)


@pytest.mark.parametrize("kind", SCIPY)
@pytest.mark.parametrize("batch", [(3,), (2, 3)], ids=str)
def test_batches_of_points(kind, batch):
    x, y = points(batch=batch)
    cost = pairwise_cost(x, y, kind)
    assert cost.shape == (*batch, 12, 4)
    for index in np.ndindex(*batch):
        np.testing.assert_allclose(cost[index], pairwise_cost(x[index], y[index], kind), atol=1e-12)


@pytest.mark.parametrize("kind", SCIPY)
def test_one_set_of_points_is_shared_by_a_batch(kind):
    x, y = points(batch=(3,))
    np.testing.assert_allclose(pairwise_cost(x, y[0], kind), pairwise_cost(x, np.stack([y[0]] * 3), kind), atol=1e-12)


def test_cosine_is_the_default():
    x, y = points()
    np.testing.assert_array_equal(pairwise_cost(x, y), pairwise_cost(x, y, "cosine"))


@given(x=POINTS, y=POINTS)
def test_cosine_is_between_zero_and_two(x, y):
    cost = pairwise_cost(x, y)
    assert ((cost >= 0) & (cost <= 2)).all()


@given(x=POINTS, y=POINTS, power=st.floats(-250, 250))
def test_cosine_ignores_positive_scale(x, y, power):
    x = np.where(np.abs(x) < 1e-3, 0, x)
    np.testing.assert_allclose(pairwise_cost(x * 10.0**power, y), pairwise_cost(x, y), atol=1e-12)


@given(x=POINTS)
def test_cosine_of_a_point_with_itself_and_its_opposite(x):
    x = x[np.abs(x).max(axis=1) > 0]
    if len(x):
        np.testing.assert_allclose(np.diag(pairwise_cost(x, x)), 0, atol=1e-12)
        np.testing.assert_allclose(np.diag(pairwise_cost(x, -x)), 2, atol=1e-12)


@pytest.mark.parametrize("kind", SCIPY)
@given(x=POINTS, y=POINTS)
def test_costs_are_symmetric(kind, x, y):
    np.testing.assert_allclose(pairwise_cost(x, y, kind), pairwise_cost(y, x, kind).T, atol=2e-5)


@given(x=POINTS, y=POINTS, shift=st.floats(-100, 100))
def test_euclidean_is_non_negative_and_ignores_the_origin(x, y, shift):
    cost = pairwise_cost(x, y, "euclidean")
    assert (cost >= 0).all()
    np.testing.assert_allclose(pairwise_cost(x + shift, y + shift, "euclidean"), cost, atol=2e-5)


def test_zero_vectors_cost_one_under_cosine(xp):
    x = xp.asarray([[0.0, 0.0], [3.0, 4.0]])
    np.testing.assert_allclose(to_numpy(pairwise_cost(x, x)), [[1.0, 1.0], [1.0, 0.0]], atol=1e-6)


@pytest.mark.parametrize("scale", [1e-37, 1e-30, 1e-3, 1e3, 1e30, 1e37])
def test_cosine_at_huge_and_tiny_scales_of_single_precision(xp, scale):
    x, y = points()
    scaled = xp.asarray((scale * x).astype("float32")), xp.asarray((scale * y).astype("float32"))
    np.testing.assert_allclose(to_numpy(pairwise_cost(*scaled)), cdist(x, y, "cosine"), atol=1e-5)


@pytest.mark.parametrize("kind", ["euclidean", "squared-euclidean"])
def test_distances_far_from_the_origin(kind):
    x, y = points()
    np.testing.assert_allclose(pairwise_cost(x + 1e6, y + 1e6, kind), pairwise_cost(x, y, kind), rtol=1e-8)


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


@pytest.mark.parametrize("kind", SCIPY)
@pytest.mark.parametrize(("x", "y"), BAD_POINTS.values(), ids=BAD_POINTS)
def test_bad_points(x, y, kind):
    with pytest.raises(InputError):
        pairwise_cost(x, y, kind)


def test_points_of_two_array_libraries():
    torch = pytest.importorskip("torch")
    x, y = points()
    with pytest.raises(NamespaceError):
        pairwise_cost(x, torch.asarray(y))


@pytest.mark.parametrize("kind", SCIPY)
def test_points_of_two_precisions(xp, kind):
    x, y = points()
    cost = pairwise_cost(xp.asarray(x.astype("float32")), xp.asarray(y), kind)
    assert cost.dtype == xp.float64
    np.testing.assert_allclose(to_numpy(cost), cdist(x, y, SCIPY[kind]), atol=1e-5)


@pytest.mark.parametrize("kind", SCIPY)
def test_lists_integers_and_half_precision(kind):
    x, y = [[1, 2], [3, -4]], [[2, 1]]
    expected = cdist(x, y, SCIPY[kind])
    np.testing.assert_allclose(pairwise_cost(x, y, kind), expected, atol=1e-12)
    half = pairwise_cost(np.array(x, dtype="float16"), np.array(y, dtype="float16"), kind)
    assert half.dtype == np.float32
    np.testing.assert_allclose(half, expected, atol=1e-5)
