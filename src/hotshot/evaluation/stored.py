"""Runs read again from their folders alone, without the features they were made on."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.errors import InputError
from hotshot.evaluation.journal import JOURNAL, REQUEST, Chunk, Record, decode_lines
from hotshot.evaluation.results import RESULTS, Evaluation, MethodResult, check_reference, summarise
from hotshot.evaluation.tasks import CLOSED, Setting, check_queries, check_setting, check_shots, check_size
from hotshot.files.objects import read_object, refuse_damage

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
        methods, shots, tasks = list(request["methods"]), check_shots(request["shots"]), int(request["tasks"])
        setting = check_setting(request.get("setting", CLOSED.name))
        records = _records(folder, [(method, k) for k in shots for method in methods], tasks)
        if rows is None:
            raise InputError(f"{folder} has no {RESULTS}: rerun the command, which writes it.")
        stored_rows = {(row["method"], row["shots"]): row for row in rows}
        for (method, k), own in records.items():
            if [record.classes for record in own] != [record.classes for record in records[methods[0], k]]:
                raise ValueError(f"{method} was not run on the tasks of the other methods")
        results = tuple(_result(own, tasks, stored_rows[key], setting) for key, own in records.items())
        jointly = request.get("batch", [])
        if not isinstance(jointly, list) or not all(name in methods for name in jointly):
            raise ValueError("batch does not name its methods")
        check_queries(request["queries"])
        ways, reference = check_size("ways", request["ways"]), check_reference(rows[0]["reference"], methods)
        found = Evaluation(results, ways, tasks, reference, setting, tuple(jointly))
        return StoredRun(folder, request, about, found)


def _read(path: Path) -> dict[str, Any]:
    document = read_object(path)
    if document is None:
        raise InputError(f"{path} is damaged: copy it again, or {AGAIN}.")
    return document


def _records(folder: Path, keys: list[tuple[str, int | str]], tasks: int) -> dict[tuple[str, int | str], list[Record]]:
    """Records of each method and number of shots in the order of their tasks; raise unless all are there."""
    documents, damaged = decode_lines((folder / JOURNAL).read_bytes())
    records: dict[Chunk, Record] = {}
    faults: list[Exception] = []
    for document in documents:
        try:
            # Of a chunk that was computed again the last record counts.
            record = Record.from_json(document)
            records[record.chunk] = record
        except (TypeError, LookupError, ValueError, AttributeError) as error:
            faults.append(error)
    chunks = sorted((chunk for chunk in records if (chunk.method, chunk.shots) in keys), key=lambda chunk: chunk.start)
    wanted = tasks * len(keys)
    if wanted < 1:
        raise ValueError("it names no tasks")
    missing = wanted - sum(chunk.stop - chunk.start for chunk in chunks)
    if missing > 0 and faults:
        raise faults[0]
    if missing > 0:
        lost = f" ({damaged} lines of its journal are damaged)" if damaged else ""
        raise InputError(
            f"The run in {folder} is not finished, {missing} of its {wanted} tasks are missing{lost}: {AGAIN}."
        )
    return {key: [records[chunk] for chunk in chunks if (chunk.method, chunk.shots) == key] for key in keys}


def _result(records: list[Record], tasks: int, row: dict[str, Any], setting: Setting) -> MethodResult:
    """The result of a method, whose classes are named in the file of results alone; both must say the same."""
    ends = [0, *(record.chunk.stop for record in records)]
    if [record.chunk.start for record in records] != ends[:-1] or ends[-1] != tasks:
        raise ValueError("its records are not those of its tasks")
    result = summarise(row["method"], row["shots"], records, _names(records, row["recall"]))
    names = [name for name in setting.measures if name in result.measures]
    if setting.compared not in [*names, ""] or len(names) < len(result.measures):
        raise ValueError(f"the measures of {result.method} are not those of the {setting.name} setting")
    numbers = [result.accuracy.mean, *(result.measures[name].mean() for name in names), *result.recall.values()]
    written = [row["accuracy"], *(row[name] for name in names), *row["recall"].values()]
    if not np.allclose(numbers, written, rtol=0, atol=1e-9):
        raise ValueError(f"{RESULTS} and {JOURNAL} differ in {result.method}")
    return result


def _names(records: list[Record], recall: dict[str, float]) -> np.ndarray:
    """Names of the classes by index: recall is listed in their order, those without a query left out."""
    drawn = np.array([c for record in records for row in record.classes for c in row])
    queries = np.array([number for record in records for row in record.queries for number in row])
    present = np.unique(drawn[queries > 0])
    if len(present) != len(recall):
        raise ValueError(f"{RESULTS} has {len(recall)} classes where {len(present)} were drawn")
    names = np.full(1 + drawn.max(), "", dtype=f"U{max(map(len, recall))}")
    names[present] = list(recall)
    return names
