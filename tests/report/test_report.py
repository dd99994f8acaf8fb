"""Reports from folders: what is in them, what is said where something is missing, and what is refused."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
from base64 import b64encode
from contextlib import suppress

import numpy as np
import pytest
from reported_runs import FIGURE, IMAGE, NOVEL, SCRIPT, TASKS, make_reproduction, make_run, read, write_features

from hotshot.bank import BaseClasses
from hotshot.cli.report import report
from hotshot.errors import InputError, ParameterError
from hotshot.files import read_features
from hotshot.report import Source, make_report
from hotshot.report import run as run_parts
from hotshot.report.explorer import method_to_explore

MISSING = "The task explorer is left out."


DRAWING = {name: getattr(run_parts, name) for name in ("grouped_bars", "histogram", "file_content")}


@pytest.fixture(autouse=True)
def no_figures(monkeypatch):
    """Figures take most of the time of a report, and have tests of their own."""
    for name in DRAWING:
        monkeypatch.setattr(run_parts, name, lambda *values, **options: b"<svg/>")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    write_features(folder)
    make_run(folder)
    make_reproduction(folder)
    return folder


@pytest.fixture
def fresh(tmp_path):
    """Features of its own, for tests that change them."""
    write_features(tmp_path)
    return tmp_path


def embedded(text, part=1):
    return json.loads(re.search(rf'id="part-{part}-data">(.*?)</script>', text)[1])


def why_not(text):
    return re.search(rf"{re.escape(MISSING)} (.*?)</p>", text)[1]


def test_the_same_folder_gives_the_same_bytes(folder, monkeypatch):
    for name, function in DRAWING.items():
        monkeypatch.setattr(run_parts, name, function)
    first = make_report([folder / "run"], read, tasks=3)
    assert make_report([folder / "run"], read, tasks=3) == first
    assert first.startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(("setting", "measure"), [("generalised", "harmonic mean"), ("open", "AUROC")])
def test_other_settings_have_tables_of_their_measures(fresh, setting, measure):
    ways = {} if setting == "open" else {"ways": None}
    run = make_run(fresh, methods=("hot", "lda"), setting=setting, **{"tasks": 2, **ways})
    text = make_report([run], read, tasks=2)
    assert f"<bdi>{measure}</bdi>" in text
    assert "over tasks and hold for these classes only" in text
    assert "Tasks by accuracy" not in text
    assert f"<dt>Setting</dt><dd><bdi>{setting}</bdi>" in text
    assert (MISSING in text) == (setting == "generalised")


def test_a_report_says_who_classified_queries_jointly(fresh):
    run = make_run(fresh, methods=("bd-cspn", "centroid-cl2n"), batch=True, tasks=3, shots=1)
    text = make_report([run], read, tasks=2)
    assert "bd-cspn classified the queries of a task jointly, the other methods one by one." in text
    assert "<dt>Batch</dt><dd><bdi>bd-cspn</bdi>" in text
    assert "None of its methods borrows" in why_not(text)


def test_the_task_explorer_shows_queries_classified_one_by_one():
    hot = {"class": "hotshot.classifiers.hot.HOTClassifier", "parameters": {"base": "a bank"}}
    request = {"methods": {"hot": hot, "hot one by one": hot}, "batch": ["hot"]}
    assert method_to_explore(request) == "hot one by one"
    assert method_to_explore({**request, "batch": []}) == "hot"
    with pytest.raises(InputError, match="classifies queries one by one"):
        method_to_explore({**request, "batch": ["hot", "hot one by one"]})


def test_names_are_escaped_and_nothing_is_loaded_or_run(folder):
    text = make_report([folder / "run", folder / "paper"], read, tasks=3, title=SCRIPT)
    assert IMAGE not in text
    assert SCRIPT not in text
    assert text.count("</script>") == text.count("<script")
    assert embedded(text)["classes"] == sorted(NOVEL)
    policy = html.unescape(re.search(r'Content-Security-Policy" content="(.*?)"', text)[1])
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    outside = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert not re.findall(r"<(?:link|iframe|object|embed|audio|video|base|form)\b|@import|url\((?!#)", outside)
    attributes = re.findall(r'([\w-]+)="[^"]*"', " ".join(re.findall(r"<[a-z][^>]*>", outside)))
    assert "href" in attributes
    assert not [name for name in attributes if name.startswith("on")]
    assert set(re.findall(r'\ssrc="(.*?),', outside)) == {"data:image/svg+xml;base64"}
    assert all(target.startswith("#") for target in re.findall(r'href="(.*?)"', outside))


def test_the_explorer_has_the_worst_and_the_best_tasks_as_recorded(folder):
    found = embedded(make_report([folder / "run"], read, tasks=6))
    assert found["method"] == "hot"
    assert [setting["shots"] for setting in found["settings"]] == [1, 3]
    for setting in found["settings"]:
        assert [task["group"] for task in setting["tasks"]] == ["worst"] * 2 + ["median"] * 2 + ["best"] * 2
        for task in setting["tasks"]:
            assert len(task["methods"]) == 3
            assert task["accuracy"] == pytest.approx(task["methods"][0], abs=1e-4)


def test_results_and_how_to_run_again_are_there(folder):
    text = make_report([folder / "run"], read, tasks=0, threshold=0.7)
    assert f"4-way-1-shot, {TASKS} tasks" in text
    assert "tasks below 70%" in text
    request = json.loads((folder / "run" / "run.json").read_text())
    assert request["request"]["data"]["X_novel"] in text
    assert f"numpy {np.__version__}" in text
    assert "hotshot evaluate --novel &#39;&lt;img src=x" in text


def test_the_page_opens_with_the_finding_unless_it_has_a_title(folder):
    text = make_report([folder / "run"], read, tasks=0)
    found = re.search(r'<h1 class="finding">(.*?)</h1>', text)[1]
    assert re.match(r"hot is (best|level|behind)", found)
    assert "<title>3 methods on novel.npz</title>" in text
    titled = make_report([folder / "run"], read, tasks=0, title="Mine")
    assert "<h1><bdi>Mine</bdi></h1>" in titled
    assert f'<p class="finding">{found}</p>' in titled


def test_another_reference_turns_the_differences_round(folder):
    text = make_report([folder / "run"], read, tasks=0, reference="logistic")
    assert "lead of logistic" in text
    for unknown in ("svm", ""):
        with pytest.raises(ParameterError, match="reference must be one of"):
            make_report([folder / "run"], read, tasks=0, reference=unknown)


def test_published_numbers_are_marked(folder):
    text = make_report([folder / "paper"], read, tasks=3)
    assert re.search(r'<td class="number published" data-value="70.25"><bdi>70.25</bdi><small>', text)
    assert text.count(">published<") == 2
    assert "−1.50\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}0.25" in text
    titles = re.findall(r'id="part-1-\d-title">(.*?)</span>', text)
    assert titles == ["Costs", html.escape(f"Plan of {IMAGE}").replace("&quot;", "&#34;")]
    assert text.count(f'<img src="data:image/svg+xml;base64,{b64encode(FIGURE.encode()).decode()}" alt="Plan of ') == 2


def test_a_reproduction_explores_the_tasks_of_its_evaluations(fresh):
    out = make_reproduction(fresh)
    assert "None of its experiments evaluated H-OT" in why_not(make_report([out], read, tasks=3))
    for name in ("hot", "centroid"):
        make_run(fresh, methods=[name], out=f"paper/evaluations/{name}", shots=1)
    make_run(fresh, methods=["ridge"], out="paper/evaluations/other", shots=1, seed=5)
    X, y = read_features(fresh / "base.npz")
    half = BaseClasses.from_samples(X[: len(X) // 2], y[: len(X) // 2])
    make_run(fresh, methods=["hot"], out="paper/evaluations/an-evaluation-with-other-base-classes", shots=1, base=half)
    found = embedded(make_report([out], read, tasks=3))
    assert found["total"] == TASKS
    assert found["methods"] == ["hot", "centroid"]
    for task in found["settings"][0]["tasks"]:
        assert task["methods"][0] == pytest.approx(task["accuracy"], abs=1e-4)
        assert None not in task["methods"]
    # A slow method may have seen the first tasks only.
    make_run(fresh, methods=["free-lunch"], out="paper/evaluations/slow", shots=1, tasks=5)
    found = embedded(make_report([out], read, tasks=TASKS))
    assert found["methods"] == ["hot", "free-lunch", "centroid"]
    for task in found["settings"][0]["tasks"]:
        assert (task["methods"][1] is None) == (task["index"] >= 5)


def test_files_that_are_gone_or_changed_leave_the_explorer_out_until_they_are_named(fresh):
    run = make_run(fresh, tasks=5, shots=1)
    (fresh / "novel.npz").rename(fresh / "moved.npz")
    assert "There is no file" in why_not(make_report([run], read, tasks=3))
    for moved in (Source(novel=fresh / "moved.npz"), Source(base=fresh / "base.npz", novel=fresh / "moved.npz")):
        assert MISSING not in make_report([run], read, tasks=3, data=moved)
    before = (fresh / "base.npz").read_bytes()
    write_features(fresh, seed=1)
    assert "The novel samples are not those of the run" in why_not(make_report([run], read, tasks=3))
    (fresh / "moved.npz").rename(fresh / "novel.npz")
    assert "The base classes are not those of the run" in why_not(make_report([run], read, tasks=3))
    (fresh / "base.npz").write_bytes(before)
    assert MISSING not in make_report([run], read, tasks=3)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"about": None}, "does not record where the data are"),
        ({"about": {"source": "here"}}, "does not record where the data are"),
    ],
)
def test_why_there_is_no_explorer_is_said(fresh, changes, words):
    run = make_run(fresh, **{"tasks": 3, "shots": 1, **changes})
    assert words in why_not(make_report([run], tasks=3))


@pytest.mark.parametrize("change", [{"epsilon": "np.float32(0.1)"}, {"wings": 2}, {"cost": "unheard-of"}])
def test_parameters_that_cannot_be_restored_are_said(fresh, change):
    run = make_run(fresh, tasks=3, shots=1)
    content = json.loads((run / "run.json").read_text())
    content["request"]["methods"]["hot"]["parameters"].update(change)
    (run / "run.json").write_text(json.dumps(content))
    assert "parameters of hot cannot be restored" in why_not(make_report([run], read, tasks=3))


def test_claims_of_the_paper_stand_first_with_their_verdicts(fresh):
    page = make_report([make_reproduction(fresh, data="birds")], read, tasks=0)
    assert "<title>The paper on birds</title>" in page
    assert '<h1 class="finding">Of 2 claims of the paper, 1 holds and 1 does not hold on birds.</h1>' in page
    # A verdict for each table of the paper; all else is folded.
    assert re.findall(r'<summary><span class="verdict .*?">(.*?)</span>', page) == [
        "1 holds and 1 does not hold",
        "no claim",
    ]
    assert '<details class="experiment" id="part-1-1">' in page
    assert '<span class="verdict does-not-hold">does not hold</span>' in page
    # Signs are set as signs, hyphens stay.
    assert "H-OT −1.50\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}0.25; cross-domain" in page


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.update(tables=[{"title": "t"}]), "is not a valid experiment"),
        (lambda d: d.update(claims=[{"text": "t"}]), "is not a valid experiment"),
        (lambda d: d["tables"][0].update(columns=["a"]), "is not a valid experiment"),
        (lambda d: d.update(figures=["../../base"]), "There is no file .*plan/base.svg"),
        (lambda d: d.update(figures=["no-drawing"]), "no-drawing.svg is not SVG: make it again"),
        (lambda d: d.pop("tables"), "holds no findings"),
    ],
)
def test_damaged_findings_are_refused_in_one_sentence(fresh, change, words):
    out = make_reproduction(fresh)
    document = json.loads((out / "plan" / "findings.json").read_text())
    change(document)
    (out / "plan" / "no-drawing.svg").write_text("<html/>")
    (out / "plan" / "findings.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=words):
        make_report([out], read, tasks=0)


def test_a_page_that_cannot_be_written_is_said_before_tasks_are_fitted(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("hotshot.report.make_report", lambda *arguments, **options: pytest.fail("too late"))
    (tmp_path / "mine.html").write_text("mine")
    os.mkfifo(tmp_path / "pipe")
    for name, words in (
        ("mine.html", "not a report"),
        ("pipe", "not a regular file"),
        (".", "is a folder"),
        ("mine.html/page.html", "cannot be written"),
    ):
        with pytest.raises(InputError, match=words):
            report([folder / "run"], tmp_path / name)
    assert (tmp_path / "mine.html").read_text() == "mine"


def test_the_command_writes_the_page_and_says_where(folder, tmp_path, capsys):
    out = tmp_path / "report.html"
    report([folder / "run"], out, tasks=3, json=True)
    said = json.loads(capsys.readouterr().out)
    assert said == {"report": str(out), "bytes": out.stat().st_size, "notes": []}
    report([folder / "run"], out, tasks=3, novel=folder / "nowhere.npz")
    said = capsys.readouterr()
    assert f"Report: {out}" in said.out
    assert "the task explorer is left out. There is no file" in " ".join(said.err.split())


@pytest.mark.parametrize(
    ("folders", "options", "error", "words"),
    [
        (["run"], {"threshold": 1.5}, ParameterError, "threshold"),
        (["run"], {"tasks": -1}, ParameterError, "tasks"),
        ([], {}, ParameterError, "at least"),
        (["."], {}, InputError, "neither a run of hotshot evaluate nor"),
        (["nowhere"], {}, InputError, "neither a run of hotshot evaluate nor"),
    ],
)
def test_what_cannot_be_reported_is_refused(folder, folders, options, error, words):
    with pytest.raises(error, match=words):
        make_report([folder / name for name in folders], read, **options)


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    write_features(folder)
    return make_run(folder, tasks=3, shots=1)


@pytest.mark.parametrize("key", ["methods", "ways", "queries", "tasks", "shots", "seed", "source"])
def test_whatever_run_json_says_the_report_is_made_or_refused(small_run, tmp_path, key):
    run = shutil.copytree(small_run, tmp_path / "run")
    content = json.loads((run / "run.json").read_text())
    for value in (None, 0, "text", [], {}, {"hot": {}}, {"hot": 0, "logistic": 0, "centroid-cl2n": 0}, 10**400):
        (content if key == "source" else content["request"])[key] = value
        (run / "run.json").write_text(json.dumps(content))
        with suppress(InputError):
            assert "<html" in make_report([run], read, tasks=1)
    del (content if key == "source" else content["request"])[key]
    (run / "run.json").write_text(json.dumps(content))
    with suppress(InputError):
        make_report([run], read, tasks=1)
