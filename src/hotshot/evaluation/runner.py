"""`evaluate`: many methods on the same thousands of tasks, paired, resumable, on all cores or a cluster."""

import os
import platform
import time
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, nullcontext
from functools import cache, partial
from multiprocessing import current_process
from pathlib import Path
from threading import Thread
from typing import Any

import joblib
import numpy as np
import scipy
import sklearn
from joblib.externals.loky.process_executor import TerminatedWorkerError

from hotshot.arrays import array_hash, check_features, check_labels, check_numbers
from hotshot.bank import BaseClasses
from hotshot.classifiers.named import joint_methods, resolve_methods, with_one_by_one
from hotshot.cluster import cluster_client, wait_for_a_worker
from hotshot.errors import InputError, ParameterError, RunError
from hotshot.evaluation.journal import Chunk, Journal, Record, estimator_to_json
from hotshot.evaluation.methods import (
    MEASURES,
    Runner,
    bank_of,
    check_outlier_scores,
    chunks_of,
    make_runners,
    run_chunk,
    with_base_classes,
)
from hotshot.evaluation.results import RESULTS, Evaluation, check_reference, summarise
from hotshot.evaluation.tasks import (
    CLOSED,
    GENERALISED,
    OPEN,
    QUERIES,
    Episodes,
    JointEpisodes,
    OpenEpisodes,
    check_setting,
    check_shots,
    joint_samples,
    labels_hash,
)
from hotshot.files.atomic import refuse_file, write_json
from hotshot.version import __version__

# Called with every record, with whether it was found in the run folder, and with the number of tasks of all chunks.
Watcher = Callable[[Record, bool, int], None]
# More processes per core only take memory: as many are started instead of what is asked for beyond.
MOST_PER_CORE = 4
# Seconds between two looks of a worker for its parent.
LOOK_EVERY = 0.5
Work = tuple[Mapping[str, Runner], Mapping[int | str, Episodes], Sequence[Chunk]]


def evaluate(
    methods: Any,
    X_novel: Any,
    y_novel: Any,
    *,
    base: BaseClasses | None = None,
    setting: str = CLOSED.name,
    ways: int | str | None = None,
    shots: int | str | Sequence[int | str] = (1, 5),
    queries: int | str = QUERIES,
    tasks: int | None = None,
    first: int = 0,
    seed: int = 0,
    reference: str | None = None,
    batch: bool = False,
    n_jobs: int = -1,
    scheduler: str | None = None,
    out: str | Path | Callable[[dict[str, Any]], Path] | None = None,
    watch: Watcher | None = None,
    about: Mapping[str, Any] | None = None,
) -> Evaluation:
    """Evaluate methods on N-way-K-shot tasks drawn from novel classes; all methods see the same tasks.

    Parameters
    ----------
    methods : str, estimator, list or dict
        Names of methods (which need ``base``), estimators of hotshot with any parameters, or any scikit-learn
        classifiers. The keys of a dict are the names in tables.
    X_novel, y_novel : arrays (samples, V) and (samples,)
        Samples of the novel classes, from which the tasks are drawn.
    base : BaseClasses, optional
        Base classes of methods that are given by name.
    setting : {"closed", "generalised", "open"}
        In "closed" a query belongs to one of the classes of its task. In "generalised" there are queries of base
        classes too, a fifth of the samples of the bank, and methods predict base and novel classes together. In "open"
        as many queries belong to none of the classes of the task, and methods detect them by their outlier scores.
    ways, shots, queries : int or str
        Classes per task, support and query samples per class; several numbers of shots are evaluated in turn. Tasks of
        unequal sizes: with ways="5-20" every task draws its number of classes, with shots="1-10" every class its
        number of shots, and queries="dirichlet:2" divides 15 queries per class by random proportions. By default 5
        ways, and all novel classes in the generalised setting, where ``queries`` is the largest number per class.
    tasks : int, optional
        Number of tasks for each number of shots; by default 1,000, and 30 in the generalised setting.
    first : int
        Number of the first task; the others follow it.
    seed : int
        Seed of the tasks. Task i depends only on the seed and on i.
    reference : str, optional
        The method that the others are compared to; by default the first.
    batch : bool
        Whether methods with ``predict_batch`` classify the queries of a task jointly, in the open and the generalised
        setting with those of other classes; the others classify them one by one. If the reference does both, it is
        evaluated both ways, and the second row is called "hot one by one".
    n_jobs : int
        Number of processes; -1 is one per core. The accuracies are the same for any number.
    scheduler : str, optional
        Address of a Dask scheduler, to compute on a cluster.
    out : path or callable, optional
        Run folder, or a function that names it by what was asked, as JSON. After an interruption, repeat the call to
        resume.
    watch : callable, optional
        Called with (record, was_known, total) for every finished chunk, for a progress bar; total is the number of
        tasks over all methods and shots.
    about : dict, optional
        Further entries of ``run.json``, as JSON, such as the source of the data; a resumed run keeps those it was
        started with.

    Returns
    -------
    Evaluation
        Accuracies per task, means with 95% intervals over classes and over tasks, paired differences, and more.

    See Also
    --------
    tune : Choose parameters on validation classes.
    hotshot.evaluation.stored.load_run : Read a run folder.

    Examples
    --------
    >>> import numpy as np
    >>> from hotshot import evaluate
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(list("abcdef"), 20)
    >>> X = np.repeat(rng.normal(size=(6, 4)), 20, axis=0) + 0.1 * rng.normal(size=(120, 4))
    >>> found = evaluate(["centroid", "cosine"], X, y, ways=3, shots=1, tasks=20, n_jobs=1)
    >>> found["centroid", 1].accuracy.mean > 0.9
    True
    """
    if isinstance(out, (str, Path)):
        refuse_file(out, "run folder")
    X = check_features(X_novel, "X_novel")
    names, labels = check_labels(y_novel, len(X), "y_novel")
    y = names[labels]
    rules = check_setting(setting)
    estimators = resolve_methods(methods, base)
    reference = check_reference(reference, estimators)
    jointly = joint_methods(estimators, batch)
    estimators = with_one_by_one(estimators, reference, jointly)
    data = {"X_novel": array_hash(X), "y_novel": labels_hash(y)}
    draw: Callable[..., Episodes] = partial(Episodes, y)
    if rules is OPEN:
        check_outlier_scores(estimators)
        draw = partial(OpenEpisodes, y)
    elif rules is GENERALISED:
        check_numbers(seed=seed)
        whole = bank_of(estimators, base)
        rest, X, y_base = joint_samples(whole, X, y, seed)
        estimators, data["base"] = with_base_classes(estimators, rest), whole.fingerprint
        draw = partial(JointEpisodes, y, y_base)
    ways, tasks = rules.ways if ways is None else ways, rules.tasks if tasks is None else tasks
    check_numbers(tasks=tasks, first=first)
    episodes = {k: draw(ways=ways, shots=k, queries=queries, seed=seed) for k in check_shots(shots)}
    count_jobs(n_jobs)
    drawn = next(iter(episodes.values()))
    request = {
        "shots": list(episodes),
        "ways": drawn.ways,
        "queries": drawn.queries,
        "tasks": int(tasks),
        "seed": int(seed),
        "chunk": rules.chunk,
        "methods": {} if out is None else {name: estimator_to_json(method) for name, method in estimators.items()},
        "data": data,
        "hotshot": __version__,
        **({"first": int(first)} if first else {}),
        **({} if rules is CLOSED else {"setting": rules.name}),
        **({"batch": list(jointly)} if jointly else {}),
    }
    chunks = [chunk for k in episodes for chunk in chunks_of(estimators, k, first, first + tasks, rules.chunk)]
    banks = {id(bank): bank for bank in (base, *(getattr(method, "base", None) for method in estimators.values()))}
    for bank in banks.values():
        if isinstance(bank, BaseClasses) and names.dtype.kind in "UO":
            bank.warn_of_shared_names(names)
    about = {**(about or {}), "classes": [str(name) for name in names], **versions()}
    out = out(request) if callable(out) else out
    # The folder first: what is refused should be refused before any work.
    with nullcontext() if out is None else Journal(out, request, about) as journal:
        runners = make_runners(estimators, X, episodes, MEASURES.get(rules.name), jointly)
        records = collect(runners, episodes, chunks, journal, n_jobs, scheduler, watch)
        results = tuple(
            summarise(name, k, [r for r in records if (r.chunk.method, r.chunk.shots) == (name, k)], drawn.names)
            for k in episodes
            for name in estimators
        )
        found = Evaluation(results, drawn.ways, int(tasks), reference, rules, jointly)
        if journal is not None:
            journal.check_kept()
            try:
                write_json(journal.folder / RESULTS, {"rows": found.rows()})
            except InputError as error:
                raise RunError(f"The run is complete, but {error} Make room and rerun the command.") from None
    return found


