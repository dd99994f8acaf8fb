"""Explanations: the parts of a gap are the reasons of the decision, and every view shows them safely."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from conftest import make_bank
from few_shot_problems import ragged_bank
from hotshot import BaseClasses, HOTClassifier
from hotshot.bank.embedded import load_bank
from hotshot.errors import InputError
from hotshot.evaluation.tasks import Episodes
from hotshot.method.heads import HEADS

WIDTH = 6
BANKS = {dtype: ragged_bank(width=WIDTH, dtype=dtype) for dtype in (np.float32, np.float64)}
RULES = ("posterior", "mix", "printed", "free-lunch")


def task(shots=(2, 2, 2), seed=9, dtype=np.float64):
    """Support with so many samples of each class, in random order, labels and queries."""
    X, y = make_bank(len(shots), 9, WIDTH, seed=seed, spread=0.8, dtype=dtype)
    rows = np.concatenate([np.flatnonzero(y == c)[:k] for c, k in enumerate(shots)])
    rows = np.random.default_rng(seed).permutation(rows)
    return X[rows], y[rows], X


# --- the parts -------------------------------------------------------------------------------------------------


@given(
    dtype=st.sampled_from(list(BANKS)),
    with_base=st.sampled_from([True, True, True, False]),
    rule=st.sampled_from(RULES),
    per=st.sampled_from(["class", "sample"]),
    head=st.sampled_from(list(HEADS)),
    alpha=st.sampled_from([0.0, 0.1]),
    shots=st.lists(st.integers(1, 4), min_size=2, max_size=4),
    seed=st.integers(0, 1000),
)
def test_parts_add_up_to_the_gap(dtype, with_base, rule, per, head, alpha, shots, seed):
    settings = {"mean_rule": rule, "per": per, "head": head, "alpha": alpha, "n_generated": 30, "random_state": 0}
    X, y, queries = task(shots, seed, dtype)
    model = HOTClassifier(BANKS[dtype] if with_base else None, **settings).fit(X, y)
    decisions = model.decision_function(queries)
    logits = np.stack([-decisions, decisions], axis=1) / 2 if len(shots) == 2 else decisions
    top = -np.sort(-logits.astype(float), axis=1)
    for reason, (first, second, *_) in zip(model.explain(queries).reasons, top, strict=True):
        assert reason.is_split
        assert reason.gap == pytest.approx(first - second, rel=1e-4, abs=1e-5)
        given = [e.contribution for e in reason.examples] + [x.contribution for x in reason.lenders]
        assert reason.own + reason.lent + reason.rest == pytest.approx(reason.gap, rel=1e-5, abs=1e-9)
        assert sum(given) + reason.rest == pytest.approx(reason.gap, rel=1e-5, abs=1e-9)
        assert {e.label for e in reason.examples} == {reason.label, reason.rival}
        assert len(reason.examples) == np.isin(y, [reason.label, reason.rival]).sum()
        assert bool(reason.lenders) is with_base


@pytest.mark.parametrize("per", ["class", "sample"])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("shots", [(1, 1), (3, 3), (1, 4)])
def test_with_two_classes_and_one_covariance_the_rest_is_the_same_for_all_queries(shots, rule, per):
    """Then nothing is left but the gap at the mean of the calibrated means."""
    X, y, queries = task(shots)
    model = HOTClassifier(BANKS[np.float64], mean_rule=rule, per=per, covariance="pooled").fit(X, y)
    rest = [reason.rest * (1 if reason.label == 1 else -1) for reason in model.explain(queries).reasons]
    centre = model.calibrated_means_.mean(axis=0)
    expected = np.diff(model.coef_ @ centre + model.intercept_)
    np.testing.assert_allclose(rest, np.tile(expected, len(rest)), atol=5e-3)


@pytest.mark.parametrize("settings", [{}, {"per": "sample"}, {"mean_rule": "mix"}])
def test_the_sample_that_is_the_reason_comes_first(settings):
    """Four samples, two of each class, in orthogonal directions, and queries near one of them each."""
    rng = np.random.default_rng(0)
    directions = np.eye(10)
    y_base = np.repeat(np.arange(6), 30)
    bank = BaseClasses.from_samples(directions[4:][y_base] + 0.1 * rng.normal(size=(180, 10)), y_base)
    model = HOTClassifier(bank, n_components=None, **settings).fit(directions[:4], ["a", "a", "b", "b"])
    for i, reason in enumerate(model.explain(directions[:4] + 0.02).reasons):
        assert reason.label == "aabb"[i]
        assert reason.examples[0].index == i
        own = [e.contribution for e in reason.examples if e.label == reason.label]
        assert own[0] > 2 * own[1]
        assert reason.own > 0.8 * reason.gap
        assert f"Closest examples of `{'aabb'[i]}`: sample {i} (similarity" in reason.in_words()


def test_base_classes_that_are_the_reason_contribute_to_the_gap():
    """Each novel class borrows from the base class beside it, in whose direction the query lies."""
    rng = np.random.default_rng(0)
    directions = np.eye(8)
    y_base = np.repeat(np.arange(6), 30)
    bank = BaseClasses.from_samples(directions[:6][y_base] + 0.05 * rng.normal(size=(180, 8)), y_base)
    novel = directions[[0, 1]] + 0.4 * directions[[6, 7]]
    model = HOTClassifier(bank, cost="nearest", n_retrieved=1, mean_rule="mix").fit(novel, ["a", "b"])
    for i, reason in enumerate(model.explain(directions[:2]).reasons):
        assert reason.label == "ab"[i]
        weights = {x.name: (x.weight, x.rival_weight) for x in reason.lenders}
        assert weights == {i: (1, 0), 1 - i: (0, 1)}
        assert all(x.contribution > 0.15 * reason.gap for x in reason.lenders)


@pytest.mark.parametrize("shots", [1, 5])
def test_examples_explain_the_gap_on_real_features(shots):
    bank = load_bank("banking77")
    reasons = []
    for drawn in (Episodes(bank.y_novel, ways=5, shots=shots, queries=15, seed=0)[i] for i in range(6)):
        model = HOTClassifier(bank.base, power=1.0, epsilon=0.02, mean_rule="posterior", n_generated=300)
        model.set_params(support_weight=20.0).fit(bank.X_novel[drawn.support], drawn.support_labels)
        reasons += model.explain(bank.X_novel[drawn.query]).reasons
    assert spearmanr([r.own for r in reasons], [r.gap for r in reasons])[0] > 0.9
    assert np.mean([abs(r.rest) for r in reasons]) < 0.3 * np.mean([r.gap for r in reasons])


# --- words -----------------------------------------------------------------------------------------------------


def test_loans_add_up_and_read_as_sentences():
    X, y, queries = task()
    names = np.array([f"base-{b}" for b in BANKS[np.float64].labels])
    model = HOTClassifier(BaseClasses.from_samples(BANKS[np.float64].samples, names)).fit(X, y)
    explanation = model.explain(queries[:3])
    assert [loan.label for loan in explanation.loans] == list(model.classes_)
    for loan, weights in zip(explanation.loans, model.transfer_weights_, strict=True):
        assert sum(weight for _, weight in loan.lenders) == pytest.approx(1)
        assert loan.lenders[0] == (f"base-{weights.argmax()}", pytest.approx(weights.max()))
        assert f"`{loan.lenders[0][0]}`" in loan.in_words()
    for reason, label in zip(explanation.reasons, model.predict(queries[:3]), strict=True):
        assert reason.label == label
        assert reason.probability >= reason.rival_probability
    assert str(explanation).count("\n") == 3 + 3 - 1
    per_sample = HOTClassifier(model.base, per="sample").fit(X, y).explain()
    assert [loan.sample for loan in per_sample.loans] == list(range(6))
    assert "(sample 2) borrows from" in per_sample.loans[2].in_words()


def test_without_base_classes_nothing_is_borrowed():
    X, y, queries = task()
    model = HOTClassifier().fit(X, y)
    assert "nothing is borrowed" in str(model.explain())
    (reason,) = model.explain(queries[:1]).reasons
    assert (reason.lenders, reason.lent) == ((), 0)
    words = reason.in_words(numbers=True)
    for word in ("lent", "orrow"):
        assert word not in words
    assert "from the examples of both classes" in words
    assert "logits" not in reason.in_words()


def test_words_say_how_the_runner_up_compares():
    X, y, queries = task()
    for reason in HOTClassifier(BANKS[np.float64]).fit(X, y).explain(queries).reasons:
        best = {c: max(e.similarity for e in reason.examples if e.label == c) for c in (reason.label, reason.rival)}
        less = best[reason.rival] < best[reason.label]
        words = reason.in_words()
        assert f"Runner-up: `{reason.rival}`" in words
        assert f"(similarity {best[reason.rival]:.2f}), is {'less' if less else 'no less'} similar" in words


def test_names_of_samples_are_used():
    X, y, queries = task()
    names = [f"photo {'abcdef'[i]}" for i in range(6)]
    model = HOTClassifier(BANKS[np.float64], per="sample").fit(X, y)
    explanation = model.explain(queries, names=np.array(names))
    for reason in explanation.reasons:
        assert [e.name for e in reason.examples] == [names[e.index] for e in reason.examples]
        assert f"Closest examples of `{reason.label}`: photo " in reason.in_words()
    assert [loan.name for loan in explanation.loans] == names
    assert "(photo c)" in str(explanation)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a"], "names must hold 6 strings, got 1"),
        ("abcdef", "names must be a list of strings, got 'abcdef'"),
        ([1, 2, 3, 4, 5, 6], "names must be a list of strings"),
        (6, "names must be a list of strings, got 6"),
    ],
)
def test_names_that_do_not_fit_are_refused(names, message):
    X, y, queries = task()
    model = HOTClassifier(BANKS[np.float64]).fit(X, y)
    for asked in (None, queries):
        with pytest.raises(InputError, match=message):
            model.explain(asked, names=names)


# --- views -----------------------------------------------------------------------------------------------------

HOSTILE = ["<script>alert(1)</script>", "' onclick='x", '"><img src=x onerror=y>', "$\\frac{", "caf\udce9", "\x1b[31m"]


@pytest.fixture
def hostile():
    """An explanation in which every name is hostile."""
    X, y, queries = task((1, 2, 1, 1, 1))
    bank = BANKS[np.float64]
    base = BaseClasses.from_samples(bank.samples, np.array(HOSTILE)[bank.labels])
    model = HOTClassifier(base, per="sample").fit(X, np.array([f"{name} " for name in HOSTILE[:5]])[y])
    return model.explain(queries, names=HOSTILE)


def test_html_escapes_hostile_names(hostile):
    text = hostile._repr_html_()
    assert set(re.findall("<.*?>", text)) == {"<p>", "</p>"}
    assert text.count("<p>") == len(hostile.loans) + len(hostile.reasons)
    assert "&lt;script&gt;" in text
    assert text.isprintable()
    assert repr(hostile) == "Explanation(5 classes, 45 queries)"


@pytest.mark.parametrize("labels", [["a", "b", "c"], [3, 1, 2], [5.0, 1.0, 2.0]])
def test_a_dictionary_goes_through_json(labels):
    X, y, queries = task()
    explanation = HOTClassifier(BANKS[np.float64]).fit(X, np.array(labels)[y]).explain(queries)
    found = explanation.to_dict()
    assert json.loads(json.dumps(found)) == found
    assert found["classes"] == sorted(labels)
    for plain, reason in zip(found["reasons"], explanation.reasons, strict=True):
        assert plain["own"] + plain["lent"] + plain["rest"] == pytest.approx(plain["gap"])
        assert plain["examples"][0]["contribution"] == reason.examples[0].contribution
