"""Runs read again from their folders alone, without the features they were made on."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.errors import InputError
from hotshot.evaluation.chunks import Chunk, Record
from hotshot.evaluation.journal import JOURNAL, REQUEST, decode_lines
from hotshot.evaluation.results import Evaluation, MethodResult, check_reference, summarise
from hotshot.evaluation.tasks import CLOSED, Setting, check_queries, check_setting, check_shots, check_size
from hotshot.files.objects import read_object, refuse_damage

RESULTS = "results.json"
AGAIN = "rerun the command to resume"


@dataclass(frozen=True)
class StoredRun:
    """A finished run, read from its folder.

    Attributes
    ----------
    folder : Path
        The run folder.
    request : dict
        All that determines the results: methods, sizes of tasks, seed and hashes of the data.
    about : dict
        Versions and, for a run of the command line, the source of the data.
    evaluation : Evaluation
        The results, as ``evaluate`` returned them; class labels are text.

    See Also
    --------
    load_run : Read a run.

    Examples
    --------
    >>> sorted(StoredRun.__dataclass_fields__)
    ['about', 'evaluation', 'folder', 'request']
    """

    folder: Path
    request: dict[str, Any]
    about: dict[str, Any]
    evaluation: Evaluation


def is_run(folder: str | Path) -> bool:
    """Whether a folder has the files of a run; they may be damaged."""
    return all(os.path.isfile(Path(folder) / name) for name in (REQUEST, JOURNAL))


def load_run(folder: str | Path) -> StoredRun:
    """Read a finished run from its folder; a run that is damaged or not finished raises ``InputError``.

    Parameters
    ----------
    folder : path
        Run folder of ``evaluate`` or ``hotshot evaluate``.

    Returns
    -------
    StoredRun
        The run.

    See Also
    --------
    evaluate : Make a run.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from hotshot import evaluate
    >>> y = np.repeat(list("abcdef"), 20)
    >>> X = np.random.default_rng(0).normal(size=(120, 4)) + (y == "a")[:, None]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = evaluate("centroid", X, y, ways=3, shots=1, tasks=20, n_jobs=1, out=f"{folder}/run")
    ...     run = load_run(f"{folder}/run")
    >>> run.evaluation.methods, run.evaluation.tasks
    (['centroid'], 20)
    """
    folder = Path(folder)
    if not is_run(folder):
        raise InputError(f"{folder} is not a run folder: name one that hotshot evaluate wrote.")
    about = _read(folder / REQUEST)
    request = about.pop("request", None)
    if not isinstance(request, dict) or not isinstance(request.get("methods", {}), dict):
        raise InputError(f"{folder / REQUEST} cannot be read as a request: copy it again, or rerun the command.")
    if "tune" in request or "methods" not in request:
        raise InputError(
            f"{folder} is a search for parameters, not a comparison of methods: name a folder of hotshot evaluate."
        )
    rows = _read(folder / RESULTS).get("rows") if os.path.isfile(folder / RESULTS) else None
    with refuse_damage(folder, "run"):
        documents, damaged = decode_lines((folder / JOURNAL).read_bytes())
        records, faults = _sound_records(documents)
        shots, tasks = check_shots(request["shots"]), int(request["tasks"])
        known = [r.chunk for r in records if r.chunk.method in request["methods"] and r.chunk.shots in shots]
        wanted = tasks * len(shots) * len(request["methods"])
        if wanted < 1:
            raise ValueError("it names no tasks")
        missing = wanted - sum(chunk.stop - chunk.start for chunk in known)
        if missing > 0 and faults:
            raise faults[0]
        if missing > 0:
            lost = f" ({damaged} lines of its journal are damaged)" if damaged else ""
            raise InputError(
                f"The run in {folder} is not finished, {missing} of its {wanted} tasks are missing{lost}: {AGAIN}."
            )
        if rows is None:
            raise InputError(f"{folder} has no {RESULTS}: rerun the command, which writes it.")
        setting = check_setting(request.get("setting", CLOSED.name))
        results = _results(records, request, rows, shots, tasks, setting)
        ways = check_size("ways", request["ways"])
        check_queries(request["queries"])
        reference = check_reference(rows[0]["reference"], request["methods"])
        jointly = request.get("batch", [])
        if not isinstance(jointly, list) or not all(name in request["methods"] for name in jointly):
            raise ValueError("batch does not name its methods")
        found = Evaluation(results, ways, tasks, reference, setting, tuple(jointly))
        return StoredRun(folder, request, about, found)


def _sound_records(documents: list[dict[str, Any]]) -> tuple[list[Record], list[Exception]]:
    """Each chunk once, the last record of it, and what is wrong with others: they may have been computed again."""
    records: dict[Chunk, Record] = {}
    faults: list[Exception] = []
    for document in documents:
        try:
            record = Record.from_json(document)
            records[record.chunk] = record
        except (TypeError, LookupError, ValueError, AttributeError) as error:
            faults.append(error)
    return list(records.values()), faults


def _read(path: Path) -> dict[str, Any]:
    found = read_object(path)
    if found is None:
        raise InputError(f"{path} is damaged: copy it again, or {AGAIN}.")
    return found


def _results(
    records: list[Record],
    request: dict[str, Any],
    rows: list[dict[str, Any]],
    shots: list[int | str],
    tasks: int,
    setting: Setting,
) -> tuple[MethodResult, ...]:
    results = []
    kept = {(row["method"], row["shots"]): row for row in rows}
    for k in shots:
        paired: list[list[int]] | None = None
        for method in request["methods"]:
            own = [r for r in records if (r.chunk.method, r.chunk.shots) == (method, k)]
            own.sort(key=lambda r: r.chunk.start)
            classes = _checked_classes(own, tasks)
            paired = paired or classes
            if classes != paired:
                raise ValueError(f"{method} was not run on the tasks of the other methods")
            row = kept[method, k]
            result = summarise(method, k, own, _names(own, row["recall"]))
            # The names of the classes are in the file of results alone.
            same = np.isclose(list(result.recall.values()), list(row["recall"].values()), rtol=0, atol=1e-9)
            if not (abs(result.accuracy.mean - row["accuracy"]) < 1e-6 and same.all()):
                raise ValueError(f"{RESULTS} and {JOURNAL} differ in {method}")
            _check_measures(result, row, setting)
            results.append(result)
    return tuple(results)


def _check_measures(result: MethodResult, row: dict[str, Any], setting: Setting) -> None:
    """Raise unless a result has the measures of its setting, and those of its row."""
    known = [name for name in setting.measures if name in result.measures]
    if setting.compared not in [*known, ""] or len(known) < len(result.measures):
        raise ValueError(f"the measures of {result.method} are not those of the {setting.name} setting")
    if any(abs(result.measures[name].mean() - row[name]) >= 1e-6 for name in known):
        raise ValueError(f"{RESULTS} and {JOURNAL} differ in {result.method}")


def _checked_classes(records: list[Record], tasks: int) -> list[list[int]]:
    """Classes of all tasks of one method; raises unless its records are in order and about these tasks."""
    ends = [0, *(r.chunk.stop for r in records)]
    if [r.chunk.start for r in records] != ends[:-1] or ends[-1] != tasks:
        raise ValueError("its records are not those of its tasks")
    return [row for record in records for row in record.classes]


def _names(records: list[Record], recall: dict[str, float]) -> np.ndarray:
    """Names of the classes by index: recall is listed in their order, those without a query left out."""
    pairs = [
        (c, number)
        for record in records
        for row, asked in zip(record.classes, record.queries, strict=True)
        for c, number in zip(row, asked, strict=True)
    ]
    known = np.unique([c for c, number in pairs if number])
    if len(known) != len(recall):
        raise ValueError(f"{RESULTS} has {len(recall)} classes where {len(known)} were drawn")
    names = np.full(1 + max(c for c, _ in pairs), "", dtype=f"U{max(map(len, recall))}")
    names[known] = list(recall)
    return names
