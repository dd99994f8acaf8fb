"""Base classes: statistics, sample weights, the power transform, and the bank prepared in a space."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from conftest import make_bank
from few_shot_problems import RAGGED, plain_space, ragged_bank
from hotshot.bank import BaseClasses, class_covariances, class_means, classifier_weights
from hotshot.bank.space import LEAST_AXES, FeatureTransform, Space, choose_power, power_transform
from hotshot.errors import InputError, ParameterError


def in_original_axes(prepared, z):
    """Undo the rotation; the signs of axes are arbitrary, so that only this is comparable between banks."""
    return z @ prepared.transform.axes.T


def pooled(x, labels):
    """Naive pooled within-class covariance."""
    deviations = np.concatenate([x[labels == b] - x[labels == b].mean(axis=0) for b in np.unique(labels)])
    return deviations.T @ deviations / (len(x) - len(np.unique(labels)))


# --- statistics -------------------------------------------------------------------------------------------


def test_single_precision_samples_are_summed_in_double_precision():
    # 16 significant bits of deviation on an offset of 2**12: float32 holds the samples exactly, and float32
    # sums of twenty thousand squares or even of the samples would lose the fourth digit.
    rng = np.random.default_rng(0)
    X = (4096 + rng.integers(-1024, 1024, size=(20_000, 2)) / 2048).astype(np.float32)
    y = np.repeat([0, 1], 10_000)
    bank = BaseClasses.from_samples(X, y)
    covariances = class_covariances(bank.samples, bank.counts)
    assert bank.samples.dtype == bank.means.dtype == covariances.dtype == np.float32
    for b in range(2):
        exact = X[y == b].astype(np.float64)
        np.testing.assert_array_equal(bank.means[b], exact.mean(axis=0).astype(np.float32))
        np.testing.assert_allclose(covariances[b], np.cov(exact.T), rtol=1e-6, atol=1e-8)


@given(st.permutations(range(20)))
def test_the_order_of_samples_does_not_matter(order):
    X, y = make_bank(n_classes=4, per_class=5, width=3)
    ordered, mixed = BaseClasses.from_samples(X, y), BaseClasses.from_samples(X[order], y[order])
    a, b = ordered.prepare(plain_space()), mixed.prepare(plain_space())
    np.testing.assert_allclose(a.counts, b.counts)
    np.testing.assert_allclose(in_original_axes(a, a.means), in_original_axes(b, b.means), atol=1e-10)


# --- sample weights ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [1e-6, 0.05, 1.0, 1e6])
def test_classifier_weights_are_the_softmax_of_the_own_class_probability(temperature):
    bank = ragged_bank(spread=1.5)
    got = classifier_weights(bank.samples, bank.labels, temperature)
    probability = LogisticRegression(max_iter=300).fit(bank.samples, bank.labels).predict_proba(bank.samples)
    for b in range(len(RAGGED)):
        of_class = probability[bank.labels == b, b]
        expected = np.exp((of_class - of_class.max()) / temperature)
        expected /= expected.sum()
        np.testing.assert_allclose(got[bank.labels == b], expected, rtol=1e-6, atol=1e-300)
        assert got[bank.labels == b].sum() == pytest.approx(1, abs=1e-12)


def test_one_class_alone_has_uniform_weights_and_temperatures_are_positive():
    np.testing.assert_allclose(classifier_weights(np.eye(4), np.zeros(4, int), 1.0), 0.25)
    for temperature in (0, -1, float("nan")):
        with pytest.raises(ParameterError, match="temperature must be positive"):
            classifier_weights(np.eye(2), np.arange(2), temperature)


# --- the way of raw features into the space ------------------------------------------------------------


@pytest.mark.parametrize("power", [0.5, 1, 0.8, 2, 0, -0.5, -1])
@pytest.mark.parametrize("offset", [0.0, 0.1])
def test_power_transform_is_tukeys_ladder_of_the_features_with_their_offset(power, offset):
    x = [[0.25, 1.0, 4.0], [9.0, 0.5, 2.0]]
    naive = [[math.log(v + offset) if power == 0 else (v + offset) ** power for v in row] for row in x]
    np.testing.assert_allclose(power_transform(np.array(x), power, offset), naive, rtol=1e-14)


@pytest.mark.parametrize("power", [2, 3, -1])
def test_whole_powers_of_negative_entries_are_defined(power):
    np.testing.assert_allclose(power_transform(np.array([[-2.0, 1.0]]), power), [[(-2.0) ** power, 1.0]])


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


@pytest.mark.parametrize("magnitude", [1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_unit_norm_holds_at_any_magnitude_and_vectors_on_the_centre_stay_zero(magnitude):
    transform = FeatureTransform(1.0, 0.0, 1.0, magnitude * np.array([1.0, 2.0]), np.eye(2), unit=True)
    x = magnitude * np.array([[1.0, 2.0], [4.0, 6.0]])
    np.testing.assert_allclose(transform(x), [[0, 0], [0.6, 0.8]], rtol=1e-12)


def test_samples_out_of_range_are_named():
    transform = FeatureTransform(3.0, 0.0, 1.0, None, None, unit=False)
    x = np.ones((3, 2))
    x[1, 1] = 1e200
    with pytest.raises(InputError, match=r"X leaves the range of float64 in row 1, column 1: .* size 1e\+200"):
        transform(x)


# --- the prepared bank ------------------------------------------------------------------------------------

SPACES = {
    "default": plain_space(),
    "share": plain_space(n_components=0.9),
    "few axes": plain_space(n_components=3),
    "power": plain_space(power=0.5, power_offset=10.0),
    "published": plain_space(normalize=None, power_on_base=False, sample_weights="classifier", temperature=0.3),
    "classifier": plain_space(sample_weights="classifier", temperature=0.1),
}


@pytest.fixture(params=SPACES)
def space(request):
    return SPACES[request.param]


def test_prepared_statistics_are_those_of_the_transformed_samples(space):
    bank = ragged_bank()
    prepared = bank.prepare(space)
    x = bank.samples
    transform = prepared.transform if space.power_on_base else replace(prepared.transform, power=1.0)
    z = transform(x)
    units = z / np.linalg.norm(z, axis=1, keepdims=True)
    if space.sample_weights == "classifier":
        weights = classifier_weights(z, bank.labels, space.temperature)
    else:
        weights = 1 / bank.counts[bank.labels]
    for b in range(len(RAGGED)):
        members = bank.labels == b
        np.testing.assert_allclose(prepared.means[b], z[members].mean(axis=0), atol=1e-10)
        np.testing.assert_allclose(prepared.weighted_means[b], weights[members] @ z[members], atol=1e-7)
        np.testing.assert_allclose(prepared.mean_units[b], weights[members] @ units[members], atol=1e-7)
        covariance = np.cov(z[members].T) if members.sum() > 1 else pooled(z, bank.labels)
        np.testing.assert_allclose(prepared.covariances.matrices[b], covariance, atol=1e-10)


def test_axes_are_orthonormal_and_those_of_the_pooled_covariance_largest_first(space):
    bank = ragged_bank()
    prepared = bank.prepare(space)
    axes = prepared.transform.axes
    np.testing.assert_allclose(axes.T @ axes, np.eye(axes.shape[1]), atol=1e-10)
    np.testing.assert_allclose(prepared.ones, [sum(axis) for axis in axes.T], atol=1e-12)
    freedom = bank.counts - 1
    within = np.einsum("b,bvw->vw", freedom / freedom.sum(), prepared.covariances.matrices)
    np.testing.assert_allclose(within, np.diag(prepared.spectrum), atol=1e-10)
    assert (np.diff(prepared.spectrum) <= 0).all()
    assert prepared.spectrum.min() >= 0


def test_power_reaches_base_and_novel_features_or_only_the_novel_ones():
    X, y = make_bank(n_classes=3)
    bank = BaseClasses.from_samples(np.abs(X), y)
    means = {}
    for on_base in (True, False):
        prepared = bank.prepare(plain_space(power=0.5, power_on_base=on_base, normalize=None))
        means[on_base] = in_original_axes(prepared, prepared.means)
        novel = in_original_axes(prepared, prepared.transform(bank.samples[:3]))
        np.testing.assert_allclose(novel, np.sqrt(bank.samples[:3]), rtol=1e-8)
    np.testing.assert_allclose(means[True], class_means(np.sqrt(bank.samples), bank.counts), rtol=1e-8)
    np.testing.assert_allclose(means[False], bank.means, rtol=1e-8)


@pytest.mark.parametrize("share", [0.5, 0.8, 0.95, 1.0])
def test_a_share_keeps_the_fewest_leading_axes_that_hold_it(share):
    bank = ragged_bank(width=14)
    variances = np.sort(np.linalg.eigvalsh(np.cov(bank.samples.T)))[::-1]
    shares = np.cumsum(variances) / variances.sum()
    needed = next(k + 1 for k, held in enumerate(shares) if held >= share - 1e-9)
    expected = max(needed, min(LEAST_AXES, len(shares)))
    axes = bank.prepare(plain_space(n_components=share)).transform.axes
    assert axes.shape[1] == expected
    # The span is that of the leading principal axes: it holds as much of the variance as they do.
    held = np.trace(axes.T @ np.cov(bank.samples.T) @ axes) / variances.sum()
    assert held == pytest.approx(shares[expected - 1], rel=1e-10)


def test_a_share_keeps_all_axes_of_a_bank_of_few_classes_with_fewer_samples_than_features():
    share = 0.98
    bank = ragged_bank(sizes=(3, 2, 4), width=14)
    assert bank.prepare(plain_space(n_components=share)).transform.axes.shape == (14, 14)
    assert bank.prepare(plain_space(n_components=5)).transform.axes.shape == (14, 5)
    streamed = BaseClasses.from_partitions([lambda: (bank.samples, bank.labels)], n_components=share)
    space = Space(power=streamed.power("auto"), covariance="diagonal", n_components=share)
    assert streamed.prepare(space).transform.axes.shape == (14, 14)
    # Settings are chosen on 20 classes with 10 samples, at a cost that grows with the axes.
    large = ragged_bank(sizes=(10,) * 15, width=200)
    assert large.prepare(plain_space(n_components=share)).transform.axes.shape[1] < 150


@pytest.mark.parametrize(("factor", "power"), [(1e-3, 0.5), (1e3, 1.0), (1e30, 0.5)])
def test_normalised_space_does_not_depend_on_the_scale(factor, power):
    bank = ragged_bank()
    X = np.abs(bank.samples)
    plain, scaled = (
        BaseClasses.from_samples(f * X, bank.labels).prepare(plain_space(power=power)) for f in (1, factor)
    )
    expected = in_original_axes(plain, plain.means)
    np.testing.assert_allclose(in_original_axes(scaled, scaled.means), expected, rtol=1e-6, atol=1e-12)
    novel = (in_original_axes(p, p.transform(f * X[:4])) for p, f in ((plain, 1), (scaled, factor)))
    np.testing.assert_allclose(*novel, rtol=1e-6, atol=1e-12)


# --- buckets ----------------------------------------------------------------------------------------------

SIZES = st.lists(st.integers(1, 40), min_size=1, max_size=8)


@given(SIZES)
def test_every_class_is_in_one_bucket_at_least_half_full_with_its_samples_and_unit_mass(sizes):
    bank = ragged_bank(sizes=sizes, width=3)
    prepared = bank.prepare(plain_space(normalize=None))
    z = prepared.transform(bank.samples)
    seen = []
    for bucket in prepared.buckets:
        filled = [sizes[b] for b in bucket.classes]
        assert bucket.units.shape[:2] == bucket.mass.shape == (len(filled), max(filled))
        assert min(filled) >= max(filled) / 2
        for b, units, mass in zip(bucket.classes, bucket.units, bucket.mass, strict=True):
            seen.append(int(b))
            members = z[bank.labels == b]
            np.testing.assert_allclose(mass[: sizes[b]], 1 / sizes[b])
            np.testing.assert_array_equal(mass[sizes[b] :], 0)
            expected = members / np.linalg.norm(members, axis=1, keepdims=True)
            np.testing.assert_allclose(units[: sizes[b]], expected, atol=1e-10)
    assert sorted(seen) == list(range(len(sizes)))


# --- a bank as an object ----------------------------------------------------------------------------------


def test_one_axis_and_the_whole_variance_are_different_spaces():
    bank = ragged_bank()
    assert bank.prepare(plain_space(n_components=1.0)).means.shape[1] == 6
    assert bank.prepare(plain_space(n_components=1)).means.shape[1] == 1
    with pytest.raises(ParameterError, match="n_components must be at most the number of features, 6, got 7"):
        bank.prepare(plain_space(n_components=7))


def test_pickle_keeps_the_samples_and_leaves_out_what_was_prepared():
    bank = ragged_bank(sizes=(30, 30), width=20)
    fresh = len(pickle.dumps(bank))
    prepared = bank.prepare(plain_space())
    _ = bank.means, bank.labels
    assert len(pickle.dumps(bank)) == fresh
    again = pickle.loads(pickle.dumps(bank))
    np.testing.assert_array_equal(again.prepare(plain_space()).covariances.matrices, prepared.covariances.matrices)
