"""The data of the task explorer: what a method did in the worst, the middle and the best tasks of a run, and why.

The features of a run are read again from where its folder says that they are, and the tasks are fitted anew.
"""

import json
import re
import warnings
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from hotshot.arrays import array_hash, check_features
from hotshot.bank import BaseClasses
from hotshot.classifiers import METHOD_NAMES, FreeLunchClassifier, HOTClassifier
from hotshot.classifiers.calibrated import CalibratedClassifier
from hotshot.classifiers.explanation import Explanation, Reason, explain_model
from hotshot.errors import HotshotError, HotshotWarning, InputError
from hotshot.evaluation import Evaluation, MethodResult
from hotshot.evaluation.data import load_data
from hotshot.evaluation.stored import StoredRun, load_run
from hotshot.evaluation.tasks import Episodes, Task, labels_hash
from hotshot.files.objects import refuse_damage
from hotshot.files.samples import ID, Samples
from hotshot.formatting import reason
from hotshot.transport.costs import cosine

KINDS: dict[str, type[CalibratedClassifier]] = {
    f"{kind.__module__}.{kind.__qualname__}": kind for kind in (HOTClassifier, FreeLunchClassifier)
}
# Base classes named for a class; samples and base classes named on each side of a wrong query; wrong queries of a task;
# support samples named as most similar to a query.
TOP_LENDERS, TOP_REASONS, MOST_WRONG, NEAREST = 8, 4, 40, 3
# Of tasks, by their names in a request.
SIZE = ("ways", "queries", "seed")
# Bytes of texts and thumbnails of a part of the page; characters of a text, and of an id, of which the last ones stay.
MOST_BYTES, LONGEST_TEXT, LONGEST_ID = 2_000_000, 1000, 100
# What browsers draw, by its first bytes. Nothing else is embedded: SVG, for one, is a document.
IMAGES = {
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
}
# Control characters and halves of a character; all others are shown as they are, whatever the script.
UNSEEN = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff]")


# --- where the data of a run are


@dataclass(frozen=True)
class Source:
    """Where the data of a run come from: two feature files or an embedded bank; and the command that was run."""

    base: Path | None = None
    novel: Path | None = None
    bank: str | None = None
    command: str | None = None

    @property
    def name(self) -> str:
        """What people call the data: the bank, or the file of the novel classes."""
        return self.bank or (self.novel.name if self.novel is not None else "unnamed features")


# Base classes and `Samples` of the novel classes, or in their place features, labels and, if known, other columns.
Reader = Callable[[Source], Sequence[Any]]


def read_source(source: Source) -> tuple[BaseClasses, Samples]:
    """The data of a run, from where its folder says that they are."""
    if source.bank is None and (source.base is None or source.novel is None):
        raise InputError("The folder does not record where the data are: pass them with --base and --novel.")
    try:
        return load_data(source.base, source.novel, source.bank)
    except InputError as error:
        raise InputError(f"{error} Pass the files of the run with --base and --novel.") from None


def shown_samples(samples: Samples, settings: list[dict[str, Any]], room: int = MOST_BYTES) -> dict[str, Any]:
    """What the page says of the samples in the tasks of an explorer, as JSON.

    `rows` has id, text and thumbnail (a data URI) of each row of which more is known than its number, None for what is
    not. `left_out` is how many samples lack one of these for want of room, which is in bytes.
    """

    def fits(value: str) -> bool:
        nonlocal room
        # With its comma, and as the page writes it: some characters take six.
        size = len(json.dumps(value)) + 1 + 5 * sum(map(value.count, "<>&'"))
        if size > room:
            return False
        room -= size
        return True

    tasks = [task for setting in settings for task in setting["tasks"]]
    # Those that explain most come first: the support, then mistakes, then the other queries.
    support = [row for task in tasks for *_, row in task["support"]]
    queries = [(truth == chosen, row) for task in tasks for *_, truth, chosen, row in task["queries"]]
    rows, left_out = {}, 0
    for row in dict.fromkeys([*support, *(row for _, row in sorted(queries, key=lambda query: query[0]))]):
        name = _shown(samples.ids[row], LONGEST_ID, end=True) if ID in samples.columns else None
        text = None if samples.texts is None else _shown(samples.texts[row], LONGEST_TEXT) or None
        image = b"" if samples.thumbnails is None else samples.thumbnails[row]
        kind = next((kind for kind, start in IMAGES.items() if start.match(image)), None)
        known = [text, kind and f"data:{kind};base64,{b64encode(image).decode()}"]
        fitting = [value if value and fits(value) else None for value in known]
        left_out += fitting != known
        if (name, *fitting) != (None, None, None):
            rows[row] = [name, *fitting]
    return {"rows": rows, "left_out": left_out}


