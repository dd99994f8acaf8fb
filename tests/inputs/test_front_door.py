"""One front door for texts, images and features: every promise holds for each of them, from files and from lists."""

from __future__ import annotations

import copy
import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from conftest import make_bank
from hotshot import InputClassifier
from hotshot.errors import InputError, LeftOutWarning, ParameterError
from hotshot.files import Samples, write_features
from hotshot.inputs.answers import write_answers
from worlds import KINDS, LATER, NEW, OLD, SETTINGS, make_world


@pytest.fixture(scope="module", params=KINDS)
def world(request, tmp_path_factory):
    return make_world(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def fitted(world):
    return world.model().fit(world.folder / f"new{world.suffix}")


@pytest.fixture
def model(fitted):
    return copy.copy(fitted)


@pytest.fixture(scope="module")
def queries(world):
    return world.classes([*NEW, *OLD[:3]], 3, seed=5)


def with_bad(world, items):
    """The same inputs with one that cannot be read in the third place."""
    if world.kind == "features":
        return np.concatenate([items[:2], world.bad, items[2:]])
    return [*items[:2], world.bad, *items[2:]]


def test_files_and_lists_are_answered_alike(world, model, queries):
    items, truth = queries
    answers = model.predict(items)
    assert np.mean(answers == truth) >= 0.8
    np.testing.assert_array_equal(model.predict(world.file("queries", items)), answers)
    probabilities = model.predict_proba(items)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-6)
    assert model.classes[probabilities.argmax(axis=1)].tolist() == answers.tolist()
    assert model.predict_proba(items, batch=True).shape == probabilities.shape
    assert len(model.outlier_score(items)) == len(items)


def test_a_fit_to_a_list_is_that_to_a_file(world, model, queries):
    given = world.model().fit(*world.classes(NEW, 3))
    np.testing.assert_array_equal(given.predict_proba(queries[0]), model.predict_proba(queries[0]))
    assert given.new_classes.tolist() == NEW
    assert {*given.classes} == {*OLD, *NEW}


def test_old_and_new_classes_in_one_file_are_told_apart_by_their_numbers(world, model, queries):
    (old, old_labels), (new, new_labels) = world.classes(OLD, 8), world.classes(NEW, 3)
    path = world.file("both", world.together([new, old]), [*new_labels, *old_labels])
    found = InputClassifier(world.encoder, **SETTINGS).fit_together(path, few=3)
    assert found.new_classes.tolist() == NEW
    np.testing.assert_allclose(found.predict_proba(queries[0]), model.predict_proba(queries[0]), atol=1e-6)


def test_adding_and_removing_is_fitting_anew(world, model, queries):
    before = model.predict_proba(queries[0])
    (items, labels), (new, names) = world.classes([LATER, NEW[0]], 2, seed=2), world.classes(NEW, 3)
    model.add(items, labels)
    fresh = world.model().fit(world.together([new, items]), [*names, *labels])
    assert {*model.new_classes} == {*NEW, LATER}
    np.testing.assert_allclose(model.predict_proba(queries[0]), fresh.predict_proba(queries[0]), atol=5e-3)
    added = [name for name, label in zip(model.support.ids, model.support.y, strict=True) if label == NEW[0]][3:]
    model.remove([LATER], samples=added)
    np.testing.assert_allclose(model.predict_proba(queries[0]), before, atol=5e-3)
    with pytest.raises(InputError, match="No new class would be left"):
        model.remove(NEW)


def test_samples_of_an_old_class_correct_it_as_a_fit_to_all_would(world, model, queries):
    (old, names), items = world.classes(OLD, 8), world.items(OLD[0], 3, seed=9)
    model.add(items, [OLD[0]] * 3)
    assert model.new_classes.tolist() == NEW
    assert model.contents()[OLD[0]] == 11
    assert set(model.predict(items)) == {OLD[0]}
    base = world.file("more", world.together([old, items]), [*names, *[OLD[0]] * 3])
    fresh = InputClassifier(world.encoder, base=base, **SETTINGS).fit(*world.classes(NEW, 3))
    np.testing.assert_allclose(model.predict_proba(queries[0]), fresh.predict_proba(queries[0]), atol=5e-3)


def test_a_saved_model_answers_grows_and_is_undone_to_the_bit(world, model, queries, tmp_path):
    model.save(tmp_path / "a.model")
    loaded = InputClassifier.load(tmp_path / "a.model", trust=True)
    before = model.predict_proba(queries[0])
    np.testing.assert_array_equal(loaded.predict_proba(queries[0]), before)
    assert list(loaded.support.ids) == list(model.support.ids)
    assert loaded.contents() == model.contents()
    assert str(loaded.explain(queries[0][:3])) == str(model.explain(queries[0][:3]))
    np.testing.assert_array_equal(loaded.outlier_score(queries[0]), model.outlier_score(queries[0]))
    with InputClassifier.change(tmp_path / "a.model", trust=True) as changed:
        changed.add(world.items(LATER, 2), [LATER] * 2)
    assert LATER in InputClassifier.load(tmp_path / "a.model").classes
    undone = InputClassifier.undo(tmp_path / "a.model")
    undone.encoding.trust = True
    np.testing.assert_array_equal(undone.predict_proba(queries[0]), before)
    with (
        pytest.raises(InputError, match="already"),
        InputClassifier.change(tmp_path / "a.model", trust=True) as changed,
    ):
        changed.add(world.items(LATER, 2), [LATER] * 2).add(world.items(LATER, 2), [LATER] * 2)
    assert InputClassifier.load(tmp_path / "a.model").new_classes.tolist() == NEW


