"""Models in folders: grown, corrected, undone; changed by several processes; files of which belong together."""

from __future__ import annotations

import json
import shutil
import threading
from multiprocessing import get_context

import numpy as np
import pytest

from hotshot import InputClassifier
from hotshot.errors import HotshotError, InputError, LeftOutWarning, ParameterError, RunError
from hotshot.files import atomic
from hotshot.inputs.encoding import InputEncoder
from sentences import NEW, OLD, labelled, sentences, write_table
from worlds import SETTINGS


def load(path):
    return InputClassifier.load(path, trust=True)


def test_the_classifier_of_a_loaded_model_grows_with_the_bank_beside_it(saved):
    model = load(saved)
    model.model.add_samples(model.features(sentences(NEW[0], 2, seed=4)), [NEW[0]] * 2)
    assert "sample 10" in str(model.explain(sentences(NEW[0], 1, seed=5)).to_dict())
    model.save(saved, overwrite=True)
    assert len(load(saved).model.support_labels_) == 11


KITE, GULL, TERN = sentences("kite", 3), sentences("gull", 2), sentences("tern", 2)


@pytest.mark.parametrize(
    ("given", "said", "added"),
    [
        ([(KITE[0], "kite"), (GULL[0], "gull")], f"1 sample .*\"{KITE[0]}\" is a sample of 'kite' already", GULL[:1]),
        ([(GULL[0], "gull"), (f" {GULL[0]} ", "gull")], "is a sample of 'gull' already", GULL[:1]),
        ([(GULL[0], "gull"), (GULL[0], "tern"), *((t, "tern") for t in TERN)], "has the labels 'gull', 'tern'", TERN),
        ([("noise", "none of these"), (GULL[0], "gull")], "is labelled 'none of these', which is no class", GULL[:1]),
        ([(KITE[0], "kite"), (KITE[1], "kite")], "2 samples cannot be used", []),
        ([(KITE[0], "tern")], "has the labels 'kite', 'tern'", []),
        ([(sentences("olda", 1)[0], "olda")], "is a sample of 'olda' already", []),
        ([("noise", "none of these")], "which is no class", []),
    ],
)
def test_what_is_there_already_or_no_class_is_left_out(saved, given, said, added):
    model, (texts, labels) = load(saved), zip(*given, strict=True)
    with pytest.warns(LeftOutWarning, match=said) if added else pytest.raises(InputError, match=said):
        model.add(texts, labels)
    assert model.support.texts == [*load(saved).support.texts, *added]
    strict = load(saved)
    strict.strict = True
    with pytest.raises(InputError, match=said):
        strict.add(texts, labels)


def test_a_sample_is_removed_by_its_text_or_id(saved, hotshot):
    text, *rest = sentences("kite", 3)
    hotshot.succeeds("remove", saved, "--sample", text, "--sample", "4")
    assert load(saved).contents()["kite"] == rest
    assert len(load(saved).contents()["wren"]) == 2
    for wrong, said in (
        (["--sample", text + "x"], "is the name of no sample of this model"),
        (["kit"], "Did you mean 'kite'"),
        ([], "Nothing to"),
    ):
        assert said in hotshot.refuses("remove", saved, *wrong)


def test_what_a_model_holds_is_shown(saved, hotshot):
    assert repr(load(saved)).endswith("20 old classes, 3 new classes with 9 samples)")
    shown = hotshot("inspect", saved).stdout
    assert all(text in shown for text in (*sentences("kite", 3), "olda: 12 samples", "3 new classes"))
    assert json.loads(hotshot("inspect", saved, "--json").stdout)["classes"]["kite"] == sentences("kite", 3)


