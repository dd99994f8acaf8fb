"""Answers to inputs, and files of them: the columns of the input with the answers added, some rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.errors import InputError
from hotshot.files import Samples
from hotshot.files.samples import ID
from hotshot.files.tables import format_of, writing
from hotshot.formatting import listing, quoted
from hotshot.inputs.inputs import Inputs, readable

if TYPE_CHECKING:
    from hotshot.inputs.classifier import InputClassifier

# Answer for an input that fits no class.
NONE = "none of these"
CLASS, PROBABILITY, RUNNER_UP, RUNNER_UP_PROBABILITY, OUTLIER, ERROR = (
    "class", "probability", "runner_up", "runner_up_probability", "outlier_score", "error",
)  # fmt: skip
NUMBERS = (PROBABILITY, RUNNER_UP_PROBABILITY, OUTLIER)
# Digits that are written: single precision has no more significant ones.
DIGITS = 6
# Inputs that are classified jointly; of more, so many at a time.
MOST_IN_A_BATCH = 50_000

Answers = dict[str, list[Any]]


@dataclass(frozen=True)
class Answered:
    """How many inputs were answered so far, and how many of their labels, if any, agree."""

    inputs: int = 0
    unreadable: int = 0
    rejected: int = 0
    labelled: int = 0
    agreeing: int = 0
    # Names of folders need not be labels: some are classes of the model.
    has_labels: bool = False


def answer(
    model: Any, X: np.ndarray, reject: float | None = None, unknown: Any = NONE, *, batch: bool = False
) -> Answers:
    """The two most probable classes of features (rows, V), with probabilities and outlier scores.

    For a rejected row the class is `unknown`, without a probability, and the most probable class is the runner-up. As a
    batch the rows are classified jointly.
    """
    if not len(X):
        return {name: [] for name in _names(model)}
    probabilities, scores, rejected = model.answers(X, reject, batch=batch)
    rows = np.arange(len(probabilities))
    first = probabilities.argmax(axis=1)
    best = probabilities[rows, first]
    probabilities[rows, first] = -1
    second = probabilities.argmax(axis=1)
    names = np.array(model.classes_.tolist(), dtype=object)
    answers: Answers = {
        CLASS: names[first].tolist(),
        PROBABILITY: _rounded(best),
        RUNNER_UP: names[second].tolist(),
        RUNNER_UP_PROBABILITY: _rounded(probabilities[rows, second]),
    }
    if len(names) == 1:
        answers[RUNNER_UP], answers[RUNNER_UP_PROBABILITY] = [None] * len(rows), [None] * len(rows)
    if scores is not None:
        answers[OUTLIER] = _rounded(scores)
    for i in np.flatnonzero(rejected):
        answers[RUNNER_UP][i], answers[RUNNER_UP_PROBABILITY][i] = answers[CLASS][i], answers[PROBABILITY][i]
        answers[CLASS][i], answers[PROBABILITY][i] = unknown, None
    return answers


def _rounded(values: np.ndarray) -> list[float]:
    return np.round(values.astype(np.float64), DIGITS).tolist()


def _names(model: Any) -> list[str]:
    return [CLASS, PROBABILITY, RUNNER_UP, RUNNER_UP_PROBABILITY, *([] if model.base is None else [OUTLIER])]


def check_columns(
    columns: Sequence[str],
    added: Sequence[str],
    name: str,
    remedy: str = "rename it or pass --prefix to rename the answer columns",
) -> None:
    """Raise if an input has a column with the name of an answer column."""
    both = [column for column in columns if column in added]
    if both:
        raise InputError(
            f"{name} already has {'a column' if len(both) == 1 else 'columns'} {listing(map(quoted, both))}: {remedy}."
        )


def write_answers(
    model: InputClassifier,
    inputs: Inputs,
    out: Path | None = None,
    form: str | None = None,
    *,
    reject: float | None = None,
    unknown: str = NONE,
    batch: bool = False,
    prefix: str = "",
    strict: bool = False,
    watch: Callable[[str, int, int | None], None] | None = None,
) -> Iterator[Answered]:
    """Write the columns of inputs with the answers added, to a file or to standard output, some rows at a time.

    After every part the counts so far are yielded. While one is written, the next one is classified.
    """
    added = [prefix + name for name in (*_names(model.model), ERROR)]
    check_columns(inputs.columns, added, inputs.name)
    classes, done = {*map(str, model.classes.tolist())}, Answered()
    most = MOST_IN_A_BATCH if batch else 1

    def answered(part: list[tuple[Samples, np.ndarray]]) -> list[tuple[Samples, Answers]]:
        answers = answer(model.model, np.concatenate([X for _, X in part]), reject, unknown, batch=batch)
        starts = np.cumsum([0, *(len(X) for _, X in part)]).tolist()
        spans = zip(part, starts, starts[1:], strict=False)
        return [(own, {name: all_[a:b] for name, all_ in answers.items()}) for (own, _), a, b in spans]

    with (
        writing(out, format_of(out, form), [prefix + name for name in NUMBERS]) as write,
        ThreadPoolExecutor(1) as pool,
    ):
        parts = _in_parts(model.batches(inputs, watch, strict=strict), most)
        for rows, answers in (pair for part in _computed_ahead(pool, answered, parts) for pair in part):
            rejected = sum(p is None for p in answers[PROBABILITY])
            answers = in_place(answers, rows)
            columns = {name: rows.columns[name] for name in inputs.columns} or {ID: rows.columns[inputs.id]}
            write({**columns, **dict(zip(added, answers.values(), strict=True))})
            pairs = [
                (label, str(given))
                for label, given in zip(rows.y or (), answers[CLASS], strict=False)
                if label and given is not None
            ]
            done = Answered(
                done.inputs + len(rows),
                done.unreadable + len(rows.errors),
                done.rejected + rejected,
                done.labelled + len(pairs),
                done.agreeing + sum(label == given for label, given in pairs),
                done.has_labels or any(label in classes for label, _ in pairs),
            )
            yield done


def in_place(answers: Answers, rows: Samples) -> Answers:
    """The answers to the readable rows, in the places of these; the last column says why others have no answer."""
    if rows.errors:
        places = np.full(len(rows), -1)
        places[readable(rows)] = np.arange(len(rows) - len(rows.errors))
        answers = {name: [None if i < 0 else own[i] for i in places.tolist()] for name, own in answers.items()}
    return {**answers, ERROR: [rows.errors.get(row) for row in range(len(rows))]}


def _in_parts(batches: Iterable[tuple[Samples, np.ndarray]], most: int) -> Iterator[list[tuple[Samples, np.ndarray]]]:
    """Batches one after another until they have about `most` rows."""
    part: list[tuple[Samples, np.ndarray]] = []
    for batch in batches:
        part.append(batch)
        if sum(len(rows) for rows, _ in part) >= most:
            yield part
            part = []
    if part:
        yield part


def _computed_ahead(pool: ThreadPoolExecutor, work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """Results of `work` on items, in order; work on the next item starts before a result is yielded."""
    waiting: Future[Any] | None = None
    for item in items:
        begun = pool.submit(work, item)
        if waiting is not None:
            yield waiting.result()
        waiting = begun
    if waiting is not None:
        yield waiting.result()
