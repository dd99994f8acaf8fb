"""Learned cost, high-level transport and transfer weights against naive loops, with POT as the solver."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import expit

from few_shot_problems import RAGGED, plain_space, prepared_bank, ragged_bank, random_tasks, transfer_of
from hotshot.arrays import like, to_numpy
from hotshot.bank import BaseClasses, Bucket
from hotshot.method.hierarchy import COSTS, nearest_weights

ot = pytest.importorskip("ot")
EPSILON = 0.05


def sinkhorn(cost, a=None):
    """A converged plan of POT's onto uniform targets."""
    a = np.full(cost.shape[0], 1 / cost.shape[0]) if a is None else a
    b = np.full(cost.shape[1], 1 / cost.shape[1])
    return ot.sinkhorn(a, b, cost, EPSILON, method="sinkhorn_log", numItermax=100_000, stopThr=1e-11)


def cosine_distance(x, y):
    return 1 - (x @ y) / (np.linalg.norm(x) * np.linalg.norm(y))


def distance_table(xs, ys, distance):
    return np.array([[distance(x, y) for y in ys] for x in xs])


def euclidean_distance(x, y):
    return np.sqrt(((x - y) ** 2).sum())


def class_samples(base, b):
    """Samples of class b as unit vectors and their weights, without padding."""
    for bucket in base.buckets:
        for place, member in enumerate(bucket.classes):
            if member == b:
                kept = bucket.mass[place] > 0
                return bucket.units[place][kept], bucket.mass[place][kept]
    raise AssertionError(f"class {b} is in no bucket")


KNOWN_ANSWERS = {}


def naive_learned_cost(base, targets):
    """C_bn = sum_j D_jn M_jn of one task, eq. 9, and the plans M; slow, so that answers are kept."""
    question = (base.means.tobytes(), targets.tobytes())
    if question not in KNOWN_ANSWERS:
        KNOWN_ANSWERS[question] = solved_by_pot(base, targets)
    return KNOWN_ANSWERS[question]


def solved_by_pot(base, targets):
    learned, plans = [], []
    for b in range(len(base.names)):
        samples, mass = class_samples(base, b)
        D = distance_table(samples, targets, cosine_distance)
        M = sinkhorn(D, mass / mass.sum())
        learned.append([sum(D[j, n] * M[j, n] for j in range(len(D))) for n in range(D.shape[1])])
        plans.append(M)
    return np.array(learned), plans


def naive_cost(base, targets, cost):
    """Cost of one task, before it is divided by the number of targets."""
    if cost == "hierarchical":
        return len(targets) * naive_learned_cost(base, targets)[0]
    if cost == "mean-cosine":
        table = []
        for b in range(len(base.names)):
            samples, mass = class_samples(base, b)
            table.append([sum(mass * [cosine_distance(x, y) for x in samples]) for y in targets])
        return np.array(table)
    means = base.weighted_means if cost.endswith("-weighted") else base.means
    distance = cosine_distance if cost.startswith("cosine") else euclidean_distance
    return distance_table(means, targets, distance)


def run(xp, base, targets, **kwargs):
    """Transfer of NumPy targets, through the array library xp, back in NumPy."""
    reference = xp.asarray([0.0], dtype=xp.float64)
    transfer = transfer_of(base.to(reference), like(targets, reference), **kwargs)
    assert type(transfer.weights) is type(reference)
    fields = {name: getattr(transfer, name) for name in ("weights", "cost", "plan", "low_status", "high_status")}
    fields = {name: None if x is None else to_numpy(x) for name, x in fields.items()}
    plans = None if transfer.low_plans is None else [to_numpy(x) for x in transfer.low_plans]
    return replace(transfer, **fields, low_plans=plans)


def check_weights(weights, shape):
    assert weights.shape == shape
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-9)


@pytest.fixture(scope="module")
def base():
    return ragged_bank(spread=1.0).prepare(plain_space(sample_weights="classifier", temperature=0.1))


# --- the hierarchy ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shots", [(1, 1, 1), (2, 1, 3)])
def test_learned_cost_and_transfer_weights_are_those_of_the_naive_loop(xp, base, shots):
    targets, _ = random_tasks(base, n_tasks=2, shots=shots)
    got = run(xp, base, targets, epsilon=EPSILON)
    check_weights(got.weights, (2, len(RAGGED), sum(shots)))
    for task in range(2):
        learned, _ = naive_learned_cost(base, targets[task])
        np.testing.assert_allclose(got.cost[task], learned, atol=1e-8)
        plan = sinkhorn(learned)
        np.testing.assert_allclose(got.plan[task], plan, atol=1e-8)
        np.testing.assert_allclose(got.weights[task], sum(shots) * plan, atol=1e-7)


