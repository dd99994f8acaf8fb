"""Tasks depend on seed and index alone, and are what they say they are."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotshot.errors import InputError, ParameterError
from hotshot.evaluation.tasks import Episodes, _hash_of_tasks, freeze_tasks, load_tasks
from hotshot.files.tensors import map_tensors, write_tensors

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
    assert np.array_equal(first[7].query, list(second.take(8))[7].query)
    other = Episodes(Y, ways=3, shots=1, queries=2, seed=5)
    assert any(not np.array_equal(first[i].query, other[i].query) for i in range(3))


def test_large_classes_are_drawn_from_whole():
    episodes = Episodes(Y, ways=4, shots=1, queries=1, seed=0)
    drawn = {row for task in episodes.take(600) for row in [*task.support, *task.query]}
    assert drawn == set(range(len(Y)))


@pytest.mark.parametrize(
    ("request_", "kind", "message"),
    [
        ({"ways": 5, "shots": 1, "queries": 1}, InputError, "fewer ways"),
        ({"ways": 2, "shots": 10, "queries": 15}, InputError, "Class 'b' has 12 samples"),
        ({"ways": 1, "shots": 1}, ParameterError, "ways must be an integer from 2 to 10,000, got 1"),
        ({"ways": 2, "shots": 0}, ParameterError, "shots"),
        ({"ways": 2, "shots": 1.5}, ParameterError, "shots"),
        ({"ways": 2, "shots": 1, "queries": 0}, ParameterError, "queries"),
    ],
)
def test_impossible_tasks_are_refused(request_, kind, message):
    with pytest.raises(kind, match=message):
        Episodes(Y, **request_)


def frozen_file(path, change=lambda arrays, about: None, raw=None):
    """A file of frozen tasks that was changed by someone who knows how to make its hash."""
    freeze_tasks(path, Y, tasks=3, ways=3, shots=[1, 2], queries=2, seed=1)
    file = map_tensors(path)
    arrays = {name: array.copy() for name, array in file.tensors.items()}
    about = json.loads(file.metadata["about"])
    change(arrays, about)
    text = json.dumps(about) if raw is None else raw
    header = {**file.metadata, "about": text, "tasks": _hash_of_tasks(text, arrays)}
    write_tensors(path, arrays, header)
    return path


def put(name, place, value):
    def change(arrays, about):
        arrays[name][place] = value if not callable(value) else value(arrays)

    return change


DAMAGES = {
    "support in query": (put("query_1", (0, 0), lambda a: a["support_1"][0, 0]), "a sample twice"),
    "support equal to query": (lambda a, about: a.update(query_2=a["support_2"].copy()), "a sample twice"),
    "a support sample twice": (put("support_2", (0, 0), lambda a: a["support_2"][0, 1]), "a sample twice"),
    "another class": (put("query_1", (0, 0), lambda a: a["query_1"][0, 2]), "wrong number of samples"),
    "classes in another order": (put("query_1", 0, lambda a: a["query_1"][0, [2, 3, 0, 1, 4, 5]]), "other classes"),
    "one class for two": (put("support_1", (0, 1), lambda a: a["support_1"][0, 0]), "a class twice"),
    "beyond the samples": (put("query_1", (0, 0), 10**6), "outside the samples"),
    "negative": (put("support_1", (0, 0), -1), "outside the samples"),
    "floats": (lambda a, about: a.update(support_1=a["support_1"].astype(float)), "wrong size"),
    "fewer tasks": (lambda a, about: a.update(support_1=a["support_1"][:2]), "wrong size"),
    "flat": (lambda a, about: a.update(query_2=a["query_2"].ravel()), "wrong size"),
    "no array": (lambda a, about: a.pop("query_2"), "missing"),
    "other ways": (lambda a, about: about.update(ways=2), "wrong size"),
    "no ways": (lambda a, about: about.pop("ways"), "missing"),
    "ways of text": (lambda a, about: about.update(ways="3"), "whole numbers"),
    "true ways": (lambda a, about: about.update(ways=True), "whole numbers"),
    "a negative seed": (lambda a, about: about.update(seed=-1), "whole numbers"),
    "no shots": (lambda a, about: about.update(shots=[]), "no shots"),
    "shots of text": (lambda a, about: about.update(shots=["1"]), "whole numbers"),
    "nested shots": (lambda a, about: about.update(shots=[[1]]), "whole numbers"),
    "zero queries": (lambda a, about: about.update(queries=0), "too small"),
}


@pytest.mark.parametrize(("change", "reason"), DAMAGES.values(), ids=DAMAGES)
def test_frozen_tasks_are_not_trusted(tmp_path, change, reason):
    with pytest.raises(InputError, match=rf"cannot be used \(.*{reason}.*\): write them again"):
        load_tasks(frozen_file(tmp_path / "tasks", change), Y)


@pytest.mark.parametrize("text", ["", "[]", "3", "null", "{", '{"ways": ' + "9" * 5000 + "}", "[" * 100_000])
def test_frozen_tasks_that_say_nothing_are_one_sentence(tmp_path, text):
    with pytest.raises(InputError, match=r"cannot be used \(.*\): write them again"):
        load_tasks(frozen_file(tmp_path / "tasks", raw=text), Y)


def test_sound_frozen_tasks_are_taken(tmp_path):
    assert list(load_tasks(frozen_file(tmp_path / "tasks"), Y)[0]) == [1, 2]
