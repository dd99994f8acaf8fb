"""What holds for every encoder, shown on plain functions: checked features, a probe, a name that loads it again."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from hotshot.encoders import encoder_kind, load_encoder
from hotshot.errors import HotshotError, InputError, ParameterError

FUNCTIONS = """
import numpy as np

rng = np.random.default_rng(0)
weights = rng.normal(size=(256, 40))


def letters(texts, scale=1.0):
    counts = [np.bincount(np.frombuffer(text.encode() or b" ", np.uint8), minlength=256) for text in texts]
    return scale * np.array(counts) @ weights


def others(texts):
    return letters(texts) + 0.05 * letters(texts)[:, ::-1]


def rounded(texts):
    return letters(texts).astype(np.float16)


def unit(texts):
    rows = letters(texts)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def squeezed(texts):
    return letters(texts).squeeze()


def raising(texts):
    raise RuntimeError("no.\\n\\x1b[31m")


def nan_on_long(texts):
    return [[float("nan") if len(text) > 99 else 1.0] for text in texts]


def growing(texts):
    return np.ones((len(texts), max(map(len, texts))))


def words(texts):
    return texts


def nothing(texts):
    return np.ones((len(texts), 0))


def means(images):
    return images.mean(axis=(1, 2))


def small(images):
    return images.reshape(len(images), -1)[:, :7].astype(np.uint8)


small.size, small.kind = 12, "images"
for function in (letters, others, rounded, unit, squeezed, raising, nan_on_long, growing, words, nothing):
    function.kind = "texts"


def strange(x):
    return x


strange.kind = "sounds"
"""


@pytest.fixture
def functions(tmp_path, monkeypatch):
    """Functions in a file of the working folder; the encoder of one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "their_functions.py").write_text(FUNCTIONS)
    yield lambda name, **options: load_encoder(f"their_functions.py:{name}", **options)
    sys.modules.pop("their_functions", None)


def test_features_of_texts_are_float32_in_their_order_however_many_there_are(functions):
    encoder = functions("letters")
    assert (encoder.kind, encoder.size) == ("texts", None)
    texts = [chr(97 + i % 26) * (i % 7) for i in range(600)]
    X = encoder.encode(texts)
    assert (X.shape, X.dtype) == ((600, 40), np.float32)
    np.testing.assert_allclose(X[[3, 400]], encoder.encode([texts[3], texts[400]]), rtol=1e-5)
    assert encoder.encode([]).shape == (0, 40)
    assert encoder.encode(iter(["a"])).shape == (1, 40)


def test_features_of_images_are_those_of_the_function(functions):
    pytest.importorskip("torch", reason="encoders of images need the extra images")
    encoder = functions("means", size=16)
    pixels = np.random.default_rng(0).integers(0, 256, size=(300, 16, 16, 3)).astype(np.uint8)
    pixels.flags.writeable = False
    np.testing.assert_allclose(encoder.encode(pixels), pixels.mean(axis=(1, 2)), rtol=1e-5)
    assert encoder.encode(pixels[:0]).shape == (0, 3)
    assert functions("means").size == 84
    assert functions("small").size == 12
    assert functions("small").name.endswith("their_functions.py:small#12")


def test_the_header_of_an_encoder_equals_that_of_extract(functions):
    about = functions("unit").about
    assert (about["extractor"], about["transform"]) == ("their_functions.py:unit", "unit norm")
    assert functions("letters").about["transform"] == "none"
    assert about["network"]["probe"] == list(functions("unit").probe)


def test_a_probe_differs_between_encoders_and_weights_but_not_by_rounding(functions):
    own = functions("letters")
    assert own.same_as(own.probe)
    assert own.same_as(list(np.array(own.probe) * (1 + 1e-4)))
    assert own.same_as(functions("rounded").probe)
    for other in ("others", "unit", "growing"):
        assert not own.same_as(functions(other).probe)
    for probe in ((), None, "probe", own.probe[:-1], [float("nan")] * 16, [[1]], {}):
        assert not own.same_as(probe)