def test_changes_are_undone_to_the_bit(saved, hotshot, tmp_path):
    texts, states = sentences("wren", 3, seed=2), []
    for step in range(3):
        states.append(load(saved).predict_proba(texts))
        write_table(tmp_path / "more.csv", labelled([f"gull{step}"], 2))
        hotshot.succeeds("add", saved, "more.csv")
    for before in states[::-1]:
        hotshot.succeeds("undo", saved)
        np.testing.assert_array_equal(load(saved).predict_proba(texts), before)
    assert "holds no earlier model" in hotshot.refuses("undo", saved)


def test_earlier_models_are_kept_up_to_a_number(saved, monkeypatch):
    monkeypatch.setattr("hotshot.inputs.saving.MOST_UNDONE", 2)
    for step in range(4):
        with InputClassifier.change(saved, trust=True) as model:
            model.add(sentences(f"gull{step}", 2), [f"gull{step}"] * 2)
    for _ in range(2):
        InputClassifier.undo(saved)
    assert {*load(saved).new_classes} == {*NEW, "gull0", "gull1"}
    with pytest.raises(InputError, match="holds no earlier model"):
        InputClassifier.undo(saved)


def add_to(path, name):
    with InputClassifier.change(path, trust=True) as model:
        model.add(sentences(name, 2), [name] * 2)


def test_several_processes_change_one_model_and_lose_nothing(saved):
    names = [f"gull{i}" for i in range(6)]
    processes = [get_context("fork").Process(target=add_to, args=(saved, name)) for name in names]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * len(names)
    assert {*load(saved).new_classes} == {*NEW, *names}


def test_a_model_that_others_have_changed_is_not_overwritten(saved):
    mine, theirs = load(saved), load(saved)
    theirs.add(sentences("gull", 2), ["gull"] * 2).save(saved, overwrite=True)
    theirs.remove([NEW[0]]).save(saved, overwrite=True)
    with pytest.raises(RunError, match="was changed since this model was loaded from it"):
        mine.add(sentences("tern", 2), ["tern"] * 2).save(saved, overwrite=True)
    shutil.rmtree(saved)
    theirs.save(saved)
    mine.save(saved.with_name("other.model"))
    assert {*load(saved.with_name("other.model")).new_classes} == {*NEW, "tern"}


def test_a_model_is_read_whole_while_another_replaces_it(birds, saved, tmp_path):
    other = load(saved).add(sentences("gull", 2), ["gull"] * 2)
    texts = sentences("wren", 2, seed=2)
    valid = [model.predict_proba(texts).tolist() for model in (birds, other)]
    done, faults = threading.Event(), []

    def replace():
        while not done.is_set():
            for model in (birds, other):
                model.place = None
                model.save(saved, overwrite=True)

    writer = threading.Thread(target=replace)
    writer.start()
    for _ in range(60):
        try:
            faults += [found for found in [load(saved).predict_proba(texts).tolist()] if found not in valid]
        except HotshotError as error:
            faults.append(error)
    done.set()
    writer.join()
    assert not faults


@pytest.mark.parametrize(
    "part", ["model.safetensors", "inputs.json", "support.safetensors", "old.safetensors", "model.json"]
)
def test_files_of_another_model_are_refused(saved, tmp_path, part):
    model = load(saved)
    model.add([*sentences("kite", 1, seed=8), *sentences(OLD[0], 1, seed=8)], ["kite", OLD[0]])
    model.save(tmp_path / "other.model")
    shutil.copy(tmp_path / "other.model" / part, saved / part)
    with pytest.raises(InputError, match=r"birds\.model is not a valid model"):
        load(saved)


def test_another_bank_is_refused(birds, saved, tables, tmp_path):
    write_table(tmp_path / "other.csv", labelled([name + "x" for name in OLD], 12))
    other = InputClassifier(birds.encoder, base=tmp_path / "other.csv", **SETTINGS).fit(tables / "new.csv")
    model = load(saved)
    other.save(tmp_path / "other.model")
    shutil.rmtree(saved / "base.bank")
    shutil.copytree(tmp_path / "other.model" / "base.bank", saved / "base.bank")
    with pytest.raises(InputError, match=r"base\.bank/bank\.json was not written with it"):
        load(saved)
    # It is compared again when it is read.
    with pytest.raises(InputError, match="was fitted with other base classes"):
        model.add(sentences("gull", 2), ["gull"] * 2)


