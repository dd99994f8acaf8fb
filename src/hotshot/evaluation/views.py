"""An evaluation as a notebook shows it: its tables, and a figure of the paired differences."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from hotshot.errors import InputError
from hotshot.evaluation.results import AHEAD, BEHIND, Evaluation, verdicts
from hotshot.evaluation.tables import Table, accuracy_table, measure_table
from hotshot.formatting import setting_in_words, shortened
from hotshot.intervals import Estimate
from hotshot.notebook import BLUE, GREY, INK, LONGEST, ORANGE, html_table, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {AHEAD: BLUE, BEHIND: ORANGE}


def as_html(found: Evaluation) -> str:
    """A table for each number of shots, and what their intervals hold for."""
    table_of = measure_table if found.setting.compared else accuracy_table
    tables = [table_of(found, shots) for shots in found.shots]
    notes = dict.fromkeys(note for table in tables for note in table.notes)
    return "<div>" + "".join([*map(_table, tables), *(f"<p>{escape(note)}</p>" for note in notes)]) + "</div>"


def _table(table: Table) -> str:
    rows = [[escape(entry.text) for entry in row] for row in table.entries]
    return f"<p><b>{escape(table.title)}</b></p>{html_table([*map(escape, table.columns)], rows, table.numeric)}"


def as_figure(found: Evaluation) -> Figure:
    """A panel for each number of shots: the lead of the reference over each other method, with its intervals.

    Methods are sorted by the lead at the first number of shots, the largest on top.
    """
    leads = found.leads(found.shots[0])
    others = sorted(leads, key=lambda method: -leads[method].mean)
    if not others:
        raise InputError("A plot shows differences between methods, and there is only one: evaluate at least two.")
    with new_figure(1.0 + 0.25 * len(others), [1] * len(found.shots), share_y=True) as (figure, panels):
        for panel, shots in zip(panels, found.shots, strict=True):
            _differences(panel, found, others, shots)
        panels[0].set_yticks(range(len(others)), [shortened(method, LONGEST, "ends") for method in others])
        panels[0].invert_yaxis()
        what = found.setting.measures.get(found.setting.compared, "accuracy")
        thin = "tasks" if found.setting.compared else "classes (thin) and over tasks (thick)"
        figure.supxlabel(
            f"lead of {shortened(found.reference, LONGEST, 'ends')}: {what} in points, paired, 95% over {thin}",
            fontsize="medium",
        )
    return figure


def _differences(panel: Axes, found: Evaluation, others: list[str], shots: int | str) -> None:
    leads = found.leads(shots)
    standing = verdicts(leads)
    panel.axvline(0, color=INK, linewidth=0.6)
    for place, method in enumerate(others):
        lead, colour = leads[method], COLOURS.get(standing[method], GREY)
        _interval(panel, lead, place, colour, 1.0)
        if not found.setting.compared:
            _interval(panel, found.difference(method, shots), place, colour, 3.0)
        # Not by colour alone: what is undecided is hollow.
        filled = colour if standing[method] in COLOURS else "white"
        panel.plot(100 * lead.mean, place, "o", color=colour, markerfacecolor=filled, markersize=5)
    panel.set_title(setting_in_words(found.ways, shots))
    panel.margins(y=0.5 / len(others))


def _interval(panel: Axes, estimate: Estimate, place: int, colour: str, width: float) -> None:
    if math.isfinite(estimate.half_width):
        panel.plot([100 * estimate.low, 100 * estimate.high], [place, place], color=colour, linewidth=width)
