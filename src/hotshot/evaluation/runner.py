"""`evaluate`: many methods on the same thousands of tasks, paired, resumable, on all cores or a cluster."""

import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import scipy
import sklearn

from hotshot.arrays import array_hash, check_features, check_numbers, one_thread
from hotshot.bank import BaseClasses
from hotshot.bank.feature_space import warn_of_shared_classes
from hotshot.classifiers.classifier import FewShotClassifier
from hotshot.classifiers.named import joint_methods, resolve_methods, with_one_by_one
from hotshot.errors import InputError, ParameterError, RunError
from hotshot.evaluation.chunks import Chunk, Record, Runner, Transformed, chunks_of, make_runner, task_seed
from hotshot.evaluation.identity import identity, is_installed
from hotshot.evaluation.journal import Journal
from hotshot.evaluation.measures import MEASURES, Measure, bank_of, beside_base, check_outlier_scores
from hotshot.evaluation.open_tasks import JointEpisodes, OpenEpisodes, joint_samples
from hotshot.evaluation.results import Evaluation, check_reference, summarise
from hotshot.evaluation.tasks import (
    CLOSED,
    GENERALISED,
    OPEN,
    QUERIES,
    Episodes,
    Setting,
    check_setting,
    check_shots,
    labels_hash,
)
from hotshot.evaluation.workers import count_jobs, run_chunks
from hotshot.files.atomic import refuse_file, write_json
from hotshot.labels import check_labels
from hotshot.version import __version__

# Called with every record, with whether it was found in the run folder, and with the total number of chunks.
Watcher = Callable[[Record, bool, int], None]


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
        Called with (record, was_known, total) for every finished chunk, for a progress bar.
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
    asked = check_setting(setting)
    estimators = resolve_methods(methods, base)
    reference = check_reference(reference, estimators)
    jointly = joint_methods(estimators, batch)
    estimators = with_one_by_one(estimators, reference, jointly)
    data = {"X_novel": array_hash(X), "y_novel": labels_hash(y)}
    draw: Callable[..., Episodes] = partial(Episodes, y)
    if asked is OPEN:
        check_outlier_scores(estimators)
        draw = partial(OpenEpisodes, y)
    elif asked is GENERALISED:
        check_numbers(seed=seed)
        whole = bank_of(estimators, base)
        rest, X, y_base = joint_samples(whole, X, y, seed)
        estimators, data["base"] = beside_base(estimators, rest), whole.fingerprint
        draw = partial(JointEpisodes, y, y_base)
    episodes, tasks, request = draw_episodes(draw, ways, shots, queries, tasks, seed, asked)
    count_jobs(n_jobs)
    first = next(iter(episodes.values()))
    request.update(
        methods={} if out is None else {name: estimator_to_json(own) for name, own in estimators.items()},
        data=data,
        hotshot=__version__,
        **({} if asked is CLOSED else {"setting": asked.name}),
        **({"batch": list(jointly)} if jointly else {}),
    )
    chunks = [chunk for k in episodes for chunk in chunks_of(estimators, k, 0, tasks, asked.chunk)]
    banks = {id(bank): bank for bank in (base, *(getattr(own, "base", None) for own in estimators.values()))}
    for bank in banks.values():
        if isinstance(bank, BaseClasses) and names.dtype.kind in "UO":
            warn_of_shared_classes(bank, names)
    # The folder first: what is refused should be refused before any work.
    with open_journal(out(request) if callable(out) else out, request, about) as journal:
        runners = make_runners(estimators, X, episodes, MEASURES.get(asked.name), jointly)
        records = collect(runners, episodes, chunks, journal, n_jobs, scheduler, watch)
        results = tuple(
            summarise(name, k, [r for r in records if (r.chunk.method, r.chunk.shots) == (name, k)], first.names)
            for k in episodes
            for name in estimators
        )
        found = Evaluation(results, first.ways, tasks, reference, asked, jointly)
        if journal is not None:
            journal.check_kept()
            write_results(journal.folder, found)
    return found


