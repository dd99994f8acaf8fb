"""Who computes the units: this process, processes of this machine (joblib), or a Dask cluster."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs
from joblib.externals.loky.process_executor import TerminatedWorkerError

from hotshot.errors import ParameterError, RunError
from hotshot.evaluation.plans import Plan
from hotshot.evaluation.tasks import Episodes, FrozenEpisodes
from hotshot.evaluation.units import Record, Unit, run_unit

# How often the units of workers that were lost are handed out again.
MOST_LOSSES = 5
# How long to wait for a scheduler to answer, and for it to have a worker.
SCHEDULER_SECONDS, WORKER_SECONDS = 5, 60

Work = tuple[Mapping[str, Plan], Mapping[int, Episodes | FrozenEpisodes], Sequence[Unit]]


def run_units(work: Work, n_jobs: int = 1, scheduler: str | None = None) -> Generator[Record, None, None]:
    """Records of all units, as they are ready; close the generator to end early.

    Parameters
    ----------
    work : plans by method, episodes by shots, and the units
    n_jobs : int
        Processes of this machine; -1 is one per core.
    scheduler : str, optional
        Address of a Dask scheduler, whose workers compute instead.
    """
    if scheduler is not None and work[2]:
        return _on_dask(work, scheduler)
    n_jobs = min(count_jobs(n_jobs), len(work[2]))
    return _in_processes(work, n_jobs) if n_jobs > 1 else _here(work)


def count_jobs(n_jobs: int) -> int:
    """The number of processes that `n_jobs` stands for."""
    if not isinstance(n_jobs, int) or n_jobs == 0:
        raise ParameterError(f"n_jobs must be a positive integer, or -1 for one per core, got {n_jobs!r}.")
    return int(effective_n_jobs(n_jobs))


def _here(work: Work) -> Generator[Record, None, None]:
    plans, episodes, units = work
    return (run_unit(plans[unit.method], episodes[unit.shots], unit) for unit in units)


def _in_processes(work: Work, n_jobs: int) -> Generator[Record, None, None]:
    plans, episodes, units = work
    stopped = False

    def calls() -> Generator[Any, None, None]:
        for unit in units:
            if stopped:
                return
            yield delayed(run_unit)(plans[unit.method], episodes[unit.shots], unit)

    # joblib keeps every large array of the plans in one memory-mapped file that all processes share.
    records = Parallel(n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs")(calls())
    try:
        for record in records:  # noqa: UP028 - not "yield from", which would close it out of sight
            yield record
    except TerminatedWorkerError:
        raise RunError(
            "A worker process was killed, most often for want of memory: take fewer jobs and run the same again."
        ) from None
    finally:
        stopped = True
        _let_finish(records)


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
    try:
        from distributed import Client
        from distributed.comm import CommClosedError
    except ImportError:
        raise RunError("A Dask scheduler needs Dask: pip install 'hotshot[cluster]'.") from None
    try:
        client = Client(scheduler, timeout=SCHEDULER_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise RunError(f"There is no Dask scheduler at {scheduler}: {reason}.") from None
    with client:
        try:
            yield from _on_client(work, client)
        except (TimeoutError, CommClosedError):
            raise RunError(
                f"The Dask scheduler at {scheduler} has no workers or is gone: start it again and repeat the command."
            ) from None


def _on_client(work: Work, client: Any) -> Generator[Record, None, None]:
    """Scatter the plans once, hand out the units, and hand out again those that were lost with a worker.

    Dask itself moves the units of a dead worker to others; only where the last copy of a plan died with it do the
    units come back as cancelled, and the plan is scattered anew.
    """
    from distributed import as_completed

    plans, episodes, units = work
    waiting = set(units)
    for _ in range(MOST_LOSSES):
        client.wait_for_workers(1, timeout=WORKER_SECONDS)
        kept = {
            name: client.scatter(plan, broadcast=True, hash=False, direct=False)
            for name, plan in plans.items()
            if any(unit.method == name for unit in waiting)
        }
        drawn = {
            shots: client.scatter(e, broadcast=True, hash=False, direct=False)
            for shots, e in episodes.items()
        }
        futures = {
            client.submit(run_unit, kept[unit.method], drawn[unit.shots], unit, pure=False, retries=3): unit
            for unit in units
            if unit in waiting
        }
        for future in as_completed(list(futures), loop=client.loop, raise_errors=False):
            unit = futures[future]
            if future.status == "finished":
                waiting.discard(unit)
                yield future.result()
                future.release()
            elif future.status == "error" and not _is_loss(future.exception()):
                raise future.exception()
        if not waiting:
            return
    raise RunError(
        f"Dask lost {len(waiting)} units {MOST_LOSSES} times over: look at the logs of its workers."
    )


def _is_loss(error: BaseException) -> bool:
    return type(error).__name__ in (
        "KilledWorker",
        "CancelledError",
        "FutureCancelledError",
        "FuturesCancelledError",
    )