def plan_for_two_targets(cost, a, epsilon):
    """The plan onto two equal targets, whose one unknown is found by bisection."""

    def first_column(h):
        return a * expit((h - cost[:, 0] + cost[:, 1]) / epsilon)

    column = first_column(brentq(lambda h: first_column(h).sum() - 0.5, -5, 5, xtol=1e-14))
    return np.stack([column, a - column], axis=1)


def test_the_published_epsilon_is_solved_as_exactly():
    base = prepared_bank()
    targets, _ = random_tasks(base, n_tasks=1, shots=(1, 1))
    got = transfer_of(base, targets, epsilon=0.01)
    learned = []
    for b in range(len(RAGGED)):
        samples, mass = class_samples(base, b)
        D = distance_table(samples, targets[0], cosine_distance)
        learned.append((D * plan_for_two_targets(D, mass, 0.01)).sum(axis=0))
    np.testing.assert_allclose(got.cost[0], learned, atol=1e-7)
    plan = plan_for_two_targets(np.array(learned), np.full(len(RAGGED), 1 / len(RAGGED)), 0.01)
    np.testing.assert_allclose(got.weights[0], 2 * plan, atol=1e-6)


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize(
    ("cost_scale", "divided"), [("published", ("hierarchical", "mean-cosine")), ("over-targets", COSTS)]
)
def test_every_cost_and_scale_is_that_of_the_naive_loop(xp, base, cost, cost_scale, divided):
    targets, _ = random_tasks(base, n_tasks=2, shots=(2, 1, 1))
    got = run(xp, base, targets, cost=cost, cost_scale=cost_scale, epsilon=EPSILON)
    check_weights(got.weights, (2, len(RAGGED), 4))
    for task in range(2):
        expected = naive_cost(base, targets[task], cost) / (4 if cost in divided else 1)
        np.testing.assert_allclose(got.cost[task], expected, atol=1e-7)
        np.testing.assert_allclose(got.weights[task], 4 * sinkhorn(expected), atol=1e-6)


def test_costs_differ(base):
    targets, _ = random_tasks(base, n_tasks=1)
    tables = [transfer_of(base, targets, cost=cost).cost for cost in COSTS]
    for i, a in enumerate(tables):
        for b in tables[:i]:
            assert np.abs(a - b).max() > 1e-3


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("n_retrieved", [None, 2])
def test_a_batch_is_its_tasks_one_at_a_time(xp, base, cost, n_retrieved):
    targets, _ = random_tasks(base, n_tasks=4, shots=(1, 2))
    settings = {"cost": cost, "n_retrieved": n_retrieved}
    together = run(xp, base, targets, **settings)
    for task in range(4):
        alone = run(xp, base, targets[task : task + 1], **settings)
        np.testing.assert_allclose(together.weights[task], alone.weights[0], atol=1e-7)
        lends = alone.plan[0].sum(axis=1) > 0
        np.testing.assert_allclose(together.cost[task][lends], alone.cost[0][lends], atol=1e-9)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=6), st.integers(0, 99))
def test_padding_does_not_matter(sizes, seed):
    base = prepared_bank(sizes=sizes, width=4, seed=seed)
    singly = [
        Bucket(np.array([b]), units[None], mass[None])
        for b, (units, mass) in ((b, class_samples(base, b)) for b in range(len(sizes)))
    ]
    targets, _ = random_tasks(base, n_tasks=2, shots=(1, 1), seed=seed)
    padded = transfer_of(base, targets)
    alone = transfer_of(replace(base, buckets=tuple(singly)), targets)
    np.testing.assert_allclose(padded.cost, alone.cost, atol=1e-8)
    np.testing.assert_allclose(padded.weights, alone.weights, atol=1e-6)


@pytest.mark.parametrize("cost", COSTS)
def test_permuting_the_targets_permutes_the_weights(cost):
    base = prepared_bank()
    targets, _ = random_tasks(base, n_tasks=1, shots=(1, 1, 1, 1))
    order = np.array([2, 0, 3, 1])
    plain = transfer_of(base, targets, cost=cost)
    permuted = transfer_of(base, targets[:, order], cost=cost)
    np.testing.assert_allclose(permuted.weights, plain.weights[:, :, order], atol=1e-7)


