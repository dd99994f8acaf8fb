"""Who computes the units: this process, processes of this machine (joblib), or a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs

from hotshot.episodes import Episodes, FrozenEpisodes
from hotshot.errors import ParameterError, RunError
from hotshot.evaluation.plans import Plan
from hotshot.evaluation.units import Record, Unit, run_unit

# How often the units of workers that were lost are handed out again.
MOST_LOSSES = 5

Work = tuple[Mapping[str, Plan], Mapping[int, Episodes | FrozenEpisodes], Sequence[Unit]]


def run_units(work: Work, n_jobs: int = 1, scheduler: str | None = None) -> Iterator[Record]:
    """Records of all units, as they are ready.

    Parameters
    ----------
    work : plans by method, episodes by shots, and the units
    n_jobs : int
        Processes of this machine; -1 is one per core.
    scheduler : str, optional
        Address of a Dask scheduler, whose workers compute instead.
    """
    if not work[2]:
        return iter(())
    if scheduler is not None:
        return _on_dask(work, scheduler)
    n_jobs = count_jobs(n_jobs)
    return _here(work) if n_jobs == 1 else _in_processes(work, n_jobs)


def count_jobs(n_jobs: int) -> int:
    """The number of processes that `n_jobs` stands for."""
    if not isinstance(n_jobs, int) or n_jobs == 0:
        raise ParameterError(f"n_jobs must be a positive integer, or -1 for one per core, got {n_jobs!r}.")
    return int(effective_n_jobs(n_jobs))


def _here(work: Work) -> Iterator[Record]:
    plans, episodes, units = work
    return (run_unit(plans[unit.method], episodes[unit.shots], unit) for unit in units)


def _in_processes(work: Work, n_jobs: int) -> Iterator[Record]:
    plans, episodes, units = work
    # joblib keeps every large array of the plans in one memory-mapped file that all processes share.
    pool = Parallel(n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch="3*n_jobs")
    return pool(delayed(run_unit)(plans[unit.method], episodes[unit.shots], unit) for unit in units)


def _on_dask(work: Work, scheduler: str) -> Iterator[Record]:
    try:
        from distributed import Client
    except ImportError:
        raise RunError("A Dask scheduler needs Dask: pip install 'hotshot[cluster]'.") from None
    try:
        client = Client(scheduler, timeout=10, set_as_default=False)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise RunError(f"There is no Dask scheduler at {scheduler}: {reason}") from None
    with client:
        yield from _on_client(work, client)


def _on_client(work: Work, client: Any) -> Iterator[Record]:
    """Scatter the plans once, hand out the units, and hand out again those that were lost with a worker.

    Dask itself moves the units of a dead worker to others; only where the last copy of a plan died with it do the
    units come back as cancelled, and the plan is scattered anew.
    """
    from distributed import as_completed

    plans, episodes, units = work
    waiting = set(units)
    for _ in range(MOST_LOSSES):
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
        for future in as_completed(list(futures), raise_errors=False):
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
