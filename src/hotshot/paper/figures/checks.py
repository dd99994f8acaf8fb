"""What the figures accept; anything else is refused in one sentence before a line is drawn."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from hotshot.arrays import to_numpy
from hotshot.errors import ParameterError


def numbers(values: Any, name: str, shape: tuple[str, ...]) -> np.ndarray:
    """`values` as float64; as many dimensions as `shape` has letters, none of them empty, all entries finite."""
    letters = f"({', '.join(shape)}{',' * (len(shape) == 1)})"
    try:
        array = to_numpy(values)
    except (TypeError, ValueError):
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "fiub":
        raise ParameterError(
            f"{name} must be an array of real numbers {letters}, got {type(values).__name__}: convert it first."
        )
    array = array.astype(np.float64)
    if array.ndim != len(shape) or not array.size:
        raise ParameterError(
            f"{name} must be an array {letters} with at least one entry, got shape {array.shape}: reshape it."
        )
    if not np.isfinite(array).all():
        place = tuple(int(i[0]) for i in np.nonzero(~np.isfinite(array)))
        raise ParameterError(
            f"{name} must be finite, got {array[place]} at {list(place)}: leave out what was not measured."
        )
    return array


def names_of(names: Iterable[Any], count: int | None, name: str) -> list[str]:
    """`names` as strings, one for each of `count` things."""
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
        raise ParameterError(f"{name} must be a list of names, got {type(names).__name__}: wrap it in a list.")
    given = [str(each) for each in names]
    if not given or (count is not None and len(given) != count):
        wanted = "at least one name" if count is None else f"{count} names"
        raise ParameterError(f"{name} must hold {wanted}, got {len(given)}: give one name to each.")
    return given


def named(values: Any, name: str) -> dict[str, Any]:
    """A dict by name that holds something."""
    if not isinstance(values, Mapping) or not values:
        got = "an empty one" if isinstance(values, Mapping) else type(values).__name__
        raise ParameterError(f"{name} must be a dict from names to values with at least one entry, got {got}.")
    found = {str(key): value for key, value in values.items()}
    if len(found) < len(values):
        raise ParameterError(f"{name} must have different names, got {[*values]}: rename those that print alike.")
    return found


def arrays_of(values: Any, name: str, letter: str) -> dict[str, np.ndarray]:
    """A dict by name of arrays with one dimension each."""
    return {key: numbers(each, f"{name}[{key!r}]", (letter,)) for key, each in named(values, name).items()}


def estimates(series: Any, count: int) -> dict[str, np.ndarray]:
    """Means and half widths (2, count) of each series; NaN where there is no value or no interval.

    A value is a pair of mean and half width, or None where it was not measured. A half width may be None, or infinite
    as that of a single task is.
    """
    found = {}
    for name, pairs in named(series, "series").items():
        rows = [pairs] if not isinstance(pairs, Iterable) else [(None, None) if p is None else p for p in pairs]
        try:
            array = np.array(rows, dtype=np.float64)
        except (TypeError, ValueError):
            array = np.empty(0)
        if array.shape != (count, 2):
            raise ParameterError(
                f"series[{name!r}] must hold {count} pairs of mean and half width, or None for a missing one: "
                f"got {len(rows)} entries such as {rows[0] if rows else None!r}."
            )
        if np.isinf(array[:, 0]).any() or (array[:, 1] < 0).any():
            raise ParameterError(f"series[{name!r}] must hold finite means and half widths of at least 0, got {rows}.")
        array[np.isinf(array[:, 1]), 1] = np.nan
        found[name] = array.T
    if all(np.isnan(array[0]).all() for array in found.values()):
        raise ParameterError("series must hold at least one value, got None in all places.")
    return found


def span(estimated: Iterable[np.ndarray]) -> tuple[float, float]:
    """The least and the largest value that an interval of any series reaches."""
    ends = [mean + sign * np.nan_to_num(half) for mean, half in estimated for sign in (-1, 1)]
    return float(np.nanmin(ends)), float(np.nanmax(ends))


def padded(low: float, high: float) -> tuple[float, float]:
    """Limits a little beyond the data; a single value gets some room too."""
    room = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
    return low - room, high + room
