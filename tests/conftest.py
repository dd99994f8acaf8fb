"""Fixtures shared by all tests: array libraries, real data beside the project, small made-up banks."""

from __future__ import annotations

import gc
import json
import os
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import array_api_compat
import numpy as np
import pytest
from hypothesis import settings

from children import use_forks
from hotshot import InputClassifier, report
from hotshot.classifiers import HOTClassifier, confidence, held_out
from hotshot.cli import main
from sentences import write_problem
from worlds import SETTINGS

# The suite repeats the same examples on every machine; `make fuzz` takes new and more ones.
settings.register_profile("suite", deadline=None, max_examples=25, derandomize=True)
settings.register_profile("fuzz", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))

# Where TEST_MARGINS names a file, float comparisons that use more than a tenth of their tolerance are noted in it.
MARGINS = os.environ.get("TEST_MARGINS")
if MARGINS:
    compare = np.testing.assert_allclose

    def assert_allclose(actual, desired, rtol=1e-7, atol=0, **options):
        a, b = (np.asarray(x, dtype=float) for x in (actual, desired))
        allowed = atol + rtol * np.abs(b)
        with np.errstate(all="ignore"):
            used = np.nanmax(np.where(a == b, 0, np.abs(a - b) / allowed), initial=0)
        if used > 0.1:
            with open(MARGINS, "a") as file:
                file.write(f"{used:.2f} {os.environ.get('PYTEST_CURRENT_TEST')}\n")
        compare(actual, desired, rtol=rtol, atol=atol, **options)

    np.testing.assert_allclose = assert_allclose


def pytest_collection_finish():
    """Modules and tests stay to the end: the garbage collector need not look at them again, and forks share them."""
    gc.collect()
    gc.freeze()


DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(params=["numpy", "torch", "array_api_strict"])
def xp(request):
    """An array library; tests that take it run on every one installed."""
    module = pytest.importorskip(request.param)
    return array_api_compat.array_namespace(module.asarray([0.0]))


def real_data(name: str) -> Path:
    """A file of real data beside the project; the test is skipped, loudly, where it is absent."""
    path = DATA / name
    if not path.exists():
        pytest.skip(f"real data {name} is not beside the project (looked in {DATA})")
    return path


def make_bank(n_classes=6, per_class=20, width=8, seed=0, dtype=np.float64, spread=0.4):
    """Features (samples, V) and labels of Gaussian classes around random centres."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_classes, width))
    labels = np.repeat(np.arange(n_classes), per_class)
    X = centres[labels] + spread * rng.normal(size=(len(labels), width))
    return X.astype(dtype), labels


@pytest.fixture(scope="session")
def tables(tmp_path_factory):
    """A folder with tables of sentences of old classes and of new ones, and their encoder."""
    return write_problem(tmp_path_factory.mktemp("sentences"))


@pytest.fixture(scope="session")
def birds(tables):
    """A model fitted to these tables; tests copy or load it before they change it."""
    return InputClassifier(f"{tables}/words.py:embed", base=tables / "old.csv", **SETTINGS).fit(tables / "new.csv")


@pytest.fixture
def saved(birds, tmp_path):
    """The folder of this model, for tests that change it."""
    birds.save(tmp_path / "birds.model")
    return tmp_path / "birds.model"


@pytest.fixture
def hotshot(monkeypatch, capsys, tmp_path):
    """Run commands in an empty folder."""
    return Program(monkeypatch, capsys, tmp_path)


class Program:
    """A command as a function: returncode, stdout and stderr as of a process; said and noted are these on one line.

    The encoders of the models of tests are Python code: the command names the one that the model has.
    """

    def __init__(self, monkeypatch, capsys, folder):
        self.monkeypatch, self.capsys, self.folder = monkeypatch, capsys, folder

    def __call__(self, *arguments):
        self.monkeypatch.chdir(self.folder)
        arguments = [*arguments, *named_encoder(arguments)]
        self.monkeypatch.setattr(sys, "argv", ["hotshot", *map(str, arguments)])
        self.capsys.readouterr()
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        out, err = self.capsys.readouterr()
        said, noted = (" ".join(text.split()) for text in (out, err))
        return SimpleNamespace(returncode=code, stdout=out, stderr=err, said=said, noted=noted)

    def succeeds(self, *arguments):
        """Run a command that must succeed."""
        run = self(*arguments)
        assert run.returncode == 0, run.stderr
        return run

    def refuses(self, *arguments):
        """The error message of a command that must fail, on one line."""
        run = self(*arguments)
        assert run.returncode == 2, run.stdout
        assert "Traceback" not in run.stderr
        return run.noted


def named_encoder(arguments):
    """`--encoder` with the Python code that a model names as its encoder, if a command encodes inputs with it."""
    command, model, *rest = (*arguments, None, None)
    if command not in ("predict", "explain", "suggest", "add") or "--encoder" in rest:
        return []
    with suppress(OSError, ValueError, TypeError, LookupError):
        encoder = json.loads(Path(model, "inputs.json").read_bytes())["encoder"]
        return ["--encoder", encoder] if ".py:" in encoder else []
    return []


@pytest.fixture(autouse=True)
def forked_readers(monkeypatch):
    """Files that are read in a child are read in a fork, where there is one, unless a test asks for a real child."""
    if hasattr(os, "fork"):
        use_forks(monkeypatch)


@pytest.fixture(autouse=True, scope="session")
def few_held_out_tasks():
    """Settings, temperatures and thresholds are learned from a tenth of the held-out tasks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held_out, "TASKS", 8)
        patch.setattr(held_out, "FIRST_TASKS", 4)
        patch.setattr(confidence, "SCORED_QUERIES", 480)
        yield


@pytest.fixture
def one_setting_to_try(monkeypatch):
    """Settings of H-OT are still chosen on held-out base classes, but one is tried."""
    choices = {name: values[: 1 + (name == "mean_rule")] for name, values in HOTClassifier._choices.items()}
    monkeypatch.setattr(HOTClassifier, "_choices", choices)


@pytest.fixture
def few_explored_tasks(monkeypatch):
    """The report of a reproduction explores two tasks."""
    monkeypatch.setattr(report, "make_report", partial(report.make_report, tasks=2))


@pytest.fixture(autouse=True, scope="session")
def quick_disk():
    """No test pulls the plug: files need not reach the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield
