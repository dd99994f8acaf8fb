"""Features that cannot come from the space of a bank are told from those of real novel classes."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pytest
from bank_file_examples import HOW

from conftest import real_data
from hotshot import BaseClasses
from hotshot.bank.embedded import load_bank
from hotshot.bank.space import feature_space

TASKS = 40


def miniimagenet():
    file = np.load(real_data("miniimagenet/features.npz"))
    parts = [(file[part].astype(np.float32) * file["scale"]) ** 2 for part in ("base", "val")]
    return [
        x for part in parts for x in (part.reshape(-1, part.shape[-1]), np.repeat(np.arange(len(part)), part.shape[1]))
    ]


def embedded(name):
    bank = load_bank(name)
    return bank.base.samples, bank.base.labels, bank.X_novel, bank.y_novel


def low_rank():
    """Made-up features after a ReLU: class centres and samples share a few directions, as those of a network do."""
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(12, 64))
    centres, y = rng.normal(size=(60, 12)), np.repeat(np.arange(60), 20)
    X = 2 + (centres[y] + 0.5 * rng.normal(size=(1200, 12))) @ directions / 4 + 0.1 * rng.normal(size=(1200, 64))
    X, base = np.maximum(X, 0), y < 40
    return X[base], y[base], X[~base], y[~base]


def rotated(X):
    return X @ np.linalg.qr(np.random.default_rng(0).normal(size=(X.shape[1],) * 2))[0]


def drawn(y, shots, seed):
    """Rows of a task of 5 classes."""
    rng = np.random.default_rng(seed)
    classes = rng.choice(np.unique(y), 5, replace=False)
    return np.concatenate([rng.choice(np.flatnonzero(y == c), shots, replace=False) for c in classes])


SETS = {
    "banking77": partial(embedded, "banking77"),
    "omniglot": partial(embedded, "omniglot"),
    "miniimagenet": miniimagenet,
    "low rank": low_rank,
}


@pytest.fixture(scope="module", params=SETS)
def classes(request):
    X, y, X_novel, y_novel = SETS[request.param]()
    return BaseClasses.from_samples(X, y), X_novel, y_novel


@pytest.mark.parametrize("shots", [1, 5])
def test_real_novel_classes_do_not_differ(classes, shots):
    base, X, y = classes
    tasks = [drawn(y, shots, seed) for seed in range(TASKS)]
    single = [[row] for row in range(0, len(X), 1 + len(X) // 1000)]
    assert not [rows for rows in tasks + single if base.feature_space.difference(X[rows])]


@pytest.mark.parametrize("shots", [1, 5])
@pytest.mark.parametrize("change", ["standardised", "unit norm", "times ten", "another extractor"])
def test_features_of_another_kind_differ(classes, shots, change):
    base, X, y = classes
    samples = base.samples
    if change == "unit norm" and np.allclose(np.linalg.norm(samples, axis=1), 1, atol=0.01):
        pytest.skip("these features have unit norm")
    changed = {
        "standardised": lambda: (X - samples.mean(axis=0)) / np.maximum(samples.std(axis=0), 1e-6),
        "unit norm": lambda: X / np.linalg.norm(X, axis=1, keepdims=True),
        "times ten": lambda: 10 * X,
        "another extractor": lambda: rotated(X),
    }[change]()
    noticed = sum(base.feature_space.difference(changed[drawn(y, shots, seed)]) is not None for seed in range(TASKS))
    # Five directions among 64 may look familiar by chance.
    assert noticed >= (0.9 * TASKS if change == "another extractor" else TASKS)


@pytest.mark.parametrize("spread", [0.1, 1.0])
@pytest.mark.parametrize("width", [8, 64])
def test_classes_that_share_no_direction_say_nothing_of_directions(width, spread):
    rng = np.random.default_rng(1)
    centres, labels = rng.normal(size=(60, width)), np.repeat(np.arange(60), 20)
    X = centres[labels] + spread * rng.normal(size=(1200, width))
    space = feature_space(X[labels < 30], labels[labels < 30])
    novel = labels[labels >= 30]
    assert not [seed for seed in range(TASKS) if space.difference(X[labels >= 30][drawn(novel, 5, seed)])]
    assert space.difference(100 * X)


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1e30, 1e150, 1e300])
def test_no_magnitude_overflows(scale):
    X, y, X_novel, _ = low_rank()
    space = feature_space(scale * X.astype(np.float64), y)
    assert space is None or space.difference(scale * X_novel) is None


@pytest.mark.parametrize("how", HOW.values(), ids=HOW)
def test_it_is_saved_with_the_bank(how, tmp_path):
    X, y, X_novel, _ = low_rank()
    bank = BaseClasses.from_samples(X, y)
    # Banks of few classes have none.
    assert BaseClasses.from_samples(X[y < 19], y[y < 19]).feature_space is None
    bank.save(tmp_path / "one.bank", **how)
    for again in (BaseClasses.load(tmp_path / "one.bank"), pickle.loads(pickle.dumps(bank))):
        assert again.feature_space.difference(X_novel) is None
        assert again.feature_space.difference(3 * X_novel) == bank.feature_space.difference(3 * X_novel) is not None
