"""Mistakes in a command line or in its files: exit code 2 and one sentence that says what to do, never a traceback."""

from __future__ import annotations

import re
import shlex

import numpy as np
import pytest

from hotshot import BaseClasses
from hotshot.files import write_features

HOSTILE = "\x1b[2J\x1b]0;title\x07red\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("features")
    rng = np.random.default_rng(0)
    y = np.repeat([f"class-{c}" for c in range(14)], 12)
    X = np.repeat(rng.normal(size=(14, 5)), 12, axis=0) + 0.8 * rng.normal(size=(len(y), 5))
    np.savez(folder / "base.npz", X=X[:96], y=y[:96])
    np.savez(folder / "novel.npz", X=X[96:], y=y[96:])
    np.savez(folder / "narrow.npz", X=X[96:, :4], y=y[96:])
    np.savez(folder / "mixed.npz", X=X[84:], y=y[84:])
    np.savez(folder / "unnamed.npz", X[96:], y[96:])
    np.savez(folder / "objects.npz", X=X[96:], y=np.array(list(y[96:]), dtype=object))
    np.savez(folder / "hostile.npz", X=X[104:], y=[HOSTILE if label == y[96] else label for label in y[104:]])
    write_features(folder / "base.safetensors", (X[:96], y[:96]), about={"extractor": "DINO"})
    write_features(folder / "novel.safetensors", (X[96:], y[96:]), about={"extractor": "CLIP"})
    (folder / "page.npz").write_text("<!DOCTYPE html><html>not found</html>")
    (folder / "empty.npz").write_text("")
    for name, mask in {"a": y < "class-5", "b": y >= "class-5"}.items():
        BaseClasses.from_samples(X[mask], y[mask]).save(folder / f"{name}.bank")
    BaseClasses.load(folder / "a.bank").save(folder / "small.bank", samples=False, covariance="pooled")
    return folder


MISTAKES = [
    # Numbers, ranges and names.
    ("evalute", "Did you mean 'evaluate'?"),
    ("demo --shots one", "shots must be a number or a range such as 1-10, got 'one'"),
    ("demo --shots 0", "shots must be an integer from 1 to 100,000"),
    ("demo --ways 31", "ask for fewer ways"),
    ("demo --methods hot,magic", "method must be one of"),
    ("demo --bank birds", "bank must be one of"),
    ("demo --bogus", "No such option"),
    ("demo --queries foo", "queries must be a number or dirichlet:ALPHA such as dirichlet:2, got 'foo'"),
    ("demo --queries dirichlet:0", "ALPHA of queries=dirichlet:ALPHA must be a number from 0.01"),
    (f"demo --shots {'9' * 5000}", "shots must be a number or a range such as 1-10"),
    ("evaluate --bank banking77 --jobs 0", "n_jobs must be a positive integer"),
    ("evaluate --bank banking77 --shots 1,1", "shots must be one number or up to 100 different ones"),
    (f"evaluate --bank banking77 --shots {'1,' * 50_000}1", "shots must be one number or up to"),
    (f"evaluate --bank banking77 --ways {'9' * 23}", "ways must be a number or a range such as 5-20"),
    ("evaluate --bank banking77 --ways 1", "ways must be an integer from 2 to 10,000, got 1"),
    ("evaluate --bank banking77 --queries dirichlet:2:60", "shots of each and 300 queries need"),
    ("evaluate --bank banking77 --setting shut", "setting must be one of closed, generalised, open, got 'shut'."),
    ("evaluate --bank banking77 --setting open --ways 30", "30-way tasks in the open setting need more than 30"),
    ("evaluate --bank '\x1b[31mred'", r"bank must be one of banking77, omniglot, got '\x1b[31mred'"),
    ("tune --bank banking77 --ways 20-5", "ways must be a number or a range such as 5-20"),
    ("tune --bank banking77 --grid epsilon=nan", "epsilon"),
    ("tune --bank banking77 --grid epsilon", "--grid must be like epsilon=0.01,0.02"),
    ("tune --bank banking77 --grid =1", "--grid must be like"),
    ("tune --bank banking77 --grid wings=2", "wings"),
    ("reproduce --bank banking77", "Pass names of experiments, or --all: accuracy"),
    ("reproduce magic --bank banking77", "experiment must be one of accuracy"),
    ("reproduce costs --bank banking77 --other x", "--other must be NAME=BASE,NOVEL"),
    # Methods.
    ("evaluate --bank banking77 --methods hot,pt-map", "Method 'pt-map' classifies the queries of a task"),
    ("evaluate --bank banking77 --methods lda --batch", "No method of lda has predict_batch"),
    ("evaluate --bank banking77 --methods pt-map --batch --setting generalised", "cannot answer base"),
    ("evaluate --bank banking77 --methods hot,hot", "different comma-separated names"),
    ("evaluate --bank banking77 --methods hot=", "different comma-separated names"),
    ("evaluate --bank banking77 --methods hot=nowhere.json", "There is no file nowhere.json"),
    ("evaluate --bank banking77 --reference svm", "reference must be one of"),
    ("evaluate --bank banking77 --reference ''", "reference must be one of"),
    # Files, alone and together.
    ("evaluate --base {}/base.npz", "Pass --base FILE and --novel FILE"),
    ("evaluate --bank banking77 --base {}/base.npz", "not both"),
    ("evaluate --base {}/base.npz --novel {}/nowhere.npz", "There is no file"),
    ("evaluate --base {}/base.npz --novel {}/narrow.npz", "extract both with the same model"),
    ("evaluate --base {}/base.npz --novel {}/mixed.npz", "must not be base classes"),
    ("evaluate --base {}/base.safetensors --novel {}/novel.safetensors", "is 'DINO' in the base file and 'CLIP' in"),
    ("tune --base {}/base.safetensors --val {}/novel.safetensors", "use one kind of features"),
    ("evaluate --base {}/base.npz --novel {}/page.npz", "is a web page"),
    ("evaluate --base {}/base.npz --novel {}/empty.npz", "is empty"),
    ("evaluate --base {}/base.npz --novel {}/objects.npz", "of Python objects"),
    ("evaluate --base {}/base.npz --novel {}/unnamed.npz", "must hold two arrays, X and y"),
    ("evaluate --bank banking77 --out {}/base.npz", "is a file, not a run folder"),
    ("evaluate --base {}/base.npz --novel {}/hostile.npz --queries 4", r"\x1b[2J"),
    ("reproduce costs", "Pass --base FILE and --novel FILE, or --bank NAME"),
    ("inspect {}/nowhere.npz", "There is no file"),
    ("inspect {}/page.npz", "is a web page"),
    ("inspect {}/base.npz {}/novel.npz {}/mixed.npz", "unexpected extra argument"),
    ("inspect {}/base.npz:wings", "wings"),
    ("inspect '\x1b]0;title\x07.npz'", r"There is no file \x1b]0;title\x07.npz"),
    ("inspect \udcff.npz", r"There is no file \udcff.npz"),
    (f"inspect {'x' * 300}", "File name too long"),
    # Banks.
    ("bank merge {}/a.bank -o out.bank", "A merge needs two banks or more, got 1: name the others too."),
    ("bank merge {}/a.bank {}/b.bank -o {}/small.bank", "small.bank exists: pass --force to overwrite it."),
    ("bank merge {}/a.bank {}/b.bank -o {}/b.bank --force", "b.bank is both input and output: name another"),
    ("bank merge {}/a.bank nowhere -o out.bank", "nowhere is not a bank, it has no bank.json"),
    ("bank compact nowhere -o out.bank", "nowhere is not a bank, it has no bank.json"),
    ("bank compact {}/small.bank -o out.bank", "This bank is compact already: copy its folder."),
]


