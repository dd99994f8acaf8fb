"""Numbers and names as a person reads them, the same in the terminal, in sentences and on the page."""

import difflib
import math
from collections.abc import Iterable, Sequence
from typing import Any

LONGEST_NAME, LONGEST_QUOTED = 40, 60
# Digits after the point of a small interval; things that are listed before the rest is counted.
MOST_PLACES, MOST_LISTED = 6, 8
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def with_interval(mean: float, half_width: float | None = None, *, signed: bool = False, places: int = 2) -> str:
    """A number and the half width of its interval; the number alone if that is None, infinite or 0.

    An interval of width 0 comes from values without spread, all 100% for one, which are no certainty.
    """
    interval = plus_minus(half_width, places)
    if interval:
        places = len(interval.partition(".")[2])
    # What rounds to zero has no sign of its own.
    text = f"{round(mean, places) + 0.0:{'+' if signed else ''}.{places}f}"
    return f"{text} {interval}".rstrip()


def plus_minus(half_width: float | None, places: int = 2) -> str:
    """`± 0.55`, with more digits where these would be zeros; empty if it is None, infinite or 0."""
    if not half_width or not math.isfinite(half_width):
        return ""
    while places and round(half_width, places) == 0 and places < MOST_PLACES:
        places += 1
    return f"± {half_width:.{places}f}"


def percentage(share: float, places: int = 1) -> str:
    """A share in percent: `12.3%`."""
    return f"{100 * share:.{places}f}%"


def whole_percentage(share: float) -> str:
    """A share in whole percent; only nothing is `0%`, and only all is `100%`."""
    if 0.995 <= share < 1:
        return ">99%"
    return percentage(share, 0) if share >= 0.0095 or share == 0 else "<1%"


def bounded_percentage(share: float) -> str:
    """A share to two or three digits that is 0% or 100% only where it is exactly so."""
    if 0 < share < 0.001:
        return "under 0.1%"
    if 0.999 < share < 1:
        return "over 99.9%"
    return f"{significant(100 * share, 2 if share < 0.1 else 3)}%"


def significant(value: float, digits: int = 3) -> str:
    """A number to so many significant digits, with an exponent only where it needs many zeros."""
    if value and not 1e-4 <= abs(value) < 1e6:
        return f"{value:.{digits}g}"
    import numpy as np  # `hotshot --help` does without

    return np.format_float_positional(value, precision=digits, fractional=False, trim="-")


def milliseconds(seconds: float) -> str:
    """Seconds in milliseconds, to about three digits: `0.40`, `5.0`, `149`."""
    value = 1000 * seconds
    return f"{value:.{0 if value >= 100 else 1 if value >= 1 else 2}f}"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun: `1 sample`, `2,000 samples`."""
    return f"{number:,} {noun if number == 1 else noun + 's' if plural is None else plural}"


def shots_in_words(shots: int | str) -> str:
    """`1 shot`, `5 shots`, and of the range 1-10 `1 to 10 shots`."""
    return count(shots, "shot") if isinstance(shots, int) else f"{shots.replace('-', ' to ')} shots"


def setting_in_words(ways: int | str, shots: int | str) -> str:
    """How large tasks are; either number may be a range."""
    if isinstance(ways, int) and isinstance(shots, int):
        return f"{ways}-way-{shots}-shot"
    how_many = f"{ways}-way" if isinstance(ways, int) else f"{ways.replace('-', ' to ')} ways"
    return f"{how_many}, {shots_in_words(shots)}"


def queries_in_words(queries: int | str) -> str:
    """`15 queries per class`, and of `dirichlet:2:15` how they are divided."""
    if isinstance(queries, int):
        return f"{queries} queries per class"
    _, alpha, mean = queries.split(":")
    return f"{mean} queries per class on average, divided by proportions from a Dirichlet distribution of {alpha}"


def in_words(number: int) -> str:
    """A whole number as a word where it is small: `two`, `12`."""
    return WORDS[number] if 0 <= number < len(WORDS) else f"{number:,}"


def listed(items: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)


def readable(name: Any) -> str:
    """The name of a class as words: `card payment` for `card_payment`."""
    return " ".join(str(name).replace("_", " ").split()) or str(name)


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """` Did you mean 'x'?`, to end a sentence with, where one of the names is close to this one; nothing elsewhere."""
    close = difflib.get_close_matches(name, list(names), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def printable(name: Any) -> str:
    """A name on one line, with control characters escaped, so that a terminal shows it and does not obey it."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(name))


def shortened(name: Any, longest: int = LONGEST_NAME, keep: str = "start") -> str:
    """A printable name of at most so many characters; `keep` is the part that stays: start, ends, or end."""
    text = printable(name)
    if len(text) <= longest:
        return text
    room = longest - 1
    head = {"start": room, "ends": room - room // 2, "end": 0}[keep]
    return f"{text[:head]}…{text[len(text) - (room - head) :]}"


def on_one_line(text: str, longest: int = 200) -> str:
    """Text on one line without control characters, of at most so many characters of the original."""
    return printable(" ".join(text[:longest].split()))


def reason(error: object, longest: int = 160) -> str:
    """What an error of another library says, on one line, after the name of its type."""
    text = " ".join(str(error).split())[:longest].rstrip(". ")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def quoted(label: Any) -> str:
    """A label or a name from a file, in quotes, safe to print."""
    # Scalars of NumPy are named without their type.
    return shortened(repr(label.item() if getattr(label, "shape", None) == () else label), LONGEST_QUOTED)


def listing(items: Iterable[str]) -> str:
    """The first few of many things, with commas."""
    first = list(items)
    rest = len(first) - MOST_LISTED
    return ", ".join(first[:MOST_LISTED]) + (f" and {rest} more" if rest > 0 else "")


def readable_size(n_bytes: int) -> str:
    """Bytes as a person says them: 1.5 MB."""
    if n_bytes < 1000:
        return f"{n_bytes} bytes"
    power = min((len(str(n_bytes)) - 1) // 3, 6)
    return f"{n_bytes / 1000**power:.3g} {'kMGTPE'[power - 1]}B"
