"""Files that are not what their names say: each is named in one sentence, with what to do."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile

import numpy as np
import pytest

from hotshot.errors import InputError
from hotshot.files import read_features
from hotshot.files.opening import FORMATS, sniff


def npz():
    file = io.BytesIO()
    np.savez(file, X=np.eye(2), y=["a", "b"])
    return file.getvalue()


def zipped(*names):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, b"x")
    return file.getvalue()


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a21461\nsize 12345\n"
DISGUISED = [
    pytest.param(b"", "is empty", id="empty"),
    pytest.param(b"<!DOCTYPE html><html>not found</html>", "is a web page", id="html"),
    pytest.param(b'<?xml version="1.0"?><Error>AccessDenied</Error>', "is a web page", id="xml"),
    pytest.param(LFS, "Git LFS pointer.*git lfs pull", id="git lfs"),
    pytest.param(b'{"error": "Not Found"}', "JSON text.*Not Found", id="json"),
    pytest.param(gzip.compress(npz()), "gzip.*gunzip", id="gzip"),
    pytest.param(b"\x89HDF\r\n\x1a\n" + bytes(600), "not a valid HDF5 file", id="hdf5"),
    pytest.param(b"MATLAB 7.3 MAT-file, Platform: GLNXA64" + bytes(600), "MATLAB 7.3.*-v7", id="matlab 7.3"),
    pytest.param(zipped("readme.txt", "data.csv"), "zip archive of 'readme.txt'", id="zip"),
]


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".csv", ".parquet", ".safetensors", ".pt", ".mat", ".plk", ".bin"])
@pytest.mark.parametrize(("content", "message"), DISGUISED)
def test_disguises_are_named_whatever_the_suffix(tmp_path, suffix, content, message):
    path = tmp_path / f"features{suffix}"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_features(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


NOISE = {
    "zeros": bytes(4000),
    "pattern": b"\xde\xad\xbe\xef" * 100,
    "words": b"hello world\n" * 9,
    "random": np.random.default_rng(0).bytes(900),
    "bzip2": bz2.compress(npz()),
    "xz": lzma.compress(npz()),
    "PDF": b"%PDF-1.7\n",
    "PNG": b"\x89PNG\r\n\x1a\n" + bytes(20),
    "UTF-16": "label,a\n".encode("utf-16"),
}


@pytest.mark.parametrize("suffix", [s for one in FORMATS.values() for s in one.suffixes])
@pytest.mark.parametrize("content", NOISE.values(), ids=NOISE)
def test_noise_is_one_sentence_whatever_the_suffix(tmp_path, suffix, content):
    path = tmp_path / f"features{suffix}"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"features.*[.]$"):
        read_features(path)


def test_content_decides_before_the_suffix(tmp_path):
    for suffix in (".npy", ".csv", ".pt", ".mat", ".bin", ""):
        path = tmp_path / f"features{suffix}"
        path.write_bytes(npz())
        assert sniff(path) is FORMATS["npz"]
        X, y = read_features(path)
        assert X.shape == (2, 2)
        assert y.tolist() == ["a", "b"]


def test_suffixes_that_nobody_reads_are_listed(tmp_path):
    (tmp_path / "features.xyz").write_bytes(b"label,a\nb,1\n")
    with pytest.raises(InputError, match=r"unknown format.*\.safetensors.*\.plk"):
        read_features(tmp_path / "features.xyz")
