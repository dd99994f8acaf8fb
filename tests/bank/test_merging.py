"""A bank merged from parts is the bank of all samples; what does not belong together is refused."""

from __future__ import annotations

import numpy as np
import pytest
from bank_file_examples import probabilities

from conftest import make_bank
from hotshot import BaseClasses
from hotshot.bank.converting import merge_banks
from hotshot.errors import InputError, ParameterError

X, Y = make_bank(6, 12, 6, spread=0.9)
NAMES = np.array(["ant", "bee", "cat", "dog", "eel", "fox"])[Y]
WAYS_TO_PART = {
    "classes apart": [Y < 3, Y >= 3],
    "classes shared": [np.arange(len(Y)) % 2 == 0, np.arange(len(Y)) % 2 == 1],
    "three parts": [Y % 3 == 2, (Y % 3 == 0) & (np.arange(len(Y)) % 2 == 0), (Y == 1) | (Y == 4)],
}


def parts(folder, masks, X=X, names=NAMES, **how):
    for number, mask in enumerate(masks):
        BaseClasses.from_samples(X[mask], names[mask], **how).save(folder / f"{number}.bank")
    return [folder / f"{number}.bank" for number in range(len(masks))]


@pytest.mark.parametrize("names", [NAMES, Y], ids=["text", "numbers"])
@pytest.mark.parametrize("case", WAYS_TO_PART)
def test_a_merged_bank_answers_as_the_joint_one(case, names, tmp_path):
    masks = WAYS_TO_PART[case]
    merged = merge_banks(parts(tmp_path, masks, names=names), tmp_path / "all.bank")
    rows = np.concatenate([np.flatnonzero(mask) for mask in masks])
    joint = BaseClasses.from_samples(X[rows], names[rows])
    assert merged.names.tolist() == joint.names.tolist()
    assert merged.counts.tolist() == joint.counts.tolist()
    np.testing.assert_allclose(probabilities(merged), probabilities(joint), atol=1e-9)
    assert BaseClasses.load(tmp_path / "all.bank").fingerprint == merged.fingerprint


def test_what_is_known_of_the_features_is_kept(tmp_path):
    abouts = [{"extractor": "DINO", "date": 1}, {"date": 1, "seen_in_training": True}, {"date": 2}]
    for number, about in enumerate(abouts):
        BaseClasses.from_samples(X[number == Y % 3], Y[number == Y % 3], about=about).save(tmp_path / str(number))
    about = merge_banks([tmp_path / n for n in "012"], tmp_path / "all").about
    assert [source["name"] for source in about.pop("source")] == ["0", "1", "2"]
    assert about == {"extractor": "DINO", "seen_in_training": True}
    assert merge_banks([tmp_path / n for n in "01"], tmp_path / "two").about["date"] == 1


def test_banks_that_do_not_belong_together_are_refused(tmp_path):
    banks = {
        "one": (X, Y, {"extractor": "DINO"}),
        "untold": (X + 1, Y, {}),
        "other": (X + 2, Y, {"extractor": "CLIP"}),
        "scaled": (X + 3, Y, {"transform": "scaler"}),
        "unscaled": (X + 3.5, Y, {"transform": "none"}),
        "narrow": (X[:, :4], Y, {}),
        "named": (X + 4, NAMES, {}),
    }
    for name, (samples, labels, about) in banks.items():
        BaseClasses.from_samples(samples, labels, about=about).save(tmp_path / name)
    BaseClasses.load(tmp_path / "untold").save(tmp_path / "small", samples=False, covariance="low-rank")
    cases = {
        ("one", "other"): "differ in extractor, DINO and CLIP: extract all features with the same model",
        ("untold", "one", "other"): "differ in extractor, DINO and CLIP",
        ("scaled", "unscaled"): "differ in transform, scaler and none",
        ("one", "narrow"): "differ in features, 6 and 4",
        ("one", "one"): "hold the same samples: name each bank once",
        ("one", "small"): "small keeps no samples.*merge banks with samples, then compact the result",
        ("one", "named"): "Labels must be of one type",
        ("one", "nowhere"): "is not a bank",
        ("one",): "needs two banks or more, got 1",
    }
    for names, message in cases.items():
        with pytest.raises((InputError, ParameterError), match=message) as error:
            merge_banks([tmp_path / name for name in names], tmp_path / "out")
        assert "\n" not in str(error.value)
        assert not (tmp_path / "out").exists()
