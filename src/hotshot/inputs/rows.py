"""Inputs of any kind, texts in tables, images in folders or features, as rows with ids and labels."""

from __future__ import annotations

import warnings
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from itertools import count as count_from
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from hotshot.arrays import slices
from hotshot.encoders import thumbnails
from hotshot.errors import InputError, LeftOutWarning
from hotshot.files import Samples, open_features
from hotshot.files.samples import ID, THUMBNAIL
from hotshot.files.tables import ID_NAMES, LABELS, TEXT, TEXT_NAMES, Table, is_table, naming, open_table
from hotshot.formatting import count, listing, quoted
from hotshot.images.decode import EncodedImage, squares
from hotshot.images.tree import ARCHIVE_SUFFIXES, file_on_disk, is_image, open_tree
from hotshot.labels import as_text

TEXTS, IMAGES, FEATURES = "texts", "images", "features"
# Column names in answers: for paths of images, and for labels of features.
PATH, LABEL = "path", "label"
HEIC_SUFFIXES, HEIC = {".heic", ".heif"}, "convert .heic to .jpg first"
# Side of thumbnails, in pixels.
SMALL = 64


@dataclass(frozen=True)
class Previews:
    """What explanations show of inputs: their ids, and their texts or thumbnails, if any (b"" for none)."""

    ids: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    thumbnails: tuple[bytes, ...] = ()

    def names(self) -> list[str]:
        """Names for explanations: texts in quotes, or else ids."""
        return [f'"{text}"' for text in self.texts] or [f"id {one}" if one.isdecimal() else one for one in self.ids]

    def contents(self, X: np.ndarray) -> list[Any]:
        """What tells the inputs with these features (n, V) apart: texts, thumbnails or the features themselves."""
        features = [row.tobytes() for row in X]
        small = [image or own for image, own in zip(self.thumbnails, features, strict=False)]
        return [text.strip() for text in self.texts] or small or features

    def joined(self, other: Previews) -> Previews:
        """Both; where ids of the others are taken, they get a number."""
        ids: list[str] = []
        taken = set(self.ids)
        for name in other.ids:
            numbered = (f"{name} ({i})" for i in count_from(2))
            ids.append(next(one for one in chain([name], numbered) if one not in taken))
            taken.add(ids[-1])
        return self + replace(other, ids=tuple(ids))

    def __add__(self, other: Previews) -> Previews:
        # Texts and thumbnails of some inputs only would be those of others.
        ids, texts, small = self.ids + other.ids, self.texts + other.texts, self.thumbnails + other.thumbnails
        return Previews(ids, texts if len(texts) == len(ids) else (), small if len(small) == len(ids) else ())

    def __getitem__(self, some: np.ndarray) -> Previews:
        """Previews of some inputs, by indices or a boolean mask."""
        places = np.arange(len(self.ids))[some]
        return Previews(
            *(tuple(own[i] for i in places) if own else () for own in (self.ids, self.texts, self.thumbnails))
        )

    def to_json(self) -> dict[str, list[str]]:
        """The previews as JSON."""
        small = [b64encode(one).decode() for one in self.thumbnails]
        return {"ids": list(self.ids), "texts": list(self.texts), "thumbnails": small}

    @classmethod
    def from_json(cls, found: dict[str, list[str]], n_inputs: int) -> Previews:
        """Read the output of `to_json` for so many inputs; ValueError if it is invalid."""
        parts = [tuple(found[name]) for name in ("ids", "texts", "thumbnails")]
        if not all(isinstance(one, str) for own in parts for one in own):
            raise ValueError("an id or text that is not a string")
        if len(parts[0]) != n_inputs or any(len(own) not in (0, n_inputs) for own in parts):
            raise ValueError("a wrong number of ids, texts or thumbnails")
        return cls(parts[0], parts[1], tuple(b64decode(one, validate=True) for one in parts[2]))


