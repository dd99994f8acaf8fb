"""Joint inference: laws of its answers, the conditions of its transport, and batches whose answers are known."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from hotshot.model import batch
from hotshot.model.batch import expected_proportions, joint_inference

RATIO = 1.0


def infer(arrays):
    """Joint inference over what `problem` makes."""
    return joint_inference(*arrays, ratio=RATIO)


def problem(seed=0, tasks=2, ways=3, queries=12, width=6, noise=0.5):
    """Logits, queries, means, shots and weights of tasks whose calibrated means are off by some noise."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(tasks, ways, width))
    labels = rng.integers(ways, size=(tasks, queries))
    drawn = np.take_along_axis(centres, labels[..., None], axis=1) + noise * rng.normal(size=(tasks, queries, width))
    means = centres + noise * rng.normal(size=centres.shape)
    logits = 2 * (drawn @ means.swapaxes(1, 2) - np.sum(means**2, axis=2)[:, None] / 2)
    return [logits, drawn, means, np.full((tasks, ways), 1.0), rng.random((tasks, queries))], labels


@given(seed=st.integers(0, 1000), ways=st.integers(2, 6), queries=st.integers(1, 20))
def test_permuted_queries_and_classes_of_a_task_permute_its_answers(seed, ways, queries):
    arrays, _ = problem(seed, 2, ways, queries)
    both, (logits, drawn, means, shots, weights) = infer(arrays), [x[:1] for x in arrays]
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(queries), rng.permutation(ways)
    one = joint_inference(logits, drawn, means, shots, weights, ratio=RATIO)
    other = joint_inference(
        logits[:, rows][..., columns],
        drawn[:, rows],
        means[:, columns],
        shots[:, columns],
        weights[:, rows],
        ratio=RATIO,
    )
    np.testing.assert_allclose(both.probabilities[0], one.probabilities[0], atol=1e-7)
    np.testing.assert_allclose(other.probabilities, one.probabilities[:, rows][..., columns], atol=1e-5)
    np.testing.assert_allclose(other.proportions, one.proportions[:, columns], atol=1e-6)
    np.testing.assert_allclose(one.probabilities.sum(axis=2), 1)
    np.testing.assert_allclose(one.proportions.sum(axis=1), 1)


@given(seed=st.integers(0, 1000), stranger=st.floats(-50, 50))
def test_a_query_that_fits_no_class_changes_nothing(seed, stranger):
    (logits, drawn, means, shots, weights), _ = problem(seed, 1)
    weights[0, 3] = 0
    one = joint_inference(logits, drawn, means, shots, weights, ratio=RATIO)
    drawn[0, 3], logits[0, 3] = stranger, stranger * np.arange(logits.shape[2])
    other = joint_inference(logits, drawn, means, shots, weights, ratio=RATIO)
    rest = np.arange(logits.shape[1]) != 3
    np.testing.assert_allclose(other.probabilities[:, rest], one.probabilities[:, rest], atol=1e-9)
    np.testing.assert_allclose(other.means, one.means, atol=1e-9)


def test_without_a_query_that_fits_no_mean_moves():
    (logits, drawn, means, shots, weights), _ = problem()
    found = joint_inference(logits, drawn, means, shots, np.zeros_like(weights), ratio=RATIO)
    np.testing.assert_allclose(found.means, means)
    np.testing.assert_allclose(found.proportions, 1 / 3)
    assert np.isfinite(found.probabilities).all()


@given(seed=st.integers(0, 1000), ways=st.integers(2, 9), old=st.integers(0, 8), scale=st.sampled_from([0.1, 1.0, 9.0]))
def test_a_query_alone_is_answered_as_without_a_batch(seed, ways, old, scale):
    (logits, drawn, means, shots, weights), _ = problem(seed, ways=ways, queries=1)
    groups = [group for group in np.split(np.arange(ways), [min(old, ways)]) if len(group)]
    shots[:, :old] = 100
    found = joint_inference(scale * logits, drawn, means, shots, weights, ratio=RATIO, groups=groups)
    np.testing.assert_allclose(found.probabilities, softmax(scale * logits, axis=-1), rtol=1e-6, atol=1e-12)


