"""Eqs. 6, 8 and 9, and retrieval: costs and transfer weights against naive loops, with POT as the solver."""

from __future__ import annotations

import numpy as np
import pytest

from conftest import make_bank
from few_shot_problems import RAGGED, plain_space, prepared_bank, ragged_bank, random_tasks, transfer_of
from hotshot import BaseClasses, FreeLunchClassifier, HOTClassifier
from hotshot.method import transfer as transfers
from hotshot.method.transfer import COSTS, class_plan

ot = pytest.importorskip("ot")
EPSILON, B = 0.05, len(RAGGED)


def sinkhorn(cost, a=None, epsilon=EPSILON):
    """A converged plan of POT's onto uniform targets."""
    a = np.full(cost.shape[0], 1 / cost.shape[0]) if a is None else a
    b = np.full(cost.shape[1], 1 / cost.shape[1])
    return ot.sinkhorn(a, b, cost, epsilon, method="sinkhorn_log", numItermax=100_000, stopThr=1e-11)


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


def naive_learned_cost(base, targets):
    """C_bn = sum_j D_jn M_jn of one task, eq. 9, and the plans M."""
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


def check_weights(weights, shape):
    assert weights.shape == shape
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-9)


@pytest.fixture(scope="module")
def base():
    return ragged_bank(spread=1.0).prepare(plain_space(sample_weights="classifier", temperature=0.1))


# --- the hierarchy ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize(
    ("cost_scale", "divided"), [("published", ("hierarchical", "mean-cosine")), ("over-targets", COSTS)]
)
def test_every_cost_and_scale_is_that_of_the_naive_loop(base, cost, cost_scale, divided):
    targets, _ = random_tasks(base, n_tasks=2, shots=(2, 1, 1))
    got = transfer_of(base, targets, cost=cost, cost_scale=cost_scale, epsilon=EPSILON)
    check_weights(got.weights, (2, len(RAGGED), 4))
    for task in range(2):
        expected = naive_cost(base, targets[task], cost) / (4 if cost in divided else 1)
        plan = sinkhorn(expected)
        np.testing.assert_allclose(got.cost[task], expected, atol=1e-7)
        np.testing.assert_allclose(got.plan[task], plan, atol=1e-7)
        np.testing.assert_allclose(got.weights[task], 4 * plan, atol=1e-6)


@pytest.mark.parametrize("cost", COSTS)
def test_permuted_base_classes_and_targets_permute_the_weights(cost):
    bank = ragged_bank()
    rng = np.random.default_rng(5)
    order, places = rng.permutation(len(RAGGED)), rng.permutation(4)
    renamed = BaseClasses.from_samples(bank.samples, order[bank.labels])
    novel = rng.normal(size=(1, 4, 6))
    plain, permuted = (
        transfer_of(base, base.transform(targets), cost=cost).weights
        for base, targets in ((bank.prepare(plain_space()), novel), (renamed.prepare(plain_space()), novel[:, places]))
    )
    np.testing.assert_allclose(permuted[:, order], plain[:, :, places], atol=1e-6)


@pytest.mark.parametrize("cost", COSTS)
def test_all_lend_alike_at_a_large_epsilon_or_if_all_are_alike(cost):
    base = prepared_bank()
    targets, _ = random_tasks(base)
    np.testing.assert_allclose(transfer_of(base, targets, cost=cost, epsilon=1e6).weights, 1 / B, atol=1e-5)
    X = np.random.default_rng(0).normal(size=(9, 6))
    alike = BaseClasses.from_samples(np.tile(X, (5, 1)), np.repeat(np.arange(5), 9)).prepare(plain_space())
    np.testing.assert_allclose(transfer_of(alike, targets, cost=cost).weights, 0.2, atol=1e-7)
    if cost in ("hierarchical", "mean-cosine"):
        # A target of zeros costs 1, shared by the targets, everywhere.
        of_zeros = transfer_of(base, np.zeros((1, 2, 6)), cost=cost)
        np.testing.assert_allclose(of_zeros.cost, 1 / 2, atol=1e-8)
        np.testing.assert_allclose(of_zeros.weights, 1 / B, atol=1e-7)


