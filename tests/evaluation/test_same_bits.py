"""The same bits for any number of workers and threads, on one core, after a kill and on resume."""

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
evaluate(methods, X[600:], y[600:], ways=3, shots=1, queries=5, tasks=40, n_jobs=jobs, out=folder, watch=watch)
"""
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


def test_workers_that_were_killed_and_one_core_that_goes_on_find_the_bits_of_an_undisturbed_run(tmp_path):
    disturbed, undisturbed = tmp_path / "disturbed", tmp_path / "undisturbed"
    run = start(disturbed, 2, 0, 2, slow=True)
    journal = disturbed / "journal.jsonl"
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline and not (journal.exists() and journal.read_bytes().count(b"\n") >= 2):
        time.sleep(0.02)
    run.kill()
    run.wait()
    by_workers = records(disturbed)
    assert start(disturbed, None, 1, 1).wait(200) == 0
    assert start(undisturbed, 1, 0, 1).wait(200) == 0
    assert 2 <= len(by_workers) < len(records(disturbed))
    assert records(disturbed) == records(undisturbed)
