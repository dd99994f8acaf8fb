"""On a Dask cluster the results are those of one process, also where workers die on the way.

`make test` runs this file by itself: the event loops of Dask want a process that has not run a thousand other tests.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import time

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from conftest import make_bank
from few_shot_problems import ragged_bank
from hotshot import HOTClassifier, evaluate
from hotshot.errors import RunError

distributed = pytest.importorskip("distributed")

pytestmark = [
    # Sockets of workers that were killed are closed whenever Python finds the time.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning:distributed"),
]

X, Y = make_bank(4, 8, 4, seed=1, spread=0.9)
# The forest takes its time, so that workers die at work, and draws at random.
METHODS = {"forest": RandomForestClassifier(n_estimators=5), "hot": HOTClassifier(ragged_bank(width=4))}
UNITS = 12


def run(methods=METHODS, **where):
    return evaluate(methods, X, Y, ways=3, shots=(1, 2), queries=3, tasks=47, **where)


@pytest.fixture(scope="module")
def expected():
    return run(n_jobs=1)


@pytest.fixture(scope="module")
def quiet():
    """Dask's own account of lost workers is not shown."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    before = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    yield
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


@pytest.fixture(scope="module")
def cluster(quiet):
    """Three workers of one thread each."""
    with distributed.LocalCluster(
        n_workers=3,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",
        silence_logs=logging.CRITICAL + 1,
    ) as cluster:
        yield cluster


@pytest.fixture
def workers(cluster):
    """Process numbers of all three workers, once they are there."""
    with distributed.Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(3, timeout=20)
        yield list(client.run(os.getpid).values())


def assert_same(found, expected):
    for one, other in zip(found.results, expected.results, strict=True):
        assert (one.method, one.shots) == (other.method, other.shots)
        assert np.array_equal(one.accuracies, other.accuracies)
        assert one.recall == other.recall
        assert one.statuses == other.statuses


def test_a_cluster_finds_what_one_process_finds(cluster, workers, expected, tmp_path):
    computed = []
    found = run(scheduler=cluster.scheduler_address, out=tmp_path, watch=lambda *seen: computed.append(seen))
    assert len(computed) == UNITS
    assert_same(found, expected)
    # The run folder is the same too: here, one process goes on with what the cluster has finished.
    known = []
    assert_same(
        run(n_jobs=1, out=tmp_path, watch=lambda record, was_known, _: known.append(was_known)), found
    )
    assert known == [True] * UNITS


@pytest.mark.parametrize("lost", [1, 3], ids=["one of three", "all three"])
def test_results_do_not_change_where_workers_are_killed(lost, cluster, workers, expected):
    assert len(set(workers)) == 3
    seen = []

    def kill_at_the_first(record, was_known, total):
        if not seen:
            for process in workers[:lost]:
                os.kill(process, signal.SIGKILL)
        seen.append(record.unit)

    assert_same(run(scheduler=cluster.scheduler_address, watch=kill_at_the_first), expected)
    assert len(seen) == len(set(seen)) == UNITS


def test_where_nothing_listens_there_is_one_sentence(tmp_path, quiet):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    begin = time.monotonic()
    with pytest.raises(RunError, match=f"There is no Dask scheduler at {address}: ") as error:
        run(scheduler=address, out=tmp_path)
    assert time.monotonic() - begin < 15
    assert "\n" not in str(error.value)
    assert not (tmp_path / "results.json").exists()


@pytest.mark.parametrize("address", ["nowhere", "http://127.0.0.1:1", ""])
def test_what_is_no_address_is_refused_at_once(address, quiet):
    begin = time.monotonic()
    with pytest.raises(RunError, match=f"There is no Dask scheduler at {address}: "):
        run(scheduler=address)
    assert time.monotonic() - begin < 5


def test_a_cluster_without_workers_is_a_run_error(quiet, monkeypatch):
    monkeypatch.setattr("hotshot.evaluation.workers.WORKER_SECONDS", 0.5)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0") as cluster,
        pytest.raises(RunError, match="has no workers"),
    ):
        run(scheduler=cluster.scheduler_address)
