"""Runs read again from their folders alone, without the features they were made on."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.errors import InputError
from hotshot.evaluation.journal import JOURNAL, REQUEST, Record, read_records
from hotshot.evaluation.methods import chunks_of
from hotshot.evaluation.results import RESULTS, Evaluation, check_reference, summarise
from hotshot.evaluation.tasks import CLOSED, check_queries, check_setting, check_shots, check_size
from hotshot.files.objects import need, read_object, refuse_damage


@dataclass(frozen=True)
class StoredRun:
    """A finished run, read from its folder.

    ``request`` is all that determines the results: methods, sizes of tasks, seed and hashes of the data. ``about`` has
    the versions and, for a run of the command line, the source of the data. ``evaluation`` is as ``evaluate`` returned
    it; class labels are text.
    """

    folder: Path
    request: dict[str, Any]
    about: dict[str, Any]
    evaluation: Evaluation


def is_run(folder: str | Path) -> bool:
    """Whether a folder has the files of a run; they may be damaged."""
    return all(os.path.isfile(Path(folder) / name) for name in (REQUEST, JOURNAL))


def load_run(folder: str | Path) -> StoredRun:
    """Read a finished run of ``evaluate`` or ``hotshot evaluate``; ``InputError`` if it is damaged or open.

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
    if not isinstance(request, dict) or not isinstance(request.get("methods"), dict):
        raise InputError(f"{folder / REQUEST} cannot be read as a request: copy it again, or rerun the command.")
    with refuse_damage(folder, "run"):
        methods, shots, tasks = list(request["methods"]), check_shots(request["shots"]), int(request["tasks"])
        setting, names = check_setting(request.get("setting", CLOSED.name)), about.pop("classes")
        need(all(isinstance(name, str) for name in names), "classes without names")
        size = request.get("chunk", setting.chunk)
        first = request.get("first", 0)
        need(all(type(number) is int for number in (size, first)) and size > 0, "no numbers of tasks")
        keys = [(method, k) for k in shots for method in methods]
        records = _all_records(folder, keys, range(first, first + tasks), size)
        results = tuple(summarise(method, k, part, np.array(names)) for (method, k), part in records.items())
        for result in results:
            first = results[shots.index(result.shots) * len(methods)]
            need(
                np.array_equal(result.classes, first.classes), f"{result.method} was not run on the tasks of the others"
            )
            measures = {*result.measures}
            need(
                measures <= {*setting.measures} and {setting.compared} <= {*measures, ""}, "measures of another setting"
            )
        if not os.path.isfile(folder / RESULTS):
            raise InputError(f"{folder} has no {RESULTS}: rerun the command, which writes it.")
        # A run that was finished by another command may have another reference than the one it was started with.
        reference = check_reference(_read(folder / RESULTS)["rows"][0]["reference"], methods)
        jointly = request.get("batch", [])
        need(isinstance(jointly, list) and all(name in methods for name in jointly), "batch does not name its methods")
        check_queries(request["queries"])
        ways = check_size("ways", request["ways"])
        return StoredRun(folder, request, about, Evaluation(results, ways, tasks, reference, setting, tuple(jointly)))


def _read(path: Path) -> dict[str, Any]:
    document = read_object(path)
    if document is None:
        raise InputError(f"{path} is damaged: copy it again, or rerun the command to resume.")
    return document


def _all_records(
    folder: Path, keys: list[tuple[str, int | str]], tasks: range, size: int
) -> dict[tuple[str, int | str], list[Record]]:
    """Records of each method and number of shots in the order of their tasks; raise unless all are there."""
    records, damaged = read_records((folder / JOURNAL).read_bytes())
    wanted = len(tasks) * len(keys)
    need(wanted > 0, "it names no tasks")
    missing = wanted - sum(len(r.counts) for chunk, r in records.items() if (chunk.method, chunk.shots) in keys)
    if missing > 0:
        lost = f" ({damaged} lines of its journal are damaged)" if damaged else ""
        raise InputError(
            f"The run in {folder} is not finished, {missing} of its {wanted} tasks are missing{lost}: rerun the "
            "command to resume."
        )
    chunks = {(method, k): chunks_of([method], k, tasks.start, tasks.stop, size) for method, k in keys}
    return {key: [records[chunk] for chunk in of_key] for key, of_key in chunks.items()}
