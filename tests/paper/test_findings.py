"""Tables print as they are read, and findings come back as they were saved."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from hotshot.errors import InputError
from hotshot.evaluation.tables import Number, Table
from hotshot.paper import Findings, load_findings, save_findings

TABLE = Table(
    "accuracies",
    ("method", "here", "in the paper"),
    (("a|b", Number(1.0, 0.25), Number(2.0, published=True)), ("c", None, None)),
)


def test_findings_that_cannot_be_finished_leave_the_old_ones(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    save_findings(tmp_path, Findings(("Old.",)), {"experiment": "x"})
    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(InputError, match=r"findings\.json cannot be written: No space left"):
        save_findings(tmp_path, Findings(("New.",)), {"experiment": "x"})
    assert load_findings(tmp_path)["sentences"] == ["Old."]
    assert [path.name for path in tmp_path.iterdir()] == ["findings.json"]


def test_findings_come_back(tmp_path):
    save_findings(tmp_path / "x", Findings(("It is so.",), (TABLE,)), {"experiment": "x"})
    found = load_findings(tmp_path / "x")
    assert found["sentences"] == ["It is so."]
    assert found["tables"][0]["rows"][0][1]["half_width"] == 0.25
    (tmp_path / "x" / "findings.json").write_text("[]", encoding="utf-8")
    for folder, message in (("x", "holds no findings"), ("nowhere", "There is no file")):
        with pytest.raises(InputError, match=message):
            load_findings(tmp_path / folder)