def _shown(text: str, longest: int, end: bool = False) -> str:
    """A text on one line of at most so many characters, its start or its end."""
    line = " ".join((text[-2 * longest :] if end else text[: 2 * longest]).split())
    if len(line) > longest or len(text) > 2 * longest:
        line = f"…{line[1 - longest :]}" if end else f"{line[: longest - 1]}…"
    return UNSEEN.sub("\N{REPLACEMENT CHARACTER}", line)


@dataclass(frozen=True)
class Options:
    """How a whole page is made: the arguments of `make_report`."""

    read: Reader = read_source
    tasks: int = 24
    reference: str | None = None
    threshold: float = 0.5
    data: Source | None = None

    def source(self, about: Mapping[str, Any]) -> Source:
        """The source that a `run.json` names, with the data where they are now; an empty one where it names none."""
        recorded = about.get("source")
        texts = {k: v for k, v in recorded.items() if isinstance(v, str) and v} if isinstance(recorded, dict) else {}
        places: dict[str, Any] = {key: Path(texts[key]) for key in ("base", "novel") if key in texts}
        now = self.data or Source()
        if now.bank is not None:
            return Source(bank=now.bank, command=texts.get("command"))
        moved = {key: path for key, path in (("base", now.base), ("novel", now.novel)) if path is not None}
        bank = None if moved else texts.get("bank")
        return Source(**{**places, **moved}, bank=bank, command=texts.get("command"))

    def load(self, about: Mapping[str, Any]) -> tuple[BaseClasses, Samples]:
        """The data of a run, checked."""
        base, *given = self.read(self.source(about))
        samples = given[0] if isinstance(given[0], Samples) else Samples(*given)
        for name, values in samples.columns.items():
            if len(values) != len(samples):
                raise InputError(
                    f"`read` returned {len(samples)} novel samples and {len(values)} {name}s: it must return one "
                    f"{name} per sample."
                )
        return base, replace(samples, X=check_features(samples.X, "X_novel"), y=np.asarray(samples.y))


# --- which method and tasks


def explorer_or_reason(make: Callable[[], dict[str, Any]], most: int) -> dict[str, Any] | str:
    """What `make` makes, or a sentence on why there is none: the data are gone, or no task was asked for."""
    try:
        return make() if most else "No tasks were requested."
    except HotshotError as error:
        return str(error)


def run_explorer(run: StoredRun, options: Options) -> dict[str, Any]:
    """The data of the task explorer, as JSON; raises where the data of the run are not at hand.

    Its tasks are the worst, the middle and the best ones of the first method that borrows from base classes.
    """
    name = method_to_explore(run.request)
    base, samples = options.load(run.about)
    if run.request["data"] != {"X_novel": array_hash(samples.X), "y_novel": labels_hash(samples.y)}:
        raise InputError("The novel samples are not those of the run (their hash differs): pass the file of the run.")
    estimator = _restored_method(run.request["methods"][name], base, name)
    evaluation, size = run.evaluation, {key: run.request[key] for key in SIZE}
    settings = []
    for shots in evaluation.shots:
        results = {result.method: result.accuracies for result in evaluation.results if result.shots == shots}
        episodes, tasks = Episodes(samples.y, shots=shots, **size), []
        for index, group in select_tasks(results[name], options.tasks).items():
            # A slow method may have seen the first tasks only.
            recorded = [results.get(method, ())[index : index + 1] for method in evaluation.methods]
            accuracies = [_rounded(accuracy[0]) if len(accuracy) else None for accuracy in recorded]
            tasks.append({"group": group, "methods": accuracies, **explore(estimator, samples.X, episodes, index)})
        settings.append({"shots": shots, "tasks": tasks})
    return {
        "method": name,
        "methods": evaluation.methods,
        "total": evaluation.tasks,
        "classes": [str(label) for label in np.unique(samples.y)],
        "base": [str(label) for label in base.names],
        "settings": settings,
        "inputs": shown_samples(samples, settings),
        "data": options.source(run.about).name,
    }


