"""What is wrong with one file, or with two together: codes that stay, and sentences with the remedy."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hotshot.bank.classes import EXTRACTOR, TRANSFORM
from hotshot.classifiers.classifier import USUAL_DEVIATION
from hotshot.evaluation.inspection.measure import InspectedFile, shared_rows
from hotshot.evaluation.inspection.printed import filled
from hotshot.formatting import shortened

BASE, NOVEL, BOTH = "base", "novel", "both"
FEW_BASE_CLASSES = 10
# Query samples of a class in the usual task.
QUERIES = 15
# Negative entries this rare and this small against the largest entry look like rounding after a ReLU.
STRAY_NEGATIVES, STRAY_SIZE = 0.01, 1e-3
# Factor between the median norms of two files beyond which they were hardly made the same way.
USUAL_RATIO = 3.0

# A fault stops or spoils a method, a warning costs accuracy or trust, a note costs nothing. Sentences are filled from
# the JSON document of the file and from what comes with a problem.
FAULT, WARNING, NOTE = "fault", "warning", "note"
BAD = "{n:entry is|entries are} {kind}, in {samples:sample} and {features:feature}, {where}: {remedy}."
ALIKE = "{n:class has|classes have} almost the same name as {whose}, such as '{second:name}' and '{first:name}'"
ORIGIN = "The {key} is '{own:name}' in the base file and '{other:name}' in the novel file: use one kind of features."
LENDERS = "effective number of lenders {costs[lenders]:.0f} of {costs[base_classes]} with epsilon {costs[epsilon]}"
SENTENCES = {
    FAULT: {
        "nan": BAD,
        "infinity": BAD,
        "missing-labels": "{n:sample has|samples have} no label (NaN or infinity): label or remove them.",
        "fractional-labels": "Labels have fractions, so they are not classes: name the column of labels.",
        "all-constant": "All samples are the same, so no method can tell them apart: extract the features again.",
        "width-mismatch": "The base file has {own:feature} and the novel file {features}: use the same extractor.",
        "row-overlap": "{n:row|rows} of the novel file also in the base file, such as {row} ({twin} there): "
        "remove from one file, or results will be too good.",
        "extractor-mismatch": ORIGIN,
        "class-overlap": "{n:class|classes} in both files, such as '{name:name}', but novel classes must not be base "
        "classes: remove from one file{also}.",
    },
    WARNING: {
        "conflicting-duplicates": "{n:vector occurs|vectors occur} under different labels, such as {rows}: keep one.",
        "duplicates": "{n:row repeats|rows repeat} an earlier row of the same class, such as {later} (equal to "
        "{earlier}), so a query may be in its own support: remove the copies.",
        "zero-vectors": "{n:sample is|samples are} all zeros, such as {first}, where cosine and matching "
        "guess: check the extractor.",
        "scale": "Features deviate by {deviation_within_classes:2} within classes, where {low} to {high} is usual: for "
        "free-lunch and the published parameter sets, multiply the features by {factor:1}.",
        "blank-labels": "{n:sample has|samples have} an empty label, which counts as a class: label or remove them.",
        "labels-like-ids": "There are {classes[count]} classes for {samples} samples: name the column of classes.",
        "similar-names": ALIKE + ": if they are the same class, give them the same name.",
        "one-sample-classes": "{n:class has|classes have} one sample, such as '{name:name}', and as base class only "
        "the covariance of all classes together: add samples, or leave out.",
        "few-base-classes": "{n:base class|base classes} can lend little to novel classes: use {enough} or more.",
        "one-class": "There are fewer than two classes, so there is nothing to classify: add classes.",
        "few-novel-samples": "Class '{name:name}' has {n:sample}, too few for one shot and {queries} queries: leave it "
        "out of evaluations, or ask for fewer --queries.",
        "power-mismatch": "The {signed} file has negative entries and the {plain} file has none, and power 'auto' "
        "follows the base file: check that both were extracted the same way.",
        "scale-mismatch": "The median norm is {own} in the base file and {other} in the novel file: normalise alike.",
        "similar-classes": ALIKE + ": remove from one file what is the same class.",
        "transform-mismatch": ORIGIN,
        "epsilon-large": f"The transport hardly prefers any base class ({LENDERS}): if the classes differ, pass a "
        "smaller epsilon to hot or let tune choose it.",
        "epsilon-small": f"The transport is nearly a hard assignment ({LENDERS}): pass a larger epsilon to hot or let "
        "tune choose it.",
    },
    NOTE: {
        "constant-features": "{n:feature is|features are} {what} (column {columns}): harmless, leave out to save time.",
        "whole-numbers": "Features are whole numbers ({dtype}), perhaps pixels or codes: decode codes before use.",
        "stray-negatives": "Negative entries are few ({share:%}) and small (down to {entries[smallest]:2}), as after "
        "rounding: set them to 0 to allow the power transform 0.5.",
        "dtype-mismatch": "The base file is {own} and the novel file {dtype}, so rounding may hide samples that are in "
        "both: store both the same way.",
    },
}
STOPPING = set(SENTENCES[FAULT]) - {"row-overlap", "class-overlap"}
SEVERITIES = tuple(SENTENCES)
Problem = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Finding:
    """A problem with its severity, the file it is about, and that file's role, or "both" if it is about two."""

    severity: str
    code: str
    sentence: str
    file: str
    role: str | None