@dataclass(frozen=True)
class Rows:
    """Some inputs: texts, images or features (rows, V), with ids and labels.

    `labels` has "" for missing labels, and is None without a column of labels. `columns` are all columns of the input,
    by name, to be written beside the answers. `kept` are texts and thumbnails that are stored with features. `errors`
    says of the rows that cannot be read, by their index, why.
    """

    content: Sequence[Any] | np.ndarray
    ids: Sequence[str]
    labels: list[str] | None
    columns: dict[str, list[Any]]
    kept: Samples | None = None
    errors: dict[int, str] = field(default_factory=dict)

    @property
    def readable(self) -> np.ndarray:
        """Indices of the rows that can be read."""
        return np.array([row for row in range(len(self)) if row not in self.errors], dtype=int)

    def previews(self, some: np.ndarray, small: Sequence[bool] | None = None) -> Previews:
        """Previews of the inputs with these indices; thumbnails of those where `small` is true are made now."""
        ids, content = tuple(self.ids[i] for i in some), [self.content[i] for i in some]
        small = [True] * len(ids) if small is None else small
        if content and isinstance(content[0], EncodedImage):
            pixels, errors = decode([image for image, wanted in zip(content, small, strict=True) if wanted], SMALL)
            places = np.delete(np.flatnonzero(small), list(errors))
            made = dict(zip(places.tolist(), thumbnails(pixels), strict=True))
            return Previews(ids, thumbnails=tuple(made.get(i, b"") for i in range(len(ids))))
        if content and isinstance(content[0], str):
            return Previews(ids, tuple(content))
        kept = Samples(ids) if self.kept is None else self.kept[some]
        stored = zip(kept.thumbnails or (), small, strict=False)
        return Previews(ids, tuple(kept.texts or ()), tuple(image if wanted else b"" for image, wanted in stored))

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Inputs:
    """Inputs of one kind, some rows at a time; `label` is the column of labels, if any."""

    name: str
    kind: str
    columns: tuple[str, ...]
    label: str | None
    total: int | None
    batches: Callable[[int], Iterator[Rows]]
    about: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Columns:
    """Names of the columns of a table with texts (or image paths), labels and ids; None finds them by usual names."""

    text: str | None = None
    label: str | None = None
    id: str | None = None


BY_NAME = Columns()


def open_inputs(path: str | Path, kind: str, columns: Columns = BY_NAME) -> Inputs:
    """Inputs of this kind in a file, in a folder or on standard input ("-")."""
    path = Path(path)
    if kind == FEATURES:
        return _features(path)
    if kind == TEXTS:
        if not is_table(path):
            raise InputError(
                f"{path} is not a table of texts: pass a .csv, .tsv, .jsonl or .txt file, or - for standard input."
            )
        return _texts(open_table(path, columns.text), columns)
    return _listed_images(open_table(path, columns.text), columns, path.parent) if is_table(path) else _images(path)


def given_inputs(items: Any, kind: str, labels: Sequence[Any] | None = None) -> Inputs:
    """Inputs in memory: texts, paths of images, or features (inputs, V), with labels if given."""
    if kind == FEATURES:
        return _given_features(np.asarray(items), labels)
    what = "texts" if kind == TEXTS else "paths of images"
    # A table would give the names of its columns.
    is_one = isinstance(items, (str, bytes)) or not isinstance(items, Iterable) or hasattr(items, "columns")
    items = [] if is_one else list(items)
    if not any(isinstance(item, (str, Path)) for item in items):
        raise InputError(f"Inputs must be a path, or a list or column of {what} that is not empty.")
    labels = _checked_labels(labels, len(items))
    rows = [{PATH if kind == IMAGES else TEXT: str(item) if isinstance(item, Path) else item} for item in items]
    if labels is not None:
        rows = [{**row, LABEL: label} for row, label in zip(rows, labels, strict=True)]
    table = Table("The list of inputs", tuple(rows[0]), lambda: ((row, "") for row in rows))
    return _texts(table, BY_NAME) if kind == TEXTS else _listed_images(table, BY_NAME, Path())