@pytest.mark.parametrize("cost", COSTS)
def test_permuting_the_base_classes_permutes_the_weights(cost):
    bank = ragged_bank()
    order = np.random.default_rng(5).permutation(len(RAGGED))
    renamed = BaseClasses.from_samples(bank.samples, order[bank.labels])
    novel = np.random.default_rng(0).normal(size=(1, 3, 6))
    plain, permuted = (
        transfer_of(base, base.transform(novel), cost=cost).weights
        for base in (bank.prepare(plain_space()), renamed.prepare(plain_space()))
    )
    np.testing.assert_allclose(permuted[:, order], plain, atol=1e-6)


@pytest.mark.parametrize("cost", COSTS)
def test_large_epsilon_gives_uniform_weights(cost):
    base = prepared_bank()
    targets, _ = random_tasks(base)
    got = transfer_of(base, targets, cost=cost, epsilon=1e6)
    np.testing.assert_allclose(got.weights, 1 / len(RAGGED), atol=1e-5)


def test_small_epsilon_gives_each_target_its_cheapest_share():
    base = prepared_bank(sizes=(5, 5, 5))
    targets = base.means[None] / np.linalg.norm(base.means, axis=1)[None, :, None]
    got = transfer_of(base, targets, cost="cosine", epsilon=1e-3)
    np.testing.assert_allclose(got.weights[0], np.eye(3), atol=1e-6)


@pytest.mark.parametrize("cost", COSTS)
def test_identical_base_classes_lend_alike(cost):
    X = np.random.default_rng(0).normal(size=(9, 4))
    base = BaseClasses.from_samples(np.tile(X, (5, 1)), np.repeat(np.arange(5), 9)).prepare(plain_space())
    targets, _ = random_tasks(base, shots=(1, 1))
    np.testing.assert_allclose(transfer_of(base, targets, cost=cost).weights, 0.2, atol=1e-7)


def test_a_target_of_zeros_costs_one_everywhere():
    base = prepared_bank()
    targets = np.zeros((1, 2, 6))
    got = transfer_of(base, targets)
    np.testing.assert_allclose(got.cost, 1 / 2, atol=1e-8)
    np.testing.assert_allclose(got.weights, 1 / len(RAGGED), atol=1e-7)


def test_single_precision_agrees_with_double(base):
    targets, _ = random_tasks(base)
    double = transfer_of(base, targets)
    single = transfer_of(base.to(np.ones(1, np.float32)), targets.astype(np.float32))
    assert single.weights.dtype == np.float32
    np.testing.assert_allclose(single.weights, double.weights, atol=2e-3)


# --- retrieval --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("n_retrieved", [len(RAGGED), len(RAGGED) + 5])
def test_retrieving_all_classes_is_retrieving_none(base, cost, n_retrieved):
    targets, _ = random_tasks(base)
    everything = transfer_of(base, targets, cost=cost)
    got = transfer_of(base, targets, cost=cost, n_retrieved=n_retrieved)
    np.testing.assert_array_equal(got.weights, everything.weights)


def nearest_classes(base, targets, cost, k):
    """Indices of the k nearest classes of each target of one task, by the closed form of the cost."""
    table = naive_cost(base, targets, "mean-cosine" if cost == "hierarchical" else cost)
    return [np.argsort(column)[:k] for column in table.T]


@pytest.mark.parametrize("cost", COSTS)
def test_retrieving_one_class_gives_all_weight_to_the_nearest(xp, base, cost):
    targets, _ = random_tasks(base, n_tasks=2, shots=(1, 1, 2))
    got = run(xp, base, targets, cost=cost, n_retrieved=1)
    for task in range(2):
        for n, nearest in enumerate(nearest_classes(base, targets[task], cost, 1)):
            np.testing.assert_array_equal(got.weights[task, :, n], np.eye(len(RAGGED))[nearest[0]])


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("k", [2, 3, 5])
def test_each_target_keeps_exactly_its_k_nearest_classes(xp, base, cost, k):
    targets, _ = random_tasks(base, n_tasks=2, shots=(1, 1))
    got = run(xp, base, targets, cost=cost, n_retrieved=k, epsilon=0.3)
    check_weights(got.weights, (2, len(RAGGED), 2))
    for task in range(2):
        for n, nearest in enumerate(nearest_classes(base, targets[task], cost, k)):
            assert set(np.flatnonzero(got.weights[task, :, n])) == set(nearest)


