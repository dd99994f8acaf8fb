"""A run that is killed again and again, at any moment, ends with the results of one that never was."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from conftest import make_bank
from few_shot_problems import ragged_bank
from hotshot import HOTClassifier, evaluate

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

UNITS = 20
REQUEST = {"ways": 3, "shots": [1], "queries": 3, "tasks": 200}

# Imports once, then starts a process for every line it reads: a folder and a number of jobs.
SCRIPT = f"""
import os
import signal
import sys
import time
import traceback

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from hotshot import BaseClasses, HOTClassifier, evaluate


class Slow(KNeighborsClassifier):
    def fit(self, X, y):
        time.sleep(0.002)
        return super().fit(X, y)


def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())


def run(folder, n_jobs):
    data = np.load("data.npz")
    base = BaseClasses.from_samples(data["X_base"], data["y_base"])
    methods = {{"slow": Slow(1), "means": HOTClassifier(base, cost="mean-cosine")}}
    evaluate(methods, data["X"], data["y"], **{REQUEST}, out=folder, n_jobs=int(n_jobs),
             watch=lambda record, was_known, total: was_known or say("record"))


if __name__ == "__main__":
    # A shell starts what runs in its background deaf to Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                os.setsid()
                say("started", os.getpid())
                run(*line.split())
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        say("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


class Runs:
    """Runs of the script in processes of their own, one at a time."""

    def __init__(self, folder):
        self._errors = (folder / "errors").open("w+")
        self._script = subprocess.Popen(
            [sys.executable, "script.py"],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
        self._started = []

    def start(self, folder, n_jobs):
        """Process number of a new run, which leads a group of its own."""
        self._script.stdin.write(f"{folder} {n_jobs}\n")
        self._script.stdin.flush()
        self._started.append(int(self.wait_for("started")))
        return self._started[-1]

    def wait_for(self, word):
        """What the script says after this word."""
        for line in self._script.stdout:
            said, *more = line.split()
            if said == word:
                return " ".join(more)
            if said == "ended":
                break
        self._errors.seek(0)
        return pytest.fail(f"A run ended before it said {word!r}: {self._errors.read()}")

    def end(self):
        """Exit code of the run, negative where a signal ended it."""
        return int(self.wait_for("ended"))

    def close(self):
        """End the script and all that its runs left behind."""
        self._script.stdin.close()
        self._script.wait()
        self._script.stdout.close()
        self._errors.close()
        for group in self._started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)


@pytest.fixture(scope="module")
def problem():
    """Methods without pauses, novel samples, and what a run that is never interrupted finds."""
    base = ragged_bank(width=4)
    X, y = make_bank(4, 8, 4, seed=1, spread=0.9)
    methods = {"slow": KNeighborsClassifier(1), "means": HOTClassifier(base, cost="mean-cosine")}
    return methods, X, y, evaluate(methods, X, y, **REQUEST, n_jobs=1)


@pytest.fixture(scope="module")
def runs(problem, tmp_path_factory):
    folder = tmp_path_factory.mktemp("script")
    methods, X, y, _ = problem
    base = methods["means"].base
    np.savez(folder / "data.npz", X=X, y=y, X_base=base.samples, y_base=base.labels)
    (folder / "script.py").write_text(SCRIPT)
    runs = Runs(folder)
    yield runs
    runs.close()


def records_in(folder):
    path = folder / "journal.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def assert_found(folder, expected):
    """The results that were written are those expected, but for the time they took."""
    assert records_in(folder) == UNITS
    rows = json.loads((folder / "results.json").read_text())["rows"]
    for row, other in zip(rows, expected.rows(), strict=True):
        assert row.pop("milliseconds_per_task") > 0
        other.pop("milliseconds_per_task")
        assert row == json.loads(json.dumps(other))


def test_a_run_killed_many_times_ends_with_the_same_results(runs, problem, tmp_path):
    rng = random.Random(1)
    counts = [0]
    # Runs of several processes are killed in test_same_bits.py.
    for new in (0, 2, 1, 0, 2):
        process = runs.start(tmp_path, 1)
        for _ in range(new):
            runs.wait_for("record")
        time.sleep(rng.uniform(0, 0.05))
        os.kill(process, signal.SIGKILL)
        assert runs.end() == -signal.SIGKILL
        counts.append(records_in(tmp_path))
    assert counts == sorted(counts)
    assert 0 < counts[-1] < UNITS
    runs.start(tmp_path, 1)
    assert runs.end() == 0
    assert_found(tmp_path, problem[-1])


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_run_stopped_from_the_keyboard_goes_on_where_it_was(n_jobs, runs, problem, tmp_path):
    process = runs.start(tmp_path, n_jobs)
    runs.wait_for("record")
    # A terminal sends the signal to the workers as well.
    os.killpg(process, signal.SIGINT)
    assert runs.end() == 1
    assert 0 < records_in(tmp_path) < UNITS
    runs.start(tmp_path, 1)
    assert runs.end() == 0
    assert_found(tmp_path, problem[-1])