def _features(path: Path) -> Inputs:
    """A feature file, with or without labels."""
    source = open_features(path, labelled=False, lenient=True)
    label = None if source.unlabelled else LABEL

    def batches(size: int) -> Iterator[Rows]:
        for batch in source.batches(size):
            labels = None if batch.y is None else [as_text(one) for one in batch.y.tolist()]
            columns = {name: list(batch.columns[name]) for name in names}
            yield Rows(batch.X, batch.ids, labels, {**columns, **({LABEL: labels} if labels else {})}, batch)

    names = [name for name in source.columns if name not in (ID, THUMBNAIL)]
    # An id that is made of columns is redundant beside them.
    names = [*([] if set(names) - {TEXT} else [ID]), *names]
    known = [*names, *([label] if label else [])]
    return Inputs(str(path), FEATURES, tuple(known), label, source.n_samples, batches, source.about)


def _given_features(X: np.ndarray, labels: Sequence[Any] | None) -> Inputs:
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise InputError(
            f"Inputs must be a path or features of shape (inputs, V), got {X.dtype} of shape {X.shape}: pass numbers."
        )
    given = _checked_labels(labels, len(X))

    def batches(size: int) -> Iterator[Rows]:
        for some in slices(len(X), size):
            own = None if given is None else given[some]
            yield Rows(X[some], [str(i) for i in range(some.start, some.stop)], own, {})

    return Inputs("The array", FEATURES, (), None, len(X), batches)


def _checked_labels(labels: Sequence[Any] | None, n_inputs: int) -> list[str] | None:
    if labels is None:
        return None
    if len(labels) != n_inputs:
        raise InputError(f"There are {n_inputs} inputs and {len(labels)} labels: pass one label per input.")
    return [as_text(label) for label in labels]


def _batched(rows: Iterator[Any], size: int) -> Iterator[list[Any]]:
    while some := list(islice(rows, size)):
        yield some


def _texts(table: Table, wanted: Columns) -> Inputs:
    label, key, text = _columns_of(table, wanted, TEXT_NAMES)

    def batches(size: int) -> Iterator[Rows]:
        first = 0
        for some in _batched(table.rows(), size):
            yield _rows(table, some, lambda row: row[text], label, key, first, _problem_of_text)
            first += len(some)

    return Inputs(table.name, TEXTS, table.columns, label, None, batches)


def _listed_images(table: Table, wanted: Columns, folder: Path) -> Inputs:
    """Images listed in a table or in lines, by paths relative to a folder."""
    label, key, path = _columns_of(table, wanted, ("path", "file", "filename", "image", "filepath", "text"))

    def batches(size: int) -> Iterator[Rows]:
        first = 0
        for some in _batched(table.rows(), size):
            yield _rows(
                table, some, lambda row: EncodedImage(file_on_disk(folder, str(row[path]))), label, key or path, first
            )
            first += len(some)

    return Inputs(table.name, IMAGES, table.columns, label, None, batches)


def _columns_of(table: Table, wanted: Columns, names: Sequence[str]) -> tuple[str | None, str | None, str]:
    """The columns of labels and of ids, if any, and of the inputs."""
    key = table.column(wanted.id, ID_NAMES, "id")
    content = table.column(wanted.text, names, "text")
    label = table.column(wanted.label, [name for name in LABELS if name not in names or wanted.text], "label")
    others = [name for name in table.columns if name not in (label, key)]
    if content is None and len(others) == 1:
        content = others[0]
    if content is None or content == label:
        raise InputError(
            f"{table.name} has no column with a usual name for inputs, only {listing(map(quoted, table.columns))}: "
            f"name it with {naming('text')}."
        )
    return label, key, content


