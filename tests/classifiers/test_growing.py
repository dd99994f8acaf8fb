"""A model that grows is the one fitted at once; after an error it is the one before; nothing stale stays."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from conftest import make_bank
from hotshot import BaseClasses, HOTClassifier
from hotshot.errors import HotshotError, ParameterError

X, NUMBERS = make_bank(14, 12, 8)
Y = np.array([f"class {number:02}" for number in NUMBERS])
BASE = BaseClasses.from_samples(X[: 10 * 12], Y[: 10 * 12])
NEW = slice(10 * 12, None)
SUPPORT, LABELS = X[NEW][::4], Y[NEW][::4]
FEW = LABELS[-1] != LABELS
both_kinds = pytest.mark.parametrize("include_base", [False, True])


def fitted(rows=slice(None), base=BASE, **settings):
    return HOTClassifier(base, **settings).fit(SUPPORT[rows], LABELS[rows])


def state(model):
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


@both_kinds
def test_a_model_that_grew_is_the_one_that_was_fitted_at_once(include_base, tmp_path):
    whole, before = fitted(include_base=include_base), fitted(FEW, include_base=include_base)
    model = fitted(np.flatnonzero(FEW)[::3], include_base=include_base)
    model.add_samples(SUPPORT[:9][np.arange(9) % 3 > 0], LABELS[:9][np.arange(9) % 3 > 0])
    model.save(tmp_path / "one.model")
    with pytest.raises(ParameterError, match="pass base to load"):
        HOTClassifier.load(tmp_path / "one.model").remove_classes("class 10")
    # Rows of old classes of a bank that is loaded too come from the file of the model.
    BASE.save(tmp_path / "one.bank")
    model = HOTClassifier.load(tmp_path / "one.model", base=BaseClasses.load(tmp_path / "one.bank"))
    model.add_classes(SUPPORT[~FEW], LABELS[~FEW])
    np.testing.assert_allclose(model.predict_proba(X), whole.predict_proba(X), atol=1e-6)
    model.remove_classes([LABELS[-1]])
    np.testing.assert_allclose(model.predict_proba(X), before.predict_proba(X), atol=1e-6)


def test_samples_of_old_classes_go_into_the_bank():
    more, labels = X[NEW.start - 30 :: 7] + 0.1, Y[NEW.start - 30 :: 7]
    is_old = labels < "class 10"
    model = fitted(include_base=True).add_samples(more, labels)
    base = BaseClasses.from_samples(np.concatenate([BASE.samples, more[is_old]]),
                                    np.concatenate([BASE.names[BASE.labels], labels[is_old]]))  # fmt: skip
    fresh = HOTClassifier(base, include_base=True)
    fresh.fit(np.concatenate([SUPPORT, more[~is_old]]), np.concatenate([LABELS, labels[~is_old]]))
    assert model.base.fingerprint == base.fingerprint
    np.testing.assert_allclose(model.predict_proba(X), fresh.predict_proba(X), atol=1e-3)


MISTAKES = {
    "features": lambda model: model.fit(SUPPORT[:, :5], LABELS),
    "'class 10' is a class of this model already: use add_samples": lambda m: m.add_classes(SUPPORT, LABELS),
    "'class 40' is not a class of this model: use add_classes": lambda m: m.add_samples(X[:2], ["class 40"] * 2),
    "'class 00' is not a new class": lambda model: model.remove_classes("class 00"),
    "No new class would be left": lambda model: model.remove_classes(np.unique(LABELS)),
    "NaN": lambda model: model.add_classes(np.full((2, 8), np.nan), ["x", "y"]),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_what_fails_leaves_the_model_as_it_was(message):
    model = fitted(include_base=True)
    before, answers = state(model), model.predict_proba(X)
    with pytest.raises(HotshotError, match=message):
        MISTAKES[message](model)
    assert all(value is before[name] for name, value in state(model).items())
    np.testing.assert_array_equal(model.predict_proba(X), answers)


def test_a_fit_without_a_bank_keeps_nothing_of_a_fit_with_one():
    model = fitted(include_base=True)
    model.set_params(base=None, include_base=False).fit(SUPPORT, LABELS)
    assert state(model).keys() == state(fitted(base=None)).keys()


def test_classes_added_after_include_base_was_switched_off_are_those_of_a_fresh_fit():
    model, fresh = fitted(FEW, include_base=True), fitted()
    model.set_params(include_base=False).add_classes(SUPPORT[~FEW], LABELS[~FEW])
    assert state(model).keys() == state(fresh).keys()
    np.testing.assert_array_equal(model.predict_batch(X[NEW]), fresh.predict_batch(X[NEW]))


@both_kinds
def test_threads_that_read_a_growing_model_get_answers_of_before_or_after(include_base):
    small, model = (fitted(FEW, include_base=include_base) for _ in range(2))
    queries, faults, done = X[NEW], [], threading.Event()

    def answers(of):
        return of.predict(queries).tolist(), of.predict_proba(queries).shape, of.predict_batch(queries).tolist()

    valid = [*zip(answers(small), answers(fitted(include_base=include_base)), strict=True)]

    def read():
        while not done.is_set():
            try:
                found = answers(model)
                if not all(answer in either for answer, either in zip(found, valid, strict=True)):
                    faults.append(found)
            except Exception as error:
                faults.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for _ in range(20):
        model.add_classes(SUPPORT[~FEW], LABELS[~FEW])
        model.remove_classes([LABELS[-1]])
    done.set()
    for reader in readers:
        reader.join()
    assert not faults


@both_kinds
def test_a_bank_of_one_class_predicts_a_batch(include_base):
    model = fitted(base=BaseClasses.from_samples(X[:12], Y[:12]), include_base=include_base)
    assert len(model.predict_batch(X)) == len(X)
