"""Answers to inputs, and files of them: the columns of the input with the answers added, some rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.errors import InputError
from hotshot.files.tables import format_of, writing
from hotshot.formatting import listing, quoted
from hotshot.inputs.rows import Inputs, Rows

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

Columns = dict[str, list[Any]]


def answer(
    model: Any, X: np.ndarray, reject: float | None = None, unknown: Any = NONE, *, batch: bool = False
) -> Columns:
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
    found: Columns = {
        CLASS: names[first].tolist(),
        PROBABILITY: _rounded(best),
        RUNNER_UP: names[second].tolist(),
        RUNNER_UP_PROBABILITY: _rounded(probabilities[rows, second]),
    }
    if len(names) == 1:
        found[RUNNER_UP], found[RUNNER_UP_PROBABILITY] = [None] * len(rows), [None] * len(rows)
    if scores is not None:
        found[OUTLIER] = _rounded(scores)
    for i in np.flatnonzero(rejected):
        found[RUNNER_UP][i], found[RUNNER_UP_PROBABILITY][i] = found[CLASS][i], found[PROBABILITY][i]
        found[CLASS][i], found[PROBABILITY][i] = unknown, None
    return found


def in_place(answers: Columns, rows: Rows) -> Columns:
    """The answers to the readable rows, in the places of these; the last column says why others have no answer."""
    if rows.errors:
        places = np.full(len(rows), -1)
        places[rows.readable] = np.arange(len(rows.readable))
        answers = {name: [None if i < 0 else own[i] for i in places.tolist()] for name, own in answers.items()}
    return {**answers, ERROR: [rows.errors.get(row) for row in range(len(rows))]}


def answer_columns(model: Any, prefix: str = "") -> list[str]:
    """Names of the answer columns, in the order of `answer` and `in_place`."""
    return [prefix + name for name in (*_names(model), ERROR)]


def _names(model: Any) -> list[str]:
    return [CLASS, PROBABILITY, RUNNER_UP, RUNNER_UP_PROBABILITY, *([] if model.base is None else [OUTLIER])]


def _rounded(values: np.ndarray) -> list[float]:
    return np.round(values.astype(np.float64), DIGITS).tolist()


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
    added = answer_columns(model.model, prefix)
    check_columns(inputs.columns, added, inputs.name)
    classes, done = {*map(str, model.classes.tolist())}, Answered()

    def answered(part: tuple[list[Rows], np.ndarray]) -> tuple[list[Rows], Columns]:
        return part[0], answer(model.model, part[1], reject, unknown, batch=batch)

    with (
        writing(out, format_of(out, form), [prefix + name for name in NUMBERS]) as write,
        ThreadPoolExecutor(1) as pool,
    ):
        together = _joined(model.batches(inputs, watch, strict=strict), MOST_IN_A_BATCH if batch else 1)
        for rows, readable in _split(_computed_ahead(pool, answered, together)):
            answers = in_place(readable, rows)
            write({**(rows.columns or {"id": list(rows.ids)}), **dict(zip(added, answers.values(), strict=True))})
            pairs = [
                (label, str(given))
                for label, given in zip(rows.labels or (), answers[CLASS], strict=False)
                if label and given is not None
            ]
            done = Answered(
                done.inputs + len(rows),
                done.unreadable + len(rows.errors),
                done.rejected + sum(p is None for p in readable[PROBABILITY]),
                done.labelled + len(pairs),
                done.agreeing + sum(label == given for label, given in pairs),
                done.has_labels or any(label in classes for label, _ in pairs),
            )
            yield done


def _joined(batches: Iterable[tuple[Rows, np.ndarray]], most: int) -> Iterator[tuple[list[Rows], np.ndarray]]:
    """Rows and features of the readable ones, one batch after another until there are about `most` rows."""
    waiting: list[tuple[Rows, np.ndarray]] = []
    for batch in batches:
        waiting.append(batch)
        if sum(len(rows) for rows, _ in waiting) >= most:
            yield [rows for rows, _ in waiting], np.concatenate([X for _, X in waiting])
            waiting = []
    if waiting:
        yield [rows for rows, _ in waiting], np.concatenate([X for _, X in waiting])


def _split(answered: Iterable[tuple[list[Rows], Columns]]) -> Iterator[tuple[Rows, Columns]]:
    """The answers to the readable rows of each of the batches that `_joined` put together."""
    for batches, answers in answered:
        start = 0
        for rows in batches:
            stop = start + len(rows.readable)
            yield rows, {name: column[start:stop] for name, column in answers.items()}
            start = stop


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
