"""Pickles of features, such as the `.plk` files of S2M2 and Free-Lunch, read without running anything in them."""

from __future__ import annotations

from pathlib import Path

from hotshot.errors import InputError
from hotshot.files.mapped import map_bytes
from hotshot.files.pickle_contents import Reader
from hotshot.files.pickle_machine import run_pickle
from hotshot.files.pickle_records import Unsound
from hotshot.files.pickle_state import State
from hotshot.files.source import FeatureSource

# A list of one small integer takes four bytes in a pickle and, with what NumPy needs, 32 in memory; vectors that
# are arrays do not grow.
MOST_GROWTH = 8
GROWTH_ALWAYS = 2**20
# Protocol 2 and later start with the first, and older ones with a container or a name.
_STARTS = b"\x80(]})c"


def open_pickle(path: str | Path, part: str | None = None) -> FeatureSource:
    """Features in a pickle of any protocol, written by Python 2 or 3 with NumPy 1 or 2.

    Arrays stay in the file until their rows are asked for. What is made of the file takes at most eight times its size
    and a megabyte. A file that goes on after its first pickle is refused: the rest would be lost without a word.

    Parameters
    ----------
    path : str or Path
    part : str or None
        The key of one set of samples where the file holds a dictionary of several.
    """
    path = Path(path)
    data = map_bytes(path)
    if data[0] not in _STARTS:
        raise InputError(f"{path} is not a pickle, it starts with {data[:12]!r}: copy or download it again.")
    state = State(data, path)
    value = run_pickle(state)
    if state.position < len(data):
        raise InputError(
            f"{path} holds {len(data) - state.position} bytes after its first pickle: store all vectors in one "
            "dictionary of label to vectors, in one pickle."
        )
    try:
        return Reader(path, MOST_GROWTH * len(data) + GROWTH_ALWAYS).features(value, part)
    except Unsound as problem:
        raise InputError(f"{path} is not a sound pickle of features, {problem}: save its vectors again.") from None
