"""On a Dask cluster the results are those of one process, also where workers die on the way.

`make test` runs this file by itself: the event loops of Dask want a process that has not run a thousand other tests.
"""

from __future__ import annotations

import gc
import logging
import os
import signal

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from conftest import make_bank
from few_shot_problems import assert_same, ragged_bank
from hotshot import BaseClasses, HOTClassifier, evaluate
from hotshot.errors import InputError, RunError

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

pytestmark = [
    # Sockets of workers that were killed are closed whenever Python finds the time.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning:distributed")
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
        n_workers=3, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=logging.CRITICAL + 1
    ) as cluster:
        yield cluster


@pytest.fixture
def workers(cluster):
    """Process numbers of all three workers, once they are there."""
    with distributed.Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(3, timeout=20)
        yield list(client.run(os.getpid).values())


def test_a_cluster_finds_what_one_process_finds(cluster, workers, expected, tmp_path):
    computed = []
    found = run(scheduler=cluster.scheduler_address, out=tmp_path, watch=lambda *seen: computed.append(seen))
    assert len(computed) == UNITS
    assert_same(found, expected)
    # The run folder is the same too: here, one process goes on with what the cluster has finished.
    known = []
    assert_same(run(n_jobs=1, out=tmp_path, watch=lambda record, was_known, _: known.append(was_known)), found)
    assert known == [True] * UNITS


@pytest.mark.parametrize("lost", [1, 3], ids=["one of three", "all three"])
def test_results_do_not_change_where_workers_are_killed(lost, cluster, workers, expected):
    assert len(set(workers)) == 3
    seen = []

    def kill_at_the_first(record, was_known, total):
        if not seen:
            for process in workers[:lost]:
                os.kill(process, signal.SIGKILL)
        seen.append(record.chunk)

    assert_same(run(scheduler=cluster.scheduler_address, watch=kill_at_the_first), expected)
    assert len(seen) == len(set(seen)) == UNITS


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nowhere", "http://127.0.0.1:1", ""])
def test_where_no_scheduler_is_there_is_one_sentence(address, quiet, tmp_path):
    with pytest.raises(RunError, match=f"There is no Dask scheduler at {address} ") as error:
        run(scheduler=address, out=tmp_path)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "results.json").exists()
    # The garbage collector would close it, and Dask waits forever if that happens in a thread that it is starting.
    assert [x for x in gc.get_objects() if isinstance(x, distributed.Client) and x.status != "closed"] == []


# --- banks from parts ---------------------------------------------------------------------------------------


def parts_of_a_bank(n_parts=7):
    """Functions that each give some of the samples of a ragged bank."""
    bank = ragged_bank(width=4)
    order = np.random.default_rng(0).permutation(len(bank.samples))
    samples, names = (bank.samples[order], np.array(["zebra", "ant", "mole", "bee", "elk", "owl"])[bank.labels[order]])
    return [lambda rows=rows: (samples[rows], names[rows]) for rows in np.array_split(np.arange(len(order)), n_parts)]


def probabilities(bank, **settings):
    return HOTClassifier(bank, cost="mean-cosine", **settings).fit(X[::4], Y[::4]).predict_proba(X)


@pytest.mark.parametrize("settings", [{"covariance": "diagonal"}, {"covariance": "dense", "n_components": None}])
def test_a_bank_from_parts_on_a_cluster_is_the_one_made_here(cluster, workers, settings):
    here = BaseClasses.from_partitions(parts_of_a_bank(), **settings)
    there = BaseClasses.from_partitions(parts_of_a_bank(), scheduler=cluster.scheduler_address, **settings)
    assert there.names.tolist() == here.names.tolist()
    assert there.counts.tolist() == here.counts.tolist()
    np.testing.assert_allclose(probabilities(there, **settings), probabilities(here, **settings), atol=1e-8)


def test_files_are_read_where_the_workers_are(cluster, workers, tmp_path):
    for i, part in enumerate(parts_of_a_bank(3)):
        features, names = part()
        np.savez(tmp_path / f"{i}.npz", X=features, y=names)
    files = sorted(tmp_path.iterdir())
    there = BaseClasses.from_partitions(files, scheduler=cluster.scheduler_address)
    np.testing.assert_allclose(probabilities(there), probabilities(BaseClasses.from_partitions(files)), atol=1e-8)


def test_a_bad_part_is_one_sentence_from_a_cluster_too(cluster, workers):
    bad = [*parts_of_a_bank(), lambda: (np.full((2, 4), np.nan), ["ant", "ant"])]
    with pytest.raises(InputError, match="NaN") as error:
        BaseClasses.from_partitions(bad, scheduler=cluster.scheduler_address)
    assert "\n" not in str(error.value)
    with pytest.raises(InputError, match=r"nowhere\.npz"):
        BaseClasses.from_partitions(["nowhere.npz"], scheduler=cluster.scheduler_address)


def test_a_part_that_kills_its_workers_is_a_run_error(quiet):
    def deadly():
        os.kill(os.getpid(), signal.SIGKILL)

    with (
        # One death is enough: by default it takes four of them.
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL + 1
        ) as cluster,
        pytest.raises(RunError, match="lost several workers on one part"),
    ):
        BaseClasses.from_partitions([deadly], scheduler=cluster.scheduler_address)


def test_a_cluster_without_workers_is_a_run_error(quiet, monkeypatch):
    monkeypatch.setattr("hotshot.cluster.WORKER_SECONDS", 0.5)
    with distributed.LocalCluster(n_workers=0, dashboard_address=":0") as cluster:
        address = cluster.scheduler_address
        with pytest.raises(RunError, match="has no workers"):
            run(scheduler=address)
        with pytest.raises(RunError, match="has no workers"):
            BaseClasses.from_partitions(parts_of_a_bank(), scheduler=address)
