"""A sample of `make crash`: commands that are killed while they write end, run again, as if nothing had happened."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = ("evaluate", "train", "extract", "convert .npy", "convert .bank", "bank, without exchange")


@pytest.mark.skipif(sys.platform != "linux", reason="processes are killed as on Linux")
def test_commands_that_are_killed_lose_nothing():
    pytest.importorskip("torch", reason="train and extract need the extra images")
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.crash", "--most", "4", "--jobs", "1", *COMMANDS],
        cwd=ROOT, env={**os.environ, **one_thread}, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count(" 4 kills, 0 findings") == len(COMMANDS)
    assert run.stdout.endswith(" 0 findings.\n")