# --- retrieval --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("k", [1, 2, 5])
def test_transport_runs_over_the_classes_near_some_target_and_each_keeps_its_own(base, cost, k):
    targets, _ = random_tasks(base, n_tasks=2, shots=(1, 1))
    epsilon = EPSILON if cost == "hierarchical" else 0.3
    got = transfer_of(base, targets, cost=cost, n_retrieved=k, epsilon=epsilon, cost_scale="over-targets")
    check_weights(got.weights, (2, len(RAGGED), 2))
    for task in range(2):
        table = naive_cost(base, targets[task], "mean-cosine" if cost == "hierarchical" else cost)
        near = np.argsort(np.argsort(table, axis=0), axis=0) < k
        lends = near.any(axis=1)
        plan = np.zeros(near.shape)
        plan[lends] = sinkhorn(naive_cost(base, targets[task], cost)[lends] / 2, epsilon=epsilon)
        np.testing.assert_allclose(got.plan[task][lends], plan[lends], atol=1e-7)
        weights = np.where(near, plan, 0)
        np.testing.assert_allclose(got.weights[task], weights / weights.sum(axis=0), atol=1e-5)
        np.testing.assert_array_equal(got.weights[task] > 0, near)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_retrieved_weights_stay_finite_where_balance_sends_a_target_elsewhere(dtype):
    # Eight of nine targets are nearest to the first class, but it can serve only half of them.
    X = np.array([[0, 0], [0, 1], [10, 0], [10, 1]], dtype=dtype)
    base = BaseClasses.from_samples(X, [0, 0, 1, 1]).prepare(plain_space(normalize=None))
    novel = np.array([[x, 0.5] for x in (-1, 0, 1, 2, 3, 4, 4.5, 4.8, 10)], dtype=dtype)
    got = transfer_of(base, base.transform(novel)[None], cost="euclidean", n_retrieved=1)
    np.testing.assert_array_equal(got.weights[0].T, [[1, 0]] * 8 + [[0, 1]])


# --- low-level plans --------------------------------------------------------------------------------------


def test_low_level_plans_are_couplings_and_those_of_the_naive_loop(base):
    targets, _ = random_tasks(base, n_tasks=2, shots=(1, 2))
    for b in range(len(RAGGED)):
        got = class_plan(base, targets, b, EPSILON)
        mass = class_samples(base, b)[1]
        for task in range(2):
            np.testing.assert_allclose(got[task].sum(axis=1), mass, atol=1e-8)
            np.testing.assert_allclose(got[task].sum(axis=0), 1 / 3, atol=1e-8)
            np.testing.assert_allclose(got[task], naive_learned_cost(base, targets[task])[1][b], atol=1e-7)


# --- retrieval by default: all classes of small banks lend, of large ones each target's nearest -------------


@pytest.mark.parametrize("cost", ["hierarchical", "mean-cosine", "euclidean"])
@pytest.mark.parametrize(("limit", "retrieved"), [(B, 1), (B + 1, 1), (B - 1, 1), (B - 1, B - 1)])
def test_auto_is_all_up_to_the_limit_and_the_nearest_beyond(base, cost, limit, retrieved, monkeypatch):
    monkeypatch.setattr(transfers, "ALL_UP_TO", limit)
    monkeypatch.setattr(transfers, "RETRIEVED", retrieved)
    targets, _ = random_tasks(base, n_tasks=2)
    expected = None if limit >= B else retrieved
    auto, some = (transfer_of(base, targets, cost=cost, n_retrieved=n) for n in ("auto", expected))
    np.testing.assert_array_equal(auto.weights, some.weights)
    assert ((auto.weights > 0).sum(axis=1) == (expected or B)).all()


def test_the_nearest_two_lend_where_only_the_nearest_do(monkeypatch):
    monkeypatch.setattr(transfers, "ALL_UP_TO", 0)
    X, y = make_bank(3, 1, 6, seed=3)
    weights = HOTClassifier(ragged_bank(), cost="nearest").fit(X, y).transfer_weights_
    np.testing.assert_array_equal(np.sort(weights, axis=1)[:, -3:], np.tile([0, 0.5, 0.5], (3, 1)))
    lending = FreeLunchClassifier(ragged_bank(), k=3, random_state=0).fit(X, y).transfer_weights_ > 0
    assert (lending.sum(axis=1) == 3).all()


@pytest.mark.parametrize("cost", ["hierarchical", "mean-cosine"])
def test_of_thousands_of_base_classes_a_hundred_lend(cost):
    X, y = make_bank(2004, 5, 32, spread=0.3, dtype=np.float32)
    model = HOTClassifier(BaseClasses.from_samples(X[y < 2000], y[y < 2000]), cost=cost)
    model.fit(X[y >= 2000][::5], y[y >= 2000][::5])
    assert ((model.transfer_weights_ > 0).sum(axis=1) == 100).all()
    np.testing.assert_allclose(model.transfer_weights_.sum(axis=1), 1, rtol=1e-5)
    assert len(model.explain().loans[0].lenders) == 100
    assert model.score(X[y >= 2000], y[y >= 2000]) > 0.9
