"""`hotshot convert`: what it writes, what it says, what it keeps of where features came from."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from hotshot import BaseClasses, __version__
from hotshot.bank import converting
from hotshot.cli.convert import convert
from hotshot.errors import InputError, ParameterError
from hotshot.files import Samples, open_features, read_features, write_features
from sentences import contents

X = np.random.default_rng(0).normal(size=(20, 6)).astype(np.float32)
Y = np.repeat(["wren", "kite"], 10)


@pytest.fixture
def features(tmp_path):
    np.savez(tmp_path / "birds.npz", X=X, y=Y)
    return tmp_path / "birds.npz"


def test_the_output_is_summarised_in_one_sentence_and_is_not_overwritten(hotshot, features, tmp_path):
    run = hotshot.succeeds("convert", features, "birds.csv", "--dtype", "float16")
    said = run.said
    assert re.match(r"Wrote birds\.csv: 20 samples, 2 classes, 6 features of float16, [\d.]+ kB from [\d.]+ kB\.", said)
    assert "A .csv file has no header: source, extractor and transform were not written" in said
    assert run.stderr == ""
    found = read_features(tmp_path / "birds.csv")
    np.testing.assert_allclose(found.X, X.astype(np.float16), rtol=1e-3)
    assert found.y.tolist() == Y.tolist()
    again = hotshot("convert", features, "birds.csv")
    assert (again.returncode, again.stderr) == (2, "hotshot: birds.csv exists: pass --force to overwrite it.\n")
    hotshot.succeeds("convert", features, "birds.csv", "--force")


@pytest.mark.parametrize("suffix", [".safetensors", ".npz", ".parquet"])
def test_provenance_is_kept_in_the_header(features, tmp_path, suffix):
    first, second = tmp_path / f"first{suffix}", tmp_path / f"second{suffix}"
    converting.convert(features, first, about={"extractor": "DINO", "transform": "relu"})
    about = open_features(first).about
    assert [about[key] for key in ("extractor", "transform", "hotshot")] == ["DINO", "relu", __version__]
    assert abs(datetime.now(UTC) - datetime.fromisoformat(about["created"])).total_seconds() < 60
    sha256 = hashlib.sha256(features.read_bytes()).hexdigest()
    source = {"name": "birds.npz", "sha256": sha256, "format": ".npz file"}
    assert about["source"] == source
    convert(first, second, transform="none")
    about = open_features(second).about
    assert (about["extractor"], about["transform"]) == ("DINO", "none")
    assert (about["source"]["name"], about["source"]["source"]) == (first.name, source)


@pytest.mark.parametrize(
    ("suffix", "lost"),
    [
        (".safetensors", ""),
        (".parquet", ""),
        (".csv", "column thumbnail"),
        (".npz", "columns thumbnail and file"),
        (".bank", "columns id, text, thumbnail and file"),
    ],
)
def test_columns_beside_the_features_are_copied_or_reported_as_lost(tmp_path, capsys, suffix, lost):
    ids = [f"bird {i}" for i in range(20)]
    columns = {"id": ids, "text": ids[::-1], "thumbnail": [b"x"] * 20, "file": ids}
    write_features(tmp_path / "birds.safetensors", Samples(X, Y, columns))
    out = tmp_path / f"out{suffix}"
    convert(tmp_path / "birds.safetensors", out)
    said = capsys.readouterr().out
    assert (f"cannot hold the {lost}: write .safetensors to keep them." in said) == bool(lost)
    if suffix != ".bank":
        found = read_features(out)
        assert (list(found.ids), list(found.texts)) == (ids, ids[::-1])


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".bank"])
def test_json_is_one_document(features, tmp_path, capsys, suffix):
    out = tmp_path / f"birds{suffix}"
    convert(features, out, extractor="DINO", json=True)
    said = json.loads(capsys.readouterr().out)
    header = said.pop("about")
    assert header.get("extractor") == (None if suffix == ".csv" else "DINO")
    n_bytes = sum(file.stat().st_size for file in (out.iterdir() if out.is_dir() else [out]))
    counts = {"samples": 20, "classes": 2, "features": 6}
    assert said == {"out": str(out), **counts, "dtype": "float32", "bytes": n_bytes}


def test_parts_and_files_of_labels(tmp_path):
    np.savez(tmp_path / "two.npz", X_base=X, y_base=Y, X_novel=2 * X, y_novel=Y)
    convert(tmp_path / "two.npz", tmp_path / "a.safetensors", part="novel")
    convert(Path(f"{tmp_path / 'two.npz'}:novel"), tmp_path / "b.safetensors")
    for name in ("a", "b"):
        found = read_features(tmp_path / f"{name}.safetensors")
        np.testing.assert_array_equal(found.X, 2 * X)
        assert found.about["source"]["part"] == "novel"
    np.save(tmp_path / "v.npy", X)
    (tmp_path / "names.txt").write_text("\n".join(Y))
    convert(tmp_path / "v.npy", tmp_path / "c.safetensors", labels=tmp_path / "names.txt")
    about = read_features(tmp_path / "c.safetensors").about
    assert about["source"]["labels"]["name"] == "names.txt"


def test_a_bank_is_made_and_converted_back(features, tmp_path, capsys):
    out = tmp_path / "birds.bank"
    convert(features, out, extractor="DINO")
    said = capsys.readouterr().out
    assert said.startswith(f"Wrote {out}: a bank of 20 samples, 2 classes, 6 features of float32, with its samples, ")
    bank = BaseClasses.load(out)
    assert (bank.about["extractor"], bank.about["source"]["name"]) == ("DINO", "birds.npz")
    convert(out, tmp_path / "again.npz")
    found = read_features(tmp_path / "again.npz")
    np.testing.assert_array_equal(np.sort(found.X, axis=0), np.sort(X, axis=0))
    with pytest.raises(ParameterError, match="is a bank, which has no parts"):
        convert(out, tmp_path / "other.npz", part="base")
    convert(features, out, samples=False, covariance="pooled", force=True)
    assert "without samples, covariances pooled" in capsys.readouterr().out
    with pytest.raises(InputError, match="is a bank without samples"):
        convert(out, tmp_path / "other.npz")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("out.safetensors", {"dtype": "int4"}, "dtype must be one of"),
        ("out.safetensors", {"part": "base"}, "has no part 'base'"),
        ("out.pt", {}, "only reads a torch file"),
        ("out.bank", {"dtype": "float16"}, "--dtype is for feature files"),
        ("out.bank", {"samples": False}, "--no-samples needs --covariance"),
        ("out.npz", {"samples": False}, "are for banks"),
        ("out.npz", {"covariance": "pooled"}, "are for banks"),
        ("full.bank", {}, "exists: pass --force"),
        ("full.bank", {"force": True}, "choose another name"),
        ("full.npz", {"force": True}, "is a folder"),
        ("birds.npz", {"force": True}, "is both input and output"),
        ("link.npz", {"force": True}, "is both input and output"),
        ("other.npy", {}, r"other\.labels\.npy exists"),
        *((f"nowhere/a{suffix}", {}, "cannot be written: No such file") for suffix in (".npz", ".npy")),
        *(
            (f"{'x' * 300}{suffix}", {}, "cannot be written: File name too long")
            for suffix in (".npz", ".npy", ".bank")
        ),
        *((f"birds.npz/a{suffix}", {}, "cannot be written: Not a dir") for suffix in (".npz", ".npy", ".bank")),
    ],
)
def test_mistakes_leave_all_as_it_was(features, tmp_path, name, options, message):
    for folder in ("full.bank", "full.npz"):
        (tmp_path / folder).mkdir()
    (tmp_path / "link.npz").hardlink_to(features)
    (tmp_path / "other.labels.npy").write_bytes(b"precious")
    with pytest.raises(ParameterError, match="is both input and output"):
        converting.convert(features, tmp_path / "link.npz")
    before = contents(tmp_path)
    with pytest.raises((ParameterError, InputError), match=message):
        convert(features, tmp_path / name, **options)
    assert contents(tmp_path) == before
