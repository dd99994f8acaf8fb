"""Tables in a terminal: numbers to the right, published rows dim, and text that is only text."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from hotshot.cli.reproduce import STYLES
from hotshot.cli.tables import to_rich
from hotshot.evaluation.tables import Entry, Number, Table


def printed(table, styles=None):
    console = Console(file=StringIO(), width=100, force_terminal=True, color_system="standard")
    console.print(to_rich(table, styles))
    return console.file.getvalue()


def test_names_are_neither_markup_nor_escape_codes():
    text = printed(Table("[bold]t[/bold]", ("[i]a", "b"), (("[red]x[/red]\x1b[2J", "\u202ey"),)))
    for shown in ("[bold]t[/bold]", "[i]a", r"[red]x[/red]\x1b[2J", r"\u202ey"):
        assert shown in text
    assert "\x1b[2J" not in text
    assert "\u202e" not in text


def test_numbers_stand_to_the_right_and_notes_are_left_out():
    text = printed(Table("t", ("name", "number"), (("a", Number(1)), ("b", Entry("12345", 12345, note="n")))))
    assert "│ a    │   1.00 │" in text
    assert "│ b    │  12345 │" in text


def test_rows_of_published_numbers_alone_are_dim():
    rows = (("paper", Number(1, published=True)), ("both", Number(2)), ("text", None))
    dim = {name: "\x1b[2m" in line for line in printed(Table("t", ("a", "b"), rows)).splitlines()
           for name in ("paper", "both", "text") if name in line}  # fmt: skip
    assert dim == {"paper": True, "both": False, "text": False}


def test_kinds_have_their_style():
    table = Table("t", ("verdict",), ((Entry("holds", "holds", kind="holds"),),))
    assert "\x1b[32mholds" in printed(table, STYLES)
    assert "\x1b[32m" not in printed(table)


def test_every_verdict_has_a_style():
    claims = pytest.importorskip("hotshot.paper.claims")
    assert set(STYLES) == {claims.HOLDS, claims.FAILS, claims.UNDECIDED}
