"""The embedded banks are what their scripts say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from conftest import real_data
from hotshot.bank import embedded
from hotshot.bank.embedded import BANK_NAMES, load_bank
from hotshot.errors import ParameterError
from hotshot.images.layouts import open_dataset


@pytest.mark.parametrize(
    ("name", "classes", "samples", "width", "ways", "licence"),
    [("banking77", (47, 30), (60, 40), 384, 5, "CC BY 4.0"), ("omniglot", (964, 659), (10, 20), 64, 20, "MIT")],
)
def test_base_and_novel_classes_do_not_overlap(name, classes, samples, width, ways, licence):
    bank = load_bank(name)
    novel, counts = np.unique(bank.y_novel, return_counts=True)
    assert (len(bank.base.names), len(novel)) == classes
    assert (bank.base.counts.max(), counts.max()) == samples
    assert (bank.base.n_features, bank.X_novel.shape[1], bank.ways) == (width, width, ways)
    assert not set(bank.base.names) & set(novel)
    assert licence in bank.about
    assert (Path(embedded.__file__).parent / f"{name}.safetensors").stat().st_size < 3.2e6


def test_omniglot_has_the_characters_of_the_archive_and_no_alphabet_twice():
    bank = load_bank("omniglot")
    alphabets = [{str(name).split("/")[0] for name in names} for names in (bank.base.names, bank.y_novel)]
    assert [len(some) for some in alphabets] == [30, 20]
    assert not alphabets[0] & alphabets[1]
    dataset = open_dataset(real_data("omniglot/omniglot.tar.xz"))
    assert set(bank.base.names) == set(dataset.splits["base"].names)
    assert set(bank.y_novel) == set(dataset.splits["novel"].names)


def test_unknown_banks_are_refused_with_the_known_ones():
    assert BANK_NAMES == ("banking77", "omniglot")
    with pytest.raises(ParameterError, match="banking77"):
        load_bank("birds")
