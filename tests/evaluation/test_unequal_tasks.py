"""Tasks of unequal ways, shots and queries: what they say they are, evaluated as the estimators would one by one."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier

from conftest import make_bank
from few_shot_problems import ragged_bank
from hotshot import FreeLunchClassifier, HOTClassifier, evaluate
from hotshot.errors import InputError, ParameterError
from hotshot.evaluation.stored import load_run
from hotshot.evaluation.tasks import Episodes, check_queries, check_shots, check_size

BASE = ragged_bank(spread=0.8)
X, Y = make_bank(7, 24, 6, seed=1, spread=0.9)
UNEQUAL = {"ways": "2-5", "shots": "1-4", "queries": "dirichlet:1:3"}
NEAREST = KNeighborsClassifier(1)


def few(methods, **request):
    return evaluate(methods, X, Y, **{**UNEQUAL, "tasks": 23, "n_jobs": 1, **request})


# --- draws


def test_a_task_depends_on_seed_and_index_only():
    first, second, other = (Episodes(Y, ways=3, shots=1, queries=2, seed=seed) for seed in (4, 4, 5))
    _ = second[0], second[99]
    assert np.array_equal(first[7].support, second[7].support)
    assert np.array_equal(first[7].query, second[7].query)
    assert any(not np.array_equal(first[i].query, other[i].query) for i in range(3))


def digest(episodes, *indices):
    """Of the rows and labels of some tasks."""
    hashed = hashlib.sha256()
    for task in map(episodes.__getitem__, indices):
        for rows in (task.support, task.query):
            hashed.update(rows.astype(np.int64).tobytes())
        hashed.update("".join(map(str, [*task.support_labels, *task.query_labels])).encode())
    return hashed.hexdigest()[:16]


def test_tasks_are_drawn_as_ever():
    """Runs of earlier versions had these."""
    y = np.array(["a", "b", "c", "d"] * 12 + ["a"] * 30)
    equal = Episodes(y, ways=3, shots=2, queries=4, seed=7)
    assert digest(equal, 0, 1, 19, 20, 4711, 10**6) == "a96803b7946dd07b"
    unequal = Episodes(np.repeat(np.arange(8), 90), ways=5, shots=3, queries="dirichlet:2", seed=5)
    assert digest(unequal, 0, 1, 19, 4711) == "7751641dbcd9d9fe"


sizes = st.tuples(st.integers(2, 7), st.integers(2, 7)).map(sorted)
shots = st.tuples(st.integers(1, 5), st.integers(1, 5)).map(sorted)


@given(sizes, shots, st.sampled_from([0.01, 0.5, 2, 1000, None]), st.integers(1, 2), st.integers(0, 10**6))
def test_tasks_have_the_classes_and_samples_that_the_ranges_allow(ways, shots, alpha, per_class, index):
    queries = per_class if alpha is None else f"dirichlet:{alpha}:{per_class}"
    episodes = Episodes(Y, ways="{}-{}".format(*ways), shots="{}-{}".format(*shots), queries=queries, seed=3)
    for task in (episodes[index], *episodes.trials()):
        classes, support = np.unique(task.support_labels, return_counts=True)
        assert ways[0] <= len(classes) <= ways[1]
        assert support.min() >= shots[0]
        assert support.max() <= shots[1]
        assert set(task.query_labels) <= set(classes)
        assert len(task.query) == per_class * len(classes)
        assert np.array_equal(Y[task.support], task.support_labels)
        assert np.array_equal(Y[task.query], task.query_labels)
        drawn = np.concatenate([task.support, task.query])
        assert len(np.unique(drawn)) == len(drawn)


@pytest.mark.parametrize("alpha", [0.5, 2.0, 50.0])
def test_queries_vary_as_the_dirichlet_distribution_says(alpha):
    """The variance of a proportion between N classes is (1/N)(1 - 1/N) / (N alpha + 1)."""
    tasks = Episodes(np.repeat(np.arange(4), 100), ways=4, shots=1, queries=f"dirichlet:{alpha}:24").take(1500)
    shares = np.stack([np.bincount(task.query_labels, minlength=4) for task in tasks]) / 96
    assert shares.mean(axis=0) == pytest.approx(np.full(4, 0.25), abs=0.03)
    expected = np.sqrt(0.25 * 0.75 / (4 * alpha + 1))
    assert shares.std() == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize(
    ("check", "value", "message"),
    [
        (lambda x: check_size("ways", x), "foo", "ways must be a number or a range such as 5-20, got 'foo'"),
        (lambda x: check_size("ways", x), "1-5", "ways must be an integer from 2 to 10,000, got 1"),
        (lambda x: check_size("shots", x), "0-3", "shots must be an integer from 1 to 100,000, got 0"),
        (lambda x: check_size("shots", x), "١", "a range such as 1-10"),
        (check_shots, ["1-3", "1-3"], "up to 100 different ones"),
        (check_queries, "foo", "queries must be a number or dirichlet:ALPHA such as dirichlet:2, got 'foo'"),
        (check_queries, "dirichlet:nan", "such as dirichlet:2"),
        (check_queries, "dirichlet:0.001", "ALPHA of queries=dirichlet:ALPHA must be a number from 0.01"),
        (check_queries, "dirichlet:2:0", "PER_CLASS of queries=dirichlet:ALPHA:PER_CLASS must be an integer from 1"),
        (check_queries, "0", "queries must be an integer from 1 to 100,000, got 0"),
    ],
)
def test_sizes_that_are_none_are_one_sentence(check, value, message):
    with pytest.raises(ParameterError, match=message) as error:
        check(value)
    assert str(error.value).count(". ") == 0


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"ways": "2-8"}, "8-way tasks need 8 classes, got 7: ask for fewer ways"),
        (
            {"queries": "dirichlet:2:21"},
            "The 2 smallest classes have 48 samples together where 4 shots of each and 42 queries need 50: ask",
        ),
        ({"shots": "1-25", "queries": "dirichlet:2:1"}, "Class '0' has 24 samples where 25 shots need 25: ask"),
        ({"shots": "1-22", "queries": 3}, "has 24 samples where 22 shots and 3 queries need 25"),
    ],
)
def test_classes_with_too_few_samples_for_the_largest_draw_are_refused(request_, message):
    with pytest.raises(InputError, match=message):
        few(NEAREST, **request_)


# --- classes with too few samples for their share of the queries

UNEQUAL_SIZES = np.repeat(np.arange(5), [40, 6, 12, 9, 30])


@given(st.sampled_from([0.01, 0.5, 2, 1000]), st.integers(1, 9), st.integers(1, 3), st.integers(0, 10**6))
def test_a_class_gives_at_most_what_it_has_and_the_others_share_the_rest(alpha, per_class, shots, index):
    ways = 5 if per_class > 3 else "2-5"
    task = Episodes(UNEQUAL_SIZES, ways=ways, shots=shots, queries=f"dirichlet:{alpha}:{per_class}")[index]
    assert len(task.query) == per_class * len(np.unique(task.support_labels))
    drawn = np.concatenate([task.support, task.query])
    assert len(np.unique(drawn)) == len(drawn)


# --- evaluation

ESTIMATORS = {
    "hot": HOTClassifier(BASE),
    "free-lunch": FreeLunchClassifier(BASE, n_generated=30, random_state=0),
    "nearest": NEAREST,
}


@pytest.mark.parametrize(
    ("name", "request_"),
    [(name, UNEQUAL) for name in ESTIMATORS]
    + [("hot", {**UNEQUAL, "ways": 3, "shots": 2}), ("hot", {**UNEQUAL, "queries": 4})],
)
def test_accuracies_are_those_of_the_estimator_used_one_task_at_a_time(name, request_):
    found = few({name: ESTIMATORS[name]}, **request_, seed=2)[name, request_["shots"]]
    expected, asked, right = [], dict.fromkeys(range(7), 0), dict.fromkeys(range(7), 0)
    for i, task in enumerate(Episodes(Y, **request_, seed=2).take(23)):
        predicted = clone(ESTIMATORS[name]).fit(X[task.support], task.support_labels).predict(X[task.query])
        expected.append(np.mean(predicted == task.query_labels))
        assert {*found.classes[i]} - {-1} == {*task.support_labels}
        for truth, guess in zip(task.query_labels, predicted, strict=True):
            asked[truth] += 1
            right[truth] += guess == truth
    assert len(set(expected)) > 2
    assert np.array_equal(found.accuracies, expected)
    assert found.recall == {c: right[c] / asked[c] for c in range(7) if asked[c]}


def test_results_do_not_depend_on_the_number_of_processes_and_are_read_again(tmp_path):
    methods = {"hot": HOTClassifier(BASE), "nearest": NEAREST}
    shots = (1, "1-4")
    alone = few(methods, shots=shots, tasks=25)
    assert (alone.ways, alone.shots) == ("2-5", [1, "1-4"])
    together = few(methods, shots=shots, tasks=25, n_jobs=2, out=tmp_path / "run")
    stored = load_run(tmp_path / "run").evaluation
    for result in alone.results:
        for other in (together, stored):
            own = other[result.method, result.shots]
            assert np.array_equal(own.accuracies, result.accuracies)
            assert np.array_equal(own.classes, result.classes)
            assert list(own.recall.values()) == list(result.recall.values())
    assert str(stored) == str(alone)
    assert "2 to 5 ways, 1 to 4 shots" in str(alone)
    row = stored.rows()[-1]
    assert (row["ways"], row["shots"], row["classes"]) == ("2-5", "1-4", 7)
    assert row["accuracy_class_half_width"] >= row["accuracy_half_width"]
    assert row["reference_minus_this_class_half_width"] >= row["reference_minus_this_half_width"]
    assert row["reference_is"] in ("ahead", "behind", "undecided")


def test_classes_that_never_had_a_query_keep_their_place(tmp_path):
    request = {"ways": 5, "shots": 1, "queries": "dirichlet:0.01:1", "tasks": 2}
    found = few({"nearest": NEAREST}, out=tmp_path / "run", **request)["nearest", 1]
    assert len(found.recall) < len(np.unique(found.classes))
    assert load_run(tmp_path / "run").evaluation["nearest", 1].recall == {str(c): r for c, r in found.recall.items()}
