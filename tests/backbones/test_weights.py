"""Published weights are matched whatever their names, and never in part."""

from __future__ import annotations

import os
from collections import Counter

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="weights are PyTorch's")
save_file = pytest.importorskip("safetensors.torch").save_file

from torch import nn

from children import no_child  # noqa: F401
from hotshot.backbones import create
from hotshot.backbones.checkpoints import load_weights
from hotshot.errors import InputError

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
        f"{prefix}{layers.index(name.rpartition('.')[0])}.{name.rpartition('.')[2]}": x for name, x in state.items()
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


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize(("suffix", "prefix"), [("pt", ""), ("pt", "x."), ("safetensors", "")])
def test_weights_of_every_precision_are_read(tmp_path, suffix, prefix, dtype):
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.tensor(2.0))  # A scalar stays one.
            self.layer = nn.Linear(3, 2)

    theirs, ours = Scaled().to(dtype), Scaled()
    state = {f"{prefix}{name}": x for name, x in theirs.state_dict().items()}
    (torch.save if suffix == "pt" else save_file)(state, tmp_path / f"a.{suffix}")
    load_weights(ours, tmp_path / f"a.{suffix}")
    for name, x in theirs.state_dict().items():
        assert torch.equal(ours.state_dict()[name], x.float())


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


# --- the layout of Chen et al. 2019, whose modules register layers twice


class ConvBlock(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.C, self.BN = nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs)
        self.relu, self.pool = nn.ReLU(), nn.MaxPool2d(2)
        self.parametrized_layers = [self.C, self.BN, self.relu, self.pool]
        self.trunk = nn.Sequential(*self.parametrized_layers)

    def forward(self, x):
        return self.trunk(x)


class SimpleBlock(nn.Module):
    def __init__(self, inputs, outputs, stride, twice):
        super().__init__()
        self.C1, self.BN1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.C2, self.BN2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs)
        self.relu1, self.relu2 = nn.ReLU(), nn.ReLU()
        layers = [self.C1, self.C2, self.BN1, self.BN2]
        self.parametrized_layers = nn.ModuleList(layers) if twice else layers
        self.changes = inputs != outputs
        if self.changes:
            self.shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.BNshortcut = nn.BatchNorm2d(outputs)

    def forward(self, x):
        y = self.BN2(self.C2(self.relu1(self.BN1(self.C1(x)))))
        return self.relu2(y + (self.BNshortcut(self.shortcut(x)) if self.changes else x))


