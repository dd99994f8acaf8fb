"""Whatever is read from a path: a pipe, a device, a folder or a name too long is one sentence, and nothing waits."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from bounded import within
from hotshot.bank import BaseClasses, is_bank
from hotshot.classifiers.hot import HOTClassifier, load_parameters
from hotshot.errors import HotshotError, InputError
from hotshot.evaluation.journal import Journal
from hotshot.evaluation.stored import load_run
from hotshot.files import read_features
from hotshot.inputs.inputs import open_inputs
from hotshot.paper.findings import load_findings
from hotshot.report.explorer import Options
from hotshot.report.reproduction import reproduction_part

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")


@pytest.fixture(autouse=True)
def no_waiting():
    """No reader waits for the other end of a pipe."""
    with within(60):
        yield


def weights(path):
    pytest.importorskip("torch")
    from hotshot.backbones import create
    from hotshot.backbones.checkpoints import load_weights

    load_weights(create("conv4", filters=2), path)


def network(path):
    pytest.importorskip("torch")
    pytest.importorskip("onnxruntime")
    from hotshot.encoders.own import onnx_encoder

    onnx_encoder(path, None, "cpu")


def dataset(path):
    pytest.importorskip("PIL")
    from hotshot.images.layouts import open_dataset

    open_dataset(path)


READERS = {
    "features.npz": read_features,
    "features.npz:part": read_features,
    "parameters.json": load_parameters,
    "weights.pt": weights,
    "weights.safetensors": weights,
    "images.tar": dataset,
    "network.onnx": network,
    "texts.csv": lambda path: open_inputs(path, "texts"),
    "images.txt": lambda path: next(open_inputs(path, "images").batches(1)),
}


def assert_one_sentence(read, path):
    with pytest.raises(HotshotError) as caught:
        read(path)
    text = str(caught.value)
    assert text.isprintable()
    assert text.endswith(".")


@pytest.mark.parametrize("name", READERS)
def test_a_path_that_is_not_a_file_is_one_sentence(tmp_path, name):
    read = READERS[name]
    file = name.removesuffix(":part")
    os.mkfifo(tmp_path / file)
    os.symlink("loop", tmp_path / "loop")
    (tmp_path / "folder").mkdir()
    for path in (
        tmp_path / name, tmp_path / f"folder/{name}", "/dev/zero", f"{tmp_path}/{5000 * 'a'}.{name}",
        tmp_path / "loop", tmp_path / "loop" / name, f"{tmp_path}/\0{name}", tmp_path / "folder",
    ):  # fmt: skip
        assert_one_sentence(read, path)


FOLDERS = {
    "run.json": load_run,
    "journal.jsonl": load_run,
    "findings.json": load_findings,
    "bank.json": BaseClasses.load,
    "model.json": HOTClassifier.load,
}


@pytest.mark.parametrize("name", FOLDERS)
def test_a_pipe_inside_a_folder_is_one_sentence(tmp_path, name):
    for other in ("run.json", "journal.jsonl"):
        (tmp_path / other).write_text("{}")
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    assert_one_sentence(FOLDERS[name], tmp_path)
    assert_one_sentence(FOLDERS[name], Path(tmp_path, 5000 * "a"))
    assert not is_bank(f"{tmp_path}/{5000 * 'a'}")


@pytest.mark.parametrize("read", [read_features, *FOLDERS.values()])
def test_a_link_to_itself_is_one_sentence(tmp_path, read):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert_one_sentence(read, tmp_path / "loop")


def test_a_journal_that_is_a_pipe_is_one_sentence(tmp_path):
    os.mkfifo(tmp_path / "journal.jsonl")

    def resume(folder):
        with Journal(folder, {"a": 1}, {}):
            pass

    assert_one_sentence(resume, tmp_path)


def test_a_figure_that_is_a_pipe_is_one_sentence(tmp_path):
    folder = tmp_path / "plan"
    folder.mkdir()
    (folder / "findings.json").write_text(json.dumps({"experiment": "plan", "tables": [], "figures": ["a"]}))
    os.mkfifo(folder / "a.svg")
    assert_one_sentence(lambda path: reproduction_part(path, "part-1", Options(tasks=0)), tmp_path)


def test_labels_that_are_a_pipe_are_one_sentence(tmp_path):
    np.save(tmp_path / "a.npy", np.eye(3))
    os.mkfifo(tmp_path / "a.labels.npy")
    assert_one_sentence(read_features, tmp_path / "a.npy")


@pytest.mark.parametrize("name", ["\x1b[31mred\x07", "a\nb", "\x9b2J"])
def test_control_characters_in_names_from_files_are_escaped(name):
    """Whatever sentence a name stands in, an escape code in it is shown and not obeyed."""
    assert str(InputError(f"Class '{name}' has no samples.")).isprintable()
    assert str(InputError("Plain ‘words’ — and ± numbers.")) == "Plain ‘words’ — and ± numbers."
