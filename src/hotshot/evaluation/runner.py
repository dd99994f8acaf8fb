"""`evaluate`: many methods on the same thousands of tasks, paired, resumable, on all cores or a cluster."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import scipy
import sklearn

from hotshot.arrays import array_hash, check_features
from hotshot.base import BaseClasses
from hotshot.errors import InputError, ParameterError, RunError
from hotshot.estimators.named import resolve_methods
from hotshot.evaluation.chunks import CHUNK_TASKS, Chunk, Record, Runner, Transformed, chunks_of, make_runner, task_seed
from hotshot.evaluation.journal import Journal
from hotshot.evaluation.results import Evaluation, check_reference, summarise
from hotshot.evaluation.tasks import Episodes, FrozenEpisodes, labels_hash, load_tasks
from hotshot.evaluation.workers import count_jobs, run_chunks
from hotshot.files.atomic import write_json
from hotshot.version import __version__

# Called with every record, with whether it was found in the run folder, and with the total number of chunks.
Watcher = Callable[[Record, bool, int], None]


def evaluate(
    methods: Any,
    X_novel: Any,
    y_novel: Any,
    *,
    base: BaseClasses | None = None,
    ways: int = 5,
    shots: int | Sequence[int] = (1, 5),
    queries: int = 15,
    tasks: int = 10_000,
    seed: int = 0,
    frozen: str | Path | None = None,
    reference: str | None = None,
    n_jobs: int = -1,
    scheduler: str | None = None,
    out: str | Path | None = None,
    watch: Watcher | None = None,
    about: Mapping[str, Any] | None = None,
) -> Evaluation:
    """Accuracy of methods on N-way-K-shot tasks drawn from novel classes; all methods see the same tasks.

    Parameters
    ----------
    methods : name, estimator, list or dict
        Names of methods (which need `base`), estimators of hotshot with any parameters, or any scikit-learn
        classifiers; a dict gives them the names they have in the table.
    X_novel, y_novel : arrays (samples, V) and (samples,)
        Samples of the novel classes, from which the tasks are drawn.
    base : BaseClasses, optional
        For methods given by name.
    ways, shots, queries : int
        Classes per task, support and query samples per class; several numbers of shots are evaluated in turn.
    tasks : int
        For each number of shots.
    seed : int
        Task i depends on the seed and on i alone.
    frozen : path, optional
        A file of tasks made by `freeze_tasks`, which then decides ways, shots, queries, tasks and seed.
    reference : str, optional
        The method that the others are compared to; the first by default.
    n_jobs : int
        Processes, -1 for one per core. The accuracies are the same for any number.
    scheduler : str, optional
        Address of a Dask scheduler to compute on instead.
    out : path, optional
        Run folder. Whatever ends the run, the same call goes on where it stopped.
    watch : callable, optional
        Called with (record, was_known, total) for every finished chunk, for a progress bar.
    about : dict, optional
        What else `run.json` should tell, as JSON, such as where the data were; it decides nothing, and a run that goes
        on keeps what it was started with.

    Returns
    -------
    Evaluation
        Accuracies per task, means with 95% intervals, paired differences, and more.
    """
    X = check_features(X_novel, "X_novel")
    y = np.asarray(check_sized(y_novel, len(X)))
    if frozen is None:
        episodes, tasks, request = draw_episodes(y, ways, shots, queries, tasks, seed)
    else:
        kept, digest = load_tasks(frozen, y)
        episodes, tasks = dict(kept), len(next(iter(kept.values())))
        request = {"frozen": digest, "chunk": CHUNK_TASKS}
    estimators = resolve_methods(methods, base)
    reference = check_reference(reference, estimators)
    count_jobs(n_jobs)
    first = next(iter(episodes.values()))
    request.update(
        methods={name: estimator_to_json(estimator) for name, estimator in estimators.items()},
        data={"X_novel": array_hash(X), "y_novel": labels_hash(y)},
        hotshot=__version__,
    )
    chunks = [chunk for k in episodes for chunk in chunks_of(estimators, k, 0, tasks)]
    # The folder first: what is refused should be refused before any work.
    with open_journal(out, request, about) as journal:
        transformed: list[Transformed] = []
        trials = [e[0] for e in episodes.values()]
        runners = {
            name: make_runner(name, estimator, X, trials, task_seed(first.seed, 0), transformed)
            for name, estimator in estimators.items()
        }
        records = collect(runners, episodes, chunks, journal, n_jobs, scheduler, watch)
        results = tuple(
            summarise(name, k, [r for r in records if (r.chunk.method, r.chunk.shots) == (name, k)], first.names)
            for k in episodes
            for name in estimators
        )
        found = Evaluation(results, first.ways, tasks, reference)
        if journal is not None:
            write_results(journal.folder, found)
    return found


def open_journal(
    out: str | Path | None, request: dict[str, Any], about: Mapping[str, Any] | None = None
) -> AbstractContextManager[Journal | None]:
    """The journal of a run folder, for a `with` statement; None without a folder."""
    return nullcontext() if out is None else Journal(out, request, {**(about or {}), **versions()})


def write_results(folder: Path, found: Evaluation) -> None:
    """Write the statistics beside the journal they were made from."""
    try:
        write_json(folder / "results.json", {"rows": found.rows()})
    except InputError as error:
        raise RunError(f"The run is complete, but {error} Make room and run the same command again.") from None


def collect(
    runners: Mapping[str, Runner],
    episodes: Mapping[int, Episodes | FrozenEpisodes],
    chunks: Sequence[Chunk],
    journal: Journal | None,
    n_jobs: int,
    scheduler: str | None,
    watch: Watcher | None,
) -> list[Record]:
    """Records of all chunks: those in the journal, and the others computed and kept there."""
    known = {record.chunk: record for record in _known(journal, chunks)}
    watch = watch or _ignore
    for record in known.values():
        watch(record, True, len(chunks))
    waiting = [chunk for chunk in chunks if chunk not in known]
    with closing(run_chunks((runners, episodes, waiting), n_jobs, scheduler)) as records:
        for record in records:
            if journal is not None:
                journal.append(record.to_json())
            known[record.chunk] = record
            watch(record, False, len(chunks))
    return [known[chunk] for chunk in chunks]


def _ignore(record: Record, was_known: bool, total: int) -> None:
    """Watch nothing."""


def _known(journal: Journal | None, chunks: Iterable[Chunk]) -> Iterator[Record]:
    if journal is None:
        return
    wanted = set(chunks)
    for document in journal:
        try:
            record = Record.from_json(document)
        except (TypeError, KeyError):
            continue
        if record.chunk in wanted:
            yield record


def draw_episodes(
    y: np.ndarray, ways: int, shots: int | Sequence[int], queries: int, tasks: int, seed: int
) -> tuple[dict[int, Episodes | FrozenEpisodes], int, dict[str, Any]]:
    """Episodes by number of shots, the number of tasks, and what of it belongs to the request."""
    if not isinstance(tasks, (int, np.integer)) or isinstance(tasks, bool) or tasks < 1:
        raise ParameterError(f"tasks must be an integer of at least 1, got {tasks!r}.")
    numbers: list[Any] = list(shots) if isinstance(shots, (list, tuple, range, np.ndarray)) else [shots]
    if not numbers or any(numbers.count(k) > 1 for k in numbers):
        raise ParameterError(f"shots must be one number or several different ones, got {shots!r}.")
    episodes: dict[int, Episodes | FrozenEpisodes] = {
        k: Episodes(y, ways=ways, shots=k, queries=queries, seed=seed)
        for k in (int(k) if isinstance(k, np.integer) else k for k in numbers)
    }
    request = {
        "ways": int(ways),
        "shots": list(episodes),
        "queries": int(queries),
        "tasks": int(tasks),
        "seed": int(seed),
        "chunk": CHUNK_TASKS,
    }
    return episodes, int(tasks), request


def check_sized(y: Any, samples: int, name: str = "y_novel") -> Any:
    """Labels, one per sample."""
    try:
        length = len(y)
    except TypeError:
        raise InputError(f"{name} must hold one label per sample, got {type(y).__name__}.") from None
    if length != samples:
        raise InputError(f"{name} must hold one label per sample ({samples}), got {length}.")
    return y


def estimator_to_json(estimator: Any) -> dict[str, Any]:
    """Class and parameters of an estimator as JSON; banks and arrays go by their hashes."""
    parameters = {name: _value_to_json(value) for name, value in estimator.get_params(deep=True).items()}
    return {"class": f"{type(estimator).__module__}.{type(estimator).__qualname__}", "parameters": parameters}


def _value_to_json(value: Any) -> Any:
    if isinstance(value, (bool, int, float, str, type(None))):
        return value
    if isinstance(value, BaseClasses):
        return f"{value!r} {value.fingerprint}"
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        return f"array {array_hash(np.atleast_1d(value))}"
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def versions() -> dict[str, Any]:
    """What the run was made with."""
    return {
        "versions": {
            "hotshot": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
            "joblib": joblib.__version__,
        }
    }