def find_problems(file: InspectedFile, base: InspectedFile) -> Iterator[Finding]:
    """All problems of a file, and those that it has with the base file where it is novel."""
    alone = [*_bad_entries(file), *_feature_problems(file), *_label_problems(file)]
    both = list(_pair_problems(base, file)) if file.role == NOVEL else []
    costs = file.values["costs"]
    if costs is not None and costs["deviation"] and costs["plan"] != "selective":
        both.append(("epsilon-large" if costs["plan"] == "uniform" else "epsilon-small", {}))
    for problems, role in ((alone, file.role), (both, BOTH if file.role else None)):
        for code, extra in problems:
            severity = next(severity for severity, sentences in SENTENCES.items() if code in sentences)
            sentence = filled(SENTENCES[severity][code], {**file.values, **extra})
            yield Finding(severity, code, sentence, file.name, role)


def _bad_entries(file: InspectedFile) -> Iterator[Problem]:
    for code, key, kind in (("nan", "nan", "NaN"), ("infinity", "infinite", "infinite")):
        bad = file.values["entries"][key]
        if bad is None:
            continue
        remedy = f"remove {'this sample' if bad['samples'] == 1 else 'these samples'} or extract again"
        if kind == "infinite" and file.values["dtype"] == "float16":
            remedy = "extract the features again in float32, as float16 ends at 65504"
        elif bad["samples"] == file.values["samples"] and bad["features"] < file.values["features"]:
            remedy = f"leave out {'this feature' if bad['features'] == 1 else 'these features'} or extract again"
        of_class = "" if bad["class"] is None else f", class '{shortened(bad['class'])}'"
        where = f"the first in {file.row(bad['row'])}, column {bad['column']}{of_class}"
        yield code, {**bad, "n": bad["count"], "kind": kind, "where": where, "remedy": remedy}


def _feature_problems(file: InspectedFile) -> Iterator[Problem]:
    values = file.values
    constant, entries, found = values["constant_features"], values["entries"], values["duplicates"]
    n, zero = constant["count"], constant["all_zero"]
    if n == values["features"] and values["samples"] > 1:
        yield "all-constant", {}
        return
    if found["conflict"] is not None:
        rows = [f"{file.row(row)} ('{shortened(file.class_names[file.labels[row]])}')" for row in found["conflict"]]
        yield "conflicting-duplicates", {"n": found["conflicts"], "rows": " and ".join(rows)}
    if found["repeat"] is not None:
        earlier, later = map(file.row, found["repeat"])
        yield "duplicates", {"n": found["repeats"], "earlier": earlier, "later": later}
    if values["norms"] is not None and values["norms"]["zero_vectors"]:
        yield "zero-vectors", {"n": values["norms"]["zero_vectors"], "first": file.row(values["norms"]["zero_vector"])}
    if n:
        some = f", {zero:,} of them 0" if 0 < zero < n else ""
        what = f"{'always 0' if zero == n else 'constant'} in all samples{some}"
        columns = ", ".join(map(str, constant["columns"][:5])) + (", …" if n > 5 else "")
        yield "constant-features", {"n": n, "what": what, "columns": columns}
    if np.dtype(values["dtype"]).kind in "iub":
        yield "whole-numbers", {}
    if 0 < entries["negative_share"] < STRAY_NEGATIVES and -entries["smallest"] < STRAY_SIZE * entries["largest"]:
        yield "stray-negatives", {"share": entries["negative_share"]}
    (low, high), deviation = USUAL_DEVIATION, values["deviation_within_classes"]
    if file.role != NOVEL and deviation and not low <= deviation <= high:
        yield "scale", {"low": low, "high": high, "factor": math.sqrt(low * high) / deviation}


