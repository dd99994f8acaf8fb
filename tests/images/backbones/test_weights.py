"""Published weights are matched whatever their names, and never in part."""

from __future__ import annotations

import os
import pickle

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from hotshot.errors import InputError
from hotshot.images.backbones import create
from hotshot.images.backbones.weights import load_weights

SMALL = {
    "conv4": {"filters": 4},
    "resnet10": {"filters": 4},
    "resnet12": {"filters": (4, 6, 8, 10)},
    "resnet18": {"filters": 4},
}


def renamed(state, prefix):
    """The same tensors in the same order under names of another program."""
    layers = list(dict.fromkeys(name.rpartition(".")[0] for name in state))
    return {
        f"{prefix}{layers.index(name.rpartition('.')[0])}.{name.rpartition('.')[2]}": x
        for name, x in state.items()
    }


def features(network, seed=0):
    images = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(seed))
    with torch.inference_mode():
        return network.eval()(images)


@pytest.fixture(params=SMALL)
def pair(request):
    """Two networks of one kind with different weights."""
    torch.manual_seed(0)
    return create(request.param, **SMALL[request.param]), create(request.param, **SMALL[request.param])


@pytest.mark.parametrize("nest", [None, "state_dict", "state", "params"])
def test_weights_under_other_names_give_the_same_features(pair, tmp_path, nest):
    theirs, ours = pair
    state = renamed(theirs.state_dict(), "module.feature.trunk.")
    state["classifier.weight"] = torch.zeros(5, 7)
    torch.save(state if nest is None else {"epoch": 3, nest: state}, tmp_path / "a.tar")
    report = load_weights(ours, tmp_path / "a.tar")
    torch.testing.assert_close(features(ours), features(theirs))
    assert report.left == ("classifier.weight",)
    assert len({name for name, _ in report.matched}) == len(report.matched)
    assert "tensors matched" in str(report)
    assert "classifier.weight" in str(report)


def test_safetensors_with_the_same_names_are_read_in_any_order(pair, tmp_path):
    theirs, ours = pair
    save_file({name: x.contiguous() for name, x in theirs.state_dict().items()}, tmp_path / "a.safetensors")
    report = load_weights(ours, tmp_path / "a.safetensors")
    assert all(mine == other for mine, other in report.matched)
    torch.testing.assert_close(features(ours), features(theirs))


def test_layers_in_another_order_are_refused_not_guessed_at(tmp_path):
    torch.manual_seed(0)
    state = renamed(create("resnet10", filters=4).state_dict(), "x.")
    names = sorted(state, key=lambda name: (state[name].ndim, name))
    torch.save({name: state[name] for name in names}, tmp_path / "a.pt")
    with pytest.raises(InputError, match="or its layers in another order"):
        load_weights(create("resnet10", filters=4), tmp_path / "a.pt")


def test_weights_of_another_network_change_nothing(pair, tmp_path):
    _, ours = pair
    before = {name: x.clone() for name, x in ours.state_dict().items()}
    torch.save(nn.Sequential(nn.Conv2d(3, 7, 3), nn.BatchNorm2d(7)).state_dict(), tmp_path / "a.pt")
    with pytest.raises(InputError, match="weights of another network"):
        load_weights(ours, tmp_path / "a.pt")
    assert all(torch.equal(x, before[name]) for name, x in ours.state_dict().items())


class Attack:
    def __init__(self, marker):
        self.marker = str(marker)

    def __reduce__(self):
        return os.mkdir, (self.marker,)


def test_a_file_that_would_run_something_is_refused(tmp_path):
    torch.save({"state_dict": {"a": Attack(tmp_path / "marker")}}, tmp_path / "a.pt")
    (tmp_path / "b.pt").write_bytes(pickle.dumps(Attack(tmp_path / "marker")))
    for name in ("a.pt", "b.pt"):
        with pytest.raises(InputError, match="not a file of plain weights"):
            load_weights(create("conv4", filters=4), tmp_path / name)
    assert not (tmp_path / "marker").exists()


@pytest.mark.parametrize("content", [b"", b"<html>", b"PK\x03\x04junk", b"\x80\x02}."])
def test_what_holds_no_weights_is_one_sentence(tmp_path, content):
    (tmp_path / "a.pt").write_bytes(content)
    with pytest.raises(InputError, match=r"a[.]pt"):
        load_weights(create("conv4", filters=4), tmp_path / "a.pt")
    with pytest.raises(InputError, match="There is no file"):
        load_weights(create("conv4", filters=4), tmp_path / "none.pt")
