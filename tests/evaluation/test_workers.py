"""A worker ends with its parent, and the next run removes what killed ones left in shared memory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sklearn.neighbors import KNeighborsClassifier

from conftest import make_bank
from hotshot import evaluate
from hotshot.errors import ParameterError
from hotshot.evaluation.tasks import freeze_tasks
from hotshot.evaluation.tuning import tune
from hotshot.evaluation.workers import _remove_left_memory

SCRIPT = """
import os, time
from joblib import Parallel, delayed
from hotshot.evaluation.chunks import Chunk
from hotshot.evaluation.workers import _run_in_worker

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


@pytest.mark.skipif(os.name != "posix", reason="processes have other numbers here")
def test_the_memory_of_dead_runs_is_removed_and_that_of_live_ones_stays(tmp_path, monkeypatch):
    monkeypatch.setenv("JOBLIB_TEMP_FOLDER", str(tmp_path))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    dead, live, other = (
        tmp_path / name
        for name in (f"joblib_memmapping_folder_{ended.pid}_a_b", f"joblib_memmapping_folder_{os.getpid()}_a_b", "kept")
    )
    for folder in (dead, live, other):
        folder.mkdir()
        (folder / "array").write_bytes(b"numbers")
    _remove_left_memory()
    assert not dead.exists()
    assert (live / "array").exists()
    assert (other / "array").exists()


@pytest.mark.parametrize("tasks", [99_999_999_999_999, 10_000_001])
def test_more_tasks_than_memory_holds_are_refused_at_once(tmp_path, tasks):
    sentence = r"tasks must be an integer from 1 to 10,000,000, got \d+\.$"
    with pytest.raises(ParameterError, match=sentence):
        evaluate(KNeighborsClassifier(1), X, Y, ways=3, shots=1, queries=2, tasks=tasks)
    with pytest.raises(ParameterError, match=sentence):
        freeze_tasks(tmp_path / "tasks", Y, tasks=tasks, ways=3, shots=1, queries=2)
    with pytest.raises(ParameterError, match=sentence):
        tune(None, X, Y, ways=3, shots=1, queries=2, tasks=tasks)
