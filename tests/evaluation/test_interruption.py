"""The same bits for any number of workers and threads, on one core, after kills, after Ctrl-C, and on resume.

A worker ends with its parent.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hotshot import BaseClasses, FreeLunchClassifier, HOTClassifier, evaluate
from hotshot.evaluation.journal import read_records

SCRIPT = """
import os, signal, sys, time
folder, core, jobs, seconds = sys.argv[1], *map(float, sys.argv[2:])
if core:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
# A shell starts what runs in its background deaf to Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
from test_interruption import run
run(folder, int(jobs), lambda *_: time.sleep(seconds))
"""
pytestmark = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinity")


def run(folder, jobs, watch=None):
    """Evaluate two methods on vectors so wide that threads share their products."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(20, 192))
    y = np.repeat(np.arange(20), 40)
    X = (centres[y] + 3 * rng.normal(size=(800, 192))).astype(np.float32)
    base = BaseClasses.from_samples(X[:600], y[:600])
    methods = {
        "hot": HOTClassifier(base, sample_weights="classifier"),
        "free-lunch": FreeLunchClassifier(base, n_generated=30, C=0.01, random_state=0),
    }
    sizes = {"ways": 3, "shots": 1, "queries": 5, "tasks": 40}
    return evaluate(methods, X[600:], y[600:], **sizes, n_jobs=jobs, out=folder, watch=watch)


def start(folder, threads, core, jobs, seconds=0.0):
    """The same in another process, which waits for some seconds after each chunk."""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    if threads is not None:
        environment.update(OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads))
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, *map(str, (folder, core, jobs, seconds))],
        env=environment,
        cwd=os.path.dirname(__file__),
        start_new_session=True,
    )


def records(folder):
    """What was found of each chunk, but for the time it took."""
    found, damaged = read_records((folder / "journal.jsonl").read_bytes())
    assert not damaged
    return {chunk: replace(record, seconds=0.0) for chunk, record in found.items()}


def wait_for_records(folder, n):
    journal, deadline = folder / "journal.jsonl", time.monotonic() + 60
    while not (journal.exists() and journal.read_bytes().count(b"\n") >= n):
        assert time.monotonic() < deadline, "the run does not come as far"
        time.sleep(0.005)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    run(folder, jobs=1)
    return records(folder)


def test_workers_that_were_killed_and_one_core_that_goes_on_find_the_bits_of_an_undisturbed_run(tmp_path, undisturbed):
    killed = start(tmp_path, threads=2, core=0, jobs=2, seconds=0.2)
    wait_for_records(tmp_path, 2)
    killed.kill()
    killed.wait()
    by_workers = records(tmp_path)
    assert start(tmp_path, threads=None, core=1, jobs=1).wait(200) == 0
    assert 2 <= len(by_workers) < len(undisturbed) == 4
    assert records(tmp_path) == undisturbed


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_stopped_from_the_keyboard_goes_on_where_it_was(jobs, tmp_path, undisturbed):
    stopped = start(tmp_path, threads=1, core=0, jobs=jobs, seconds=0.2)
    wait_for_records(tmp_path, 1)
    # A terminal sends the signal to the workers as well.
    os.killpg(stopped.pid, signal.SIGINT)
    assert stopped.wait(200) != 0
    assert 0 < len(records(tmp_path)) < 4
    run(tmp_path, jobs=1)
    assert records(tmp_path) == undisturbed


ENDLESS = """
import os, time
from joblib import Parallel, delayed
from hotshot.evaluation.journal import Chunk
from hotshot.evaluation.runner import _run_in_worker

class Endless:
    seed = 0

    def __getitem__(self, index):
        print(os.getpid(), flush=True)
        time.sleep(100)

Parallel(n_jobs=2)([delayed(_run_in_worker)(os.getpid(), None, Endless(), Chunk(1, 0, 1, "m"))])
"""


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system has no /proc")
def test_a_worker_ends_with_its_parent(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(ENDLESS)
    run = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    with run.stdout:
        worker = int(run.stdout.readline())
    assert worker != run.pid
    assert is_running(worker)
    run.kill()
    run.wait()
    deadline = time.monotonic() + 60
    while is_running(worker) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(worker)
