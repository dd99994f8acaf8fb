"""Backbones have the sizes of the literature and give non-negative features."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="backbones need the extra images")

from hotshot.backbones import BACKBONES, create, feature_width, options_for
from hotshot.errors import ParameterError

# Parameters without a classifier, and width of the features at 84x84. Conv4 by Vinyals et al.: 4 blocks of 64 filters.
# ResNet18 without its last layer, WRN-28-10 without its last (36,479,194 with 10 classes on CIFAR).
LITERATURE = {
    "conv4": (113_088, 1600),
    "conv6": (187_200, 1600),
    "resnet10": (4_905_792, 512),
    "resnet12": (12_424_320, 640),
    "resnet18": (11_176_512, 512),
    "wrn28_10": (36_479_194 - 6_410, 640),
}


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


@pytest.mark.parametrize("name", BACKBONES)
def test_parameters_and_widths_are_those_of_the_literature(name):
    network = create(name)
    size = 84 if name != "wrn28_10" else 32
    assert (sum(p.numel() for p in network.parameters()), feature_width(network, size)) == LITERATURE[name]


@pytest.mark.parametrize("name", BACKBONES)
def test_features_are_not_negative_and_of_one_image_each(name):
    network = create(name).eval()
    images = torch.randn(3, 3, 32, 32)
    with torch.inference_mode():
        features = network(images)
        alone = network(images[1:2])
    assert features.shape[0] == 3
    assert features.ndim == 2
    assert float(features.min()) >= 0
    assert float(features.max()) > 0
    torch.testing.assert_close(alone[0], features[1], rtol=1e-4, atol=1e-4)


def test_small_images_keep_their_size_in_the_stem():
    stem = create("resnet10", small=True).stem
    assert stem(torch.zeros(1, 3, 32, 32)).shape[2:] == (32, 32)
    assert create("resnet10").stem(torch.zeros(1, 3, 84, 84)).shape[2:] == (21, 21)
    for name in BACKBONES:
        assert options_for(name, 84) == {}
        assert options_for(name, 32) == ({"small": True} if name in ("resnet10", "resnet18") else {})


@pytest.mark.parametrize(
    ("name", "options", "size", "width"),
    [
        ("conv4", {"filters": 8}, 84, 200),
        ("resnet10", {"filters": 8, "small": True}, 32, 64),
        ("resnet12", {"filters": (16, 32, 64, 128)}, 32, 128),
    ],
)
def test_narrow_networks_are_an_option(name, options, size, width):
    network = create(name, **options)
    before = {key: value.clone() for key, value in network.state_dict().items()}
    assert feature_width(network, size) == width
    # Which leaves the network as it was.
    assert network.training
    assert all(torch.equal(value, before[key]) for key, value in network.state_dict().items())


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [("conv5", {}, "backbone must be one of conv4"), ("conv4", {"depht": 3}, "conv4 has no such option")],
)
def test_unknown_networks_and_options_are_one_sentence(name, options, message):
    with pytest.raises(ParameterError, match=message):
        create(name, **options)
