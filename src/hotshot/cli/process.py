"""How the process behaves on a CPU while it works on images."""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress

# Names of glibc's parameters: blocks mapped one by one, and free memory that is given back.
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4
_MOST = 2**31 - 1


def keep_freed_memory() -> None:
    """Keep what is freed for the next step instead of giving it back to the system.

    Convolutions on a CPU allocate hundreds of megabytes in every step. By default glibc maps each such block anew, and
    much of the time goes to zeroing its pages. Elsewhere than on glibc this does nothing.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            mallopt = ctypes.CDLL(None).mallopt
            mallopt(_M_MMAP_MAX, 0)
            mallopt(_M_TRIM_THRESHOLD, _MOST)


def let_waiting_threads_sleep() -> None:
    """Have OpenMP's threads sleep where they wait for each other; it looks once, when PyTorch is imported.

    By default they spin, and where another process wants one of the cores, most of the time goes to that.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