@pytest.mark.parametrize(("line", "message"), MISTAKES, ids=[line[:60] for line, _ in MISTAKES])
def test_a_mistake_is_one_sentence_and_exit_code_2(hotshot, files, tmp_path, line, message):
    run = hotshot(*(word.replace("{}", str(files)) for word in shlex.split(line)))
    assert run.returncode == 2, run.stdout
    assert message in run.noted
    assert "Traceback" not in run.stderr
    assert re.sub(r"\n", "", run.stderr).isprintable()
    assert len(run.stderr) < 3000
    assert not list(tmp_path.iterdir())


SAID = '{"format": "hotshot parameters 1", "parameters": %s}'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is not a file of parameters"),
        ('{"format": "hotshot parameters 1"}', "is not a file of parameters: write one with tune"),
        (SAID % ("[" * 100_000 + "]" * 100_000), "is not a file of parameters"),
        (SAID % '{"C": %s}' % ("1" * 5000), "is not a file of parameters"),
        (SAID % '{"cost": "\\u001b[31m"}', "The 'cost' parameter of HOTClassifier must be"),
        (SAID % '{"\\u001b[31mred": 1}', "holds an unknown parameter of HOTClassifier"),
        (SAID % '{"head": "sampled", "n_generated": 1000000000000}', "Method 'hot' cannot be fitted to a task"),
    ],
    ids=lambda text: text[-40:],
)
def test_an_invalid_file_of_parameters_is_one_sentence(hotshot, files, tmp_path, content, message):
    (tmp_path / "p.json").write_text(content)
    size = ("--ways", "3", "--queries", "4", "--tasks", "45", "--jobs", "1")
    data = ("--base", files / "base.npz", "--novel", files / "novel.npz")
    said = hotshot.refuses("evaluate", *data, *size, "--methods", "hot=p.json")
    assert message in said
    assert "\x1b[31mred" not in said


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (MemoryError(), "Not enough memory: use less data, or ask for less at once."),
        (RecursionError(), "A path or a file is nested too deeply: use another."),
        (PermissionError(13, "Permission denied", "secret"), "secret: Permission denied: use another file or folder"),
        (OSError("odd"), "odd: use another file or folder, or free disk space."),
    ],
)
def test_errors_of_the_system_are_one_sentence(hotshot, monkeypatch, error, sentence):
    def fail(*_):
        raise error

    monkeypatch.setattr("hotshot.bank.embedded.load_bank", fail)
    run = hotshot("demo")
    assert run.returncode == 2
    assert run.stderr.startswith(f"hotshot: {sentence}")
    assert run.stderr.count("\n") == 1
