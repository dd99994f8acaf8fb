"""The command line as a user types it: a table, JSON for programs, one sentence for mistakes."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.usefixtures("one_setting_to_try")


def test_demo_prints_one_table_and_explains_one_prediction(hotshot):
    run = hotshot("demo", "--tasks", "3")
    assert run.returncode == 0, run.stderr
    for text in ("5-way-1-shot", "5-way-5-shot", "centroid-cl2n", "±", "borrows most from", "is answered", "CC BY 4.0"):
        assert text in run.stdout
    assert "Traceback" not in run.stderr


def test_demo_prints_json_that_agrees_with_itself(hotshot):
    run = hotshot("demo", "--tasks", "4", "--shots", "1", "--methods", "hot,cosine", "--json")
    document = json.loads(run.stdout)
    assert document["request"]["tasks"] == 4
    hot, cosine = document["results"]
    assert hot["reference_minus_this"] == 0
    assert cosine["reference_minus_this"] == pytest.approx(hot["accuracy"] - cosine["accuracy"])
    assert 0.5 < cosine["accuracy"] <= 1


def test_demo_of_omniglot_has_twenty_ways(hotshot):
    run = hotshot("demo", "--bank", "omniglot", "--tasks", "4", "--methods", "hot,centroid-cl2n")
    assert run.returncode == 0, run.stderr
    for text in ("20-way-1-shot", "964 base classes, 659 novel classes", "licensed MIT", "/character"):
        assert text in run.stdout


def test_demo_needs_no_torch_no_pillow_and_no_network(tmp_path):
    program = """
import socket, sys
class Absent:
    def find_spec(self, name, *_):
        if name.split(".")[0] in ("torch", "PIL"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
socket.socket.connect = None
from hotshot.cli import main
main()
"""
    arguments = ["demo", "--bank", "omniglot", "--tasks", "1", "--shots", "1", "--methods", "hot,cosine"]
    run = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "LOKY_MAX_CPU_COUNT": "1"},
    )
    assert run.returncode == 0, run.stderr
    assert "Means over 1 task." in run.stdout
