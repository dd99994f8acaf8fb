"""Drawn characters: the same for the same seed, scripts apart, each character recognisable."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("PIL", reason="images need Pillow")

from hotshot.images.datasets.glyphs import SCRIPTS, make_glyphs

SMALL = {"size": 20, "per_class": 6, "most_classes": 8}


def test_splits_hold_the_characters_of_their_own_scripts():
    splits = make_glyphs(**SMALL)
    assert set(splits) == {"base", "val", "novel"}
    for name, split in splits.items():
        assert split.images.shape == (48, 20, 20, 3)
        assert split.images.dtype == np.uint8
        assert np.bincount(split.labels).tolist() == [6] * 8
        assert list(split.names) == sorted(set(split.names))
        assert {character.split("/")[0] for character in split.names} <= set(SCRIPTS[name])


def test_the_same_seed_draws_the_same_images():
    first, again, other = (make_glyphs(**SMALL, seed=seed)["val"].images for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_no_two_characters_look_alike():
    split = make_glyphs(size=24, per_class=1, seed=0)
    names = [name for part in split.values() for name in part.names]
    assert len(names) == len(set(names)) > 600
    assert "Greek/Greek Capital Letter Alpha" not in names
    assert "Greek/Greek Capital Letter Sigma" in names


def test_drawings_of_a_character_are_nearer_to_each_other_than_to_others():
    split = make_glyphs(size=24, per_class=10, most_classes=10)["novel"]
    ink = 255.0 - split.images[..., 0].reshape(100, -1)
    ink = ink - ink.min(axis=1, keepdims=True)
    means = np.stack([ink[split.labels == c].mean(axis=0) for c in range(10)])
    cosine = (ink @ means.T) / np.linalg.norm(ink, axis=1)[:, None] / np.linalg.norm(means, axis=1)
    assert (cosine.argmax(axis=1) == split.labels).mean() > 0.6
