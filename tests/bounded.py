"""Reading under watch: hostile files must be refused without taking memory."""

from __future__ import annotations

import signal
import tracemalloc
from contextlib import contextmanager

import pytest

from hotshot.errors import InputError
from hotshot.files import read_features


@contextmanager
def at_most(n_bytes):
    """Assert that what happens inside takes at most so much memory, as NumPy and Python count it."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= n_bytes, f"took {peak / 1e6:.1f} MB of memory"


class TooSlow(BaseException):
    """What was watched took longer than it may; no reader takes this for an error of its own."""


@contextmanager
def within(seconds):
    """What would wait or go on without end fails instead of stopping the suite."""

    def stop(*_):
        raise TooSlow(f"takes more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def assert_refused(path, message, n_bytes=2**24):
    """Reading raises one sentence and takes next to nothing."""
    with at_most(n_bytes), pytest.raises(InputError, match=message) as caught:
        read_features(path)
    assert "\n" not in str(caught.value)
