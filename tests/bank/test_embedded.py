"""The embedded banks are what their scripts say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from conftest import real_data
from hotshot.bank import embedded as banks
from hotshot.bank.embedded import BANK_NAMES, load_bank
from hotshot.errors import ParameterError
from hotshot.images.layouts import open_dataset


def test_banking77_has_47_base_and_30_novel_intents_that_do_not_overlap():
    bank = load_bank("banking77")
    assert (len(bank.base.names), len(np.unique(bank.y_novel))) == (47, 30)
    assert not set(bank.base.names) & set(bank.y_novel)
    assert bank.base.counts.max() == 60
    assert np.bincount(np.unique(bank.y_novel, return_inverse=True)[1]).max() == 40
    assert np.allclose(np.linalg.norm(bank.X_novel, axis=1), 1, atol=1e-2)
    assert "CC BY 4.0" in bank.about


def test_banking77_holds_the_rows_of_its_source():
    source = np.load(real_data("banking77/features.npz"), allow_pickle=False)
    bank = load_bank("banking77")
    intents = np.random.default_rng(0).permutation(np.unique(source["y"]))
    assert set(bank.base.names) == set(intents[:47])
    name = bank.y_novel[0]
    expected = source["X"][source["y"] == name][:40].astype(np.float32)
    assert np.array_equal(bank.X_novel[bank.y_novel == name], expected)


def test_omniglot_has_all_characters_and_no_alphabet_twice():
    bank = load_bank("omniglot")
    novel, counts = np.unique(bank.y_novel, return_counts=True)
    assert (len(bank.base.names), len(novel), bank.base.n_features) == (964, 659, 64)
    assert set(bank.base.counts) == {10}
    assert set(counts) == {20}
    alphabets = [{str(name).split("/")[0] for name in names} for names in (bank.base.names, novel)]
    assert [len(some) for some in alphabets] == [30, 20]
    assert not alphabets[0] & alphabets[1]
    assert bank.X_novel.min() >= 0
    assert bank.ways == 20
    assert "MIT" in bank.about


def test_omniglot_names_are_those_of_the_archive():
    dataset = open_dataset(real_data("omniglot/omniglot.tar.xz"))
    bank = load_bank("omniglot")
    assert set(bank.base.names) == set(dataset.splits["base"].names)
    assert set(bank.y_novel) == set(dataset.splits["novel"].names)


@pytest.mark.parametrize("name", BANK_NAMES)
def test_banks_are_small(name):
    assert (Path(banks.__file__).parent / f"{name}.safetensors").stat().st_size < 3.2e6


def test_unknown_banks_are_refused_with_the_known_ones():
    assert BANK_NAMES == ("banking77", "omniglot")
    with pytest.raises(ParameterError, match="banking77"):
        load_bank("birds")
