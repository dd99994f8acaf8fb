"""Networks in a file of the working folder, and images for encoders."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

NETWORKS = """
from __future__ import annotations

import sys
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Options:
    filters: int = 4


class Odd(nn.Module):
    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def forward(self, x):
        return self.answer(x)


class Convolution(nn.Module):
    def __init__(self, filters=Options().filters):
        super().__init__()
        self.convolution = nn.Conv2d(3, filters, 3)

    def forward(self, x):
        return self.convolution(x).relu()


def seeded():
    torch.manual_seed(0)
    return Convolution()


pool = Odd(lambda x: x.mean(dim=(2, 3)))
maps = Odd(lambda x: x)
lazy = nn.Sequential(nn.Flatten(), nn.LazyLinear(5))
dropping = nn.Sequential(nn.Flatten(), nn.Dropout(0.5))
pair = Odd(lambda x: (x, x))
tokens = Odd(lambda x: x.flatten(2))
squeezed = Odd(lambda x: x.mean(dim=(2, 3)).squeeze(0))
one_row = Odd(lambda x: x.reshape(1, -1))
large = Odd(lambda x: x[:, :, 50])
ending = Odd(lambda x: sys.exit(3))
numbers = {"a": 1}


def wide(filters, *, depth):
    return Convolution(filters)


def broken():
    raise OSError("no disk.\\nAt all.")


def nothing():
    return None
"""


@pytest.fixture(name="networks")
def networks_in_a_file(tmp_path, monkeypatch):
    """A file of networks in the working folder; a function that names one in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "their_networks.py").write_text(NETWORKS)
    yield "their_networks.py:{}".format
    for name in [name for name in sys.modules if "their_" in name]:
        del sys.modules[name]


def pixels_of(encoder, count=5):
    rng = np.random.default_rng(1)
    return rng.integers(0, 256, size=(count, encoder.size, encoder.size, 3)).astype(np.uint8)


def as_tensor(pixels):
    return torch.from_numpy(pixels).permute(0, 3, 1, 2)


def features_of(encoder, count=5):
    return encoder.encode(pixels_of(encoder, count))


def one_sentence(error):
    text = str(error.value)
    assert text.isprintable()
    assert text.endswith(".")