@one_thread()
def make_runners(
    estimators: Mapping[str, Any],
    X: np.ndarray,
    episodes: Mapping[int | str, Episodes],
    measure: Measure | None = None,
    jointly: Sequence[str] = (),
) -> dict[str, Runner]:
    """The runner of each method, tried on tasks of each number of shots; those of one space share samples.

    The methods named in `jointly` classify the queries of a task together.
    """
    transformed: list[Transformed] = []
    trials = [task for drawn in episodes.values() for task in drawn.trials()]
    seed = task_seed(next(iter(episodes.values())).seed, 0)
    return {
        name: make_runner(name, own, X, trials, seed, transformed, measure, name in jointly)
        for name, own in estimators.items()
    }


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
        raise RunError(f"The run is complete, but {error} Make room and rerun the command.") from None


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
    known: dict[Chunk, Record] = {}
    for document in () if journal is None else journal:
        # What is no record is computed again.
        with suppress(TypeError, LookupError, ValueError, AttributeError):
            record = Record.from_json(document)
            known[record.chunk] = record
    known = {chunk: known[chunk] for chunk in chunks if chunk in known}
    for record in known.values():
        if watch is not None:
            watch(record, True, len(chunks))
    waiting = [chunk for chunk in chunks if chunk not in known]
    with closing(run_chunks((runners, episodes, waiting), n_jobs, scheduler)) as records:
        for record in records:
            if journal is not None:
                journal.append(record.to_json())
            known[record.chunk] = record
            if watch is not None:
                watch(record, False, len(chunks))
    return [known[chunk] for chunk in chunks]


def draw_episodes(
    draw: Callable[..., Episodes],
    ways: int | str | None,
    shots: Any,
    queries: int | str,
    tasks: int | None,
    seed: int,
    setting: Setting = CLOSED,
) -> tuple[dict[int | str, Episodes], int, dict[str, Any]]:
    """Episodes by number of shots, the number of tasks, and what of it belongs to the request."""
    ways, tasks = setting.ways if ways is None else ways, setting.tasks if tasks is None else tasks
    check_numbers(tasks=tasks)
    drawn = {k: draw(ways=ways, shots=k, queries=queries, seed=seed) for k in check_shots(shots)}
    first = next(iter(drawn.values()))
    sizes = {"ways": first.ways, "queries": first.queries, "tasks": int(tasks), "seed": int(seed)}
    return {**drawn}, int(tasks), {"shots": list(drawn), **sizes, "chunk": setting.chunk}


def estimator_to_json(estimator: Any) -> dict[str, Any]:
    """Class and parameters of an estimator; banks, arrays, functions and objects go by their hashes."""
    kind, name = type(estimator), "class"
    described = f"{kind.__module__}.{kind.__qualname__}"
    try:
        if not described.startswith("hotshot.") and not is_installed(kind):
            described += f" {identity(kind)}"
        parameters = {}
        for name, value in estimator.get_params(deep=True).items():
            parameters[name] = _value_to_json(value)
    except Exception as error:
        raise ParameterError(
            f"The {name} of {kind.__name__} cannot be identified after a restart "
            f"({' '.join(str(error).split()) or type(error).__name__}): leave out the run folder, or pass what can be "
            "pickled."
        ) from None
    chosen = estimator.choice().settings if isinstance(estimator, FewShotClassifier) else {}
    return {"class": described, "parameters": parameters, "chosen": chosen}


def _value_to_json(value: Any) -> Any:
    if isinstance(value, (bool, int, float, str, type(None))):
        return value
    if isinstance(value, BaseClasses):
        return f"{value!r} {value.fingerprint}"
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        return f"array {array_hash(np.atleast_1d(value))}"
    return identity(value)


def versions() -> dict[str, Any]:
    """What the run was made with."""
    libraries = {"numpy": np, "scipy": scipy, "scikit-learn": sklearn, "joblib": joblib}
    own = {"hotshot": __version__, "python": platform.python_version()}
    return {"versions": own | {name: library.__version__ for name, library in libraries.items()}}
