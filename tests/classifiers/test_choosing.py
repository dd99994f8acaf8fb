"""What "auto" stands for: settings that gain clearly on held-out base classes, and the constants elsewhere."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

from conftest import make_bank
from hotshot import BaseClasses, HOTClassifier
from hotshot.classifiers import held_out
from hotshot.classifiers.classifier import FewShotClassifier

CONSTANTS = {name: values[0] for name, values in HOTClassifier._choices.items()}


class Guesser(FewShotClassifier):
    """Nearest mean with "good" eyes, the opposite with "bad" ones; the two "good" are equal."""

    _parameter_constraints: ClassVar = {"base": "no_validation", "eyes": "no_validation", "power": "no_validation"}
    _choices: ClassVar = {"eyes": ("bad", "good", "as good"), "power": (1.0,)}

    def __init__(self, base=None, *, eyes="auto", power=1.0):
        self.base = base
        self.eyes = eyes
        self.power = power

    def _fit(self, X, labels, settings):
        self.means_ = np.stack([X[labels == c].mean(axis=0) for c in range(len(self.classes_))])
        self.sign_ = -1.0 if settings["eyes"] == "bad" else 1.0

    def _logits(self, X):
        return -self.sign_ * ((X[:, None] - self.means_) ** 2).sum(axis=2)


def bank(n_classes=24, per_class=12):
    return BaseClasses.from_samples(*make_bank(n_classes, per_class), seen_in_training=False)


def test_what_gains_is_chosen_and_what_is_equal_is_not():
    choice = Guesser(bank(), power=1.0).choice()
    assert choice.settings == {"eyes": "good"}
    assert [(trial.value, trial.taken) for trial in choice.trials] == [("good", True), ("as good", False)]
    assert choice.trials[0].gain > choice.trials[0].half_width > 0
    assert choice.trials[1].gain == 0
    X, y = make_bank(3, 4, seed=9)
    model = Guesser(bank()).fit(X, y)
    assert model.chosen_ == {"eyes": "good"}
    assert model.score(X, y) > 0.9
    assert Guesser(bank(), eyes="bad").fit(X, y).chosen_ == {}


@pytest.mark.parametrize(("classes", "samples"), [(19, 12), (24, 9)])
def test_small_banks_keep_the_constants(classes, samples):
    base = bank(classes, samples)
    assert not base.can_hold_out
    choice = HOTClassifier(base).choice()
    rule = "mix" if classes < 20 else CONSTANTS["mean_rule"]
    assert choice.settings == {**CONSTANTS, "power": base.power("auto"), "mean_rule": rule}
    assert not choice.trials


def test_banks_seen_in_training_choose_the_power_alone():
    X, y = make_bank(24, 12)
    base = BaseClasses.from_samples(np.abs(X), y, seen_in_training=True)
    choice = HOTClassifier(base).choice()
    assert choice.seen_in_training
    assert {trial.parameter for trial in choice.trials} == {"power"}
    assert {**choice.settings, "power": None} == {**CONSTANTS, "power": None}


def directions(shared, per_class=220, seed=0):
    """Classes that differ along a few axes which all share, or each along an axis of its own."""
    rng = np.random.default_rng(seed)
    n_classes, width = 24, 32
    means = np.zeros((n_classes, width))
    if shared:
        means[:, :8] = 2 * rng.normal(size=(n_classes, 8))
    else:
        means[np.arange(n_classes), np.arange(n_classes)] = 5
    labels = np.repeat(np.arange(n_classes), per_class)
    return means[labels] + rng.normal(size=(len(labels), width)), labels


@pytest.mark.parametrize("seen", [None, False])
def test_the_rule_that_gains_is_taken_unless_the_bank_states_that_it_was_seen(seen):
    own, shared = (BaseClasses.from_samples(*directions(is_shared), seen_in_training=seen) for is_shared in (0, 1))
    settings = {"epsilon": 0.02, "n_generated": 300, "support_weight": 20.0}
    assert HOTClassifier(own, **settings).choice().settings["mean_rule"] == "mix"
    assert HOTClassifier(shared, **settings).choice().settings["mean_rule"] != "mix"
    stated = BaseClasses.from_samples(*directions(shared=False), seen_in_training=True)
    assert HOTClassifier(stated, **settings).choice().settings["mean_rule"] == "posterior"


def test_a_gain_that_one_class_in_four_explains_is_not_taken():
    """By an interval over tasks it would be: half of the tasks have such a class."""
    folds = held_out.make_folds(bank(24, 12))
    trial = held_out.HeldOut(folds, {})
    gains = np.array([np.mean(classes % 6 < 1) for classes in trial.classes(held_out.TASKS) % held_out.MOST_CLASSES])
    gains = np.where(trial.classes(held_out.TASKS).min(axis=1) < held_out.MOST_CLASSES, gains, 0.0)
    error = gains.std() / len(gains) ** 0.5
    assert gains.mean() > 2.6 * error
    trial.computed["one"], trial.computed["other"] = (x.reshape(4, 2, -1) for x in (0 * gains, gains))
    names = iter(("other", "one") * 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held_out, "description", lambda _: next(names))
        assert not held_out.try_setting(Guesser(), trial, {"eyes": "bad"}, "eyes", "good").taken


def test_settings_are_chosen_once_for_a_bank_and_the_code_and_saved_with_it(monkeypatch, tmp_path):
    def never(*_):
        raise AssertionError("chosen again")

    base, stated = bank(), BaseClasses.from_samples(*make_bank(24, 12), seen_in_training=True)
    first = Guesser(base).choice()
    base.save(tmp_path / "one.bank")
    monkeypatch.setattr(held_out, "choose", never)
    assert Guesser(base).choice() == first
    assert Guesser(BaseClasses.load(tmp_path / "one.bank")).choice() == first
    for other in (bank(30), stated):
        other.choices.update(base.choices)
        with pytest.raises(AssertionError, match="chosen again"):
            Guesser(other).choice()
    monkeypatch.setattr(held_out, "_code_hash", lambda: "another")
    with pytest.raises(AssertionError, match="chosen again"):
        Guesser(BaseClasses.load(tmp_path / "one.bank")).choice()


def test_a_fit_leaves_nothing_on_disk(monkeypatch, tmp_path):
    for name in ("HOME", "XDG_CACHE_HOME", "HOTSHOT_CACHE", "TMPDIR"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert HOTClassifier(bank()).fit(*make_bank(3, 4, seed=9)).outliers_.thresholds is not None
    assert not list(tmp_path.rglob("*"))


@pytest.mark.parametrize("damage", [None, 3, [], {}, "settings", "trials"])
def test_what_was_kept_and_is_damaged_is_chosen_again(damage):
    base = bank()
    first = Guesser(base).choice()
    (key,) = base.choices
    base.choices[key] = {**base.choices[key], damage: 3} if isinstance(damage, str) else damage
    assert Guesser(base).choice() == first


def test_the_choice_does_not_depend_on_the_number_of_cores(monkeypatch):
    found = []
    for cores in (1, 8):
        monkeypatch.setattr(held_out.os, "cpu_count", lambda cores=cores: cores)
        base = bank()
        found.append(HOTClassifier(base, epsilon=0.02, n_generated=300, support_weight=20.0).choice())
    assert found[0] == found[1]
