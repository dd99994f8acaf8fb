"""A Dask cluster, reached by the address of its scheduler (extra `cluster`)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hotshot.errors import RunError

# How long to wait for a scheduler to answer, and for it to have a worker.
SCHEDULER_SECONDS, WORKER_SECONDS = 5, 60


@contextmanager
def cluster_client(scheduler: str) -> Iterator[Any]:
    """A client of the scheduler at an address such as "tcp://host:8786"; its errors become one sentence."""
    try:
        from distributed import Client
        from distributed.comm import CommClosedError
        from distributed.scheduler import KilledWorker
    except ImportError:
        raise RunError("A Dask scheduler needs Dask: pip install 'hotshot[cluster]'.") from None

    class ClosedOnFailure(Client):
        # Dask leaves a client that cannot connect to the garbage collector, which locks the process if it runs in a
        # thread that Dask is starting.
        def start(self, **options: Any) -> Any:
            try:
                return super().start(**options)
            except BaseException:
                self.close()
                raise

    try:
        client = ClosedOnFailure(scheduler, timeout=SCHEDULER_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise RunError(f"There is no Dask scheduler at {scheduler} ({reason}): check the address.") from None
    with client:
        try:
            yield client
        except KilledWorker:
            raise RunError(
                "Dask lost several workers on one part of the work, most often because memory ran out: "
                "make smaller parts, or give the workers more memory."
            ) from None
        except (TimeoutError, CommClosedError):
            raise RunError(
                f"The Dask scheduler at {scheduler} has no workers or has stopped: restart it and rerun the command."
            ) from None


def wait_for_a_worker(client: Any) -> None:
    """Wait until the cluster has a worker, with a time limit."""
    client.wait_for_workers(1, timeout=WORKER_SECONDS)