def test_explanations_name_the_closest_samples(world, model):
    explained = model.explain(world.items(NEW[0], 2, seed=7), most=1)
    (reason,) = explained.to_dict()["reasons"]
    assert reason["label"] == NEW[0]
    assert json.loads(json.dumps(explained.to_dict())) == explained.to_dict()
    page = explained.to_html("Why")
    assert page.count("<article>") == 1
    assert page.count("<img") >= (2 if world.kind == "images" else 0)
    old = model.explain(world.items(OLD[1], 1, seed=5))
    closest = [example for example in old.explanation.reasons[0].examples if example.label == OLD[1]]
    assert [model.old.y[example.index - len(model.support)] for example in closest] == [OLD[1]] * 5
    similarities = [example.similarity for example in closest]
    assert similarities == sorted(similarities, reverse=True)


def test_an_input_that_cannot_be_read_is_named_left_out_or_answered_with_the_reason(world, model, queries, tmp_path):
    items = world.items(LATER, 3)
    spoilt = with_bad(world, items)
    for refused in (model.predict, model.predict_proba, model.outlier_score, model.features):
        with pytest.raises(InputError, match=rf"1 of 4 inputs of .* cannot be read: row 3 \(.*{world.reason}"):
            refused(spoilt)
    with pytest.warns(LeftOutWarning, match="1 of 4 inputs"):
        assert len(model.explain(spoilt).queries) == 3
    with pytest.warns(LeftOutWarning, match="1 of 4 inputs"):
        assert 2 not in [item.index for item in model.suggest(spoilt, 3).suggestions]
    with pytest.warns(LeftOutWarning, match="1 of 4 inputs"):
        model.add(spoilt, [LATER] * 4)
    assert len(model.contents()[LATER]) == 3
    model.strict = True
    with pytest.raises(InputError, match="repair or remove"):
        model.add(spoilt, ["other"] * 4)
    with warnings.catch_warnings(action="ignore", category=LeftOutWarning):
        *_, done = write_answers(model, model.opened(spoilt), tmp_path / "answers.jsonl", reject=None)
    rows = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text(encoding="utf-8").splitlines()]
    assert (done.inputs, done.unreadable) == (4, 1)
    assert [row["class"] for row in rows if not row["error"]] == [LATER] * 3
    assert world.reason in rows[2]["error"]


def test_labels_that_are_missing_wrong_or_too_many_are_refused(world, model):
    items, _ = world.classes([LATER], 2)
    for method in (model.add, world.model().fit):
        with pytest.raises(ParameterError, match="A list of inputs has no labels"):
            method(items)
        with pytest.raises(InputError, match="There are 2 inputs and 1 labels"):
            method(items, [LATER])
    with pytest.raises(ParameterError, match="labels= is only for lists"):
        model.add(world.folder / f"new{world.suffix}", ["a", "b"])
    with pytest.raises(InputError, match="is a base class and a new class"):
        world.model().fit(items, [LATER, OLD[0]])


def test_progress_is_told_file_by_file(world):
    seen = []
    world.model().fit(world.folder / f"new{world.suffix}", watch=lambda *one: seen.append(one))
    names = [Path(name).name for name, *_ in seen]
    assert list(dict.fromkeys(names)) == [f"new{world.suffix}", f"old{world.suffix}"]
    # A finished file stops counting.
    assert seen[-1][1:] == (64, 64)


def test_an_encoder_is_not_needed_for_features_of_it(world, model, queries, tmp_path):
    (items, truth), (new, names) = queries, world.classes(NEW, 3)
    X, columns = model.features(items), {"id": [f"row {i}" for i in range(6)], "text": [f"text {i}" for i in range(6)]}
    write_features(tmp_path / "a.safetensors", Samples(X, np.array(truth), about=model.about))
    np.testing.assert_array_equal(model.predict(tmp_path / "a.safetensors"), model.predict(items))
    write_features(tmp_path / "new.safetensors", Samples(model.features(new), np.array(names), columns, model.about))
    fitted = world.model().fit(tmp_path / "new.safetensors")
    np.testing.assert_allclose(fitted.predict_proba(items), model.predict_proba(items), atol=1e-5)
    assert (fitted.support.ids, fitted.support.texts) == (columns["id"], columns["text"])
    np.savez(tmp_path / "wide.npz", X=np.ones((2, X.shape[1] + 1)), y=["a", "b"])
    with pytest.raises(InputError, match=f"but this model needs {X.shape[1]}"):
        model.predict(tmp_path / "wide.npz")
    write_features(tmp_path / "other.safetensors", Samples(X, about={"extractor": "another"}))
    if world.encoder is not None:
        with pytest.raises(InputError, match="features from 'another', but this model needs those of"):
            model.predict(tmp_path / "other.safetensors")


def test_texts_and_images_are_refused_where_features_are_needed(tmp_path):
    X, y = make_bank(4, 3, 6)
    model = InputClassifier().fit(X, [f"class {c}" for c in y])
    (tmp_path / "a.csv").write_text("text,label\none,a\n")
    (tmp_path / "a.png").write_bytes(b"")
    for path in (tmp_path / "a.csv", tmp_path / "a.png", tmp_path):
        with pytest.raises(ParameterError, match="holds no features: pass encoder="):
            model.predict(path)
    (tmp_path / "both.csv").write_text("text,f0,f1,f2,f3,f4,f5\none,1,2,3,4,5,6\n")
    assert len(model.predict(tmp_path / "both.csv")) == 1
    with pytest.raises(InputError, match="holds no inputs"):
        model.predict(X[:0])