def evaluated_together(folder: Path, about: dict[str, Any]) -> StoredRun:
    """The evaluations of a reproduction as one run: methods by their usual names, on the tasks that most of H-OT saw.

    `about` is its `run.json`, which has the hashes of its features.
    """
    longest: dict[tuple[str, int | str], MethodResult] = {}
    methods: dict[str, Any] = {}
    with refuse_damage(folder, "reproduction", HotshotError):
        fingerprint, *hashes = about["request"]["features"]
        wanted = {"data": dict(zip(("X_novel", "y_novel"), hashes, strict=True)), **{key: about[key] for key in SIZE}}
    for path in sorted(folder.glob("evaluations/*")):
        # Others are interrupted, or of another dataset.
        with suppress(HotshotError):
            run = load_run(path)
            for result in run.evaluation.results if wanted.items() <= run.request.items() else ():
                key, described = (result.method, result.shots), run.request["methods"][result.method]
                is_longer = key not in longest or len(result.accuracies) > len(longest[key].accuracies)
                # Across domains a method has its usual name and other base classes.
                if is_longer and _has_base(described, fingerprint):
                    longest[key], methods[result.method] = result, described
    tasks = {shots: len(result.accuracies) for (method, shots), result in longest.items() if method == "hot"}
    if not tasks:
        raise InputError("None of its experiments evaluated H-OT with these base classes.")
    most = max(tasks.values())
    shots = sorted((k for k in tasks if tasks[k] == most), key=str)
    results = tuple(longest[name, k] for name in METHOD_NAMES for k in shots if (name, k) in longest)
    request = {**wanted, "methods": {"hot": methods["hot"]}}
    return StoredRun(folder, request, about, Evaluation(results, about["ways"], most, "hot"))


def select_tasks(accuracies: np.ndarray, most: int) -> dict[int, str]:
    """Indices of at most so many tasks and which group each is of: the worst, those around the median, the best."""
    order = np.argsort(accuracies, kind="stable")
    size = min(most, len(order))
    outer = size // 3
    inner = size - 2 * outer
    start = (len(order) - inner) // 2
    groups = {"worst": order[:outer], "median": order[start : start + inner], "best": order[len(order) - outer :]}
    return {int(index): group for group, indices in groups.items() for index in indices}


def method_to_explore(request: dict[str, Any]) -> str:
    """The first method of a run that borrows from base classes and classified the queries of a task one by one."""
    one_by_one = {name: kept for name, kept in request["methods"].items() if name not in request.get("batch", [])}
    for name, described in one_by_one.items():
        if described.get("class") in KINDS and described.get("parameters", {}).get("base") is not None:
            return str(name)
    raise InputError("None of its methods borrows from base classes and classifies queries one by one.")


def _has_base(described: dict[str, Any], fingerprint: str) -> bool:
    """Whether a described method had the base classes with this fingerprint, or none."""
    recorded = described.get("parameters", {}).get("base")
    return recorded is None or str(recorded).endswith(fingerprint)


def _restored_method(described: dict[str, Any], base: BaseClasses, name: str) -> CalibratedClassifier:
    """The estimator that `estimator_to_json` described, with the base classes it had."""
    if not _has_base(described, base.fingerprint):
        raise InputError("The base classes are not those of the run (their hash differs): pass the file of the run.")
    # As they were chosen then, which another machine need not repeat.
    given, chosen = described["parameters"], described["chosen"]
    parameters = {**given, **{key: value for key, value in chosen.items() if given.get(key) == "auto"}, "base": base}
    try:
        estimator = KINDS[described["class"]](**parameters)
        estimator._validate_params()
    except (TypeError, ValueError, LookupError) as error:
        raise InputError(f"The parameters of {name} cannot be restored from the run ({reason(error)}).") from None
    return estimator


# --- one task