def collect(
    runners: Mapping[str, Runner],
    episodes: Mapping[int | str, Episodes],
    chunks: Sequence[Chunk],
    journal: Journal | None,
    n_jobs: int,
    scheduler: str | None,
    watch: Watcher | None,
) -> list[Record]:
    """Records of all chunks: those in the journal, and the others computed and kept there."""
    stored = {} if journal is None else journal.records()
    records = {chunk: stored[chunk] for chunk in chunks if chunk in stored}
    total = sum(chunk.stop - chunk.start for chunk in chunks)
    for record in records.values():
        if watch is not None:
            watch(record, True, total)
    waiting = [chunk for chunk in chunks if chunk not in records]
    with closing(run_chunks((runners, episodes, waiting), n_jobs, scheduler)) as new:
        for record in new:
            if journal is not None:
                journal.append(record)
            records[record.chunk] = record
            if watch is not None:
                watch(record, False, total)
    return [records[chunk] for chunk in chunks]


def versions() -> dict[str, Any]:
    """What the run was made with."""
    libraries = {"numpy": np, "scipy": scipy, "scikit-learn": sklearn, "joblib": joblib}
    made_with = {name: library.__version__ for name, library in libraries.items()}
    return {"versions": {"hotshot": __version__, "python": platform.python_version(), **made_with}}


# --- who computes the chunks: this process, processes of this machine (joblib), or a Dask cluster


def run_chunks(work: Work, n_jobs: int = 1, scheduler: str | None = None) -> Generator[Record, None, None]:
    """Records of all chunks, as they are ready; close the generator to end early."""
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
    return min(int(joblib.effective_n_jobs(n_jobs)), MOST_PER_CORE * joblib.cpu_count())


def _in_processes(work: Work, n_jobs: int) -> Generator[Record, None, None]:
    runners, episodes, chunks = work
    stopped = False

    def calls() -> Generator[Any, None, None]:
        for chunk in chunks:
            if stopped:
                return
            yield joblib.delayed(_run_in_worker)(os.getpid(), runners[chunk.method], episodes[chunk.shots], chunk)

    # joblib keeps every large array of the runners in one memory-mapped file that all processes share.
    records = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs")(calls())
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
    """Records from a cluster, which moves the chunks of a dead worker to others.

    Runners and episodes are results of tasks themselves: the scheduler computes again what was lost with a worker. The
    Dask backend of joblib waits forever for work that killed its workers.
    """
    runners, episodes, chunks = work
    with cluster_client(scheduler) as client:
        from distributed import as_completed

        wait_for_a_worker(client)

        def sent(values: Mapping[Any, Any]) -> dict[Any, Any]:
            return {key: client.submit(_itself, value, pure=False) for key, value in values.items()}

        with warnings.catch_warnings():
            # Dask warns of large arguments.
            warnings.simplefilter("ignore")
            methods, tasks = sent(runners), sent(episodes)
        futures = [
            client.submit(run_chunk, methods[chunk.method], tasks[chunk.shots], chunk, pure=False, retries=3)
            for chunk in chunks
        ]
        for future in as_completed(futures, loop=client.loop):
            yield future.result()
            future.release()


def _itself(value: Any) -> Any:
    return value
