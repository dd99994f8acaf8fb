"""`suggest`: rows with reasons, whatever the pool holds."""

from __future__ import annotations

import json

import numpy as np
import pytest

from conftest import make_bank
from hotshot import BaseClasses, HOTClassifier
from hotshot.errors import InputError, ParameterError


@pytest.fixture(scope="module")
def world():
    """A bank of 24 classes, and samples of 4 others."""
    X, y = make_bank(28, 30, 12)
    names = np.array([f"class {label}" for label in y])
    return BaseClasses.from_samples(X[y < 24], names[y < 24]), X[y >= 24], names[y >= 24]


def fitted(world, ways=3, **settings):
    base, X, y = world
    some = np.unique(y)[:ways]
    support = [np.flatnonzero(y == name)[0] for name in some]
    pool = np.setdiff1d(np.flatnonzero(np.isin(y, some)), support)
    return HOTClassifier(base, **settings).fit(X[support], y[support]), X[pool], y[pool]


def test_suggestions_have_rows_and_reasons(world):
    model, pool, _ = fitted(world)
    found = model.suggest(pool, 4)
    assert len(found) == 4 == len(set(found.rows))
    assert [item.index for item in found] == found.rows.tolist()
    probabilities = model.predict_proba(pool)
    for item in found:
        two = np.sort(probabilities[item.index])[::-1][:2]
        assert (item.probability, item.rival_probability) == pytest.approx(tuple(two))
        assert item.kind in ("typical", "informative")
        assert item.reason in repr(found)
        assert str(item.label) in item.in_words()
    assert sum(item.stands_for for item in found) <= len(pool)
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["pool_size"] == len(pool)
    assert [item["index"] for item in plain["suggestions"]] == found.rows.tolist()


def test_copies_are_suggested_once_and_labelled_samples_never(world):
    model, pool, _ = fitted(world)
    once = np.concatenate([model.support_, pool[:6]])
    found = model.suggest(np.concatenate([once, once, pool[:2]]), 50)
    assert sorted(found.rows) == list(range(3, 9))
    assert len(model.suggest(model.support_, 5)) == 0


def test_pools_of_one_row_and_of_fewer_rows_than_asked(world):
    model, pool, _ = fitted(world)
    assert model.suggest(pool[:1]).rows.tolist() == [0]
    assert sorted(model.suggest(pool[:3], 5).rows) == [0, 1, 2]


def test_a_group_that_fits_no_class_is_suggested_once(world):
    model, pool, _ = fitted(world)
    rng = np.random.default_rng(0)
    _, X, y = world
    strange = X[y == "class 27"][:1] * 3 + 0.05 * rng.normal(size=(15, 12))
    found = model.suggest(np.concatenate([pool, strange]), 5)
    assert [item.kind for item in found].count("group") == 1
    assert found[0].index >= len(pool)
    assert found[0].stands_for > 10
    assert "similar samples fit no class: perhaps a new class" in found[0].reason
    assert (found.rows[1:] < len(pool)).all()


def test_with_base_classes_samples_of_new_classes_are_suggested(world, tmp_path):
    base, _, _ = world
    model, pool, y = fitted(world, ways=2, include_base=True, calibrate_probabilities=False)
    old = base.samples[::40]
    both = np.concatenate([pool, old])
    rows = model.suggest(both, 4).rows
    assert (rows < len(pool)).all()
    assert set(y[rows]) == {"class 24", "class 25"}
    model.save(tmp_path / "a.model")
    again = HOTClassifier.load(tmp_path / "a.model").suggest(both, 4)
    assert again.rows.tolist() == rows.tolist()


def test_a_model_with_one_new_class_suggests_samples_of_it(world):
    base, X, y = world
    own = X[y == "class 24"]
    model = HOTClassifier(base, include_base=True).fit(own[:1], ["class 24"])
    rows = model.suggest(np.concatenate([base.samples[:30], own[1:]]), 2).rows
    assert (rows >= 30).all()


def test_mistakes_are_one_sentence(world):
    model, pool, _ = fitted(world)
    for n in (0, -1, 1.5, None):
        with pytest.raises(ParameterError, match="n must be an integer from 1"):
            model.suggest(pool, n)
    with pytest.raises(InputError, match="features"):
        model.suggest(pool[:, :3])
    plain = HOTClassifier().fit(np.abs(pool[:4]), [0, 0, 1, 1])
    with pytest.raises(ParameterError, match="without base classes makes no suggestions: pass base"):
        plain.suggest(np.abs(pool))