def explore(estimator: CalibratedClassifier, X: np.ndarray, episodes: Episodes, index: int) -> dict[str, Any]:
    """What a method with base classes, fitted anew, did in one of the tasks drawn from X (samples, V), as JSON.

    Novel classes are numbers in `episodes.names`, base classes numbers in `estimator.base.names`, and samples go by
    their row in X.
    """
    assert estimator.base is not None
    X, model = X.astype(estimator.base.dtype, copy=False), clone(estimator)
    task = episodes[index]
    with warnings.catch_warnings(), threadpool_limits(1):
        for category in (ConvergenceWarning, HotshotWarning):
            warnings.simplefilter("ignore", category)
        model.fit(X[task.support], task.support_labels)
        probabilities = model.predict_proba(X[task.query])
    classes = model.classes_
    truth, chosen = np.searchsorted(classes, task.query_labels), probabilities.argmax(axis=1)
    wrong = np.flatnonzero(chosen != truth)
    # The most confident mistakes first.
    wrong = wrong[np.argsort(-probabilities[wrong, chosen[wrong]], kind="stable")]
    shown = wrong[:MOST_WRONG]
    explanation = explain_model(model, X[task.query[shown]] if len(shown) else None, rivals=truth[shown])
    support, queries = (model.transform_(X[rows]).astype(np.float64) for rows in (task.support, task.query))
    places = _places(model, np.concatenate([support, queries])).tolist()
    targets = np.searchsorted(classes, task.support_labels).tolist()
    similarity = 1 - cosine(queries, support)
    nearest = np.argsort(-similarity, axis=1, kind="stable")[:, :NEAREST]
    base = {name: b for b, name in enumerate(model.base_names_)}
    support_points = zip(places, targets, task.support.tolist(), strict=False)
    query_points = zip(places[len(targets) :], truth.tolist(), chosen.tolist(), task.query.tolist(), strict=True)
    return {
        "index": int(index),
        "right": int(np.sum(chosen == truth)),
        "asked": len(truth),
        "accuracy": float(np.mean(chosen == truth)),
        "names": np.searchsorted(episodes.names, classes).tolist(),
        "classes": _classes(model, task, explanation),
        "support": [[*place, *numbers] for place, *numbers in support_points],
        "queries": [[*place, *numbers] for place, *numbers in query_points],
        "nearest": [
            [(int(s), round(float(row[s]), 2)) for s in best] for row, best in zip(similarity, nearest, strict=True)
        ],
        "wrong": [
            {"query": int(i), **_why(reason, task.support, base)}
            for i, reason in zip(shown, explanation.reasons, strict=True)
        ],
    }


def _classes(model: CalibratedClassifier, task: Task, explanation: Explanation) -> list[dict[str, Any]]:
    """What each class had from its support and its lenders."""
    classes = []
    for label in model.classes_:
        # The mean over the support samples where each has its own transfer weights.
        weights = model.transfer_weights_[model.target_labels_ == label].mean(axis=0)
        order = np.argsort(-weights, kind="stable")
        order = order[weights[order] > 0]
        classes.append(
            {
                "rows": task.support[task.support_labels == label].tolist(),
                "own_share": _rounded(np.mean([loan.own_share for loan in explanation.loans if loan.label == label])),
                "lenders": [[int(b), _rounded(weights[b])] for b in order[:TOP_LENDERS]],
                "others": len(order[TOP_LENDERS:]),
                "others_share": _rounded(weights[order[TOP_LENDERS:]].sum()),
            }
        )
    return classes


def _why(reason: Reason, rows: np.ndarray, base: dict[Any, int]) -> dict[str, Any]:
    """What the gap between the class chosen and the right one is made of, and what gives most to either side of it."""
    evidence = {
        "examples": [[int(rows[e.index]), *map(_rounded, (e.similarity, e.contribution))] for e in reason.examples],
        "lenders": [[base[x.name], *map(_rounded, (x.weight, x.rival_weight, x.contribution))] for x in reason.lenders],
    }
    why: dict[str, Any] = {
        "chosen_probability": _rounded(reason.probability),
        "right_probability": _rounded(reason.rival_probability),
        "parts": [_rounded(part) for part in (reason.gap, reason.own, reason.lent, reason.rest)],
    }
    for side, step in (("for_chosen", 1), ("for_right", -1)):
        why[side] = {
            kind: [each for each in everything[::step] if step * each[-1] > 0][:TOP_REASONS]
            for kind, everything in evidence.items()
        }
    return why


def _rounded(share: Any) -> float:
    return round(float(share), 4)


def _places(model: CalibratedClassifier, features: np.ndarray) -> np.ndarray:
    """Places in [0, 1] x [0, 1] of samples (n, V).

    The plane is that of the two principal axes of the logits, in which classes that the model confuses overlap. Two
    classes have one such axis only; the other is then the principal axis of the features across it.
    """
    directions = model.coef_ - model.coef_.mean(axis=0)
    places = PCA(2, svd_solver="full").fit_transform(features @ directions.T)
    if len(model.classes_) == 2:
        along = directions[0] / (np.linalg.norm(directions[0]) or 1.0)
        across = features - np.outer(features @ along, along)
        places[:, 1:] = PCA(1, svd_solver="full").fit_transform(across)
    low, high = places.min(axis=0), places.max(axis=0)
    return ((places - low) / np.where(high > low, high - low, 1)).round(3)
