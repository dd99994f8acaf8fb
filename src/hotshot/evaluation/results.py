"""What an evaluation found: accuracies per task, their means with 95% intervals, and paired differences.

Intervals over tasks hold for the classes that the tasks were drawn from; those over classes for new classes of the same
kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.errors import InputError, ParameterError
from hotshot.evaluation.journal import Record
from hotshot.evaluation.tasks import CLOSED, Setting
from hotshot.formatting import did_you_mean, setting_in_words, shortened
from hotshot.intervals import Estimate, class_interval, mean_interval
from hotshot.transport import Status

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hotshot.evaluation.tables import Table


RESULTS = "results.json"
AHEAD, BEHIND, UNDECIDED = "ahead", "behind", "undecided"
# Of Okabe and Ito, which people with any colour vision can tell apart.
BLUE, ORANGE, GREY, INK = "#0072B2", "#E69F00", "#8C8C8C", "#222222"
# Class names may hold dollar signs; nothing in a figure is mathematics.
FIGURE_SETTINGS: dict[Any, Any] = {
    "font.size": 8.0, "axes.titlesize": 8.0, "axes.titlelocation": "left", "axes.spines.top": False,
    "axes.spines.right": False, "lines.markersize": 5, "text.color": INK, "text.parse_math": False,
}  # fmt: skip
# Characters of a name beside an axis.
LONGEST = 28


def verdict(difference: Estimate) -> str:
    """Whether the interval of a difference lies above zero, below it, or around it."""
    if difference.low > 0:
        return AHEAD
    return BEHIND if difference.high < 0 else UNDECIDED


def verdicts(differences: Mapping[str, Estimate]) -> dict[str, str]:
    """The verdict on each of several differences, by Holm's procedure.

    The chance that any of those that are truly 0 is called ahead or behind is 5%, however many there are.
    """
    found = dict.fromkeys(differences, UNDECIDED)
    order = sorted(differences, key=lambda name: differences[name].p_value)
    for rank, name in enumerate(order):
        if differences[name].p_value > 0.05 / (len(order) - rank):
            break
        found[name] = verdict(differences[name])
    return found


def paired_difference(values: np.ndarray, reference: np.ndarray) -> Estimate:
    """Mean of values - reference over the same tasks, with its 95% interval over tasks."""
    values, reference = np.asarray(values), np.asarray(reference)
    if values.shape != reference.shape:
        raise InputError(
            f"Paired values must come from the same tasks, got shapes {values.shape} and {reference.shape}."
        )
    return mean_interval(values - reference)


@dataclass(frozen=True)
class MethodResult:
    """One method on all tasks of one number of shots, or of a range such as "1-10".

    ``accuracies`` (tasks,) are in the order of the tasks, ``classes`` (tasks, ways) are the classes of each as indices,
    -1 where it has fewer than others. ``recall`` is the share of the queries of each novel class that were predicted
    right, over all tasks it was drawn in. ``calibration_error`` is the mean distance between confidence and accuracy
    over 15 bins of confidence, None for methods without probabilities. ``statuses`` tell how the transport problems
    ended, ``stopped_early`` how many fits stopped before their minimum, and ``seconds_per_task`` are those of one core,
    to draw, fit and predict. ``measures`` (tasks,) are what else the setting measures, in [-1, 1]; empty in the closed
    one.
    """

    method: str
    shots: int | str
    accuracies: np.ndarray
    classes: np.ndarray
    recall: dict[Any, float]
    calibration_error: float | None
    statuses: dict[Status, int]
    stopped_early: int
    seconds_per_task: float
    measures: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def accuracy(self) -> Estimate:
        """Mean accuracy with its 95% interval over tasks."""
        return mean_interval(self.accuracies)

    @property
    def accuracy_over_classes(self) -> Estimate:
        """Mean accuracy with its 95% interval over classes."""
        return class_interval(self.accuracies, self.classes)

    def share_below(self, threshold: float) -> float:
        """Share of the tasks whose accuracy is below a threshold in [0, 1]."""
        return float(np.mean(self.accuracies < threshold))


@dataclass(frozen=True)
class Evaluation:
    """All methods on the same tasks; `print` it for a table. `found["hot", 5]` is the result of hot at five shots."""

    results: tuple[MethodResult, ...]
    ways: int | str
    tasks: int
    reference: str
    setting: Setting = CLOSED
    # Methods that classified the queries of a task jointly.
    jointly: tuple[str, ...] = ()

    def __getitem__(self, key: tuple[str, int | str]) -> MethodResult:
        for result in self.results:
            if (result.method, result.shots) == key:
                return result
        raise KeyError(key)

    @property
    def shots(self) -> list[int | str]:
        """Numbers of shots, in the order asked for."""
        return list(dict.fromkeys(result.shots for result in self.results))

    @property
    def methods(self) -> list[str]:
        """Names of the methods, in the order asked for."""
        return list(dict.fromkeys(result.method for result in self.results))

    def difference(
        self, method: str, shots: int | str, reference: str | None = None, *, measure: str | None = None
    ) -> Estimate:
        """Accuracy of the reference minus that of `method`, paired over the tasks, with its 95% interval over tasks.

        It is a difference of shares: 0.01 is one point. With `measure` it is the difference of that one.
        """
        result, other = self[method, shots], self[self.reference if reference is None else reference, shots]
        if measure is not None:
            return paired_difference(other.measures[measure], result.measures[measure])
        return paired_difference(other.accuracies, result.accuracies)

    def difference_over_classes(self, method: str, shots: int | str, reference: str | None = None) -> Estimate:
        """The same difference with its 95% interval over classes: whether it holds for new classes of this kind."""
        result, other = self[method, shots], self[self.reference if reference is None else reference, shots]
        return class_interval(other.accuracies - result.accuracies, result.classes)

    @property
    def holds_for_new_classes(self) -> bool:
        """Whether there are intervals over classes: only in the closed setting, if tasks differ in their classes."""
        estimates = (self[self.reference, shots].accuracy_over_classes for shots in self.shots)
        return not self.setting.compared and all(np.isfinite(estimate.half_width) for estimate in estimates)

    def leads(self, shots: int | str) -> dict[str, Estimate]:
        """The lead of the reference over each other method; `verdicts` of it says which are significant.

        It is a difference over classes, or over tasks if there are no intervals over classes. Other settings than the
        closed one have their measure compared, over tasks.
        """
        others, measure = [method for method in self.methods if method != self.reference], self.setting.compared
        if self.holds_for_new_classes:
            return {method: self.difference_over_classes(method, shots) for method in others}
        return {method: self.difference(method, shots, measure=measure or None) for method in others}

    def rows(self, threshold: float = 0.5) -> list[dict[str, Any]]:
        """One flat dict per method and number of shots: for a data frame or JSON.

        Accuracies, differences and all other measures are shares from 0 to 1, as in `difference`; tables for people
        are in percent. Half widths are those of 95% intervals over tasks, and with `class` in their names over classes.
        Other settings than the closed one have their measures too, and `reference_is` goes by the one they compare by.
        With `batch` of `evaluate`, `batch` says whether the method classified the queries of a task jointly.
        """
        standing = {shots: verdicts(self.leads(shots)) for shots in self.shots}
        return [self._row(result, threshold, standing[result.shots].get(result.method)) for result in self.results]

    def _row(self, result: MethodResult, threshold: float, reference_is: str | None) -> dict[str, Any]:
        method, shots, over_classes = result.method, result.shots, result.accuracy_over_classes
        lead = None if method == self.reference else self.difference_over_classes(method, shots)
        return {
            "method": method,
            "ways": self.ways,
            "shots": shots,
            "tasks": len(result.accuracies),
            "classes": over_classes.n,
            **numbers("accuracy", result.accuracy),
            "accuracy_class_half_width": finite(over_classes.half_width),
            "reference": self.reference,
            **numbers("reference_minus_this", self.difference(method, shots)),
            "reference_minus_this_class_half_width": None if lead is None else finite(lead.half_width),
            **self._measures(result),
            **({"batch": method in self.jointly} if self.jointly else {}),
            "reference_is": reference_is,
            "share_below_threshold": result.share_below(threshold),
            "threshold": threshold,
            "calibration_error": result.calibration_error,
            "milliseconds_per_task": 1000 * result.seconds_per_task,
            "transport": {status.name.lower(): n for status, n in result.statuses.items()},
            "stopped_early": result.stopped_early,
            "recall": {str(name): value for name, value in result.recall.items()},
        }

    def _measures(self, result: MethodResult) -> dict[str, Any]:
        """Measures of one row and how far the reference is ahead in them."""
        row: dict[str, Any] = {"setting": self.setting.name} if self.setting.compared else {}
        for name, values in result.measures.items():
            row |= numbers(name, mean_interval(values))
            if name in self[self.reference, result.shots].measures:
                difference = self.difference(result.method, result.shots, measure=name)
                row |= numbers(f"reference_minus_this_{name}", difference)
        return row

    def _tables(self) -> list[Table]:
        from hotshot.evaluation.tables import result_table

        return [result_table(self, shots) for shots in self.shots]

    def __str__(self) -> str:
        return "\n\n".join(f"{table.title}\n{table}" for table in self._tables())

    def _repr_html_(self) -> str:
        tables = self._tables()
        notes = dict.fromkeys(f"<p>{escape(note)}</p>" for table in tables for note in table.notes)
        return f"<div>{''.join([*(table.to_html() for table in tables), *notes])}</div>"

    def plot(self) -> Figure:
        """A figure: the paired difference of the reference to each other method, with its 95% interval.

        A dot is filled where the difference is significant after Holm's correction: blue where the reference is ahead,
        orange where it is behind. Methods are sorted by the lead at the first number of shots, the largest on top.
        """
        first = self.leads(self.shots[0])
        others = sorted(first, key=lambda method: -first[method].mean)
        if not others:
            raise InputError("A plot shows differences between methods, and there is only one: evaluate at least two.")
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        with matplotlib.rc_context(FIGURE_SETTINGS):
            figure = Figure(figsize=(7.0, 1.0 + 0.25 * len(others)), layout="constrained")
            FigureCanvasAgg(figure)
            # Notebooks know figures of pyplot alone.
            vars(figure)["_repr_png_"] = partial(_png, figure)
            panels = figure.subplots(1, len(self.shots), sharey=True, squeeze=False)[0]
            for panel, shots in zip(panels, self.shots, strict=True):
                leads = self.leads(shots)
                standing = verdicts(leads)
                panel.axvline(0, color=INK, linewidth=0.6)
                for place, method in enumerate(others):
                    mean, width = 100 * leads[method].mean, 100 * leads[method].half_width
                    colour = {AHEAD: BLUE, BEHIND: ORANGE}.get(standing[method], GREY)
                    # Not by colour alone: what is undecided is hollow.
                    filled = "white" if standing[method] == UNDECIDED else colour
                    panel.errorbar(mean, place, xerr=finite(width), fmt="o", color=colour, markerfacecolor=filled)
                panel.set_title(setting_in_words(self.ways, shots))
                panel.margins(y=0.5 / len(others))
            panels[0].set_yticks(range(len(others)), [shortened(method, LONGEST, "ends") for method in others])
            panels[0].invert_yaxis()
            what = self.setting.measures.get(self.setting.compared, "accuracy")
            over = "classes" if self.holds_for_new_classes else "tasks"
            reference = shortened(self.reference, LONGEST, "ends")
            figure.supxlabel(f"lead of {reference}: {what} in points, paired, 95% over {over}", fontsize="medium")
        return figure


def _png(figure: Figure) -> bytes:
    written = BytesIO()
    figure.savefig(written, format="png", dpi=120)
    return written.getvalue()


def finite(value: float) -> float | None:
    """A single task has no interval, and JSON no infinity."""
    return value if np.isfinite(value) else None


def numbers(name: str, estimate: Estimate) -> dict[str, float | None]:
    """A mean and the half width of its interval as entries of a row."""
    return {name: estimate.mean, f"{name}_half_width": finite(estimate.half_width)}


def summarise(method: str, shots: int | str, records: Sequence[Record], names: np.ndarray) -> MethodResult:
    """The result of a method from its records in the order of the tasks; `names` are those of the classes."""
    tasks = [counts for record in records for counts in record.counts]
    ways = np.array([len(counts) for counts in tasks])
    drawn, queries, correct = np.array([row for counts in tasks for row in counts]).T
    starts = np.cumsum(ways) - ways
    classes = np.full((len(tasks), ways.max()), -1)
    classes[np.arange(ways.max()) < ways[:, None]] = drawn
    of_class, right_of_class = (np.bincount(drawn, numbers, len(names)) for numbers in (queries, correct))
    labels = names.tolist()
    statuses: Counter[Status] = Counter()
    for record in records:
        statuses.update({Status(int(status)): count for status, count in record.statuses.items()})
    measures = [name for name in records[0].measures if all(name in record.measures for record in records)]
    return MethodResult(
        method=method,
        shots=shots,
        accuracies=np.add.reduceat(correct, starts) / np.add.reduceat(queries, starts),
        classes=classes,
        recall={labels[c]: float(right_of_class[c] / of_class[c]) for c in np.flatnonzero(of_class)},
        calibration_error=_calibration_error(records),
        statuses=dict(sorted(statuses.items())),
        stopped_early=sum(record.stopped_early for record in records),
        seconds_per_task=sum(record.seconds for record in records) / len(tasks),
        measures={name: np.concatenate([record.measures[name] for record in records]) for name in measures},
    )


def _calibration_error(records: Sequence[Record]) -> float | None:
    bins = [record.bins for record in records if record.bins is not None]
    if not bins:
        return None
    count, confidence, correct = np.sum(bins, axis=0).T
    return float(np.sum(np.abs(confidence - correct)) / np.sum(count))


def check_reference(reference: str | None, methods: Iterable[str]) -> str:
    """The method that the others are compared to: the one named, or the first."""
    methods = list(methods)
    if reference is not None and reference not in methods:
        raise ParameterError(
            f"reference must be one of the methods {', '.join(methods)}, got {reference!r}."
            f"{did_you_mean(str(reference), methods)}"
        )
    return methods[0] if reference is None else reference
