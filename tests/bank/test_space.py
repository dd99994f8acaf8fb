"""Power transform and the way of raw features into the space of a bank."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hotshot.bank.space import FeatureTransform, choose_power, power_transform
from hotshot.errors import InputError


@pytest.mark.parametrize("power", [0.5, 1, 0.8, 2, 0, -0.5, -1])
@pytest.mark.parametrize("offset", [0.0, 0.1])
def test_power_transform_is_tukeys_ladder_of_the_features_with_their_offset(power, offset):
    x = [[0.25, 1.0, 4.0], [9.0, 0.5, 2.0]]
    naive = [[math.log(v + offset) if power == 0 else (v + offset) ** power for v in row] for row in x]
    np.testing.assert_allclose(power_transform(np.array(x), power, offset), naive, rtol=1e-14)


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
        (-1.0, -1, 1.0, "equal to 0", "a positive power"),
    ],
)
def test_entries_without_a_power_are_refused_with_a_remedy(entry, power, offset, reason, remedy):
    with pytest.raises(InputError, match=rf"X_novel has .*{reason}.*: .*{remedy}"):
        power_transform(np.array([[1.0, entry]]), power, offset, "X_novel")


@pytest.mark.parametrize(
    ("power", "smallest", "expected"),
    [("auto", 0.0, 0.5), ("auto", 2.0, 0.5), ("auto", -1e-9, 1.0), (0.8, -1.0, 0.8), (0, 1.0, 0.0)],
)
def test_automatic_power_is_half_where_nothing_is_negative(power, smallest, expected):
    assert choose_power(power, smallest) == expected


@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize("centred", [True, False])
def test_transform_is_scale_power_centre_rotation_unit_norm_for_batches_of_any_shape(unit, centred):
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.normal(size=(5, 5)))[0][:, :3]
    transform = FeatureTransform(0.5, 0.1, 4.0, rng.uniform(size=5) if centred else None, axes, unit)
    x = rng.uniform(size=(6, 5))
    naive = []
    for row in x:
        row = np.array([(v * 4.0 + 0.1) ** 0.5 for v in row])
        row = row - transform.centre if centred else row
        row = np.array([row @ axis for axis in axes.T])
        naive.append(row / np.sqrt(sum(v * v for v in row)) if unit else row)
    np.testing.assert_allclose(transform(x), naive, rtol=1e-12)
    np.testing.assert_allclose(transform(x.reshape(2, 3, 5)).reshape(6, 3), naive, rtol=1e-12)


def test_vectors_on_the_centre_stay_zero():
    transform = FeatureTransform(1.0, 0.0, 1.0, np.array([1.0, 2.0]), np.eye(2), unit=True)
    np.testing.assert_allclose(transform(np.array([[1.0, 2.0], [4.0, 6.0]])), [[0, 0], [0.6, 0.8]])


@pytest.mark.parametrize("magnitude", [1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_unit_norm_holds_at_any_magnitude(magnitude):
    transform = FeatureTransform(1.0, 0.0, 1.0, None, None, unit=True)
    np.testing.assert_allclose(transform(magnitude * np.array([[3.0, 4.0]])), [[0.6, 0.8]], rtol=1e-12)


def test_samples_out_of_range_are_named():
    transform = FeatureTransform(3.0, 0.0, 1.0, None, None, unit=False)
    x = np.ones((3, 2))
    x[1, 1] = 1e200
    with pytest.raises(InputError, match=r"X leaves the range of float64 in row 1, column 1: .* size 1e\+200"):
        transform(x)
