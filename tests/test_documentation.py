"""README and guides: every code block runs, in a folder that holds small files of the names it mentions.

Cells of tutorials are run by `make docs`. Here `python` blocks of a page share one namespace, and of `console` blocks
every line that begins with `$ ` is run.
"""

from __future__ import annotations

import pickle
import re
import shlex
from functools import cache
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import onnx
import pytest
from PIL import Image

from conftest import make_bank
from hotshot import BaseClasses, HOTClassifier
from hotshot.classifiers import confidence, held_out
from hotshot.encoders import libraries
from hotshot.evaluation import runner
from hotshot.files import write_features
from sentences import ENCODER, sentences, write_table

ROOT = Path(__file__).parents[1]
PAGES = [
    "README.md",
    "docs/architecture.md",
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "guides").glob("*.md")),
]
# Added to a command so that it ends in a moment.
SMALLER = {
    "evaluate": ["--tasks", "2", "--jobs", "1", "--queries", "2"],
    "tune": ["--tasks", "2", "--jobs", "1", "--queries", "2"],
    "reproduce": ["--tasks", "3", "--jobs", "1"],
    "report": ["--tasks", "1"],
    "train": ["--epochs", "1", "--filters", "2", "--size", "28", "--batch-size", "32"],
}
# Languages of blocks that are no code of hotshot's, or that other tests run.
OTHER = {"text", "json", "javascript"}
BLOCK = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```$", re.M | re.S)
METHODS = """
from sklearn.neighbors import KNeighborsClassifier

def Mine():
    return KNeighborsClassifier(1)
"""
MODELS = f"""{ENCODER}
import torch

def make_backbone():
    return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, stride=8), torch.nn.ReLU())
"""


def blocks(page: str) -> list[tuple[str, str]]:
    """Language and text of every fenced block that the build of the site does not run."""
    return [(language, text) for language, text in BLOCK.findall((ROOT / page).read_text()) if language[:1] != "{"]


def write_images(folder: Path, classes: int, samples: int, seed: int) -> None:
    """Class folders of small random images."""
    rng = np.random.default_rng(seed)
    for c in range(classes):
        place = folder / f"class {seed}-{c}"
        place.mkdir(parents=True)
        for i in range(samples):
            Image.fromarray(rng.integers(0, 256, (28, 28, 3), dtype=np.uint8)).save(place / f"{i}.png")


def write_network(path: Path) -> None:
    """An ONNX file that gives the mean colour of an image."""
    floats = onnx.TensorProto.FLOAT
    nodes = [
        onnx.helper.make_node("GlobalAveragePool", ["images"], ["means"]),
        onnx.helper.make_node("Flatten", ["means"], ["features"]),
    ]
    inputs = [onnx.helper.make_tensor_value_info("images", floats, ["batch", 3, 32, 32])]
    outputs = [onnx.helper.make_tensor_value_info("features", floats, ["batch", 3])]
    graph = onnx.helper.make_graph(nodes, "colour", inputs, outputs)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=9)
    onnx.save(model, path)


@pytest.fixture
def quick_choices(one_setting_to_try, few_explored_tasks, monkeypatch):
    """Settings are still chosen on held-out base classes, but on a few tasks."""
    monkeypatch.setattr(held_out, "TASKS", 2)
    monkeypatch.setattr(held_out, "FIRST_TASKS", 1)
    monkeypatch.setattr(confidence, "SCORED_QUERIES", 120)


@pytest.fixture(scope="module")
def one_encoder():
    """MiniLM is loaded once for all pages, and encodes the texts of a file once."""
    load = libraries.load_minilm

    @cache
    def load_once(device):
        model = load(device)
        encode = cache(lambda lines: model([*lines]))
        return lambda lines: encode(tuple(lines)).copy()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(libraries, "load_minilm", load_once)
        yield


@pytest.fixture
def world(page, tmp_path, monkeypatch, quick_choices, one_encoder):
    """A working folder with the files that pages mention, and the arrays that their code uses."""
    # As many base classes as settings are chosen on.
    X, labels = make_bank(36, 30, 12, dtype=np.float32)
    y = np.array([f"class {label}" for label in labels])
    parts = {"base": labels < 20, "novel": (labels >= 20) & (labels < 30), "val": labels >= 30}
    found = {name: (np.abs(X[rows]), y[rows]) for name, rows in parts.items()}
    for name, (part, own) in found.items():
        for suffix in ("npz", "safetensors"):
            write_features(tmp_path / f"{name}.{suffix}", (part, own))
    (X_base, y_base), (X_novel, y_novel) = found["base"], found["novel"]
    few = np.concatenate([np.flatnonzero(y_novel == name)[:2] for name in np.unique(y_novel)[:5]])
    for suffix in ("npz", "parquet"):
        write_features(tmp_path / f"birds.{suffix}", found["base"])
    by_class = {str(name): X_base[y_base == name] for name in np.unique(y_base)}
    np.savetxt(tmp_path / "unlabelled.csv", X_novel[:9], delimiter=",", header=",".join("abcdefghijkl"), comments="")
    (tmp_path / "birds.plk").write_bytes(pickle.dumps(by_class))
    np.savez(tmp_path / "both.npz", X_novel=X_novel, y_novel=y_novel, X_base=X_base, y_base=y_base)

    old, new = [f"old{i}" for i in range(20)], ["card_swallowed", "lost_card", "new_card"]
    write_table(tmp_path / "old.csv", [(text, name) for name in old for text in sentences(name, 10)])
    write_table(tmp_path / "new.csv", [(text, name) for name in new for text in sentences(name, 3)])
    write_table(tmp_path / "more.csv", [(text, "another") for text in sentences("another", 3)])
    write_table(tmp_path / "inbox.csv", [(text,) for name in new for text in sentences(name, 2, 1)], ["text"])
    write_table(tmp_path / "questions.csv", [(text, name) for name in old for text in sentences(name, 3)])

    for folder in ("path/to/dataset", "miniimagenet"):
        for seed, (split, classes) in enumerate({"train": 8, "val": 5, "test": 5}.items()):
            write_images(tmp_path / folder / split, classes, 7, seed)
    for name in ("a.jpg", "b.png"):
        Image.new("RGB", (20, 20), "red").save(tmp_path / name)
    (tmp_path / "my_methods.py").write_text(METHODS)
    (tmp_path / "my_models.py").write_text(MODELS)
    (tmp_path / "my_package").mkdir()
    (tmp_path / "my_package" / "methods.py").write_text(METHODS)
    base = BaseClasses.from_samples(X_base, y_base)
    X_support, y_support = X_novel[few], y_novel[few]
    if page.endswith("images.md"):
        write_network(tmp_path / "backbone.onnx")
    if page.endswith("export.md"):
        HOTClassifier(base).fit(X_support, y_support).save(tmp_path / "intents.model")

    # Other processes would only be slower here.
    monkeypatch.setattr(runner.joblib, "effective_n_jobs", lambda n_jobs: 1)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield {
        "base": base, "X_base": X_base, "y_base": y_base, "X_novel": X_novel, "y_novel": y_novel,
        "X_support": X_support, "y_support": y_support, "X_query": X_novel[:4], "X": X_novel[:4], "y": y_novel[:4],
        "X_more": X_novel[-4:], "y_more": ["a class"] * 4, "ids": [*map(str, labels[parts["base"]])],
        "texts": [*y_base], "some_batches": [found["base"]], "other_batches": [found["novel"]],
    }  # fmt: skip
    plt.close("all")


# MiniLM finds sentences of made-up words unlike each other.
@pytest.mark.filterwarnings("ignore::hotshot.errors.FeatureSpaceWarning")
@pytest.mark.parametrize("page", PAGES)
def test_code_blocks_run(page, world, hotshot):
    for language, text in blocks(page):
        assert language in {"python", "console", *OTHER}, f"{page}: a block says {language!r} as its language."
        if language == "python":
            exec(compile(text.replace("tasks=10_000", "tasks=2").replace("tasks=500", "tasks=2"), page, "exec"), world)
        elif language == "console":
            for line in re.findall(r"^\$ (.*)$", text, re.M):
                run_line(page, line, hotshot)


def run_line(page: str, line: str, hotshot) -> None:
    """Run one command of a page; those of make and pip are what runs this test."""
    program, *arguments = shlex.split(line, comments=True)
    if program in ("make", "pip", "python"):
        return
    assert program == "hotshot", f"{page}: {line}"
    # All fourteen experiments, and tuning with --val, have tests of their own.
    arguments = ["histogram" if argument == "--all" else argument for argument in arguments]
    if arguments[0] == "reproduce" and "--val" in arguments:
        at = arguments.index("--val")
        del arguments[at : at + 2]
    done = hotshot(*arguments, *SMALLER.get(arguments[0], []))
    assert done.returncode == 0, f"{page}: {line}\n{done.stdout}{done.stderr}"


def test_no_code_hides_in_indentation():
    for page in PAGES:
        text = BLOCK.sub("", (ROOT / page).read_text())
        hidden = re.findall(r"^ {4,}(?:\$ |hotshot |from |import |pip )\S.*$", text, re.M)
        assert not hidden, f"{page}: put these into a fenced block: {hidden}"
