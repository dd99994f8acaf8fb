"""Labels, by one rule for every way in: texts or numbers, of one type, none missing.

Bytes are text, and whole numbers are integers in whatever type they come: 1 and 1.0 are one class, 1 and "1" are two.
Raw inputs have labels of text only, without blanks around them (``as_text``).
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

from hotshot.arrays import to_numpy
from hotshot.errors import InputError, SimilarClassWarning, warn_user
from hotshot.formatting import listing, quoted

# Beyond it, floats are no longer exact integers.
_LARGEST_WHOLE = 2.0**53


def check_labels(y: Any, n_samples: int, name: str = "y") -> tuple[np.ndarray, np.ndarray]:
    """Distinct labels, sorted (classes,), and the index of the label of each sample in them (samples,).

    Examples
    --------
    >>> classes, members = check_labels(["wren", "kite", "wren"], 3)
    >>> classes.tolist(), members.tolist()
    (['kite', 'wren'], [1, 0, 1])
    """
    array = label_array(y, name)
    if array.ndim != 1 or len(array) != n_samples:
        raise InputError(f"{name} must hold one label per sample ({n_samples}), got shape {array.shape}.")
    try:
        return np.unique(array, return_inverse=True)
    except TypeError:
        raise _unsortable(name) from None


def label_array(y: Any, name: str = "y") -> np.ndarray:
    """Labels as an array of texts or numbers; raise if one is missing, or if texts and numbers are mixed."""
    if hasattr(y, "__array__") and not hasattr(y, "dtype"):
        y = np.asarray(y)
    if isinstance(y, (str, bytes)) or not (isinstance(y, Iterable) or hasattr(y, "dtype")):
        raise InputError(f"{name} must hold one label per sample, got {type(y).__name__}.")
    if hasattr(y, "to_numpy"):
        array = y.to_numpy()
    elif hasattr(y, "dtype"):
        array = to_numpy(y)
    else:
        array = _array_of_list(list(y), name)
    if array.ndim != 1:
        return array
    if array.dtype.kind in "SO":
        array = _texts_or_numbers(array, name)
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            raise _missing(name, int(np.isfinite(array).argmin()))
        if (np.abs(array) < _LARGEST_WHOLE).all() and (array == np.round(array)).all():
            array = array.astype(np.int64)
    return array


def as_text(label: Any) -> str:
    """A label of a raw input as text, without blanks around it; "" if it is missing.

    Examples
    --------
    >>> as_text(" wren "), as_text(3.0), as_text(None), as_text(float("nan"))
    ('wren', '3', '', '')
    """
    if is_missing(label):
        return ""
    if isinstance(label, bytes):
        label = label.decode("utf-8", "replace")
    if isinstance(label, (float, np.floating)) and float(label).is_integer() and abs(float(label)) < _LARGEST_WHOLE:
        label = int(label)
    return str(label).strip()


def joined_labels(labels: np.ndarray, more: np.ndarray) -> np.ndarray:
    """Both arrays of labels one after the other; raise if one holds texts and the other numbers."""
    if _are_texts(labels) != _are_texts(more):
        texts, numbers = (labels, more) if _are_texts(labels) else (more, labels)
        raise InputError(
            f"Labels must be of one type, got text such as {quoted(texts[0])} and numbers such as {numbers[0]}: "
            "convert one of them."
        )
    return np.concatenate([labels, more])


def warn_of_similar(names: np.ndarray) -> None:
    """Warn if classes differ only in case or in blanks around their names."""
    if not _are_texts(names):
        return
    alike = defaultdict(list)
    for name in names.tolist():
        alike[str(name).strip().casefold()].append(name)
    pairs = [" and ".join(map(quoted, same)) for same in alike.values() if len(same) > 1]
    if pairs:
        warn_user(
            f"Some classes differ only in case or blanks, {listing(pairs)}: give them one name if they are one class.",
            SimilarClassWarning,
        )


def is_missing(label: Any) -> bool:
    """Whether a label is None or NaN, which differs from itself, or pandas' NA, which raises."""
    try:
        return label is None or bool(label != label)
    except (TypeError, ValueError):
        return True


def _array_of_list(labels: list[Any], name: str) -> np.ndarray:
    # NumPy would turn 1 and "1" into the same text, and None into "None".
    plain = all(isinstance(label, str) for label in labels)
    if not plain and any(isinstance(label, (str, bytes)) or is_missing(label) for label in labels):
        array = np.empty(len(labels), dtype=object)
        array[:] = labels
        return array
    try:
        return np.asarray(labels)
    except ValueError:
        raise InputError(f"{name} must hold one label per sample, got lists of different lengths.") from None


def _texts_or_numbers(labels: np.ndarray, name: str) -> np.ndarray:
    """An array of bytes or objects as one of texts or of numbers."""
    for row, label in enumerate(labels):
        if is_missing(label):
            raise _missing(name, row)
    try:
        decoded = [label.decode() if isinstance(label, bytes) else label for label in labels.tolist()]
    except UnicodeDecodeError as error:
        raise InputError(
            f"{name} has labels of bytes that are not UTF-8, such as {error.object[:20]!r}: decode them."
        ) from None
    n_texts = sum(isinstance(label, str) for label in decoded)
    if n_texts not in (0, len(decoded)):
        raise _unsortable(name)
    # Texts stay what they are: objects may have names of very different lengths.
    return np.array(decoded, dtype=labels.dtype if n_texts and labels.dtype.kind == "O" else None)


def _are_texts(labels: np.ndarray) -> bool:
    return labels.dtype.kind == "U" or (labels.dtype.kind == "O" and all(isinstance(x, str) for x in labels))


def _missing(name: str, row: int) -> InputError:
    return InputError(
        f"{name} has no label in row {row}, only None, NaN or infinity: give every sample a label, or leave it out."
    )


def _unsortable(name: str) -> InputError:
    return InputError(f"{name} mixes labels that cannot be sorted, such as strings and numbers: use one type.")
