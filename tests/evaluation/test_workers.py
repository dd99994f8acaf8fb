"""A worker ends with its parent, and a run leaves the shared memory of others alone."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import make_bank

SCRIPT = """
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
X, Y = make_bank(5, 12, 6, seed=1)


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system has no /proc")
def test_a_worker_ends_with_its_parent(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
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
