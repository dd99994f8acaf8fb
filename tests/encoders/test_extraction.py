"""Extraction: the features of the encoder, with where they come from, also after an interruption."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest

Image = pytest.importorskip("PIL.Image", reason="extraction of images needs the extra images")

from hotshot.encoders import encoder as encoders
from hotshot.encoders import extract, read_images
from hotshot.encoders.encoder import tried_encoder
from hotshot.encoders.extraction import part_of
from hotshot.errors import InputError, ParameterError, RunError
from hotshot.files import open_features, read_features

SIDE = 16


def means(images):
    return images.mean(axis=(1, 2), dtype=np.float64)


def mean_colour(run=means, size=SIDE):
    """An encoder whose features are known: the mean of each channel."""
    return tried_encoder("means", "means", run, size, {"size": size})


def counted(run):
    """A function that notes how many inputs it has been given, and the notes."""
    seen = []

    def noting(inputs):
        seen.append(len(inputs))
        return run(inputs)

    return noting, seen


def lengths(texts):
    return np.array([[len(text), text.count("a"), 1.0] for text in texts])


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch):
    for kind in ("texts", "images"):
        monkeypatch.setitem(encoders.AT_ONCE, kind, 7)


@pytest.fixture
def pictures(tmp_path):
    """Thirty images of three classes."""
    rng = np.random.default_rng(0)
    for i in range(30):
        path = tmp_path / "pictures" / ("ant", "bee", "cat")[i // 10] / f"{i:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, size=(SIDE, SIDE, 3)).astype(np.uint8)).save(path)
    return tmp_path / "pictures"


def paths(pictures):
    return sorted(pictures.rglob("*.png"))


def expected(pictures):
    return means(read_images(paths(pictures), SIDE))


class StopError(Exception):
    pass


def interrupted(inputs, out, encoder, at=7):
    """Extraction that stops after so many inputs: the unfinished file."""

    def watch(name, done, total):
        if done == at:
            raise StopError

    with pytest.raises(StopError):
        extract(inputs, encoder, out, watch=watch)
    return part_of(out / "all.safetensors")


def test_features_labels_and_provenance_are_written(pictures, tmp_path):
    seen = []
    (done,) = extract(pictures, mean_colour(), tmp_path / "out", watch=lambda *now: seen.append(now))
    assert (done.path, done.n_inputs, done.n_classes, done.corrupt) == (tmp_path / "out" / "all.safetensors", 30, 3, ())
    assert done.seconds > 0
    assert seen == [("all", n, 30) for n in (7, 14, 21, 28, 30)]
    features = read_features(done.path)
    np.testing.assert_allclose(features.X, expected(pictures), rtol=1e-5)
    assert features.y.tolist() == ["ant"] * 10 + ["bee"] * 10 + ["cat"] * 10
    assert features.about["extractor"] == "means"
    assert features.about["source"]["name"] == "pictures"
    assert features.about["network"]["probe"] == list(mean_colour().probe)
    assert list(features.ids) == [path.relative_to(pictures).as_posix() for path in paths(pictures)]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [".lock", "all.safetensors"]


@pytest.mark.parametrize(("side", "shown"), [(16, 16), (100, 64)])
def test_a_thumbnail_of_each_image_is_kept(pictures, tmp_path, side, shown):
    Image.new("RGB", (side, side), (255, 0, 0)).save(paths(pictures)[4])
    (done,) = extract(pictures, mean_colour(size=side), tmp_path / "out")
    thumbnails = open_features(done.path).columns["thumbnail"]
    images = [np.asarray(Image.open(BytesIO(data))) for data in thumbnails]
    assert {image.shape for image in images} == {(shown, shown, 3)}
    np.testing.assert_allclose(images[4].mean(axis=(0, 1)), (255, 0, 0), atol=12)
    assert len(thumbnails[4]) < 1000


def test_each_split_has_its_file(pictures, tmp_path):
    for name, split in (("ant", "train"), ("bee", "train"), ("cat", "test")):
        (pictures / split).mkdir(exist_ok=True)
        (pictures / name).rename(pictures / split / name)
    done = extract(pictures, mean_colour(), tmp_path / "out")
    assert [(one.path.stem, one.n_inputs, one.n_classes) for one in done] == [("base", 20, 2), ("novel", 10, 1)]


@pytest.mark.parametrize("kind", ["images", "texts"])
@pytest.mark.parametrize("stop", [7, 14, 28])
def test_an_interrupted_extraction_resumes_and_computes_nothing_twice(pictures, tmp_path, kind, stop):
    run, seen = counted(means if kind == "images" else lengths)
    encoder = mean_colour(run) if kind == "images" else tried_encoder("lengths", "lengths", run)
    inputs = pictures if kind == "images" else ["a" * i for i in range(30)]
    seen.clear()
    interrupted(inputs, tmp_path / "out", encoder, at=stop)
    assert sum(seen) == stop
    (done,) = extract(inputs, encoder, tmp_path / "out")
    assert sum(seen) == 30
    features = read_features(done.path, labelled=False)
    rows = expected(pictures) if kind == "images" else lengths(inputs)
    np.testing.assert_allclose(features.X, rows, rtol=1e-5)
    assert kind == "texts" or len(features.columns["thumbnail"]) == 30


@pytest.mark.parametrize("cut", [5, 12, 780, 7 * 780, 9 * 780 + 1])
def test_rows_that_were_cut_are_computed_again_in_the_batches_they_had(pictures, tmp_path, cut):
    # Of real networks only the last bits of a row depend on the others of its batch.
    encoder = replace(mean_colour(), run=lambda images: means(images) - means(images).mean(axis=0))
    part = interrupted(pictures, tmp_path / "cut", encoder, at=14)
    part.write_bytes(part.read_bytes()[:-cut])
    (resumed,) = extract(pictures, encoder, tmp_path / "cut")
    (whole,) = extract(pictures, encoder, tmp_path / "whole")
    np.testing.assert_array_equal(read_features(resumed.path).X, read_features(whole.path).X)


@pytest.mark.parametrize("change", ["network", "name", "image", "header", "bytes"])
def test_another_extraction_does_not_go_on_with_what_was_begun(pictures, tmp_path, change):
    part = interrupted(pictures, tmp_path / "out", mean_colour())
    encoder = mean_colour((lambda images: 2 * means(images)) if change == "network" else means)
    if change == "name":
        encoder = replace(encoder, about={**encoder.about, "extractor": "other"})
    if change == "image":
        paths(pictures)[0].write_bytes(paths(pictures)[1].read_bytes())
    if change == "header":
        part.write_bytes(part.read_bytes().replace(b'"count": 30', b'"count": 31'))
    if change == "bytes":
        part.write_bytes(b"\xff" * 360)
    (done,) = extract(pictures, encoder, tmp_path / "out")
    np.testing.assert_allclose(read_features(done.path).X, encoder.run(read_images(paths(pictures), SIDE)), rtol=1e-5)


def test_corrupt_images_are_all_named_and_the_others_stay_extracted(pictures, tmp_path):
    run, seen = counted(means)
    encoder, rows = mean_colour(run), expected(pictures)
    for i in (3, 29):
        paths(pictures)[i].write_bytes(b"<html>")
    message = r"has 2 corrupt images, ant/03.png \(its format .*\), cat/29.png .*skip-corrupt\); the others stay extra"
    with pytest.raises(InputError, match=message):
        extract(pictures, encoder, tmp_path / "out")
    seen.clear()
    (done,) = extract(pictures, encoder, tmp_path / "out", skip_corrupt=True)
    assert sum(seen) == 6 + 1  # The rest of the two batches with corrupt images.
    assert (done.n_inputs, done.corrupt) == (28, ("ant/03.png", "cat/29.png"))
    features = read_features(done.path)
    np.testing.assert_allclose(features.X, np.delete(rows, [3, 29], axis=0), rtol=1e-5)
    assert len(features.ids) == len(open_features(done.path).columns["thumbnail"]) == 28


def test_one_extraction_at_a_time_writes_to_a_folder(pictures, tmp_path):
    def second(name, done, total):
        with pytest.raises(RunError, match="Another process is writing to the folder"):
            extract(pictures, mean_colour(), tmp_path / "out")

    (done,) = extract(pictures, mean_colour(), tmp_path / "out", watch=second)
    np.testing.assert_allclose(read_features(done.path).X, expected(pictures), rtol=1e-5)


def test_a_full_disk_is_one_sentence_and_what_was_done_is_kept(pictures, tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("hotshot.images.records.os.fsync", full)
        with pytest.raises(InputError, match="part cannot be written: No space left on device: free disk space and re"):
            extract(pictures, mean_colour(), tmp_path / "out")
    assert extract(pictures, mean_colour(), tmp_path / "out")[0].n_inputs == 30


def test_complete_features_stay_and_those_of_others_are_refused(pictures, tmp_path):
    (first,) = extract(pictures, mean_colour(), tmp_path / "out")
    before = first.path.read_bytes()
    part_of(first.path).write_bytes(b"left by a process that was killed")
    (again,) = extract(pictures, mean_colour(), tmp_path / "out")
    assert (again.n_inputs, again.n_classes, again.seconds) == (30, 3, None)
    assert first.path.read_bytes() == before
    assert not part_of(first.path).exists()
    # The last bits of features are those of the processor.
    assert extract(pictures, mean_colour(lambda x: 1.00001 * means(x)), tmp_path / "out")[0].seconds is None
    other = mean_colour(lambda images: 2 * means(images))
    with pytest.raises(ParameterError, match="exists, from other images or another encoder: pass --force to overwrite"):
        extract(pictures, other, tmp_path / "out")
    (forced,) = extract(pictures, other, tmp_path / "out", force=True)
    np.testing.assert_allclose(read_features(forced.path).X, 2 * expected(pictures), rtol=1e-5)


# --- texts


def test_texts_keep_their_order_labels_and_ids(tmp_path):
    texts, labels = ['so, a "quote"', "über", "aaa"] * 5, ["x", "y", "x"] * 5
    encoder = tried_encoder("lengths", "lengths", lengths)
    (done,) = extract(texts, encoder, tmp_path, labels=labels, name="mails.csv")
    assert (done.path.name, done.n_inputs, done.n_classes) == ("mails.safetensors", 15, 2)
    features = read_features(done.path)
    np.testing.assert_array_equal(features.X, lengths(texts))
    assert features.y.tolist() == labels
    assert (list(features.texts), list(features.ids)) == (texts, [str(i) for i in range(15)])
    (done,) = extract(["a", "b"], encoder, tmp_path, ids=["mail 7", "mail 9"], name="other")
    features = read_features(done.path, labelled=False)
    assert features.y is None
    assert list(features.ids) == ["mail 7", "mail 9"]
    with pytest.raises(ParameterError, match="exists, from other texts or another encoder"):
        extract(texts, encoder, tmp_path, labels=labels[1:] + labels[:1], name="mails.csv")


def test_an_encoder_needs_inputs_of_its_kind(tmp_path):
    for inputs in ("questions.csv", []):
        with pytest.raises(ParameterError, match="lengths needs a list of texts that is not empty"):
            extract(inputs, tried_encoder("lengths", "lengths", lengths), tmp_path)
    with pytest.raises(ParameterError, match="means needs a folder or archive of images, got list"):
        extract(["a.png"], mean_colour(), tmp_path)
