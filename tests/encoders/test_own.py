"""Networks of one's own by name: known features, and every mistake before any extraction."""

from __future__ import annotations

import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="encoders of images need the extra images")

from encoder_cases import as_tensor, features_of, networks_in_a_file, one_sentence, pixels_of  # noqa: F401

from hotshot.backbones.networks import as_input
from hotshot.encoders import module_encoder
from hotshot.errors import InputError, ParameterError


@pytest.mark.parametrize("which", ["pool", "maps"])
def test_features_of_a_module_are_its_output_and_maps_are_averaged(networks, which):
    encoder = module_encoder(networks(which), 14)
    assert encoder.notes == ()
    assert encoder.size == 16
    expected = as_input(as_tensor(pixels_of(encoder)), 14).mean(dim=(2, 3)).numpy()
    np.testing.assert_allclose(features_of(encoder), expected, rtol=1e-4, atol=1e-6)
    assert encoder.about["extractor"] == f"their_networks.py:{which}"


@pytest.mark.parametrize("name", ["their_networks:pool", "their_networks:Convolution", "their_networks:seeded"])
def test_modules_of_the_working_folder_are_found_and_the_search_path_is_left_as_it_was(networks, name):
    before = list(sys.path)
    encoder = module_encoder(name, 14)
    assert features_of(encoder).shape == (5, 3 if name.endswith("pool") else 4)
    assert sys.path == before


def test_own_mean_and_deviation_are_taken_out(networks):
    encoder = module_encoder(networks("pool"), 16, mean=(0, 0, 0), deviation=(1 / 255,) * 3)
    expected = pixels_of(encoder)[:, 1:17, 1:17].mean(axis=(1, 2))
    np.testing.assert_allclose(features_of(encoder), expected, rtol=1e-4)


def test_a_network_is_not_in_training_when_it_extracts(networks):
    encoder = module_encoder(networks("dropping"), 4)
    assert np.array_equal(features_of(encoder), features_of(encoder))


@pytest.mark.parametrize("which", ["Convolution", "lazy"])
def test_weights_of_a_file_are_used(networks, tmp_path, which):
    first = module_encoder(networks(which), 14)
    network = torch.nn.Conv2d(3, 4, 3) if which == "Convolution" else torch.nn.Linear(3 * 14 * 14, 5)
    torch.save({f"module.{name}": x for name, x in network.state_dict().items()}, tmp_path / "w.pt")
    encoder = module_encoder(networks(which), 14, weights="w.pt")
    assert "2 tensors matched" in encoder.notes[0]
    inputs = as_input(as_tensor(pixels_of(encoder)), 14)
    with torch.no_grad():
        expected = network(inputs).relu().mean(dim=(2, 3)) if which == "Convolution" else network(inputs.flatten(1))
    np.testing.assert_allclose(features_of(encoder), expected.numpy(), rtol=1e-3, atol=1e-5)
    assert encoder.about["network"]["weights"] == "w.pt"
    assert not encoder.same_as(first.probe)


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("resnet", ParameterError, "network must be package.module:name or file.py:name"),
        ("nowhere.models:net", ParameterError, "There is no module nowhere: install it"),
        ("their_syntax.py:net", InputError, r"their_syntax.py cannot be imported \(SyntaxError"),
        ("their_networks.py:net", ParameterError, "their_networks.py has no 'net'"),
        ("their_networks.py:numbers", ParameterError, "must be or return a torch.nn.Module, got dict"),
        ("their_networks.py:nothing", ParameterError, "must be or return a torch.nn.Module, got NoneType"),
        ("their_networks.py:wide", ParameterError, "needs filters, depth: name a function without required"),
        ("torch.nn:Linear", ParameterError, "torch.nn:Linear needs in_features, out_features"),
        ("their_networks.py:broken", InputError, r"fails to create the network \(OSError: no disk. At all\): fix it"),
        ("their_networks.py:pair", InputError, r"fails on images \(2, 3, 14, 14\) \(Attr.*or maps \(batch, V"),
        ("their_networks.py:tokens", InputError, r"features \(2, V\) of 2 images, got float32 \(2, 3, 196\)"),
        ("their_networks.py:one_row", InputError, r"got float32 \(1, 1176\)"),
        ("their_networks.py:squeezed", InputError, r"\(1, V\) of 1 images, got float32 \(3,\)"),
        ("their_networks.py:large", InputError, r"fails on images \(2, 3, 14, 14\) \(IndexError: .*: pass the size"),
        ("their_networks.py:ending", InputError, r"fails on images \(2, 3, 14, 14\) \(SystemExit: 3\)"),
    ],
)  # fmt: skip
def test_mistakes_in_a_module_are_one_sentence(networks, tmp_path, name, error, message):
    (tmp_path / "their_syntax.py").write_text("def net(:\n")
    before = list(sys.path)
    with pytest.raises(error, match=message) as raised:
        module_encoder(name, 14)
    one_sentence(raised)
    assert sys.path == before


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"size": 0}, "size must be an integer from 1 to 4,096, got 0"),
        ({"size": 10**9}, "size must be an integer from 1 to 4,096"),
        ({"device": "abacus"}, "device must be available in PyTorch, such as cpu, got 'abacus'"),
        ({"device": "meta"}, "device must be available in PyTorch"),
        ({"mean": (0.5,)}, "mean and deviation must be three numbers"),
        ({"mean": "abc"}, "mean and deviation must be three numbers"),
        ({"deviation": (1, 0, 1)}, "deviations above 0"),
        ({"weights": "w.pt"}, "pool has no weights to replace with w.pt"),
    ],
)
def test_mistakes_in_parameters_are_one_sentence(networks, given, message):
    with pytest.raises(ParameterError, match=message) as raised:
        module_encoder(networks("pool"), **{"size": 14, **given})
    one_sentence(raised)
