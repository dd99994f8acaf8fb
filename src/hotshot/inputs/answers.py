"""What a model says of inputs, in files: answers beside their columns, and suggestions as a table to fill in."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.classifiers.suggestions import Suggestions
from hotshot.errors import InputError
from hotshot.files import Samples
from hotshot.files.samples import ID
from hotshot.files.tables import format_of, writing
from hotshot.formatting import listing, quoted, shortened
from hotshot.inputs.inputs import FEATURES, IMAGES, LABEL, TEXTS, Inputs
from hotshot.inputs.samples import NONE, joined, readable

if TYPE_CHECKING:
    from hotshot.inputs.classifier import InputClassifier

CLASS, PROBABILITY, RUNNER_UP, RUNNER_UP_PROBABILITY, OUTLIER, ERROR = (
    "class", "probability", "runner_up", "runner_up_probability", "outlier_score", "error",
)  # fmt: skip
NUMBERS = (PROBABILITY, RUNNER_UP_PROBABILITY, OUTLIER)
# Columns of a table of suggestions, in addition to those of the input; the names are not those of labels.
PROBABLE, REASON = "probable_class", "reason"
FOR_SUGGESTIONS = (PROBABLE, PROBABILITY, REASON)
# Digits that are written: single precision has no more significant ones.
DIGITS = 6
# Inputs that are classified jointly; of more, so many at a time.
MOST_IN_A_BATCH = 50_000
LONGEST_TEXT = 60

Answers = dict[str, list[Any]]
# Rows, and of those that can be read the texts or pixels and the features.
Batch = tuple[Samples, Any, np.ndarray]


@dataclass
class Answered:
    """How many inputs were answered so far, and how many of their labels, if any, agree."""

    classes: set[str]
    inputs: int = 0
    unreadable: int = 0
    rejected: int = 0
    labelled: int = 0
    agreeing: int = 0
    # Names of folders need not be labels: some are classes of the model.
    has_labels: bool = False

    def count(self, rows: Samples, answers: Answers) -> None:
        """Count these rows too."""
        self.inputs += len(rows)
        self.unreadable += len(rows.errors)
        given = zip(answers[CLASS], answers[PROBABILITY], strict=True)
        self.rejected += sum(name is not None and share is None for name, share in given)
        pairs = zip(() if rows.y is None else rows.y, answers[CLASS], strict=False)
        labelled = [(label, str(name)) for label, name in pairs if label and name is not None]
        self.labelled += len(labelled)
        self.agreeing += sum(label == name for label, name in labelled)
        self.has_labels = self.has_labels or any(label in self.classes for label, _ in labelled)


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
    names, rows = np.array(model.classes_.tolist(), dtype=object), np.arange(len(probabilities))
    answers: Answers = {}
    for name, share in ((CLASS, PROBABILITY), (RUNNER_UP, RUNNER_UP_PROBABILITY)):
        best = probabilities.argmax(axis=1)
        answers |= {name: names[best].tolist(), share: _rounded(probabilities[rows, best])}
        probabilities[rows, best] = -1
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


def check_columns(inputs: Inputs, added: Sequence[str], remedy: str) -> None:
    """Raise if inputs have a column with a name of those that are added."""
    both = [column for column in inputs.columns if column in added]
    if both:
        columns = f"{'a column' if len(both) == 1 else 'columns'} {listing(map(quoted, both))}"
        raise InputError(f"{inputs.name} already has {columns}: {remedy}.")


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
    check_columns(inputs, added, "rename it or pass --prefix to rename the answer columns")
    done = Answered({*map(str, model.classes.tolist())})

    def answered(part: list[Batch]) -> tuple[Samples, Answers]:
        rows = joined([rows for rows, _, _ in part])
        X = np.concatenate([X for _, _, X in part])
        return rows, _in_place(answer(model.model, X, reject, unknown, batch=batch), rows)

    parts = _in_parts(model.batches(inputs, watch, strict=strict), MOST_IN_A_BATCH if batch else 1)
    numbers = [prefix + name for name in NUMBERS]
    with writing(out, format_of(out, form), numbers) as write, ThreadPoolExecutor(1) as pool:
        for rows, answers in _computed_ahead(pool, answered, parts):
            columns = {name: rows.columns[name] for name in inputs.columns} or {ID: rows.columns[inputs.id]}
            write({**columns, **dict(zip(added, answers.values(), strict=True))})
            done.count(rows, answers)
            yield done


def _in_place(answers: Answers, rows: Samples) -> Answers:
    """The answers to the readable rows, in the places of these; the last column says why others have no answer."""
    if rows.errors:
        places = np.full(len(rows), -1)
        places[readable(rows)] = np.arange(len(rows) - len(rows.errors))
        answers = {name: [None if i < 0 else values[i] for i in places.tolist()] for name, values in answers.items()}
    return {**answers, ERROR: [rows.errors.get(row) for row in range(len(rows))]}


def _in_parts(batches: Iterable[Batch], most: int) -> Iterator[list[Batch]]:
    part: list[Batch] = []
    for batch in batches:
        part.append(batch)
        if sum(len(rows) for rows, _, _ in part) >= most:
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


@dataclass(frozen=True)
class InputSuggestions:
    """Suggestions of inputs to label next, by their rows, and these inputs; to be printed, or written as a table."""

    suggestions: Suggestions
    inputs: Inputs
    samples: Samples

    @property
    def ids(self) -> list[str]:
        """Ids of the suggested inputs."""
        return [str(one) for one in self.samples.columns[self.inputs.id]]

    @property
    def texts(self) -> list[str]:
        """Texts of the suggested inputs, if they have any."""
        given = {TEXTS: self.samples.X, FEATURES: self.samples.texts}.get(self.inputs.kind)
        return list(given or ())

    def __str__(self) -> str:
        named = [f'"{shortened(text, LONGEST_TEXT)}"' for text in self.texts]
        named = named or [shortened(one, LONGEST_TEXT) for one in self.ids]
        pairs = enumerate(zip(named, self.suggestions, strict=True), 1)
        return "\n".join(f"{i}. {name}: {' or '.join(item.classes())}; {item.reason}." for i, (name, item) in pairs)

    def to_dict(self) -> dict[str, Any]:
        """The suggestions as dictionaries, lists, strings and numbers, for JSON."""
        document = self.suggestions.to_dict()
        for name, values in (("id", self.ids), ("text", self.texts)):
            for item, value in zip(document["suggestions"], values, strict=False):
                item[name] = value
        return document

    def write(self, path: Path, with_features: bool) -> None:
        """Write a table to fill in: the columns of the input, labels and reasons; the suffix sets its format.

        Paths of images become relative to the folder of the table; a model without an encoder needs the features.
        """
        names = self.inputs.columns
        columns = {name: self._relative(path.parent, list(self.samples.columns[name])) for name in names}
        columns = columns or {ID: self.ids}
        if self.inputs.label is None:
            columns[LABEL] = [""] * len(self.samples)
        columns[PROBABLE] = [str(item.label) for item in self.suggestions]
        columns[PROBABILITY] = [round(item.probability, 4) for item in self.suggestions]
        columns[REASON] = [item.reason for item in self.suggestions]
        if with_features:
            # In one column: beside it, no other column is taken for a feature.
            columns[FEATURES] = np.array(self.samples.X, dtype=np.float64).tolist()
        with writing(path, format_of(path, None), [PROBABILITY, *([FEATURES] if with_features else [])]) as write:
            write(columns)

    def _relative(self, folder: Path, values: list[Any]) -> list[Any]:
        """Values of a column; if they are paths of images, these are relative to a folder."""
        if self.inputs.kind != IMAGES:
            return values
        paths = [image.file.path for image in self.samples.X]
        named = zip(paths, values, strict=True)
        if not all(path is not None and path.as_posix().endswith(Path(str(value)).as_posix()) for path, value in named):
            return values
        return [Path(os.path.relpath(path, folder)).as_posix() for path in paths]
