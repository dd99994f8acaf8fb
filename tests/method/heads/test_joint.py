"""Old and new classes in one head: the minimum, its independence of the start, and what old classes may lose."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from few_shot_problems import diagonal_problem, method_with, ragged_bank
from hotshot.bank import Space
from hotshot.method.heads import joint
from hotshot.method.heads.joint import LARGEST_SHARES, LARGEST_SHIFT, OldClasses, balance, logits, train_new, train_old
from hotshot.method.hot import calibrate_tasks

METHOD = method_with()


@pytest.fixture(scope="module")
def fitted():
    bank = ragged_bank(sizes=(30, 40, 25, 30, 30), width=5, spread=0.3)
    base = bank.prepare(Space(power=1.0, n_components=None))
    rng = np.random.default_rng(1)
    support = base.transform(rng.normal(size=(3, 5))[[0, 0, 1, 2]] + 0.1 * rng.normal(size=(4, 5)))
    labels = np.array([0, 0, 1, 2])
    old = train_old(base, bank.samples, bank.counts, METHOD)
    _, gaussians = calibrate_tasks(base, support[None], labels[None], METHOD, n_classes=3)
    return base, old, gaussians, support, labels, bank


def test_new_rows_do_not_depend_on_the_start(fitted):
    base, old, gaussians, support, labels, _ = fitted
    first = train_new(base, old, gaussians, support, labels, METHOD)
    assert first.converged
    rng = np.random.default_rng(0)
    for scale in (0.1, 3.0):
        start = scale * rng.normal(size=first.theta.shape)
        again = train_new(base, old, gaussians, support, labels, METHOD, start)
        np.testing.assert_allclose(again.theta, first.theta, atol=1e-5)


def test_rows_of_old_classes_depend_on_their_samples_only(fitted):
    _, old, *_, bank = fitted
    assert old.theta.shape[0] == len(bank.names)
    assert len(old.points) == len(bank.samples)
    # A fifth of each class is held out once, and none of it is trained on then.
    apart = old.without_held_out
    assert np.bincount(apart.labels).tolist() == [count // 5 for count in bank.counts]
    assert not np.isin(apart.held_out[:, 0], apart.points[:, 0]).any()
    assert len(apart.points) + len(apart.held_out) == len(bank.samples)
    right = logits(apart.theta, apart.held_out).argmax(axis=1) == apart.labels
    assert right.mean() > 0.9


def test_classes_with_samples_to_spare_are_trained_once(fitted, monkeypatch):
    base, *_, bank = fitted
    monkeypatch.setattr(joint, "MOST_POINTS", 20 * len(bank.counts))
    old = train_old(base, bank.samples, bank.counts, METHOD)
    assert old.without_held_out is None
    assert len(old.points) == 20 * len(bank.counts)
    assert not np.isin(old.held_out[:, 0], old.points[:, 0]).any()


@given(seed=st.integers(0, 2**31), share=st.just(0.0) | st.floats(0, 0.3), underrated=st.booleans())
def test_old_classes_lose_no_more_than_was_allowed(seed, share, underrated):
    rng = np.random.default_rng(seed)
    theta, held_out = rng.normal(size=(4, 4)), rng.normal(size=(40, 3))
    old = OldClasses(theta, held_out, np.ones(40), held_out, logits(theta, held_out).argmax(axis=1))
    new = rng.normal(size=(3, 4))
    bias = balance(old, new, share, underrated)
    stolen = logits(new, held_out).max(axis=1) + bias > logits(theta, held_out).max(axis=1) + 1e-12
    if 0 < share * 40 < 1:
        # One sample is more than the limit: nothing can be measured.
        assert bias == 0
        return
    assert stolen.mean() <= share
    assert bias <= LARGEST_SHIFT
    if bias > 0:
        assert stolen.mean() <= LARGEST_SHARES[underrated] * len(new) / len(theta)
        assert balance(old, new, share, False) <= bias <= balance(old, new, share, True)
    assert balance(old, new, None, underrated) == 0


@given(seed=st.integers(0, 2**31))
def test_the_intercepts_are_shifted_to_their_minimum_at_full_weight(seed):
    problem, shares = diagonal_problem(seed), np.array([0.3, 0.5, 1.0])
    theta = np.random.default_rng(seed + 1).normal(size=(1, 3, 5))
    reduced = replace(
        problem,
        counts=problem.counts * np.append(shares, 1)[problem.labels],
        mean_counts=problem.mean_counts * shares[problem.mean_labels],
    )
    shift = joint._shift_to_full_weight(reduced, theta, shares)
    # It is 0 where the minimum is out of range.
    assume(shift != 0)
    values = []
    for off in (0, 1e-3, -1e-3):
        shifted = theta.copy()
        shifted[..., -1] += shift + off
        values.append(problem.objective(shifted).value[0])
    assert values[0] <= min(values[1:])
