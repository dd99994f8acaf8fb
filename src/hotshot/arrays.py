"""Arrays: one library per call, a few functions beyond the array API standard, and checks of what a user passes.

Labels follow one rule for every way in: texts or numbers, of one type, none missing. Bytes are text, and whole numbers
are integers in whatever type they come: 1 and 1.0 are one class, 1 and "1" are two. Raw inputs have labels of text
only, without blanks around them (``as_text``).
"""

import hashlib
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import lru_cache
from numbers import Integral, Real
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from hotshot.errors import InputError, NamespaceError, ParameterError, SimilarClassWarning, warn_user
from hotshot.formatting import listing, quoted

# An array of any library that follows the array API standard; NumPy's own is np.ndarray.
Array = Any
T = TypeVar("T")
# For functions whose result is checked: what overflows on the way needs no warning of its own.
NO_OVERFLOW_WARNINGS = np.errstate(over="ignore", invalid="ignore", divide="ignore")


def namespace(*arrays: Array) -> Any:
    """The one array library that all arrays belong to; `None` and Python numbers do not count."""
    given = [x for x in arrays if x is not None and not isinstance(x, (int, float))]
    if given and all(isinstance(x, np.ndarray) for x in given):
        return np
    # Only arrays of other libraries need it.
    import array_api_compat

    try:
        return array_api_compat.array_namespace(*given)
    except TypeError:
        kinds = sorted({type(x).__module__.split(".")[0] + "." + type(x).__name__ for x in given})
        raise NamespaceError(
            f"The arrays of one call must belong to one array library, got {', '.join(kinds)}: "
            "convert them to one, for example with numpy.asarray."
        ) from None


def is_foreign(x: Any) -> bool:
    """Whether `x` is an array of another library than NumPy."""
    # Most of what is passed is none: the check of the others imports array-api-compat.
    if isinstance(x, (np.ndarray, np.generic, list, tuple, str, Real)) or x is None:
        return False
    from array_api_compat import is_array_api_obj

    return bool(is_array_api_obj(x))


def as_array(x: Array, name: str = "x") -> Array:
    """`x` itself if it is an array, a NumPy array of numbers if it is list-like."""
    if is_foreign(x):
        return x
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise InputError(f"{name} must be a rectangular array of numbers: {error}.") from None
    if array.dtype.kind not in "fiub" + "c" * isinstance(x, np.ndarray):
        raise InputError(
            f"{name} must be an array of numbers, got {type(x).__name__} of dtype {array.dtype}: convert it first."
        )
    return array


def as_floats(x: Array, name: str = "x") -> Array:
    """`x` as float32 or float64: these stay, shorter floats become float32, other types float64."""
    x = as_array(x, name)
    xp = namespace(x)
    if x.dtype in (xp.float32, xp.float64):
        return x
    if xp.isdtype(x.dtype, "complex floating"):
        raise InputError(f"{name} must be real, got dtype {x.dtype}: take its real part or its modulus.")
    short = xp.isdtype(x.dtype, "real floating") and xp.finfo(x.dtype).bits < 32
    return xp.astype(x, xp.float32 if short else xp.float64)


def is_single(x: Array) -> bool:
    """Whether the array is in single precision."""
    return bool(x.dtype == namespace(x).float32)


def to_numpy(x: Array) -> np.ndarray:
    """A NumPy copy or view of any array, from any device."""
    return np.asarray(x.detach().cpu().numpy() if hasattr(x, "detach") else x)


def choose(xp: Any, which: Array, one: T, other: T) -> T:
    """Dataclasses of arrays (n, …): fields of `one` for the marked entries (n,) of a batch, of `other` for the rest."""
    pairs = [(getattr(one, f.name), getattr(other, f.name)) for f in fields(one)]  # type: ignore[arg-type]
    return type(one)(*(xp.where(xp.reshape(which, (-1, *[1] * (x.ndim - 1))), x, y) for x, y in pairs))


def one_hot(labels: np.ndarray, n: int, dtype: Any) -> np.ndarray:
    """Integer labels (…, k) as indicators (…, n, k)."""
    return (np.arange(n)[:, None] == labels[..., None, :]).astype(dtype)


def small_identity(size: int, reference: Array) -> Array:
    """The identity matrix in the namespace, dtype and device of `reference`."""
    return namespace(reference).eye(size, dtype=reference.dtype, device=reference.device)


def multiply_into(out: Array, x: Array, y: Array) -> None:
    """Write x * y to existing memory: allocation costs more than the product."""
    if isinstance(out, np.ndarray):
        np.multiply(x, y, out=out)
    else:
        out[...] = x * y


