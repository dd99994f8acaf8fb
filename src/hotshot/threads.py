"""Matrix products on one thread: their order of summation, and so their last bits, then depend on no core count."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = Lock()
# Limits of those inside, the first of which knows what was before: matrix libraries have one setting for all threads.
_inside: list[Any] = []


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread per caller, also where several threads of this process are inside at once."""
    controller = ThreadpoolController()
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
