"""Power transform and the way of raw features into the space of a bank."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotshot.arrays import to_numpy
from hotshot.bank.space import FeatureTransform, choose_power, power_transform
from hotshot.errors import InputError

POSITIVE = [[0.25, 1.0, 4.0], [9.0, 0.5, 2.0]]


def naive_power(x, power, offset=0.0):
    return [[math.log(v + offset) if power == 0 else (v + offset) ** power for v in row] for row in x]


@pytest.mark.parametrize("power", [0.5, 1, 0.8, 2, 0, -0.5, -1])
def test_power_transform_is_tukeys_ladder(xp, power):
    got = power_transform(xp.asarray(POSITIVE, dtype=xp.float64), power)
    np.testing.assert_allclose(to_numpy(got), naive_power(POSITIVE, power), rtol=1e-14)


@pytest.mark.parametrize("power", [0.5, 2, 0, -1])
def test_offset_is_added_before_the_power(power):
    x = [[0.0, 1.0, 4.0]]
    np.testing.assert_allclose(power_transform(np.array(x), power, 0.1), naive_power(x, power, 0.1))


def test_offset_is_added_under_power_one_as_under_every_other():
    np.testing.assert_allclose(power_transform(np.ones((1, 2)), 1, 0.5), 1.5)


@pytest.mark.parametrize(("power", "expected"), [(2, [4.0, 1.0]), (3, [-8.0, 1.0]), (-1, [-0.5, 1.0])])
def test_whole_powers_of_negative_entries_are_defined(power, expected):
    np.testing.assert_allclose(power_transform(np.array([[-2.0, 1.0]]), power), [expected])


@pytest.mark.parametrize(
    ("entry", "power", "offset", "reason", "remedy"),
    [
        (-1.0, 0.5, 0.0, "negative entries", "power=1"),
        (-1.0, 0.8, 0.5, "negative entries", "power=1"),
        (-1.0, -0.5, 0.0, "negative entries", "power=1"),
        (-1.0, 0, 0.0, "negative entries", "power=1"),
        (0.0, 0, 0.0, "equal to 0", "power_offset=1e-6"),
        (0.0, -0.5, 0.0, "equal to 0", "power_offset=1e-6"),
        (0.0, -1, 0.0, "equal to 0", "power_offset=1e-6"),
        (-1.0, -1, 1.0, "equal to 0", "a positive power"),
    ],
)
def test_entries_without_a_power_are_refused_with_a_remedy(xp, entry, power, offset, reason, remedy):
    x = xp.asarray([[1.0, entry]], dtype=xp.float64)
    with pytest.raises(InputError, match=rf"X_novel has .*{reason}.*: .*{remedy}"):
        power_transform(x, power, offset, "X_novel")


@given(st.lists(st.floats(1e-6, 1e6), min_size=2, max_size=6, unique=True), st.sampled_from([0.3, 0.5, 1, 2, 0, -1]))
def test_power_transform_keeps_the_order_for_powers_from_zero_and_reverses_it_below(values, power):
    got = power_transform(np.sort(values), power)
    assert (np.diff(got) >= 0).all() if power >= 0 else (np.diff(got) <= 0).all()


@pytest.mark.parametrize(
    ("power", "smallest", "expected"),
    [("auto", 0.0, 0.5), ("auto", 2.0, 0.5), ("auto", -1e-9, 1.0), (0.8, -1.0, 0.8), (0, 1.0, 0.0)],
)
def test_automatic_power_is_half_where_nothing_is_negative(power, smallest, expected):
    assert choose_power(power, smallest) == expected


def random_transform(rng, width, kept, *, unit=True, centred=True):
    axes = np.linalg.qr(rng.normal(size=(width, width)))[0][:, :kept]
    centre = rng.uniform(size=width) if centred else None
    return FeatureTransform(0.5, 0.1, 4.0, centre, axes, unit)


def naive_transform(transform, x):
    rows = []
    for row in x:
        row = np.array([(v * transform.scale + transform.offset) ** transform.power for v in row])
        if transform.centre is not None:
            row = row - transform.centre
        row = np.array([row @ axis for axis in transform.axes.T])
        rows.append(row / np.sqrt(sum(v * v for v in row)) if transform.unit else row)
    return np.array(rows)


@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize("centred", [True, False])
def test_transform_is_scale_power_centre_rotation_unit_norm(unit, centred):
    rng = np.random.default_rng(0)
    transform = random_transform(rng, width=5, kept=3, unit=unit, centred=centred)
    x = rng.uniform(size=(7, 5))
    np.testing.assert_allclose(transform(x), naive_transform(transform, x), rtol=1e-12)


def test_transform_takes_batches_of_any_shape():
    rng = np.random.default_rng(1)
    transform = random_transform(rng, width=4, kept=4)
    x = rng.uniform(size=(2, 3, 4))
    got = transform(x)
    assert got.shape == x.shape
    np.testing.assert_allclose(got.reshape(6, 4), transform(x.reshape(6, 4)), rtol=1e-12)


def test_transform_refuses_under_the_name_given():
    transform = FeatureTransform(0.5, 0.0, 1.0, None, None, unit=True)
    with pytest.raises(InputError, match="X_query has negative entries"):
        transform(np.array([[-1.0, 1.0]]), "X_query")


def test_vectors_on_the_centre_stay_zero(xp):
    centre = xp.asarray([1.0, 2.0], dtype=xp.float64)
    transform = FeatureTransform(1.0, 0.0, 1.0, centre, xp.eye(2, dtype=xp.float64), unit=True)
    got = to_numpy(transform(xp.asarray([[1.0, 2.0], [4.0, 6.0]], dtype=xp.float64)))
    np.testing.assert_allclose(got, [[0, 0], [0.6, 0.8]])


@pytest.mark.parametrize("magnitude", [1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_unit_norm_holds_at_any_magnitude(magnitude):
    transform = FeatureTransform(1.0, 0.0, 1.0, None, None, unit=True)
    np.testing.assert_allclose(transform(magnitude * np.array([[3.0, 4.0]])), [[0.6, 0.8]], rtol=1e-12)