def array_hash(x: np.ndarray) -> str:
    """SHA-256 of an array: shape, dtype and content."""
    digest = hashlib.sha256(json.dumps([list(x.shape), str(x.dtype)]).encode())
    step = max(1, 2**24 // max(1, x[:1].nbytes))
    for rows in slices(len(x), step):
        digest.update(np.ascontiguousarray(x[rows]).data)
    return digest.hexdigest()


def slices(length: int, size: int) -> list[slice]:
    """Consecutive slices of at most `size` that cover `range(length)`."""
    return [slice(start, min(start + size, length)) for start in range(0, length, size)]


def evenly_spaced(count: int, most: int) -> np.ndarray:
    """At most `most` evenly spaced integers from 0 to count - 1."""
    return np.linspace(0, count - 1, min(count, most)).astype(int)


def unit_vectors(x: Array) -> Array:
    """Rows of `x` (…, V) scaled to unit Euclidean norm; rows of zeros stay zero."""
    xp = namespace(x)
    # Dividing by the largest entry first keeps the squares of huge and tiny entries representable.
    largest = xp.max(xp.abs(x), axis=-1, keepdims=True)
    x = x / xp.where(largest > 0, largest, xp.ones_like(largest))
    norm = xp.sqrt(xp.sum(x * x, axis=-1, keepdims=True))
    return x / xp.where(norm > 0, norm, xp.ones_like(norm))


# --- products of matrices on one thread, whose order of sums, and so whose last bits, depend on no core count

_lock = Lock()
# Limits of those inside, the first of which knows what was before: matrix libraries have one setting for all threads.
_inside: list[Any] = []


@lru_cache(maxsize=1)
def _matrix_libraries(n_modules: int) -> ThreadpoolController:
    """The matrix libraries of this process; to find them takes milliseconds, and only an import brings more."""
    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread per caller, also if several threads of this process call it at once."""
    controller = _matrix_libraries(len(sys.modules))
    # OpenMP has a setting for each thread.
    with controller.select(user_api="openmp").limit(limits=1):
        with _lock:
            _inside.append(controller.select(user_api="blas").limit(limits=1))
        try:
            yield
        finally:
            with _lock:
                # The first stays until the last has left.
                last = _inside.pop(0 if len(_inside) == 1 else -1)
                if not _inside:
                    last.restore_original_limits()


# --- features and numbers that a user passes


def check_features(X: Any, name: str = "X", *, width: int | None = None) -> np.ndarray:
    """Features (samples, V), of any array library or a data frame, as a finite NumPy array of float32 or float64.

    Shorter floats become float32, other numbers float64. `width` is the required number of features.
    """
    array = to_numpy(as_floats(X.to_numpy() if hasattr(X, "to_numpy") else X, name))
    if array.ndim != 2:
        raise InputError(
            f"{name} must be a 2-dimensional (samples, features) array, got shape {array.shape}: "
            "reshape one sample to (1, features)."
        )
    if 0 in array.shape:
        raise InputError(f"{name} must hold at least one sample and one feature, got shape {array.shape}.")
    if width is not None and array.shape[1] != width:
        raise InputError(
            f"{name} has {array.shape[1]} features, but {width} were expected: "
            "extract all features with the same model."
        )
    check_finite(array, name)
    return array


def check_finite(array: np.ndarray, name: str) -> None:
    """Raise if an entry is NaN or infinite; the message names the first."""
    if np.isfinite(array).all():
        return
    bad = np.argwhere(~np.isfinite(array))
    row, column = bad[0]
    raise InputError(
        f"{name} holds NaN or infinity in {len(bad)} entries, the first in row {row}, column {column}: "
        "remove or repair these samples."
    )


def cast(array: np.ndarray, dtype: np.dtype, name: str = "X") -> np.ndarray:
    """Samples in another dtype; raises if one is out of its range."""
    if array.dtype.itemsize <= dtype.itemsize:
        return array.astype(dtype, copy=False)
    with np.errstate(over="ignore"):
        array = array.astype(dtype)
    check_finite(array, f"{name} as {dtype}")
    return array


# Beyond them a number that a user passes, to the library or on the command line, is a slip that would take all memory
# or never end. Where they are whole, so must it be.
LIMITS: dict[str, tuple[float, float]] = {
    "ways": (2, 10_000), "shots": (1, 100_000), "queries": (1, 100_000), "tasks": (1, 10_000_000),
    "first": (0, 10_000_000), "seed": (0, 2**63 - 1), "candidates": (1, 100_000), "factor": (2, 1000),
    "threshold": (0.0, 1.0), "few": (1, 100_000), "rows": (1, 10_000), "number": (1, 10_000), "reject": (0.001, 0.5),
    # Of images, networks and their training.
    "size": (1, 4096), "filters": (1, 2048), "epochs": (1, 1_000_000),
    "batch_size": (2, 65_536), "learning_rate": (1e-30, 1e12), "momentum": (0.0, 1.0), "weight_decay": (0.0, 1e12),
    "label_smoothing": (0.0, 1.0), "mixup": (0.0, 1000.0),
}  # fmt: skip


def check_numbers(**values: Any) -> None:
    """Raise unless each of these numbers is within the limits of its name."""
    for name, value in values.items():
        check_number(name, value, *LIMITS[name])


def check_number(name: str, value: Any, least: float, most: float) -> None:
    """Raise unless `value` is a number from `least` to `most`, and an integer if these are integers."""
    kind: Any
    kind, noun = (Integral, "an integer") if isinstance(least, int) else (Real, "a number")
    if isinstance(value, bool) or not isinstance(value, kind) or not least <= value <= most:
        raise ParameterError(f"{name} must be {noun} from {least:,} to {most:,}, got {value!r:.60}.")


# --- labels

# Beyond it, floats are no longer exact integers.
_LARGEST_WHOLE = 2.0**53


def check_labels(y: Any, n_samples: int, name: str = "y") -> tuple[np.ndarray, np.ndarray]:
    """Distinct labels, sorted (classes,), and the index of the label of each sample in them (samples,)."""
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
    """A label of a raw input as text, without blanks around it; "" if it is missing."""
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