def _rows(
    table: Table,
    some: list[tuple[dict[str, Any], str]],
    content_of: Callable[[dict[str, Any]], Any],
    label: str | None,
    key: str | None,
    first: int,
    problem_of: Callable[[Any], str] = lambda _: "",
) -> Rows:
    """Rows of a table; what is wrong with one is known from its line, or from `problem_of` its content."""
    rows, content = [row for row, _ in some], [content_of(row) for row, _ in some]
    labels = None if label is None else [as_text(row[label]) for row in rows]
    ids = [str(first + i if key is None else row[key]) for i, row in enumerate(rows)]
    wrong = [error or problem_of(x) for (_, error), x in zip(some, content, strict=True)]
    errors = {i: error for i, error in enumerate(wrong) if error}
    return Rows(content, ids, labels, {name: [row[name] for row in rows] for name in table.columns}, errors=errors)


def unreadable(errors: dict[int, str], n_inputs: int, name: str) -> str:
    """How many inputs cannot be read, and of the first ones why; `errors` are by rows, from 0."""
    first = listing(f"row {row + 1} ({error})" for row, error in errors.items())
    return f"{len(errors):,} of {count(n_inputs, 'input')} of {name} cannot be read: {first}"


def _problem_of_text(text: Any) -> str:
    if not isinstance(text, str) or not text.strip():
        return "it has no text"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "its text has half of a surrogate pair, which is not a character"
    return ""


def _images(path: Path) -> Inputs:
    """A single image, or the images in a folder or an archive, labelled by the names of their folders."""
    others: Counter[str] = Counter()
    if path.is_file() and not path.name.lower().endswith(ARCHIVE_SUFFIXES):
        if not is_image(path.name):
            remedy = (
                HEIC if path.suffix.lower() in HEIC_SUFFIXES else "pass an image, a folder, or a .txt file of paths"
            )
            raise InputError(f"{path} is not an image: {remedy}.")
        found, labels = {str(path): EncodedImage(file_on_disk(path.parent, path.name))}, None
    else:
        files = open_tree(path).files
        found = {name: EncodedImage(entry) for name, entry in files.items() if is_image(name)}
        labels = _folders(found)
        others = Counter(PurePosixPath(name).suffix.lower() or "no suffix" for name in files if name not in found)
    listed = listing(f"{n} {suffix}" for suffix, n in others.most_common())
    remedy = f": {HEIC}" if HEIC_SUFFIXES & set(others) else ""
    if not found:
        held = f", only other files ({listed})" if others else ""
        raise InputError(f"{path} contains no images{held}{remedy or ': pass a folder of images'}.")
    names = list(found)

    def batches(size: int) -> Iterator[Rows]:
        if others:
            files = count(others.total(), "file")
            warnings.warn(
                f"{path} holds {files} other than images, left out ({listed}){remedy}.", LeftOutWarning, stacklevel=2
            )
        for some in slices(len(names), size):
            own = names[some]
            known: dict[str, list[Any]] = {PATH: own}
            yield Rows([found[name] for name in own], own, None if labels is None else labels[some], known)

    return Inputs(str(path), IMAGES, (PATH,), None, len(names), batches)


def _folders(names: Iterable[str]) -> list[str] | None:
    """The folders of images, without those that are around all of them; None if one image is in no other folder."""
    folders = [name.split("/")[:-1] for name in names]
    shortest, longest = min(map(len, folders), default=0), max(map(len, folders), default=0)
    around = next((i for i in range(shortest) if len({parts[i] for parts in folders}) > 1), shortest)
    if around == longest:
        around = max(around - 1, 0)  # All are of one class.
    labels = ["/".join(parts[around:]) for parts in folders]
    return labels if all(labels) else None


def decode(images: Sequence[EncodedImage], size: int) -> tuple[np.ndarray, dict[int, str]]:
    """Central squares uint8 (readable, size, size, 3) of the images that can be read; why not, by index, of others."""
    pixels, errors = squares(images, size)
    return pixels, {i: f"{images[i].name} is not a readable image, {why}" for i, why in errors.items()}
