"""The command line as a user types it: a table, JSON for programs, one sentence for mistakes."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.usefixtures("one_setting_to_try")


def test_demo_prints_one_table_and_explains_one_prediction(hotshot):
    run = hotshot.succeeds("demo", "--tasks", "3")
    for text in ("5-way-1-shot", "5-way-5-shot", "centroid-cl2n", "±", "borrows most from", "is answered", "CC BY 4.0"):
        assert text in run.stdout
    assert "Traceback" not in run.stderr


def test_demo_of_omniglot_has_twenty_ways(hotshot):
    run = hotshot.succeeds("demo", "--bank", "omniglot", "--tasks", "4", "--methods", "hot,centroid-cl2n")
    for text in ("20-way-1-shot", "964 base classes, 659 novel classes", "licensed MIT", "/character"):
        assert text in run.stdout


def test_demo_needs_no_network(hotshot, monkeypatch):
    monkeypatch.setattr("socket.socket.connect", None)
    run = hotshot("demo", "--tasks", "1", "--shots", "1", "--methods", "hot,cosine", "--json")
    document = json.loads(run.stdout)
    assert document["request"]["tasks"] == 1
    assert [row["method"] for row in document["results"]] == ["hot", "cosine"]
