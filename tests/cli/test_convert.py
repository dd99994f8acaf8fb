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
from hotshot.cli.convert import convert
from hotshot.errors import InputError, ParameterError
from hotshot.files import Samples, open_features, read_features, write_features

X = np.random.default_rng(0).normal(size=(20, 6)).astype(np.float32)
Y = np.repeat(["wren", "kite"], 10)


@pytest.fixture
def features(tmp_path):
    path = tmp_path / "birds.npz"
    np.savez(path, X=X, y=Y)
    return path


def test_the_output_is_summarised_in_one_sentence(features, tmp_path, capsys):
    out = tmp_path / "birds.safetensors"
    convert(features, out, dtype="float16")
    said = capsys.readouterr().out
    assert re.fullmatch(
        rf"Wrote {out}: 20 samples, 2 classes, 6 features of float16, \d+ bytes from [\d.]+ kB\.\n", said
    )
    found = read_features(out)
    np.testing.assert_array_equal(found.X, X.astype(np.float16))
    assert found.y.tolist() == Y.tolist()


@pytest.mark.parametrize("suffix", [".safetensors", ".npz", ".parquet"])
def test_provenance_is_kept_in_the_header(features, tmp_path, suffix):
    first, second = tmp_path / f"first{suffix}", tmp_path / f"second{suffix}"
    convert(features, first, extractor="DINO", transform="relu")
    about = open_features(first).about
    assert about["extractor"] == "DINO"
    assert about["transform"] == "relu"
    assert about["hotshot"] == __version__
    assert abs(datetime.now(UTC) - datetime.fromisoformat(about["created"])).total_seconds() < 60
    sha256 = hashlib.sha256(features.read_bytes()).hexdigest()
    source = {"name": "birds.npz", "sha256": sha256, "format": ".npz file"}
    assert about["source"] == source
    convert(first, second, transform="none")
    about = open_features(second).about
    assert about["extractor"] == "DINO"
    assert about["transform"] == "none"
    assert about["source"]["name"] == first.name
    assert about["source"]["source"] == source


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


def test_json_is_one_document(features, tmp_path, capsys):
    out = tmp_path / "birds.parquet"
    convert(features, out, extractor="DINO", as_json=True)
    said = json.loads(capsys.readouterr().out)
    assert said.pop("about") == open_features(out).about
    assert said == {
        "out": str(out),
        "samples": 20,
        "classes": 2,
        "features": 6,
        "dtype": "float32",
        "bytes": out.stat().st_size,
    }


@pytest.mark.parametrize("suffix", [".csv", ".npy"])
def test_a_format_without_a_header_is_reported(features, tmp_path, suffix, capsys):
    convert(features, tmp_path / f"birds{suffix}", extractor="DINO")
    assert f"A {suffix} file has no header: source, extractor and transform were not written" in capsys.readouterr().out


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


def test_files_are_overwritten_only_by_force(features, tmp_path):
    out = tmp_path / "out.npz"
    out.write_bytes(b"precious")
    with pytest.raises(ParameterError, match=r"out\.npz exists: pass --force"):
        convert(features, out)
    assert out.read_bytes() == b"precious"
    convert(features, out, force=True)
    assert read_features(out).X.shape == (20, 6)
    (tmp_path / "other.labels.npy").write_bytes(b"precious")
    with pytest.raises(ParameterError, match=r"other\.labels\.npy exists"):
        convert(features, tmp_path / "other.npy")


def test_a_file_is_not_converted_to_itself(features, tmp_path):
    (tmp_path / "link.npz").hardlink_to(features)
    for out in (features, tmp_path / "link.npz"):
        with pytest.raises(ParameterError, match="is both input and output"):
            convert(features, out, force=True)
    with pytest.raises(ParameterError, match="is a folder"):
        convert(features, tmp_path, force=True)


@pytest.mark.parametrize(
    ("options", "message"), [({"dtype": "int4"}, "dtype must be one of"), ({"part": "base"}, "has no part 'base'")]
)
def test_mistakes_leave_nothing_behind(features, tmp_path, options, message):
    with pytest.raises((ParameterError, InputError), match=message):
        convert(features, tmp_path / "out.safetensors", **options)
    with pytest.raises(ParameterError, match="only reads a torch file"):
        convert(features, tmp_path / "out.pt")
    assert [path.name for path in tmp_path.iterdir()] == ["birds.npz"]