@given(seed=st.integers(0, 1000), relaxation=st.floats(0.05, 1))
def test_the_transport_lowers_classes_with_more_than_their_proportion(seed, relaxation):
    """The condition of the relaxed transport: h_k = -rho log(b'_k / pi_k)."""
    (logits, *_, weights), _ = problem(seed, 1)
    masses = weights / weights.sum(axis=1, keepdims=True)
    proportions = np.random.default_rng(seed).dirichlet(np.ones(3), size=1)
    offsets = batch._offsets(logits, masses, proportions, np.array([relaxation]))
    assigned = softmax(logits + offsets[:, None], axis=-1)
    shares = np.sum(masses[..., None] * assigned, axis=1)
    np.testing.assert_allclose(offsets - np.log(proportions), -relaxation * np.log(shares / proportions), atol=1e-4)


@given(counts=st.lists(st.floats(0, 200), min_size=2, max_size=8))
def test_expected_proportions_are_those_of_the_formula(counts):
    evidence = []
    for alpha in batch.ALPHAS:
        log = -(math.log(alpha / batch.MEDIAN_ALPHA) ** 2) / (2 * batch.SPREAD_ALPHA**2)
        log += math.lgamma(len(counts) * alpha) - math.lgamma(len(counts) * alpha + sum(counts))
        log += sum(math.lgamma(n + alpha) - math.lgamma(alpha) for n in counts)
        evidence.append(log)
    shares = np.exp(np.array(evidence) - max(evidence))
    posterior = [(np.array(counts) + alpha) / (sum(counts) + len(counts) * alpha) for alpha in batch.ALPHAS]
    expected = (shares[:, None] * posterior).sum(axis=0) / shares.sum()
    np.testing.assert_allclose(expected_proportions(np.array([counts]))[0][0], expected, atol=1e-9)


def test_even_base_classes_say_nothing_about_new_ones():
    counts, groups = np.array([[30.0] * 10 + [0.0] * 5]), [np.arange(10), np.arange(10, 15)]
    (apart,), (even,) = expected_proportions(counts, groups)
    (together,), (less_even,) = expected_proportions(counts)
    assert apart.sum() == pytest.approx(1)
    assert apart[10:].sum() == pytest.approx(2 * 5 / 15 / 302)
    np.testing.assert_allclose(apart[:10], apart[0])
    assert apart[10:].sum() < together[10:].sum()
    assert less_even < even


@pytest.mark.parametrize("share", [1.0, 0.9, 0.5])
def test_proportions_of_the_batch_are_found(share):
    rng = np.random.default_rng(1)
    centres = np.eye(4)[:2] * 4
    labels = (np.arange(100) >= 100 * share).astype(int)
    drawn = centres[labels] + rng.normal(size=(100, 4))
    logits = drawn @ centres.T - np.sum(centres**2, axis=1) / 2
    found = infer([x[None] for x in (logits, drawn, centres, np.ones(2), np.ones(100))])
    assert found.proportions[0, 0] == pytest.approx(share, abs=0.05)


@pytest.mark.parametrize("one_class", [False, True])
def test_one_shot_batches_are_about_as_sure_as_they_are_right(one_class):
    rng = np.random.default_rng(0)
    tasks, ways, queries, width, spread = 300, 5, 40, 10, 0.7
    centres = rng.normal(size=(tasks, ways, width)) * spread
    labels = np.zeros((tasks, queries), dtype=int) if one_class else np.tile(np.arange(queries) % ways, (tasks, 1))
    drawn = np.take_along_axis(centres, labels[..., None], axis=1) + rng.normal(size=(tasks, queries, width))
    # Means and variances of the classes given one sample of each: calibrated before the queries are seen.
    shrinkage = spread**2 / (spread**2 + 1)
    means = shrinkage * (centres + rng.normal(size=centres.shape))
    distances = np.sum((drawn[:, :, None] - means[:, None]) ** 2, axis=3)
    logits = -distances / (2 * (1 + shrinkage))
    found = joint_inference(
        logits, drawn, means, np.ones((tasks, ways)), np.ones((tasks, queries)), ratio=spread**2
    ).probabilities
    right = np.mean(found.argmax(axis=2) == labels)
    alone = softmax(logits, axis=-1)
    assert abs(np.mean(alone.max(axis=2)) - np.mean(alone.argmax(axis=2) == labels)) < 0.03
    assert right > np.mean(alone.argmax(axis=2) == labels) + 0.05
    assert abs(np.mean(found.max(axis=2)) - right) < 0.07
