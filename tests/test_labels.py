"""Labels: one rule for every way in."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from conftest import make_bank
from hotshot import BaseClasses, HOTClassifier, InputClassifier
from hotshot.arrays import as_text
from hotshot.errors import InputError, SimilarClassWarning

X, Y = make_bank(14, 12, 8)
OLD, NEW = slice(10 * 12), slice(10 * 12, None, 4)
_, NUMBERS = np.unique(Y, return_inverse=True)
SETTINGS = {"mean_rule": "posterior", "epsilon": 0.02, "n_generated": 300, "support_weight": 20.0}


def model_of(numbers):
    base = BaseClasses.from_samples(X[OLD], numbers[OLD])
    return HOTClassifier(base, include_base=True, **SETTINGS).fit(X[NEW], numbers[NEW])


def test_labels_of_a_growing_model_stay_numbers():
    model = model_of(NUMBERS)
    for grow, labels in ((model.add_classes, ["owl"]), (model.add_samples, ["13"]), (model.add, ["owl"])):
        with pytest.raises(InputError, match="Labels must be of one type, got text such as"):
            grow(X[:1], labels)
    assert model.classes_.dtype.kind == "i"


def test_whole_numbers_are_the_same_classes_in_every_type():
    for one, other in ((int, float), (np.int32, np.float32), (np.uint8, object)):
        base = BaseClasses.from_samples(X[OLD], NUMBERS[OLD].astype(one))
        model = HOTClassifier(base, include_base=True, **SETTINGS).fit(X[NEW], NUMBERS[NEW].astype(other))
        assert model.classes_.tolist() == list(range(14))
        assert model.classes_.dtype.kind in "iu"


def test_labels_of_raw_inputs_are_text_without_blanks():
    labels = [" wren ", 3, 3.0, np.float32(3), 2.5, None, np.nan, b"a"]
    assert [as_text(label) for label in labels] == ["wren", "3", "3", "3", "2.5", "", "", "a"]


def test_lists_tables_and_feature_files_give_the_same_labels(tmp_path):
    labels = [" wren", "wren ", "3", "3"]
    np.savez(tmp_path / "old.npz", X=X[OLD], y=NUMBERS[OLD] + 100)
    np.savez(tmp_path / "new.npz", X=X[NEW][:4], y=labels)
    model = InputClassifier(base=tmp_path / "old.npz", **SETTINGS)
    of_file = model.fit(tmp_path / "new.npz").new_classes.tolist()
    assert of_file == ["3", "wren"] == model.fit(X[NEW][:4], labels).new_classes.tolist()
    assert model.fit(X[NEW][:4], [" wren", "wren", 3, 3.0]).new_classes.tolist() == of_file


def test_a_bank_of_numbers_can_be_the_old_classes_of_raw_inputs(tmp_path):
    BaseClasses.from_samples(X[OLD], NUMBERS[OLD]).save(tmp_path / "old.bank")
    np.savez(tmp_path / "new.npz", X=X[NEW], y=[f"new {i}" for i in NUMBERS[NEW]])
    model = InputClassifier(base=tmp_path / "old.bank", **SETTINGS).fit(tmp_path / "new.npz")
    assert set(model.classes) == {*map(str, range(10)), *(f"new {i}" for i in range(10, 14))}
    assert np.mean(model.predict(X[OLD]) == NUMBERS[OLD].astype(str)) > 0.9


def test_numbers_and_their_texts_are_different_banks():
    one, other = (
        BaseClasses.from_samples(X[OLD], y) for y in (NUMBERS[OLD], np.char.zfill(NUMBERS[OLD].astype(str), 1))
    )
    assert one.fingerprint != other.fingerprint


def test_names_that_differ_only_in_case_or_blanks_are_pointed_out():
    names = np.array(["gas", "Gas", "owl", "rat"])[NUMBERS[NEW] - 10]
    with pytest.warns(SimilarClassWarning, match="'Gas' and 'gas'|'gas' and 'Gas'"):
        HOTClassifier().fit(X[NEW], names)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        HOTClassifier().fit(X[NEW], np.char.replace(names, "Gas", "fox"))
