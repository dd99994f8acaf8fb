"""Tasks depend on seed and index alone, and are what they say they are."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hotshot.evaluation.tasks import Episodes

Y = np.array(["a", "b", "c", "d"] * 12 + ["a"] * 30)


@given(st.integers(2, 4), st.integers(1, 4), st.integers(1, 8), st.integers(0, 50), st.integers(0, 10**6))
def test_a_task_has_the_classes_and_samples_asked_for(ways, shots, queries, seed, index):
    task = Episodes(Y, ways=ways, shots=shots, queries=queries, seed=seed)[index]
    assert len(np.unique(task.support_labels)) == ways
    assert np.array_equal(Y[task.support], task.support_labels)
    assert np.array_equal(Y[task.query], task.query_labels)
    assert (np.unique(task.support_labels, return_counts=True)[1] == shots).all()
    assert (np.unique(task.query_labels, return_counts=True)[1] == queries).all()
    drawn = np.concatenate([task.support, task.query])
    assert len(np.unique(drawn)) == len(drawn)


def test_a_task_depends_on_seed_and_index_only():
    first = Episodes(Y, ways=3, shots=1, queries=2, seed=4)
    second = Episodes(Y, ways=3, shots=1, queries=2, seed=4)
    _ = second[0], second[99]
    assert np.array_equal(first[7].support, second[7].support)
    assert np.array_equal(first[7].query, second[7].query)
    other = Episodes(Y, ways=3, shots=1, queries=2, seed=5)
    assert any(not np.array_equal(first[i].query, other[i].query) for i in range(3))


def test_large_classes_are_drawn_from_whole():
    episodes = Episodes(Y, ways=4, shots=1, queries=1, seed=0)
    drawn = {row for task in episodes.take(600) for row in [*task.support, *task.query]}
    assert drawn == set(range(len(Y)))