def test_a_bar_appears_on_a_terminal(features, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    convert(features, tmp_path / "out.csv")
    assert "samples" in capsys.readouterr().err


def test_no_bar_appears_without_a_terminal(features, tmp_path, capsys):
    convert(features, tmp_path / "out.csv")
    assert capsys.readouterr().err == ""


def test_a_bank_records_its_contents_and_its_source(features, tmp_path, capsys):
    out = tmp_path / "birds.bank"
    convert(features, out, extractor="DINO")
    said = capsys.readouterr().out
    assert said.startswith(f"Wrote {out}: a bank of 20 samples, 2 classes, 6 features of float32, with its samples, ")
    bank = BaseClasses.load(out)
    assert bank.names.tolist() == ["kite", "wren"]
    assert bank.about["extractor"] == "DINO"
    assert bank.about["source"]["name"] == "birds.npz"
    convert(features, out, samples=False, covariance="pooled", force=True, as_json=True)
    said = json.loads(capsys.readouterr().out)
    assert said.pop("about")["source"]["name"] == "birds.npz"
    n_bytes = sum(file.stat().st_size for file in out.iterdir())
    counts = {"samples": 20, "classes": 2, "features": 6}
    assert said == {"out": str(out), **counts, "dtype": "float32", "bytes": n_bytes}


def test_a_bank_is_converted_back(features, tmp_path):
    convert(features, tmp_path / "birds.bank")
    convert(tmp_path / "birds.bank", tmp_path / "again.npz")
    found = read_features(tmp_path / "again.npz")
    np.testing.assert_array_equal(np.sort(found.X, axis=0), np.sort(X, axis=0))
    with pytest.raises(ParameterError, match="is a bank, which has no parts"):
        convert(tmp_path / "birds.bank", tmp_path / "other.npz", part="base")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("out.bank", {"dtype": "float16"}, "--dtype is for feature files"),
        ("out.bank", {"samples": False}, "--no-samples needs --covariance"),
        ("out.npz", {"samples": False}, "are for banks"),
        ("out.npz", {"covariance": "pooled"}, "are for banks"),
        ("full.bank", {}, "exists: pass --force"),
        ("full.bank", {"force": True}, "choose another name"),
    ],
)
def test_flags_that_do_not_fit_the_output_are_refused(features, tmp_path, name, options, message):
    (tmp_path / "full.bank").mkdir()
    with pytest.raises((ParameterError, InputError), match=message):
        convert(features, tmp_path / name, **options)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["birds.npz", "full.bank"]


def test_the_command_and_its_exit_codes(hotshot, features, tmp_path):
    run = hotshot("convert", features, "birds.csv", "--dtype", "float16")
    assert run.returncode == 0, run.stderr
    assert "20 samples, 2 classes, 6 features of float16" in " ".join(run.stdout.split())
    again = hotshot("convert", features, "birds.csv")
    assert again.returncode == 2
    assert again.stderr.startswith("hotshot: birds.csv exists")
    lost = hotshot("convert", "nowhere.npz", "out.csv")
    assert lost.returncode == 2
    assert "There is no file nowhere.npz" in lost.stderr
    assert "Traceback" not in lost.stderr


@pytest.mark.parametrize("name", ["nowhere/a", "x" * 300, "birds.npz/a"])
@pytest.mark.parametrize("suffix", [".npz", ".npy", ".bank"])
def test_an_output_that_cannot_be_written_is_reported_before_the_features_are_read(features, tmp_path, name, suffix):
    if name == "nowhere/a" and suffix == ".bank":
        return  # Folders on the way to a bank are made.
    with pytest.raises(InputError, match=r"cannot be written: (No such file|File name too long|Not a directory)"):
        convert(features, tmp_path / f"{name}{suffix}")
    assert [path.name for path in tmp_path.iterdir()] == ["birds.npz"]
