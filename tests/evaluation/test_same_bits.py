"""The same bits for any number of workers and threads, on one core, after kills and on resume."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

from hotshot.evaluation.journal import decode_lines

REQUEST = """
import os, sys, time
core, jobs, folder, slow = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4] == "slow"
if core:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import numpy as np
from hotshot import BaseClasses, FreeLunchClassifier, HOTClassifier, evaluate
rng = np.random.default_rng(0)
centres = rng.normal(size=(20, 192))
y = np.repeat(np.arange(20), 40)
X = (centres[y] + 3 * rng.normal(size=(800, 192))).astype(np.float32)
base = BaseClasses.from_samples(X[:600], y[:600])
methods = {
    "hot": HOTClassifier(base, sample_weights="classifier"),
    "free-lunch": FreeLunchClassifier(base, n_generated=30, random_state=0),
}
watch = (lambda *_: time.sleep(0.2)) if slow else None
evaluate(methods, X[600:], y[600:], ways=5, shots=1, queries=5, tasks=60, n_jobs=jobs, out=folder, watch=watch)
"""
# Threads of the libraries, whether on one core, and workers.
WAYS = {"four workers of two threads": (2, 0, 4), "one core": (None, 1, 1)}

pytestmark = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinity")


def start(folder, threads, core, jobs, slow=False):
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    if threads is not None:
        environment.update(OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads))
    arguments = [str(core), str(jobs), str(folder), "slow" if slow else ""]
    return subprocess.Popen([sys.executable, "-W", "ignore", "-c", REQUEST, *arguments], env=environment)


def records(folder):
    """What was found of each chunk, but for the time it took."""
    documents, dropped = decode_lines((folder / "journal.jsonl").read_bytes())
    assert not dropped
    return {json.dumps(d.pop("unit")): json.dumps({k: v for k, v in d.items() if k != "seconds"}) for d in documents}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    assert start(folder, 1, 0, 1).wait(200) == 0
    return records(folder)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_records_are_the_same_bits(tmp_path, undisturbed, way):
    assert start(tmp_path, *way).wait(200) == 0
    assert records(tmp_path) == undisturbed


def test_a_killed_run_resumed_with_other_threads_and_workers_is_the_same_bits(tmp_path, undisturbed):
    run = start(tmp_path, 2, 0, 2, slow=True)
    journal = tmp_path / "journal.jsonl"
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline and not (journal.exists() and journal.stat().st_size):
        time.sleep(0.02)
    run.kill()
    run.wait()
    assert 0 < len(records(tmp_path)) < len(undisturbed)
    assert start(tmp_path, 1, 1, 1).wait(200) == 0
    assert records(tmp_path) == undisturbed