def _label_problems(file: InspectedFile) -> Iterator[Problem]:
    names, sizes = file.class_names, file.class_counts
    if file.values["classes"]["missing_labels"]:
        yield "missing-labels", {"n": file.values["classes"]["missing_labels"]}
    if any(isinstance(name, float) and name != int(name) for name in names):
        yield "fractional-labels", {}
    blank = sum(int(n) for name, n in zip(names, sizes, strict=True) if not str(name).strip())
    if blank:
        yield "blank-labels", {"n": blank}
    if len(names) > 20 and len(names) > file.values["samples"] / 2:
        yield "labels-like-ids", {}
    yield from _similar("similar-names", names, names, "another")
    alone = [name for name, n in zip(names, sizes, strict=True) if n == 1]
    if alone and file.role != NOVEL:
        yield "one-sample-classes", {"n": len(alone), "name": alone[0]}
    if file.role == BASE and len(names) < FEW_BASE_CLASSES:
        yield "few-base-classes", {"n": len(names), "enough": FEW_BASE_CLASSES}
    if file.role != BASE and len(names) < 2:
        yield "one-class", {}
    if file.role == NOVEL and names and sizes.min() <= QUERIES:
        yield "few-novel-samples", {"name": names[sizes.argmin()], "n": int(sizes.min()), "queries": QUERIES}


def _pair_problems(base: InspectedFile, novel: InspectedFile) -> Iterator[Problem]:
    if base.values["features"] == novel.values["features"]:
        yield from _feature_mismatches(base, novel)
    else:
        yield "width-mismatch", {"own": base.values["features"]}
    yield from class_overlap(base.class_names, novel.class_names)
    yield from _similar("similar-classes", base.class_names, novel.class_names, "a base class")
    yield from origin_mismatches(base.values["about"], novel.values["about"])


def class_overlap(base: Sequence[Any], novel: Sequence[Any]) -> Iterator[Problem]:
    """Names of novel classes that base classes have; a number and the same number as text are one name."""
    known = {str(name) for name in base}
    shared = [name for name in novel if str(name) in known]
    if shared:
        numbers = not any(isinstance(name, str) for name in (*base, *novel))
        also = ", or give names to classes that only share a number" if numbers else ""
        yield "class-overlap", {"n": len(shared), "name": shared[0], "also": also}


def origin_mismatches(base: Mapping[str, Any], novel: Mapping[str, Any]) -> Iterator[Problem]:
    """What the headers of two files say differently of where their features come from."""
    for key in (EXTRACTOR, TRANSFORM):
        own, other = base.get(key), novel.get(key)
        if own is not None and other is not None and own != other:
            yield f"{key}-mismatch", {"key": key, "own": own, "other": other}


def _feature_mismatches(base: InspectedFile, novel: InspectedFile) -> Iterator[Problem]:
    n_shared, twin, row = shared_rows(base, novel)
    if n_shared:
        yield "row-overlap", {"n": n_shared, "row": novel.row(row), "twin": base.row(twin)}
    if base.values["dtype"] != novel.values["dtype"]:
        yield "dtype-mismatch", {"own": base.values["dtype"]}
    signed = [file.role for file in (base, novel) if file.values["entries"]["negative_share"]]
    if len(signed) == 1:
        yield "power-mismatch", {"signed": signed[0], "plain": NOVEL if signed[0] == BASE else BASE}
    own, other = base.values["norms"], novel.values["norms"]
    if own is not None and other is not None:
        low, high = sorted((own["median"], other["median"]))
        if low and (high > USUAL_RATIO * low or own["unit"] != other["unit"]):
            yield "scale-mismatch", {"own": own["median"], "other": other["median"]}


def _similar(code: str, names: Iterable[Any], others: Iterable[Any], whose: str) -> Iterator[Problem]:
    pairs = similar_names(names, others)
    if pairs:
        yield code, {"n": len(pairs), "whose": whose, "first": pairs[0][0], "second": pairs[0][1]}


def similar_names(names: Iterable[Any], others: Iterable[Any]) -> list[tuple[Any, Any]]:
    """Pairs of a name and another that differ only in case, spaces, hyphens or underscores."""

    def plain(name: Any) -> str:
        return re.sub(r"[\s_-]+", " ", str(name)).strip().casefold()

    first: dict[str, Any] = {}
    for name in names:
        first.setdefault(plain(name), name)
    pairs = [(first.get(plain(other), other), other) for other in others]
    return [(name, other) for name, other in pairs if str(name) != str(other)]
