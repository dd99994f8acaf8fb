"""`hotshot inspect` from files, as a person runs it."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from conftest import make_bank, real_data

HOSTILE = "[red]boo[/red] \x1b[31mred\x1b[0m\nnew\tline \u202e " + "x" * 500


def features(n_classes=12, seed=0, name="class", per_class=30, width=20):
    rng = np.random.default_rng(seed)
    y = np.repeat([f"{name} {c}" for c in range(n_classes)], per_class)
    X = np.repeat(rng.normal(size=(n_classes, width)), per_class, axis=0)
    return np.exp(0.5 * X + 0.25 * rng.normal(size=X.shape)).astype(np.float32), y


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("features")
    X, y = features()
    Z, z = features(6, seed=1, name="new")
    bad = X.copy()
    bad[40, 3] = np.nan
    np.savez(folder / "base.npz", X=X, y=y)
    np.savez(folder / "novel.npz", X=Z, y=z)
    np.savez(folder / "nan.npz", X=bad, y=y)
    np.savez(folder / "mixed.npz", X=np.concatenate([Z, X[:30]]), y=np.concatenate([z, y[:30]]))
    np.savez(folder / "tiny.npz", X=1e-5 * X, y=y)
    np.savez(folder / "hostile.npz", X=np.vstack([X, X[:1] + 1]), y=np.append(y, HOSTILE))
    np.savez(folder / "parts.npz", X_val=Z, y_val=z, X_base=X, y_base=y)
    (folder / "page.npz").write_text("<!DOCTYPE html><html>not found</html>")
    return folder


def test_the_verdict_comes_first_and_a_bar_on_a_terminal_alone(hotshot, files, monkeypatch):
    run = hotshot.succeeds("inspect", files / "base.npz")
    assert run.stdout.splitlines()[0].endswith("base.npz: fine.")
    for text in ("360", "30 (class 0)", "20, float32"):
        assert text in run.stdout
    assert "Findings" not in run.stdout
    assert run.stderr == ""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    run = hotshot("inspect", files / "base.npz")
    assert "reading base.npz" in run.stdout
    assert "starting" in run.stderr


def test_a_fault_is_exit_code_1_and_everything_else_is_reported(hotshot, files):
    run = hotshot("inspect", files / "nan.npz")
    assert run.returncode == 1
    said = run.said
    for text in ("1 fault to fix", "row 40, column 3, class 'class 1'", "norms", "30 (class 0)"):
        assert text in said


@pytest.mark.parametrize(
    ("second", "code", "message"),
    [("novel.npz", 0, "novel.npz: fine"), ("mixed.npz", 1, "30 rows of the novel file also in the base file")],
)
def test_two_files_are_compared(hotshot, files, second, code, message):
    run = hotshot("inspect", files / "base.npz", files / second)
    assert run.returncode == code, run.stderr
    assert message in run.said


@pytest.mark.parametrize(
    ("names", "code"), [(["base.npz"], 0), (["nan.npz"], 1), (["base.npz", "mixed.npz"], 1), (["tiny.npz"], 0)]
)
def test_json_is_one_document_with_the_same_exit_code(hotshot, files, names, code):
    run = hotshot("inspect", *(files / name for name in names), "--json")
    assert run.returncode == code
    found = json.loads(run.stdout)
    assert found["format"] == "hotshot inspection 3"
    assert found["ok"] == (code == 0)
    assert [file["file"] for file in found["files"]] == [str(files / name) for name in names]
    assert all(finding["severity"] in ("fault", "warning") for finding in found["findings"])


def test_one_part_can_be_named_and_otherwise_all_parts_are_inspected(hotshot, files):
    one = json.loads(hotshot("inspect", f"{files / 'parts.npz'}:val", "--json").stdout)
    assert one["files"][0]["samples"] == 180
    both = json.loads(hotshot("inspect", files / "parts.npz", "--json").stdout)
    assert [(file["role"], file["samples"]) for file in both["files"]] == [("base", 360), ("novel", 180)]
    assert both["files"][0]["file"].endswith("parts.npz:base")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_fit_the_terminal_and_names_from_files_are_escaped(hotshot, files, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    run = hotshot.succeeds("inspect", files / "hostile.npz")
    assert max(map(len, run.stdout.splitlines())) <= width
    assert "\x1b" not in run.stdout
    assert "\u202e" not in run.stdout
    assert r"[red]boo[/red] \x1b[31mred\x1b[0m\nnew" in re.sub(r"\s+", " ", run.stdout)
    assert "x" * 100 not in run.stdout
    document = json.loads(hotshot("inspect", files / "hostile.npz", "--json").stdout)
    assert document["files"][0]["classes"]["smallest"]["name"] == HOSTILE


def test_photographs_of_base_classes_are_found_among_validation_classes(hotshot):
    path = real_data("miniimagenet/features.npz")
    run = hotshot("inspect", path, "--json")
    assert run.returncode == 1
    (fault,) = (f for f in json.loads(run.stdout)["findings"] if f["severity"] == "fault")
    assert fault["code"] == "row-overlap"
    assert fault["sentence"].startswith("6 rows of the novel file also in the base file")


def test_settings_are_shown_where_the_base_classes_can_choose(hotshot, tmp_path):
    X, y = make_bank(26, 12)
    base, novel = tmp_path / "base.npz", tmp_path / "novel.npz"
    np.savez(base, X=X[y < 20], y=y[y < 20])
    np.savez(novel, X=X[y >= 20], y=y[y >= 20])
    shown = hotshot("inspect", base, novel)
    assert "Settings tried on held-out base classes" in shown.stdout
    assert "Chosen: mean_rule=" in shown.stdout
    assert "Settings" not in hotshot("inspect", base, novel, "--no-settings").stdout
    np.savez(base, base_X=X[y < 20], base_y=y[y < 20], val_X=X[y >= 20], val_y=y[y >= 20])
    assert "Settings" not in hotshot("inspect", base, novel).stdout