@pytest.mark.parametrize("cost", ["hierarchical", "euclidean"])
def test_transport_runs_over_the_classes_near_some_target(xp, base, cost):
    targets, _ = random_tasks(base, n_tasks=2, shots=(1, 1))
    got = run(xp, base, targets, cost=cost, n_retrieved=2, epsilon=EPSILON, cost_scale="over-targets")
    for task in range(2):
        nearest = nearest_classes(base, targets[task], cost, 2)
        lending = sorted({int(b) for column in nearest for b in column})
        plan = sinkhorn(naive_cost(base, targets[task], cost)[lending] / 2)
        np.testing.assert_allclose(got.plan[task][lending], plan, atol=1e-7)
        for n, column in enumerate(nearest):
            kept = np.array([plan[lending.index(b), n] if b in column else 0.0 for b in range(len(RAGGED))])
            np.testing.assert_allclose(got.weights[task, :, n], kept / kept.sum(), atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_retrieved_weights_stay_finite_where_balance_sends_a_target_elsewhere(dtype):
    # Eight of nine targets are nearest to the first class, but it can serve only half of them.
    X = np.array([[0, 0], [0, 1], [10, 0], [10, 1]], dtype=dtype)
    base = BaseClasses.from_samples(X, [0, 0, 1, 1]).prepare(plain_space(normalize=None))
    novel = np.array([[x, 0.5] for x in (-1, 0, 1, 2, 3, 4, 4.5, 4.8, 10)], dtype=dtype)
    got = transfer_of(base, base.transform(novel)[None], cost="euclidean", n_retrieved=1)
    np.testing.assert_array_equal(got.weights[0].T, [[1, 0]] * 8 + [[0, 1]])


# --- low-level plans --------------------------------------------------------------------------------------


def check_low_plan(plan, mass, n_targets, tolerance=1e-8):
    """A coupling of the sample weights, zero on padding, and the uniform distribution of the targets."""
    assert (plan >= 0).all()
    np.testing.assert_allclose(plan.sum(axis=1)[: len(mass)], mass, atol=tolerance)
    np.testing.assert_array_equal(plan[len(mass) :], 0)
    np.testing.assert_allclose(plan.sum(axis=0), 1 / n_targets, atol=tolerance)


def test_low_level_plans_are_couplings_and_those_of_the_naive_loop(xp, base):
    targets, _ = random_tasks(base, n_tasks=2, shots=(1, 2))
    got = run(xp, base, targets, epsilon=EPSILON, keep_low_plans=True)
    assert len(got.low_plans) == len(RAGGED)
    assert (got.low_status == 0).all()
    for task in range(2):
        _, plans = naive_learned_cost(base, targets[task])
        for b, expected in enumerate(plans):
            plan = got.low_plans[b][task]
            check_low_plan(plan, class_samples(base, b)[1], 3)
            np.testing.assert_allclose(plan[: len(expected)], expected, atol=1e-7)


def test_low_level_plans_of_retrieved_classes_are_the_same_and_of_others_zero(xp, base):
    targets, _ = random_tasks(base, n_tasks=3, shots=(1, 1))
    everything = run(xp, base, targets, keep_low_plans=True)
    retrieved = run(xp, base, targets, keep_low_plans=True, n_retrieved=1)
    some_lend = some_do_not = 0
    for task in range(3):
        for b in range(len(RAGGED)):
            plan = retrieved.low_plans[b][task]
            assert plan.shape == everything.low_plans[b][task].shape
            if retrieved.plan[task, b].sum() > 0:
                some_lend += 1
                np.testing.assert_allclose(plan, everything.low_plans[b][task], atol=1e-7)
            else:
                some_do_not += 1
                np.testing.assert_array_equal(plan, 0)
    assert some_lend
    assert some_do_not


def test_plans_are_kept_only_where_asked_for(base):
    targets, _ = random_tasks(base)
    assert transfer_of(base, targets).low_plans is None
    assert transfer_of(base, targets, cost="cosine", keep_low_plans=True).low_plans is None


# --- Free-Lunch -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 4])
def test_nearest_weights_are_free_lunchs(xp, base, k):
    targets, _ = random_tasks(base, n_tasks=2, shots=(1, 2))
    reference = xp.asarray([0.0], dtype=xp.float64)
    got = to_numpy(nearest_weights(base.to(reference), like(targets, reference), k).weights)
    for task in range(2):
        for n, target in enumerate(targets[task]):
            order = np.argsort([((mean - target) ** 2).sum() for mean in base.means])
            expected = np.zeros(len(RAGGED))
            expected[order[:k]] = 1 / k
            np.testing.assert_allclose(got[task, :, n], expected)


def test_more_neighbours_than_classes_are_all_classes(base):
    targets, _ = random_tasks(base)
    np.testing.assert_allclose(nearest_weights(base, targets, 50).weights, 1 / len(RAGGED))
