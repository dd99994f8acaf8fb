"""A fit builds a new state and assigns it last: after an error the model is the one before, and nothing stale stays."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from conftest import make_bank
from hotshot import BaseClasses, HOTClassifier
from hotshot.errors import HotshotError

X, Y = make_bank(14, 12, 8)
BASE = BaseClasses.from_samples(X[: 10 * 12], Y[: 10 * 12])
NEW = slice(10 * 12, None)
SUPPORT, LABELS = X[NEW][::4], Y[NEW][::4]


def state(model):
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


def test_a_failed_fit_leaves_the_model_as_it_was():
    model = HOTClassifier(BASE).fit(SUPPORT, LABELS)
    before, answers = state(model), model.predict(X)
    with pytest.raises(HotshotError, match="features"):
        model.fit(SUPPORT[:, :5], LABELS)
    assert all(value is before[name] for name, value in state(model).items())
    np.testing.assert_array_equal(model.predict(X), answers)


def test_a_fit_without_a_bank_keeps_nothing_of_a_fit_with_one():
    model = HOTClassifier(BASE, include_base=True).fit(SUPPORT, LABELS)
    model.set_params(base=None, include_base=False).fit(SUPPORT, LABELS)
    assert state(model).keys() == state(HOTClassifier().fit(SUPPORT, LABELS)).keys()


def test_classes_added_after_include_base_was_switched_off_are_those_of_a_fresh_fit():
    few = LABELS[-1] != LABELS
    model = HOTClassifier(BASE, include_base=True).fit(SUPPORT[few], LABELS[few])
    model.set_params(include_base=False).add_classes(SUPPORT[~few], LABELS[~few])
    fresh = HOTClassifier(BASE).fit(SUPPORT, LABELS)
    assert state(model).keys() == state(fresh).keys()
    np.testing.assert_array_equal(model.predict_batch(X[NEW]), fresh.predict_batch(X[NEW]))


@pytest.mark.parametrize("include_base", [False, True])
def test_threads_that_read_a_growing_model_get_answers_of_before_or_after(include_base):
    few = LABELS[-1] != LABELS
    small = HOTClassifier(BASE, include_base=include_base).fit(SUPPORT[few], LABELS[few])
    large = HOTClassifier(BASE, include_base=include_base).fit(SUPPORT, LABELS)
    model = HOTClassifier(BASE, include_base=include_base).fit(SUPPORT[few], LABELS[few])
    queries, faults, done = X[NEW], [], threading.Event()
    valid = [(m.predict(queries).tolist(), m.predict_proba(queries).shape, m.predict_batch(queries).tolist())
             for m in (small, large)]  # fmt: skip

    def read():
        while not done.is_set():
            try:
                answers = model.predict(queries).tolist(), model.predict_proba(queries).shape
                jointly = model.predict_batch(queries).tolist()
                if not (answers[0] in [v[0] for v in valid] and answers[1] in [v[1] for v in valid]
                        and jointly in [v[2] for v in valid]):  # fmt: skip
                    faults.append((answers, jointly))
            except Exception as error:
                faults.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for _ in range(20):
        model.add_classes(SUPPORT[~few], LABELS[~few])
        model.remove_classes([LABELS[-1]])
    done.set()
    for reader in readers:
        reader.join()
    assert not faults


def test_a_rejected_sample_gets_whatever_stands_for_unknown():
    base, y = make_bank(30, 20, 8)
    model = HOTClassifier(BaseClasses.from_samples(base[: 25 * 20], y[: 25 * 20]))
    model.fit(base[25 * 20 :: 5], y[25 * 20 :: 5])
    strangers = base[: 25 * 20 : 5]
    for unknown in (("none", "of these"), [1], None, "?"):
        for predict in (model.predict, model.predict_batch):
            answers = predict(strangers, reject=np.float32(0.25), unknown=unknown)
            assert unknown in answers.tolist()


def test_reject_with_the_sampled_head_blames_the_head():
    base, y = make_bank(30, 20, 8)
    model = HOTClassifier(BaseClasses.from_samples(base[: 25 * 20], y[: 25 * 20]), head="sampled")
    model.fit(base[25 * 20 :: 5], y[25 * 20 :: 5])
    with pytest.raises(HotshotError, match="another head than 'sampled'"):
        model.predict(base[:1], reject=0.05)


def test_a_bank_of_one_class_predicts_a_batch():
    base = BaseClasses.from_samples(X[:12], Y[:12])
    for include_base in (False, True):
        model = HOTClassifier(base, include_base=include_base).fit(SUPPORT, LABELS)
        assert len(model.predict_batch(X)) == len(X)
