"""Banks are the same bits on any number of threads, and threads share them."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from conftest import make_bank
from few_shot_problems import ragged_bank
from hotshot.arrays import one_thread
from hotshot.bank import BaseClasses, Space


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_the_limit_holds_until_the_last_thread_has_left_and_is_then_undone():
    outer = threadpool_limits(2, user_api="blas")
    try:
        before = blas_threads()
        entered, leave = threading.Event(), threading.Event()

        def other():
            with one_thread():
                entered.set()
                leave.wait(60)

        thread = threading.Thread(target=other)
        with one_thread():
            thread.start()
            entered.wait(60)
            assert blas_threads() == {1}
        assert blas_threads() == {1}, "the other thread is still inside"
        leave.set()
        thread.join()
        assert blas_threads() == before
    finally:
        outer.restore_original_limits()


def test_a_bank_is_prepared_in_the_same_bits_on_any_number_of_threads():
    X, y = make_bank(12, 60, 160, dtype=np.float32)
    results = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            space = Space(power=1.0, normalize=None, n_components=None, sample_weights="classifier")
            prepared = BaseClasses.from_samples(X, y).prepare(space)
            results.append([prepared.means, prepared.weighted_means, prepared.spectrum, prepared.covariances.matrices])
    assert all(np.array_equal(one, other) for one, other in zip(*results, strict=True))


def test_threads_share_a_bank_while_spaces_come_and_go(tmp_path):
    bank = ragged_bank()
    # Powers between 1 and 2 of negative features are refused.
    bank = BaseClasses.from_samples(np.abs(bank.samples), bank.names[bank.labels])

    def use(thread):
        for i in range(60):
            bank.prepare(Space(power=1.0 + (i + thread) % 11 / 16, n_components=2))
            if i % 20 == 0:
                bank.save(tmp_path / f"{thread}-{i}.bank")

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(use, range(4)))
    finally:
        sys.setswitchinterval(interval)
