"""Who computes the chunks: this process, processes of this machine (joblib), or a Dask cluster."""

import os
import time
import warnings
from collections.abc import Generator, Mapping, Sequence
from functools import cache
from multiprocessing import current_process
from threading import Thread
from typing import Any

from joblib import Parallel, cpu_count, delayed, effective_n_jobs
from joblib.externals.loky.process_executor import TerminatedWorkerError

from hotshot.cluster import cluster_client, wait_for_a_worker
from hotshot.errors import ParameterError, RunError
from hotshot.evaluation.chunks import Chunk, Record, Runner, run_chunk
from hotshot.evaluation.tasks import Episodes

# More processes per core only take memory: as many are started instead of what is asked for beyond.
MOST_PER_CORE = 4
# How often the chunks of workers that were lost are handed out again.
MOST_LOSSES = 5
# Names of the errors of chunks that were lost with a worker; Dask, which has them, may not be installed.
LOSSES = ("KilledWorker", "CancelledError", "FutureCancelledError", "FuturesCancelledError")

# Seconds between two looks of a worker for its parent.
LOOK_EVERY = 0.5

Work = tuple[Mapping[str, Runner], Mapping[int | str, Episodes], Sequence[Chunk]]


def run_chunks(work: Work, n_jobs: int = 1, scheduler: str | None = None) -> Generator[Record, None, None]:
    """Records of all chunks, as they are ready; close the generator to end early.

    By `n_jobs` processes of this machine (-1 is one per core), or by the workers of the Dask scheduler at an address.
    """
    if scheduler is not None and work[2]:
        return _on_dask(work, scheduler)
    n_jobs = min(count_jobs(n_jobs), len(work[2]))
    if n_jobs > 1:
        return _in_processes(work, n_jobs)
    runners, episodes, chunks = work
    return (run_chunk(runners[chunk.method], episodes[chunk.shots], chunk) for chunk in chunks)


def count_jobs(n_jobs: int) -> int:
    """The number of processes that `n_jobs` stands for, never more than a few per core."""
    if not isinstance(n_jobs, int) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise ParameterError(f"n_jobs must be a positive integer, or -1 for one per core, got {n_jobs!r}.")
    return min(int(effective_n_jobs(n_jobs)), MOST_PER_CORE * cpu_count())


def _in_processes(work: Work, n_jobs: int) -> Generator[Record, None, None]:
    runners, episodes, chunks = work
    stopped = False

    def calls() -> Generator[Any, None, None]:
        for chunk in chunks:
            if stopped:
                return
            yield delayed(_run_in_worker)(os.getpid(), runners[chunk.method], episodes[chunk.shots], chunk)

    # joblib keeps every large array of the runners in one memory-mapped file that all processes share.
    records = Parallel(n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs")(calls())
    try:
        for record in records:  # noqa: UP028 - not "yield from", which would close it out of sight
            yield record
    except TerminatedWorkerError:
        raise RunError("A worker process was killed, usually for lack of memory: use fewer jobs and rerun.") from None
    finally:
        stopped = True
        _let_finish(records)


def _run_in_worker(parent: int, *work: Any) -> Record:
    _end_with(parent)
    return run_chunk(*work)


@cache
def _end_with(parent: int) -> None:
    """End this process soon after its parent, whatever ended that; joblib's own workers live on for minutes."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK_EVERY)
        os._exit(1)

    # Other backends of joblib, such as threads, have no such parent.
    if current_process().name.startswith("LokyProcess"):
        Thread(target=watch, daemon=True).start()


def _let_finish(records: Generator[Record, None, None]) -> None:
    """Wait for what is at work, so that no pool is torn down in the middle; if that fails, end it."""
    with warnings.catch_warnings():
        # joblib's advice about cancelled tasks is for those who did not mean to stop.
        warnings.simplefilter("ignore")
        try:
            for _ in records:
                pass
        except BaseException:  # whatever it is, there is something worse to report already
            records.close()


def _on_dask(work: Work, scheduler: str) -> Generator[Record, None, None]:
    with cluster_client(scheduler) as client:
        yield from _on_client(work, client)


def _on_client(work: Work, client: Any) -> Generator[Record, None, None]:
    """Scatter the runners once, hand out the chunks, and hand out again those that were lost with a worker.

    Dask itself moves the chunks of a dead worker to others; only where the last copy of a runner died with it do the
    chunks come back as cancelled, and the runner is scattered anew.
    """
    from distributed import as_completed

    runners, episodes, chunks = work
    waiting = set(chunks)
    for _ in range(MOST_LOSSES):
        wait_for_a_worker(client)
        kept = {
            name: client.scatter(runner, broadcast=True, hash=False, direct=False)
            for name, runner in runners.items()
            if any(chunk.method == name for chunk in waiting)
        }
        drawn = {shots: client.scatter(e, broadcast=True, hash=False, direct=False) for shots, e in episodes.items()}
        futures = {
            client.submit(run_chunk, kept[chunk.method], drawn[chunk.shots], chunk, pure=False, retries=3): chunk
            for chunk in chunks
            if chunk in waiting
        }
        for future in as_completed(list(futures), loop=client.loop, raise_errors=False):
            chunk = futures[future]
            if future.status == "finished":
                waiting.discard(chunk)
                yield future.result()
                future.release()
            elif future.status == "error" and type(future.exception()).__name__ not in LOSSES:
                raise future.exception()
        if not waiting:
            return
    raise RunError(f"Dask lost {len(waiting)} chunks {MOST_LOSSES} times: check the logs of its workers.")
