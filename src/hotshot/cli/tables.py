"""Result tables as a person reads them in a terminal."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from rich.table import Table

from hotshot.errors import ScaleWarning
from hotshot.evaluation import Evaluation, Tuning
from hotshot.transport.solution import Status


def accuracy_tables(found: Evaluation) -> list[Table]:
    """One table per number of shots: accuracy, and the paired difference to the reference."""
    tables = []
    for shots in found.shots:
        table = _table(
            f"{found.ways}-way-{shots}-shot, {found.tasks} tasks",
            "method",
            "accuracy in %, 95% interval",
            f"{found.reference} minus it, paired, 95%",
        )
        for method in found.methods:
            own, difference = found[method, shots].accuracy, found.difference(method, shots)
            table.add_row(
                method,
                f"{100 * own.mean:.2f} ± {100 * own.half_width:.2f}",
                ""
                if method == found.reference
                else f"{100 * difference.mean:+.2f} ± {100 * difference.half_width:.2f}",
            )
        tables.append(table)
    return tables


def detail_table(found: Evaluation, threshold: float) -> Table:
    """Beyond the mean: bad tasks, bad classes, calibration, time."""
    table = _table(
        "beyond the mean",
        "method",
        "shots",
        f"tasks below {100 * threshold:g}%",
        "recall of worst class",
        "calibration error",
        "ms a task, one core",
    )
    for result in found.results:
        error = result.calibration_error
        table.add_row(
            result.method,
            str(result.shots),
            f"{100 * result.share_below(threshold):.1f}%",
            f"{100 * min(result.recall.values()):.0f}%",
            "" if error is None else f"{error:.3f}",
            f"{1000 * result.seconds_per_task:.1f}",
        )
    return table


def troubles(found: Evaluation) -> list[str]:
    """A sentence for every method some of whose problems did not end as they should."""
    lines = []
    for result in found.results:
        unsolved = {s: n for s, n in result.statuses.items() if s != Status.CONVERGED}
        for status, count in unsolved.items():
            total = sum(result.statuses.values())
            lines.append(
                f"{result.method}, {result.shots} shots: {count} of {total} transport problems ended as "
                f"{status.name}. {status.explanation}"
            )
        if result.stopped_early:
            lines.append(
                f"{result.method}, {result.shots} shots: {result.stopped_early} of {found.tasks} fits stopped before "
                "their minimum."
            )
    return lines


def scale_notes(caught: Iterable[warnings.WarningMessage]) -> list[str]:
    """What methods said of features whose scale their parameters were not made for, each once."""
    return list(dict.fromkeys(str(w.message) for w in caught if w.category is ScaleWarning))


def tuning_table(found: Tuning, most: int) -> Table:
    """The best candidates, with the tasks they saw and their paired gain over the defaults."""
    table = _table(
        f"best {min(most, len(found.candidates))} of {len(found.candidates)} candidates",
        "parameters",
        "tasks",
        "accuracy in %, 95%",
        "minus defaults, paired, 95%",
    )
    for candidate in found.candidates[:most]:
        own, gain = candidate.accuracy, candidate.gain
        table.add_row(
            candidate.name,
            str(own.n),
            f"{100 * own.mean:.2f} ± {100 * own.half_width:.2f}",
            f"{100 * gain.mean:+.2f} ± {100 * gain.half_width:.2f}",
        )
    return table


def _table(title: str, first: str, *others: str) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column(first, overflow="fold")
    for name in others:
        table.add_column(name, justify="right")
    return table
