"""Tables of results in a terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rich.table import Table as RichTable
from rich.text import Text

from hotshot.evaluation.tables import PUBLISHED, Entry, Table
from hotshot.formatting import printable


def to_rich(table: Table, styles: Mapping[str, str] | None = None) -> RichTable:
    """A table for a console, without its notes; rows of published numbers alone are dim.

    `styles` says how entries of a kind are shown. Whatever the text is, it is neither markup nor escape codes.
    """
    shown = RichTable(title=Text(printable(table.title), "table.title") if table.title else None, title_justify="left")
    for name, numeric in zip(table.columns, table.numeric, strict=True):
        shown.add_column(Text(printable(name)), justify="right" if numeric else "left", overflow="fold")
    for row in table.entries:
        texts = (Text(printable(entry.text), (styles or {}).get(entry.kind, "")) for entry in row)
        shown.add_row(*texts, style="dim" if _is_published(row) else None)
    return shown


def _is_published(row: list[Entry]) -> bool:
    kinds = {entry.kind for entry in row if isinstance(entry.value, int | float)}
    return kinds == {PUBLISHED}
