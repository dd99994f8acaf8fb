"""In a terminal, text in tables is only text, warnings become notes, and Ctrl-C one sentence."""

from __future__ import annotations

import re
import time
import warnings
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.text import Text

from hotshot.cli.terminal import Bar, Console, Watching, to_rich, waiting
from hotshot.errors import InterruptedRunError, ScaleWarning
from hotshot.evaluation.tables import Entry, Number, Table

CONSOLE = Console(file=StringIO())


def printed(table):
    console = Console(file=StringIO(), width=100, force_terminal=True, color_system="standard")
    console.print(to_rich(table))
    return console.file.getvalue()


def test_names_are_neither_markup_nor_escape_codes():
    text = printed(Table("[bold]t[/bold]", ("[i]a", "b"), (("[red]x[/red]\x1b[2J", "\u202ey"),)))
    for shown in ("[bold]t[/bold]", "[i]a", r"[red]x[/red]\x1b[2J", r"\u202ey"):
        assert shown in text
    assert "\x1b[2J" not in text
    assert "\u202e" not in text


def test_numbers_stand_to_the_right_and_notes_are_left_out():
    text = printed(Table("t", ("name", "number"), (("a", Number(1)), ("b", Entry("12345", 12345, note="n")))))
    lines = [line.rstrip() for line in re.sub(r"\x1b\[\d*m", "", text).splitlines()]
    assert lines[1:] == ["name  number", "━━━━━━━━━━━━━", "a       1.00", "b      12345"]


def test_a_table_of_80_columns_breaks_neither_names_nor_numbers():
    columns = ("method", "accuracy %", "recall of worst class", "calibration error", "what it is")
    rows = (
        ("ot-euclidean-weighted", Number(68.57, 10.55), Number(1), Number(0.5), "a sentence of several words " * 4),
    )
    console = Console(file=StringIO(), width=80)
    console.print(to_rich(Table("t", columns, rows)))
    text = console.file.getvalue()
    assert "ot-euclidean-weighted  68.57 ± 10.55" in text
    assert "recall of  calibration\n" in re.sub(" +\n", "\n", text)
    assert max(map(len, text.splitlines())) <= 80


def test_rows_of_published_numbers_alone_are_dim():
    rows = (("paper", Number(1, published=True)), ("both", Number(2)), ("text", None))
    dim = {name: "\x1b[2m" in line for line in printed(Table("t", ("a", "b"), rows)).splitlines()
           for name in ("paper", "both", "text") if name in line}  # fmt: skip
    assert dim == {"paper": True, "both": False, "text": False}


def test_kinds_have_their_style():
    table = Table("t", ("verdict", "what"), ((Entry("holds", "holds", kind="holds"), "a"), ("holds", "b")))
    assert printed(table).count("\x1b[32mholds") == 1


def test_the_bar_shows_the_running_mean_and_the_rate_of_new_tasks():
    console = Console(file=StringIO(), width=120, force_terminal=True)
    chunk = SimpleNamespace(method="[hot]\x1b[2J", shots=1)
    record = SimpleNamespace(chunk=chunk, accuracies=[6 / 8, 1 / 4])
    with Watching(console) as watching:
        watching(record, True, 4)
        assert watching.known == 2
        watching.refresh()
        assert "/s" not in console.file.getvalue()
        watching(record, False, 4)
    assert (watching.done, watching.known) == (4, 2)
    assert re.search(r"\[hot\]\\x1b\[2J, 1 shot: 50\.00%.*4/4.* tasks \S*\d+/s", console.file.getvalue())


def test_without_a_terminal_progress_is_a_plain_line_now_and_then(monkeypatch, capsys):
    monkeypatch.setattr("hotshot.cli.terminal.SECONDS_BETWEEN_LINES", 0.05)
    with Bar(CONSOLE, "images") as progress:
        task = progress.add_task("extracting\x1b[2J", total=3000, completed=1200)
        time.sleep(0.4)
        progress.update(task, completed=3000)
        time.sleep(0.2)
    with waiting("reading"):
        time.sleep(0.2)
    written = capsys.readouterr()
    assert written.out == CONSOLE.file.getvalue() == ""
    lines = written.err.splitlines()
    assert set(lines) == {r"extracting\x1b[2J, 1,200 of 3,000 images, 0 s", "reading, 0 s"}
    assert len(lines) <= 13
    time.sleep(0.2)
    assert capsys.readouterr().err == ""


def test_a_table_in_a_file_leaves_the_bar_on_the_terminal(monkeypatch, capsys):
    monkeypatch.setenv("TERM", "xterm")
    screen = Console(file=StringIO(), force_terminal=True, width=80)
    monkeypatch.setattr("hotshot.cli.terminal.Console", lambda **options: screen)
    with Bar(CONSOLE, "images") as progress:
        progress.add_task("extracting", total=3000)
    assert "extracting" in screen.file.getvalue()
    assert CONSOLE.file.getvalue() == ""


def test_each_warning_about_scale_is_one_note():
    with Watching(CONSOLE) as watching:
        for text in ("too small", "too large", "too small"):
            warnings.warn(text, ScaleWarning, stacklevel=1)
    assert watching.notes == ("too small", "too large")


@pytest.mark.parametrize(
    ("out", "sentence"),
    [
        (None, "Interrupted in costs. Without a run folder, nothing was saved."),
        (Path("here"), "Interrupted in costs. here holds 1,200 finished tasks: rerun the command to resume."),
    ],
)
def test_control_c_is_one_sentence(out, sentence):
    watching = Watching(CONSOLE, out, " in costs")
    watching.done = 1200
    with pytest.raises(InterruptedRunError) as caught, watching:
        raise KeyboardInterrupt
    assert str(caught.value) == sentence


def test_names_are_printed_and_not_obeyed():
    written = StringIO()
    console = Console(file=written, width=200)
    console.print("Run folder: a\x1b[31mb\x07\udcff\nnext", markup=False)
    console.print(Text("as it is"))
    assert written.getvalue() == "Run folder: a\\x1b[31mb\\x07\\udcff\nnext\nas it is\n"
