"""The same bits for any number of workers and threads, on one core, after a kill and on resume."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest

from hotshot import BaseClasses, FreeLunchClassifier, HOTClassifier, evaluate
from hotshot.evaluation.journal import decode_lines

SCRIPT = """
import os, sys, time
folder, core, jobs, seconds = sys.argv[1], *map(float, sys.argv[2:])
if core:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from test_same_bits import run
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
    evaluate(methods, X[600:], y[600:], **sizes, n_jobs=jobs, out=folder, watch=watch)


def start(folder, threads, core, jobs, seconds=0):
    """The same in another process, which waits for some seconds after each chunk."""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    if threads is not None:
        environment.update(OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads))
    arguments = [str(value) for value in (folder, core, jobs, seconds)]
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, *arguments], env=environment, cwd=os.path.dirname(__file__)
    )


def records(folder):
    """What was found of each chunk, but for the time it took."""
    documents, dropped = decode_lines((folder / "journal.jsonl").read_bytes())
    assert not dropped
    return {json.dumps(d.pop("unit")): json.dumps({k: v for k, v in d.items() if k != "seconds"}) for d in documents}


def test_workers_that_were_killed_and_one_core_that_goes_on_find_the_bits_of_an_undisturbed_run(tmp_path):
    disturbed, undisturbed = tmp_path / "disturbed", tmp_path / "undisturbed"
    killed = start(disturbed, threads=2, core=0, jobs=2, seconds=0.2)
    journal = disturbed / "journal.jsonl"
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline and not (journal.exists() and journal.read_bytes().count(b"\n") >= 2):
        time.sleep(0.02)
    killed.kill()
    killed.wait()
    by_workers = records(disturbed)
    assert start(disturbed, threads=None, core=1, jobs=1).wait(200) == 0
    run(undisturbed, jobs=1)
    assert 2 <= len(by_workers) < len(records(disturbed))
    assert records(disturbed) == records(undisturbed)
