"""HDF5: named datasets, the layout of Chen et al., and nothing from other files."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from children import no_child  # noqa: F401
from hotshot.errors import InputError
from hotshot.files import read_features

h5py = pytest.importorskip("h5py")
X, Y = np.arange(12, dtype=np.float32).reshape(4, 3), ["b", "a", "b", "ü"]


@pytest.fixture
def save(tmp_path):
    def saved(**datasets):
        with h5py.File(tmp_path / "a.h5", "w") as file:
            for name, values in datasets.items():
                file[name] = values
        return tmp_path / "a.h5"

    return saved


def test_links_within_the_file_are_no_other_datasets(save):
    samples = read_features(save(features=X, labels=Y, group=h5py.SoftLink("/features")))
    np.testing.assert_array_equal(samples.X, X)
    assert samples.y.tolist() == Y


def test_room_that_was_not_filled_is_left_out(save):
    samples = read_features(save(all_feats=X, all_labels=[0, 0, 1, 1], count=[3]))
    np.testing.assert_array_equal(samples.X, X[:3])
    assert samples.y.tolist() == [0, 0, 1]
    with pytest.raises(InputError, match="room for 4 samples and a count of 5"):
        read_features(save(all_feats=X, all_labels=[0, 0, 1, 1], count=[5]))


def test_datasets_of_other_files_are_not_read(save, tmp_path):
    save(X=X).rename(tmp_path / "other.h5")
    with pytest.raises(InputError, match="must hold two arrays"):
        read_features(save(X=h5py.ExternalLink("other.h5", "/X"), y=[0, 0, 1, 1]))


def test_a_damaged_file_and_a_missing_library_are_one_sentence(save, monkeypatch):
    path = save(X=X, y=Y)
    path.write_bytes(path.read_bytes()[:900])
    with pytest.raises(InputError, match="not a valid HDF5 file"):
        read_features(path)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(InputError, match=r"pip install 'hotshot\[hdf5\]'"):
        read_features(path)