@pytest.mark.parametrize("command", ["predict", "explain", "suggest", "add"])
def test_code_that_a_file_names_runs_only_if_the_user_names_it(
    birds, saved, tables, tmp_path, hotshot, command, monkeypatch
):
    code = "import pathlib\npathlib.Path('ran').touch()\n" + (tables / "words.py").read_text()
    (saved / "evil.py").write_text(code, encoding="utf-8")
    model = load(saved)
    name = f"{saved}/evil.py:embed"
    content = json.loads((saved / "inputs.json").read_text())
    model.encoding = InputEncoder(name, "cpu", kind="texts", probe=model.encoding.probe)
    evil = saved.with_name("evil.model")
    model.save(evil)
    assert json.loads((evil / "inputs.json").read_text()) == {**content, "encoder": name}
    write_table(tmp_path / "more.csv", labelled(["gull"], 2))
    monkeypatch.setattr("conftest.named_encoder", lambda arguments: [])
    assert f"runs only if you name it: pass encoder='{name}'" in hotshot.refuses(command, evil, "more.csv")
    hotshot.succeeds("inspect", evil)
    assert not (tmp_path / "ran").exists()
    hotshot.succeeds(command, evil, "more.csv", "--encoder", name)
    assert (tmp_path / "ran").exists()


def test_a_report_does_not_run_the_methods_that_a_run_names(hotshot, tmp_path):
    code = "import pathlib, sklearn.svm\npathlib.Path('ran').touch()\nclass Mine(sklearn.svm.LinearSVC): pass\n"
    (tmp_path / "mine.py").write_text(code, encoding="utf-8")
    run = ("evaluate", "--bank", "banking77", "--methods", "centroid,mine=mine.py:Mine", "--tasks", "2", "--jobs", "1")
    hotshot.succeeds(*run, "--out", "run")
    (tmp_path / "ran").unlink()
    hotshot.succeeds("report", "run", "-o", "page.html")
    assert not (tmp_path / "ran").exists()


def test_the_bank_of_a_model_is_on_the_disk_before_the_model_has_its_name(saved, monkeypatch):
    synced = []
    monkeypatch.setattr(atomic, "_sync_names", lambda folder: synced.append(folder.name))
    load(saved).save(saved.with_name("other.model"))
    assert synced.index("base.bank") < len(synced) - 1
    assert synced[-1] == saved.parent.name


def test_a_folder_of_a_sentence_encoder_may_hold_code_too(saved, tmp_path):
    (tmp_path / "encoder").mkdir()
    model = load(saved)
    model.encoding.name = f"st:{tmp_path}/encoder"
    model.save(tmp_path / "other.model")
    with pytest.raises(InputError, match="runs only if you name it"):
        InputClassifier.load(tmp_path / "other.model").predict(["a"])


def test_a_model_without_an_encoder_takes_none(birds, tmp_path):
    X = birds.features(sentences("kite", 4))
    InputClassifier().fit(X, ["a", "a", "b", "b"]).save(tmp_path / "plain.model")
    with pytest.raises(ParameterError, match="has no encoder: leave"):
        InputClassifier.load(tmp_path / "plain.model", encoder="minilm")


def test_a_model_that_is_read_while_it_grows_answers_and_explains(saved):
    model, texts, faults, done = load(saved), sentences("wren", 2, seed=2), [], threading.Event()

    def read():
        while not done.is_set():
            try:
                str(model.explain(texts))
                model.predict(texts)
            except Exception as error:
                faults.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(5):
        model.add(sentences("gull", 2), ["gull"] * 2)
        model.remove(["gull"])
    done.set()
    reader.join()
    assert not faults