def closer_look(name, twice=True):
    """A network of that program, with statistics as training leaves them."""
    torch.manual_seed(0)
    if name == "conv4":
        layers = [ConvBlock(3 if i == 0 else 4, 4) for i in range(4)]
    else:
        layers = [nn.Conv2d(3, 4, 7, 2, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
        widths = [4, 4, 8, 16, 32]
        layers += [SimpleBlock(widths[i], widths[i + 1], 1 if i == 0 else 2, twice) for i in range(4)]
        layers += [nn.AdaptiveAvgPool2d(1)]
    network = nn.Module()
    network.trunk = nn.Sequential(*layers, nn.Flatten())
    network.forward = network.trunk.forward
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            for x in (module.weight.data, module.bias.data, module.running_mean, module.running_var):
                x.copy_(0.5 + torch.rand(len(x)))
    return network


@pytest.mark.parametrize(
    ("name", "twice", "prefix"),
    [("conv4", True, ""), ("resnet10", True, "feature."), ("resnet10", False, "module.feature.")],
)
def test_layers_that_a_file_holds_twice_count_once(tmp_path, name, twice, prefix):
    theirs, ours = closer_look(name, twice), create(name, filters=4)
    state = {f"{prefix}{key}": x for key, x in theirs.state_dict().items()}
    state["classifier.weight"] = torch.zeros(7, 9)
    torch.save({"epoch": 399, "state": state}, tmp_path / "best_model.tar")
    report = load_weights(ours, tmp_path / "best_model.tar")
    torch.testing.assert_close(features(ours), features(theirs))
    assert len(report.matched) == len([x for x in ours.state_dict() if "num_batches" not in x])
    assert ("trunk.0.trunk.0.weight" in " ".join(report.left)) == (name == "conv4")
    # Also where a file has two copies of the numbers instead of two names for them.
    torch.save({key: x.clone() for key, x in state.items()}, tmp_path / "copied.tar")
    assert load_weights(create(name, filters=4), tmp_path / "copied.tar") == report


@pytest.mark.parametrize(
    ("name", "twice", "trained"),
    [("conv4", True, 0), ("conv4", True, 2), ("resnet10", True, 3), ("resnet10", False, 0)],
)
def test_normalisations_that_are_equal_to_each_other_are_no_copies(tmp_path, name, twice, trained):
    theirs, ours = closer_look(name, twice), create(name, filters=4)
    for module in [x for x in theirs.modules() if isinstance(x, nn.BatchNorm2d)][trained:]:
        module.reset_parameters()
    torch.save({"state": theirs.state_dict()}, tmp_path / "best_model.tar")
    load_weights(ours, tmp_path / "best_model.tar")
    torch.testing.assert_close(features(ours), features(theirs))


@pytest.mark.parametrize(("block", "changed"), [(0, ["C.weight"]), (1, ["BN.bias"]), (3, ["C.weight", "BN.weight"])])
def test_two_copies_of_a_layer_that_differ_are_refused(tmp_path, block, changed):
    state = {name: x.clone() for name, x in closer_look("conv4").state_dict().items()}
    for name in changed:
        state[f"trunk.{block}.{name}"] += 1
    torch.save({"state": state}, tmp_path / "a.tar")
    ours = create("conv4", filters=4)
    before = {name: x.clone() for name, x in ours.state_dict().items()}
    with pytest.raises(InputError, match="it holds the weights of another network, or"):
        load_weights(ours, tmp_path / "a.tar")
    assert all(torch.equal(x, before[name]) for name, x in ours.state_dict().items())


# --- files; those that are hostile are tested where all pickles are read


class Attack:
    def __init__(self, marker):
        self.marker = str(marker)

    def __reduce__(self):
        return os.mkdir, (self.marker,)


def test_a_file_that_would_run_something_is_refused(tmp_path):
    torch.save({"state_dict": {"a": Attack(tmp_path / "marker")}}, tmp_path / "a.pt")
    with pytest.raises(InputError, match=r"a.pt asks to call posix.mkdir"):
        load_weights(create("conv4", filters=4), tmp_path / "a.pt")
    assert not (tmp_path / "marker").exists()


def test_damaged_files_and_files_without_weights_are_one_sentence(tmp_path):
    state = create("conv4", filters=4).state_dict()
    torch.save(state, tmp_path / "a.pt")
    save_file(state, tmp_path / "b.safetensors")
    for path in list(tmp_path.iterdir()):
        path.write_bytes(path.read_bytes()[:-9])
    endless = {}
    endless["state"] = endless
    torch.save(endless, tmp_path / "c.pt")
    torch.save({"a.weight": torch.zeros(1).expand(2**40)}, tmp_path / "d.pt")
    torch.save({"a": torch.zeros(3, device="meta")}, tmp_path / "e.pt")
    torch.save([1, 2], tmp_path / "f.pt")
    for path in tmp_path.iterdir():
        with pytest.raises(InputError, match=path.name) as caught:
            load_weights(create("conv4", filters=4), path)
        assert str(caught.value).isprintable()
    with pytest.raises(InputError, match="There is no file"):
        load_weights(create("conv4", filters=4), tmp_path / "none.pt")


@pytest.mark.parametrize("form", [{}, {"_use_new_zipfile_serialization": False}], ids=["archive", "stream"])
def test_other_objects_saved_with_the_weights_are_ignored(tmp_path, form):
    theirs, ours = create("conv4", filters=4), create("conv4", filters=4)
    optimiser = torch.optim.Adam(theirs.parameters())
    theirs(torch.zeros(2, 3, 32, 32)).sum().backward()
    optimiser.step()
    beside = {
        "epoch": 3, "losses": [0.5, 0.25], "names": ["a", "b"], "device": torch.device("cpu"),
        "type": torch.float8_e5m2, "shape": torch.Size([2, 3]), "seen": {1, 2}, "optimiser": optimiser.state_dict(),
        "none": None, "sparse": [torch.eye(3).to_sparse()], "parameters": list(theirs.parameters()),
        "count": Counter("ab"), "best": np.float64(0.5),
    }  # fmt: skip
    torch.save({**beside, "model": {"state_dict": theirs.state_dict()}}, tmp_path / "a.pt", **form)
    load_weights(ours, tmp_path / "a.pt")
    for name, x in theirs.state_dict().items():
        assert "num_batches" in name or torch.equal(ours.state_dict()[name], x)
