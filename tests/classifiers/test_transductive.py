"""The transductive rivals agree with their formulas written as loops, and keep the laws of joint classification."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.special import softmax
from sklearn.base import clone

from conftest import make_bank
from hotshot import BaseClasses
from hotshot.classifiers import AlphaTIMClassifier, BDCSPNClassifier, LaplacianShotClassifier, PTMAPClassifier
from hotshot.classifiers.held_out import draw_task, unequal_queries
from hotshot.classifiers.transductive import information_slope
from hotshot.errors import InputError

WIDTH = 6
X_BASE, Y_BASE = make_bank(8, 15, WIDTH, seed=1)
BASE = BaseClasses.from_samples(X_BASE, Y_BASE)
CENTRE = X_BASE.mean(axis=0)
ALL_X, ALL_Y = make_bank(4, 12, WIDTH, seed=2, spread=0.9)
# Classes with shots and queries in unequal numbers.
IS_SUPPORT = np.isin(np.arange(48), [0, 1, 12, 24, 25, 26, 36])
X, Y = ALL_X[IS_SUPPORT], ALL_Y[IS_SUPPORT]
QUERIES = ALL_X[~IS_SUPPORT][3:]

RIVALS = {
    "pt-map": PTMAPClassifier(BASE),
    "pt-map, centred by task": PTMAPClassifier(BASE, normalize="task"),
    "bd-cspn": BDCSPNClassifier(BASE),
    "laplacian-shot": LaplacianShotClassifier(BASE),
    "alpha-tim": AlphaTIMClassifier(BASE),
}
every_rival = pytest.mark.parametrize("rival", RIVALS.values(), ids=RIVALS)


# --- formulas, one number at a time ---------------------------------------------------------------------------


def unit(v):
    return v / np.linalg.norm(v)


def units(samples, centre=CENTRE):
    return [unit(x - centre) for x in samples]


def distance(u, v):
    return np.sum((u - v) ** 2)


def cosine(u, v):
    return unit(u) @ unit(v)


def mean(vectors, weights=None):
    return np.average(vectors, axis=0, weights=weights)


def of_class(support, labels, c):
    return [z for z, label in zip(support, labels, strict=True) if label == c]


def starts(support, labels):
    return [mean(of_class(support, labels, c)) for c in sorted(set(labels))]


def sinkhorn(z, centres, sharpness):
    """A plan with rows of sum 1 and equal columns, by scaling rows and columns in turn."""
    plan = np.array([[math.exp(-sharpness * distance(q, m)) for m in centres] for q in z])
    for _ in range(5000):
        plan *= len(z) / len(centres) / plan.sum(axis=0)
        plan /= plan.sum(axis=1, keepdims=True)
    return plan


def pt_map(support, labels, z, sharpness, alpha, steps):
    centres = starts(support, labels)
    for _ in range(steps):
        plan = sinkhorn(z, centres, sharpness)
        for c, centre in enumerate(centres):
            own = of_class(support, labels, c)
            target = mean([*own, *z], [1] * len(own) + [plan[q][c] for q in range(len(z))])
            centres[c] = centre + alpha * (target - centre)
    return sinkhorn(z, centres, sharpness)


def rectify(support, labels, z, epsilon, shift):
    means = starts(support, labels)
    if shift:
        z = [q + mean(support) - mean(z) for q in z]
    nearest = [max(range(len(means)), key=lambda c: cosine(q, means[c])) for q in z]
    found = []
    for c, m in enumerate(means):
        members = of_class(support, labels, c) + [q for q, own in zip(z, nearest, strict=True) if own == c]
        found.append(mean(members, [math.exp(epsilon * cosine(v, m)) for v in members]))
    return z, found


def bd_cspn(support, labels, z, epsilon, shift):
    z, found = rectify(support, labels, z, epsilon, shift)
    return [softmax([7 * cosine(q, m) for m in found]) for q in z]


def laplacian_shot(support, labels, z, agreement, epsilon, scale, shift, k, steps):
    z, found = rectify(support, labels, z, epsilon, shift)
    unary = [[-scale * distance(q, m) for m in found] for q in z]
    near = [sorted((p for p in range(len(z)) if p != q), key=lambda p: distance(z[p], z[q]))[:k] for q in range(len(z))]
    y = [softmax(row) for row in unary]
    for _ in range(steps):
        y = [
            softmax([u + agreement * sum(y[p][c] for p in near[q]) for c, u in enumerate(unary[q])])
            for q in range(len(z))
        ]
    return y


@pytest.mark.parametrize(("sharpness", "alpha", "steps"), [(10.0, 0.2, 3), (4.0, 0.7, 2)])
@pytest.mark.parametrize("by_task", [True, False])
def test_pt_map_is_its_loop(sharpness, alpha, steps, by_task):
    support, z = units(X), units(QUERIES)
    if by_task:
        support, z = units(units(X, 0), mean(units(X, 0))), units(units(QUERIES, 0), mean(units(QUERIES, 0)))
    model = PTMAPClassifier(
        BASE, normalize="task" if by_task else "centre-l2", sharpness=sharpness, alpha=alpha, steps=steps
    )
    found = model.fit(X, Y).predict_proba_batch(QUERIES)
    np.testing.assert_allclose(found, pt_map(support, Y, z, sharpness, alpha, steps), atol=1e-5)


@pytest.mark.parametrize(("epsilon", "shift"), [(10.0, True), (3.0, False), (3.0, True)])
def test_bd_cspn_is_its_loop(epsilon, shift):
    found = BDCSPNClassifier(BASE, normalize="centre-l2", epsilon=epsilon, shift=shift, scale=7.0).fit(X, Y)
    expected = bd_cspn(units(X), Y, units(QUERIES), epsilon, shift)
    np.testing.assert_allclose(found.predict_proba_batch(QUERIES), expected, rtol=1e-9)


@pytest.mark.parametrize(("agreement", "scale", "shift", "k", "steps"), [(0.7, 1.0, True, 3, 4), (2.0, 5, False, 1, 2)])
def test_laplacian_shot_is_its_loop(agreement, scale, shift, k, steps):
    settings = {"agreement": agreement, "epsilon": 8.0, "scale": scale, "shift": shift, "k": k, "steps": steps}
    found = LaplacianShotClassifier(BASE, normalize="centre-l2", **settings).fit(X, Y).predict_proba_batch(QUERIES)
    np.testing.assert_allclose(found, laplacian_shot(units(X), Y, units(QUERIES), **settings), rtol=1e-9)


def information(support, labels, z, prototypes, alpha, tau):
    """The loss of alpha-TIM."""
    own = [softmax([-tau / 2 * distance(v, w) for w in prototypes]) for v in support]
    p = [softmax([-tau / 2 * distance(v, w) for w in prototypes]) for v in z]
    shares = [mean([row[c] for row in p]) for c in range(len(prototypes))]
    cross_entropy = mean([-math.log(row[c]) for row, c in zip(own, labels, strict=True)])

    def entropy(row):
        if alpha == 1:
            return -sum(x * math.log(x) for x in row)
        return (1 - sum(x**alpha for x in row)) / (alpha - 1)

    return cross_entropy + mean([entropy(row) for row in p]) - entropy(shares)


@pytest.mark.parametrize("alpha", [1.0, 2.0, 5.0])
def test_the_slope_of_alpha_tim_is_that_of_its_loss(alpha):
    support, z = np.array(units(X)), np.array(units(QUERIES))
    prototypes = np.random.default_rng(0).normal(size=4 * WIDTH) / 2

    def loss(flat):
        return information(support, Y, z, flat.reshape(4, WIDTH), alpha, 7.0)

    def slope(flat):
        return information_slope(flat.reshape(4, WIDTH), support, np.eye(4)[Y], z, alpha, 7.0).ravel()

    assert check_grad(loss, slope, prototypes) < 1e-5


@pytest.mark.parametrize("steps", [1, 7])
def test_alpha_tim_takes_the_steps_of_adam(steps):
    support, z = units(X), units(QUERIES)
    w = starts(support, Y)
    first = second = [0.0] * (4 * WIDTH)
    for t in range(1, steps + 1):
        slopes = information_slope(np.array(w), np.array(support), np.eye(4)[Y], np.array(z), 2.0, 9.0).ravel()
        first = [0.9 * m + 0.1 * g for m, g in zip(first, slopes, strict=True)]
        second = [0.999 * v + 0.001 * g * g for v, g in zip(second, slopes, strict=True)]
        moves = [
            0.01 * (m / (1 - 0.9**t)) / (math.sqrt(v / (1 - 0.999**t)) + 1e-8)
            for m, v in zip(first, second, strict=True)
        ]
        w = np.array(w) - np.reshape(moves, (4, WIDTH))
    expected = [softmax([-4.5 * distance(q, p) for p in w]) for q in z]
    model = AlphaTIMClassifier(BASE, normalize="centre-l2", alpha=2.0, tau=9.0, learning_rate=0.01, steps=steps)
    np.testing.assert_allclose(model.fit(X, Y).predict_proba_batch(QUERIES), expected, rtol=1e-6)


# --- laws -----------------------------------------------------------------------------------------------------


@every_rival
def test_answers_depend_on_the_other_rows_not_on_their_order_and_those_of_predict_do_not(rival):
    model = clone(rival).fit(X, np.array(list("dabc"))[Y])
    expected, order = model.predict_proba_batch(QUERIES), np.random.default_rng(0).permutation(len(QUERIES))
    np.testing.assert_allclose(model.predict_proba_batch(QUERIES[order]), expected[order], atol=1e-4)
    np.testing.assert_allclose(expected.sum(axis=1), 1)
    assert (expected >= 0).all()
    assert np.array_equal(model.predict_batch(QUERIES), model.classes_[expected.argmax(axis=1)])
    some = QUERIES[:9]
    together, fewer = expected[:9], model.predict_proba_batch(some)
    assert np.abs(np.log(together) - np.log(fewer)).max() > 0.01
    np.testing.assert_allclose(model.predict_proba(QUERIES)[:9], model.predict_proba(some), rtol=1e-9)


@every_rival
@pytest.mark.parametrize("base", [BASE, None], ids=["bank", "no bank"])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("n_queries", [1, 2, 30])
def test_few_classes_and_few_queries_have_an_answer(rival, base, n_classes, n_queries):
    some = n_classes > Y
    model = clone(rival).set_params(base=base).fit(X[some], Y[some])
    found = model.predict_proba_batch(QUERIES[:n_queries])
    assert found.shape == (n_queries, n_classes)
    assert np.isfinite(found).all()
    assert set(model.predict_batch(QUERIES[:n_queries])) <= {*range(n_classes)}


# --- choosing, and what is refused ----------------------------------------------------------------------------


def test_held_out_queries_are_unequal_for_methods_that_need_no_balance():
    labels = np.repeat(np.arange(6), 25)
    tasks = [draw_task(labels, 1, 5, np.random.default_rng(i)) for i in range(200)]
    queries = [unequal_queries(task) for task in tasks]
    counts = np.array([np.bincount(t.query_labels[q], minlength=5) for t, q in zip(tasks, queries, strict=True)])
    assert (counts.max(axis=1) == 15).all()
    assert len({*map(tuple, counts.tolist())}) > 190
    # Dirichlet shares of 2 between 5 classes: the standard deviation is 0.12, without the rounding.
    shares = counts / counts.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shares.mean(axis=0), 0.2, atol=0.05)
    assert 0.08 < shares.std() < 0.16
    assert all(np.array_equal(q, unequal_queries(task)) for q, task in zip(queries, tasks, strict=True))
    assert [kind.jointly and not kind.assumes_balance for kind in (PTMAPClassifier, BDCSPNClassifier)] == [False, True]


@every_rival
def test_zero_vectors_and_huge_features_have_a_defined_result(rival):
    model = clone(rival).fit(X, Y)
    with np.errstate(all="ignore"):
        found = model.predict_proba_batch(np.concatenate([QUERIES, CENTRE[None], 1e200 * QUERIES[:1]]))
    assert np.isfinite(found).all()
    with pytest.raises(InputError, match="NaN"):
        model.predict_batch(np.full((2, WIDTH), np.nan))