@pytest.mark.parametrize(
    ("name", "batch", "message"),
    [
        ("letters", "one text", "encodes a list of texts, got 'one text': pass a list of str"),
        ("letters", ["a", 3], "encodes a list of texts, got 3"),
        ("letters", [b"a"], "got b'a'"),
        ("letters", 7, "encodes a list of texts, got 7"),
        ("nan_on_long", ["a" * 200], "returned NaN or infinity: check its weights and the texts"),
        ("growing", ["a" * 200], r"must return features \(1, 44\) of 1 texts, got float64 \(1, 200\)"),
        ("means", np.zeros((2, 16, 16, 3)), r"encodes images \(n, 84, 84, 3\) of uint8, got float64 \(2, 16, 16, 3\)"),
        ("means", np.zeros((84, 84, 3), np.uint8), r"got uint8 \(84, 84, 3\): decode them with read_images"),
        ("means", ["a.png"], "encodes images"),
    ],
)
def test_inputs_that_cannot_be_encoded_are_one_sentence(functions, name, batch, message):
    if name == "means":
        pytest.importorskip("torch", reason="encoders of images need the extra images")
    encoder = functions(name)
    with pytest.raises(InputError, match=message) as raised:
        encoder.encode(batch)
    assert str(raised.value).isprintable()


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("squeezed", InputError, r"must return features \(1, 40\) of 1 texts|got float64 \(40,\)"),
        ("raising", InputError, r"fails on texts \(RuntimeError: no. .*\): fix it"),
        ("words", InputError, r"must return features .* got <U"),
        ("nothing", InputError, r"got float64 \(2, 0\)"),
        ("strange", ParameterError, "kind must be 'texts' or 'images', got 'sounds'"),
        ("nowhere", ParameterError, "their_functions.py has no 'nowhere'"),
        ("letters#20", ParameterError, "is a function that takes no size"),
        ("letters@w.pt", ParameterError, "is a function that takes no weights"),
    ],
)
def test_functions_that_are_not_encoders_are_refused_when_loaded(functions, name, error, message):
    with pytest.raises(error, match=message) as raised:
        functions(name)
    assert str(raised.value).isprintable()


@pytest.mark.parametrize("name", ["their_functions.py:letters", "their_functions:letters"])
def test_the_name_of_an_encoder_loads_it_again_from_another_folder(functions, tmp_path, monkeypatch, name):
    encoder = load_encoder(name)
    assert encoder_kind(name) == encoder.kind
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    sys.modules.pop("their_functions", None)
    again = load_encoder(encoder.name)
    assert again.name == encoder.name
    assert again.same_as(encoder.probe)
    assert encoder_kind(encoder.name) == encoder.kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("minilm", "texts"), ("st:anything", "texts"), ("hf:anything", "texts"), ("efficientnet-lite0", "images"),
        ("timm:resnet50", "images"), ("openclip:ViT-B-32@openai", "images"), ("a/net.onnx", "images"),
        ("runs/best", "images"), ("conv4@w.pt#20", "images"),
    ],
)  # fmt: skip
def test_the_kind_of_an_encoder_is_known_without_loading_it(name, kind):
    assert encoder_kind(name) == kind


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("minlm", "encoder must be one of minilm, .*, got 'minlm'. Did you mean 'minilm'?"),
        ("efficientnet_lite0", "Did you mean 'efficientnet-lite0'?"),
        ("tim:resnet50", "There is no module tim: .* Did you mean 'timm:'?"),
        ("open_clip:ViT-B-32", "Did you mean 'openclip:'?"),
        ("", "encoder must be a name such as minilm, got ''"),
        (None, "encoder must be a name such as minilm, got None"),
        ("runs/\0", "encoder must be a name"),
        ("\ud800.onnx", "encoder must be a name"),
        ("a" * 5000 + ".py:f", "There is no file"),
        ("\x1b[31m", "encoder must be"),
        ("a" * 5000, "encoder must be"),
        ("zebra", r"package.module:name, got 'zebra'\.$"),
    ],
)
def test_unknown_names_are_one_sentence_with_the_nearest_known_one(name, message):
    for function in (load_encoder, encoder_kind):
        with pytest.raises(HotshotError, match=message) as raised:
            function(name)
        assert str(raised.value).isprintable()


def test_the_room_imports_no_library_until_an_encoder_is_loaded():
    heavy = {"torch", "transformers", "PIL", "sentence_transformers", "timm", "onnxruntime"}
    code = f"import sys, hotshot.encoders; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_threads_of_pytorch_sleep_while_they_wait_in_python_as_in_the_shell():
    look = "import os, sys, hotshot.encoders; print(os.environ['OMP_WAIT_POLICY'], 'torch' in sys.modules)"
    environment = {name: x for name, x in os.environ.items() if name != "OMP_WAIT_POLICY"}
    told = subprocess.run([sys.executable, "-c", look], env=environment, capture_output=True, text=True, check=True)
    assert told.stdout == "passive False\n"
