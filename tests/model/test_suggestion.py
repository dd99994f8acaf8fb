"""Which samples to label next: the formulas against plain loops, laws, and pools with a known answer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotshot.model import suggestion
from hotshot.model.suggestion import Labelled, Pool, choose, information, matching_temperature, typical_gain


def problem(seed: int, ways: int = 3, per_class: int = 8, width: int = 6, distance: float = 3.0):
    """One labelled sample of each of some classes, and a pool of the others."""
    rng = np.random.default_rng(seed)
    centres = distance * rng.normal(size=(ways, width))
    own = np.repeat(np.arange(ways), per_class)
    samples = centres[own] + rng.normal(size=(len(own), width))
    labelled = Labelled(
        np.full(width, distance**2), np.zeros(width), centres + rng.normal(size=centres.shape), np.arange(ways)
    )
    distances = -np.sum((samples[:, None] - labelled.support) ** 2, axis=2) / 4
    probabilities = np.exp(distances - distances.max(axis=1, keepdims=True))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return labelled, Pool(samples, probabilities, np.ones(len(own)), np.arange(len(own))), own


def test_the_information_is_that_of_the_formula():
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.ones(4), size=7)
    rows = np.array([1, 4, 5])
    covariances = [rng.normal(size=(7, 3)) for _ in range(4)]

    def fisher(p):
        return np.diag(p) - np.outer(p, p)

    found = information(covariances, probabilities, rows)
    for u in range(7):
        for c, x in enumerate(rows):
            g = np.array([own[u, c] for own in covariances])
            both = fisher(probabilities[u]) * fisher(probabilities[x])
            assert found[u, c] == pytest.approx(g @ both @ g, abs=1e-12)


def test_the_gain_is_that_of_the_formula():
    rng = np.random.default_rng(1)
    sums, centres, x = (rng.normal(size=shape) for shape in ((3, 5), (3, 5), (4, 5)))
    sizes, mass, assigned = np.array([1.0, 2.0, 4.0]), np.array([5.0, 3.0, 9.0]), rng.dirichlet(np.ones(3), size=4)
    found = typical_gain(sums, sizes, centres, mass, x, assigned)
    for i in range(4):
        wanted = 0.0
        for k in range(3):
            before = np.sum((sums[k] / sizes[k] - centres[k]) ** 2)
            after = np.sum(((sums[k] + x[i]) / (sizes[k] + 1) - centres[k]) ** 2)
            wanted += assigned[i, k] * mass[k] * (before - after)
        assert found[i] == pytest.approx(wanted)


@given(st.integers(0, 2**31), st.integers(1, 24), st.sampled_from([100, 20, 9, 3, 1]))
def test_a_permuted_pool_gives_the_permuted_answer_without_repetitions_in_blocks_of_any_size(seed, n, block):
    labelled, pool, _ = problem(seed)
    order = np.random.default_rng(seed).permutation(len(pool.samples))
    permuted = Pool(pool.samples[order], pool.probabilities[order], pool.weights, pool.candidates)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suggestion, "MOST_ENTRIES", 3 * block**2)
        rows, of_permuted = (choose(labelled, some, n).rows for some in (pool, permuted))
    assert order[of_permuted].tolist() == rows.tolist()
    assert len(np.unique(rows)) == n


def test_many_suggestions_of_a_large_pool_cost_a_fixed_number_of_entries(monkeypatch):
    labelled, pool, _ = problem(1, per_class=200)
    entries = []
    counted = suggestion.information
    monkeypatch.setattr(
        suggestion, "information", lambda g, p, rows: entries.append(len(g) * g[0].size) or counted(g, p, rows)
    )
    monkeypatch.setattr(suggestion, "MOST_WORK", 2**17)
    rows = choose(labelled, pool, 300).rows
    assert len(np.unique(rows)) == 300
    assert sum(entries) <= 2**17


def test_certain_classes_get_typical_samples_only():
    labelled, pool, own = problem(0, ways=2, distance=30.0)
    picks = choose(labelled, pool, 3)
    assert picks.informative.max() < 1e-6
    assert picks.typical.tolist() == [1, 1, 1]
    centres = np.stack([pool.samples[own == k].mean(axis=0) for k in (0, 1)])
    best = np.argmax([np.sum((labelled.support[k] - centres[k]) ** 2) for k in (0, 1)])
    assert own[picks.rows[0]] == best


def test_samples_of_no_class_are_chosen_last():
    labelled, pool, _ = problem(3)
    weights = np.ones(len(pool.samples))
    weights[:5] = 0
    picks = choose(labelled, Pool(pool.samples, pool.probabilities, weights, pool.candidates), len(weights))
    assert set(picks.rows[-5:]) == set(range(5))
    assert (picks.typical + picks.informative)[-5:].max() == 0


def test_the_temperature_gives_the_confidence_of_the_probabilities():
    rng = np.random.default_rng(0)
    logits, weights = 20 * rng.normal(size=(50, 4)), rng.uniform(size=50)
    wanted = np.exp(logits / 30)
    wanted /= wanted.sum(axis=1, keepdims=True)
    assert matching_temperature(logits, wanted, weights) == pytest.approx(30, rel=1e-6)
    assert matching_temperature(logits, np.full((50, 4), 0.25), weights) == pytest.approx(np.exp(12))
