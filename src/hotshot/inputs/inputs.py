"""Texts, images or features from files, lists and arrays, as batches of samples with ids, labels and all columns."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.arrays import as_text, slices
from hotshot.bank import is_bank
from hotshot.errors import InputError, LeftOutWarning, ParameterError
from hotshot.files import FeatureSource, Samples, open_features
from hotshot.files.opening import by_suffix
from hotshot.files.samples import ID, TEXT, THUMBNAIL, in_memory
from hotshot.files.tables import ID_NAMES, LABELS, SUFFIXES, TEXT_NAMES, Table, is_table, naming, open_table
from hotshot.formatting import count, listing, quoted
from hotshot.inputs.samples import readable, unreadable

if TYPE_CHECKING:
    from hotshot.images.decode import Picture

TEXTS, IMAGES, FEATURES = "texts", "images", "features"
# Column names in answers: for paths of images, and for labels of features.
PATH, LABEL = "path", "label"
PATH_NAMES = ("path", "file", "filename", "image", "filepath", "text")
HEIC_SUFFIXES, HEIC = {".heic", ".heif"}, "convert .heic to .jpg first"
# Texts of one table, at most.
MOST_TEXTS = 2**31


@dataclass(frozen=True)
class Columns:
    """Names of the columns of a table with texts (or image paths), labels and ids; None finds them by usual names."""

    text: str | None = None
    label: str | None = None
    id: str | None = None


BY_NAME = Columns()


@dataclass(frozen=True)
class Inputs:
    """Inputs of one kind, some rows at a time.

    `batches(n)` yields `Samples` of at most n rows: X are texts, images or features, y are labels as text ("" if one is
    missing) or None, and rows that cannot be read are in `errors`. `columns` are the columns to write beside answers,
    of which `label` holds the labels, if any; `id` is a column of the batches that tells their rows apart.
    """

    name: str
    kind: str
    columns: tuple[str, ...]
    label: str | None
    id: str
    total: int | None
    batches: Callable[[int], Iterator[Samples]]
    about: dict[str, Any] = field(default_factory=dict)

    def labels(self, batch: Samples) -> Sequence[str]:
        """Labels of the rows of a batch; raise if the inputs have none."""
        if batch.y is None:
            by_folder = self.kind == IMAGES and self.columns == (PATH,)
            remedy = "put images into one folder per class" if by_folder else f"name it with {naming('label')}"
            raise InputError(f"{self.name} has no {'labels' if by_folder else 'column of labels'}: {remedy}.")
        labels: Sequence[str] = batch.y
        return labels

    def check_labelled(self, labels: Iterable[str]) -> None:
        """Raise if there is no label at all."""
        if not any(labels):
            raise InputError(f"{self.name} has no label in any row: label some rows.")

    def shown(self, batch: Samples, content: Any) -> dict[str, Sequence[Any]]:
        """What explanations show of readable rows, of which `content` are texts or pixels: ids, texts or thumbnails."""
        columns = {ID: _characters(batch.columns[self.id])}
        if self.kind == FEATURES:
            texts = {} if batch.texts is None else {TEXT: _characters(batch.texts)}
            return columns | texts | ({} if batch.thumbnails is None else {THUMBNAIL: list(batch.thumbnails)})
        if self.kind == TEXTS:
            return columns | {TEXT: content}
        from hotshot.images.decode import thumbnails

        return columns | {THUMBNAIL: thumbnails(content)}


def _characters(values: Iterable[Any]) -> list[str]:
    """Values as text; halves of surrogate pairs, which JSON may hold, are escaped as in answers."""
    return [str(value).encode(errors="backslashreplace").decode() for value in values]


# --- opening


def open_inputs(inputs: Any, kind: str, columns: Columns = BY_NAME, labels: Sequence[Any] | None = None) -> Inputs:
    """Inputs for a model of a kind: of that kind, or their features.

    They are in a file, in a folder, on standard input ("-") or, with labels if given, in memory.
    """
    if not isinstance(inputs, (str, Path)):
        return _given(inputs, kind, labels)
    if labels is not None:
        raise ParameterError("labels= is only for lists, files and folders have their own labels: leave it out.")
    path = Path(inputs)
    if kind == FEATURES:
        _check_features(path)
    if kind == FEATURES or has_features(path):
        return _features(open_features(path, labelled=False, lenient=True))
    return _images(path) if kind == IMAGES and not is_table(path) else _in_table(path, kind, columns)


def has_features(path: str | Path) -> bool:
    """Whether a file holds features, by its suffix; tables hold texts for a model with an encoder."""
    return by_suffix(Path(path)) is not None and Path(path).suffix.lower() not in SUFFIXES


def is_path(line: str) -> bool:
    """Whether a word of a command line names a file, a folder or standard input, and is no text itself."""
    return Path(line).exists() or is_table(Path(line)) or has_features(line)


def _check_features(path: Path) -> None:
    """Raise if a file or folder holds texts or images, and no features in one column or in numbered ones."""
    from hotshot.images.tree import is_image

    columns = {*open_table(path).columns} if is_table(path) else set()
    has_numbers = FEATURES in columns or sum(name[-1:].isdigit() for name in columns) > 1
    is_text = not has_numbers and columns & {*TEXT_NAMES}
    if is_text or is_image(path.name) or (path.is_dir() and not is_bank(path)):
        raise ParameterError(
            f"{path} holds no features: pass encoder= (in the shell --encoder), such as minilm for texts or "
            "efficientnet-lite0 for images."
        )


def _given(items: Any, kind: str, labels: Sequence[Any] | None) -> Inputs:
    """Inputs in memory: texts, paths of images, or features (inputs, V), with labels if given."""
    if kind == FEATURES:
        X = np.asarray(items)
        if X.ndim != 2 or X.dtype.kind not in "fiub":
            raise InputError(
                f"Inputs must be a path or features of shape (inputs, V), got {X.dtype} of shape {X.shape}: pass "
                "numbers."
            )
        y = None if labels is None else np.array(_checked(labels, len(X)))
        return _features(in_memory(Path("The array"), X, y, {}, unlabelled="" if labels is not None else "no labels"))
    # A whole table would give the names of its columns.
    is_one = isinstance(items, (str, bytes)) or not isinstance(items, Iterable) or hasattr(items, "columns")
    items = [] if is_one else list(items)
    if not any(isinstance(item, (str, Path)) for item in items):
        what = "texts" if kind == TEXTS else "paths of images"
        raise InputError(f"Inputs must be a path, or a list or column of {what} that is not empty.")
    column = TEXT if kind == TEXTS else PATH
    rows = [{column: str(item) if isinstance(item, Path) else item} for item in items]
    if labels is not None:
        rows = [{**row, LABEL: label} for row, label in zip(rows, _checked(labels, len(rows)), strict=True)]
    return _table(Table("The list of inputs", tuple(rows[0]), lambda: ((row, "") for row in rows)), kind)


def _checked(labels: Sequence[Any], n_inputs: int) -> list[str]:
    if len(labels) != n_inputs:
        raise InputError(f"There are {n_inputs} inputs and {len(labels)} labels: pass one label per input.")
    return [as_text(label) for label in labels]


def read_texts(path: Path, columns: Columns = BY_NAME) -> tuple[Samples, list[str]]:
    """All texts of a table that can be read, with labels, if any, and ids; and a note on the others, if any."""
    opened = _in_table(path, TEXTS, columns)
    batch = next(opened.batches(MOST_TEXTS))
    if batch.y is not None and "" in batch.y:
        raise InputError(f"{opened.name} has no label in row {batch.y.index('') + 1}: add it, or remove the row.")
    notes = [f"{unreadable(batch.errors, len(batch), opened.name)}."] if batch.errors else []
    texts = batch[readable(batch)]
    return Samples(texts.X, texts.y, {ID: list(map(str, texts.columns[opened.id]))}), notes


# --- features


def _features(source: FeatureSource) -> Inputs:
    """Features, with or without labels."""
    label = None if source.unlabelled else LABEL
    others = [name for name in source.columns if name not in (ID, TEXT, THUMBNAIL)]
    # An id that is made of columns is redundant beside them.
    first = [*([] if others else [ID]), *([TEXT] if TEXT in source.columns else [])]
    columns = (*first, *others, *([] if label is None else [label]))

    def batches(size: int) -> Iterator[Samples]:
        for batch in source.batches(size):
            y = None if batch.y is None else [as_text(one) for one in batch.y.tolist()]
            labels = {} if y is None else {LABEL: y}
            yield Samples(batch.X, y, {ID: batch.ids, **batch.columns, **labels})

    return Inputs(str(source.path), FEATURES, columns, label, ID, source.n_samples, batches, source.about)


# --- tables of texts, or of paths of images


def _in_table(path: Path, kind: str, columns: Columns) -> Inputs:
    if not is_table(path):
        raise InputError(
            f"{path} is not a table of texts: pass a .csv, .tsv, .jsonl or .txt file, or - for standard input."
        )
    return _table(open_table(path, columns.text), kind, columns, path.parent)


def _table(table: Table, kind: str, wanted: Columns = BY_NAME, folder: Path = Path()) -> Inputs:
    """Texts, or images by paths relative to a folder, in a column of a table."""
    names = TEXT_NAMES if kind == TEXTS else PATH_NAMES
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
    identity = key or (ID if kind == TEXTS else content)

    def batches(size: int) -> Iterator[Samples]:
        rows, first = table.rows(), 0
        while some := list(islice(rows, size)):
            columns = {name: [row[name] for row, _ in some] for name in table.columns}
            if identity not in columns:
                columns[identity] = list(map(str, range(first, first + len(some))))
            labels = None if label is None else [as_text(one) for one in columns[label]]
            X, wrong = columns[content], [error for _, error in some]
            if kind == TEXTS:
                wrong = [error or _problem_of_text(text) for error, text in zip(wrong, X, strict=True)]
            else:
                X = _listed_images(folder, X)
            yield Samples(X, labels, columns, errors={row: why for row, why in enumerate(wrong) if why})
            first += len(some)

    return Inputs(table.name, kind, table.columns, label, identity, None, batches)


def _problem_of_text(text: Any) -> str:
    if not isinstance(text, str) or not text.strip():
        return "it has no text"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "its text has half of a surrogate pair, which is not a character"
    return ""


# --- images


def _listed_images(folder: Path, names: Sequence[Any]) -> list[Picture]:
    """Images by their paths; if there is none, decoding says so."""
    from hotshot.images.decode import Picture
    from hotshot.images.tree import file_on_disk

    return [Picture(file_on_disk(folder, str(name))) for name in names]


def _images(path: Path) -> Inputs:
    """A single image, or the images in a folder or an archive, labelled by the names of their folders."""
    from hotshot.images.decode import Picture
    from hotshot.images.tree import ARCHIVE_SUFFIXES, is_image, open_tree

    if path.is_file() and not path.name.lower().endswith(ARCHIVE_SUFFIXES):
        if not is_image(path.name):
            is_heic = path.suffix.lower() in HEIC_SUFFIXES
            raise InputError(
                f"{path} is not an image: {HEIC if is_heic else 'pass an image, a folder, or a .txt file of paths'}."
            )
        return replace(_table(Table(str(path), (PATH,), lambda: iter([({PATH: str(path)}, "")])), IMAGES), total=1)
    files = open_tree(path).files
    names = [name for name in files if is_image(name)]
    images, labels = [Picture(files[name]) for name in names], _folders(names)
    others = Counter(PurePosixPath(name).suffix.lower() or "no suffix" for name in files if not is_image(name))
    listed = listing(f"{n} {suffix}" for suffix, n in others.most_common())
    remedy = f": {HEIC}" if HEIC_SUFFIXES & {*others} else ""
    if not images:
        held = f", only other files ({listed})" if others else ""
        raise InputError(f"{path} contains no images{held}{remedy or ': pass a folder of images'}.")

    def batches(size: int) -> Iterator[Samples]:
        if others:
            files = count(others.total(), "file")
            warnings.warn(
                f"{path} holds {files} other than images, left out ({listed}){remedy}.", LeftOutWarning, stacklevel=2
            )
        for some in slices(len(names), size):
            yield Samples(images[some], None if labels is None else labels[some], {PATH: names[some]})

    return Inputs(str(path), IMAGES, (PATH,), None, PATH, len(names), batches)


def _folders(names: Iterable[str]) -> list[str] | None:
    """The folders of images, without those that are around all of them; None if one image is in no other folder."""
    folders = [name.split("/")[:-1] for name in names]
    shortest, longest = min(map(len, folders), default=0), max(map(len, folders), default=0)
    around = next((i for i in range(shortest) if len({parts[i] for parts in folders}) > 1), shortest)
    if around == longest:
        around = max(around - 1, 0)  # All are of one class.
    labels = ["/".join(parts[around:]) for parts in folders]
    return labels if all(labels) else None


def of_one_class(images: Inputs, path: Any) -> Inputs:
    """Images that lie in a folder themselves, and not in folders in it, get its name as label."""
    if images.kind != IMAGES or not isinstance(path, (str, Path)) or not os.path.isdir(path):
        return images
    name = Path(path).resolve().name

    def batches(size: int) -> Iterator[Samples]:
        return (replace(batch, y=batch.y or [name] * len(batch)) for batch in images.batches(size))

    return replace(images, batches=batches)


def decoded(images: Sequence[Picture], size: int) -> tuple[np.ndarray, dict[int, str]]:
    """Central squares uint8 (readable, size, size, 3) of the images that can be read; why not, by index, of others."""
    from hotshot.images.decode import squares

    pixels, errors = squares(images, size)
    return pixels, {i: f"{images[i].name} is not a readable image, {why}" for i, why in errors.items()}
