"""Checks of feature files before use: what is in them, what is wrong with them, and which methods can use them."""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from string import Formatter
from typing import Any

import numpy as np

from hotshot.arrays import slices
from hotshot.bank.bank import EXTRACTOR, TRANSFORM
from hotshot.bank.space import choose_power
from hotshot.classifiers.calibrated import USUAL_DEVIATION
from hotshot.errors import InputError
from hotshot.evaluation.tasks import QUERIES
from hotshot.files import FeatureSource
from hotshot.files.samples import ID, ROWS_AT_ONCE
from hotshot.formatting import bounded_percentage, count, listed, shortened, significant

FORMAT = "hotshot inspection 2"
BASE, NOVEL, BOTH = "base", "novel", "both"
# A fault stops or spoils a method, a warning costs accuracy or trust, a note costs nothing.
SEVERITIES = FAULT, WARNING, NOTE = "fault", "warning", "note"
FINE, CARE, REFUSED = "fine", "with care", "refused"

# Entries of a batch, and of the blocks of it that stay in a core's cache.
BATCH_ENTRIES, BLOCK_ENTRIES = 2**23, 2**16
# The spread within classes is that of the first rows of the first classes, as many as these at most.
MOST_CLASSES, MOST_ROWS, MOST_ENTRIES = 200, 200, 2**24
# How far from 1 norms may be that were 1 before they were rounded to 16 bits.
UNIT_TOLERANCE = 2e-3
LABEL_KINDS = {"i": "whole numbers", "u": "whole numbers", "b": "true and false", "f": "numbers"}
BAD_KINDS = {"nan": np.isnan, "infinite": np.isinf}
FEW_BASE_CLASSES = 10
# Negative entries this rare and this small against the largest entry look like rounding after a ReLU.
STRAY_NEGATIVES, STRAY_SIZE = 0.01, 1e-3
# Factor between the median norms of two files beyond which they were hardly made the same way.
USUAL_RATIO = 3.0
# Base samples times classes times features that the base classifier takes about a minute for.
SLOW_CLASSIFIER = 8e9
# Median norms between which a penalty of C = 1 is neither too strong nor too weak.
USUAL_NORMS = (0.1, 1000.0)

WEIGHTED, FREE_LUNCH = ("ot-cosine-weighted", "ot-euclidean-weighted"), ("free-lunch",)
PUBLISHED_SETS = ("parameter_set('paper')", "parameter_set('authors')")
NORMALISED = (
    "hot", "ot-cosine", "ot-euclidean", "ot-mean-cosine", "centroid-cl2n", "logistic-tuned", "lda", "plda",
    "softmax-calibration", "free-lunch-tuned", "pt-map", "bd-cspn", "laplacian-shot", "alpha-tim",
)  # fmt: skip
WITH_BASE = NORMALISED + WEIGHTED + FREE_LUNCH + PUBLISHED_SETS
DIRECTIONS, LINEAR = ("cosine", "matching"), ("logistic", "logistic-raw", "ridge", "svm")
WITHOUT_BASE = ("centroid", *DIRECTIONS, *LINEAR)
EVALUATE = ("hotshot evaluate",)

# Part of the JSON document; a code and what fills its sentence; called with the rows read and their total.
Section = dict[str, Any]
Problem = tuple[str, dict[str, Any]]
Watch = Callable[[int, int | None], None]


@dataclass(frozen=True)
class InspectedFile:
    """A file with its name, its role ("base", "novel" or None) and all that was measured of it.

    `values` is its part of the JSON document, see `document`. Beside it are the classes by first appearance and their
    numbers of samples (classes,), the class of each row (samples,), -1 where its label is missing, a hash of each row
    (samples,), the rows (n,) that have a label and are not all zeros, and what the rows were taken of.
    """

    name: str
    role: str | None
    values: Section
    class_names: tuple[Any, ...]
    class_counts: np.ndarray
    labels: np.ndarray
    hashes: np.ndarray
    comparable: np.ndarray
    ids: Sequence[str] | None

    def row(self, row: int) -> str:
        """What a sample is called: its id in quotes, or `row 17` where the file has none."""
        return f"row {row}" if self.ids is None else f"'{shortened(self.ids[row], keep='end')}'"

    @property
    def smallest(self) -> float:
        """The smallest finite entry, 0 where none is finite."""
        return self.values["entries"]["smallest"] or 0.0


@dataclass(frozen=True)
class Finding:
    """A problem with its severity, the file it is about, and that file's role, or "both" if it is about two."""

    severity: str
    code: str
    sentence: str
    file: str
    role: str | None


@dataclass(frozen=True)
class Advice:
    """What follows for some methods: their names, a verdict and a sentence."""

    methods: tuple[str, ...]
    verdict: str
    sentence: str


@dataclass(frozen=True)
class Inspection:
    """All files, all findings with the worst first, and what follows for the methods."""

    files: tuple[InspectedFile, ...]
    findings: tuple[Finding, ...]
    advice: tuple[Advice, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing was found that stops or spoils a method."""
        return not any(finding.severity == FAULT for finding in self.findings)

    @property
    def verdict(self) -> str:
        """One sentence that says whether the files can be used."""
        names = listed([shortened(file.name, 60, keep="end") for file in self.files])
        several = len(self.files) > 1
        severities = [finding.severity for finding in self.findings]
        faults, warnings = severities.count(FAULT), severities.count(WARNING)
        if faults:
            also = f", and {count(warnings, 'warning')}" if warnings else ""
            return f"{names} {'have' if several else 'has'} {count(faults, 'fault')} to fix before use{also}."
        if warnings:
            return f"{names} can be used, with {count(warnings, 'warning')}."
        return f"{names} are fine and fit each other." if several else f"{names} is fine."


def inspect_sources(
    sources: Sequence[tuple[str, FeatureSource]], watch: Callable[[str], Watch] | None = None
) -> Inspection:
    """Look at feature files, given with the names to call them by: one alone, or base classes and then novel ones.

    `watch(name)` gives, for the file of that name, a function that is called with the rows read and their total.
    """
    roles = [None] if len(sources) == 1 else [BASE, *[NOVEL] * (len(sources) - 1)]
    files = [
        measure(source, name, role, watch(name) if watch is not None else None)
        for (name, source), role in zip(sources, roles, strict=True)
    ]
    findings = [finding for file in files for finding in find_problems(file, files[0])]
    findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    return Inspection(tuple(files), tuple(findings), tuple(advise(files[0], files[-1], findings)))


# --- measures of one file, in one pass over its batches and in bounded memory


def measure(source: FeatureSource, name: str, role: str | None, watch: Watch | None = None) -> InspectedFile:
    """Read a file once and measure it; `watch` hears of the rows done and their total, if known."""
    width = source.n_features
    entries, numbers, kind, done = Entries(width), dict[Any, int](), "", 0
    batches: list[tuple[np.ndarray, ...]] = []
    sample: list[tuple[np.ndarray, np.ndarray]] = []
    most_rows, n_sampled = np.clip(MOST_ENTRIES // (MOST_CLASSES * width), 1, MOST_ROWS), np.zeros(MOST_CLASSES, int)
    for X, y in source.batches(max(1, min(ROWS_AT_ONCE, BATCH_ENTRIES // width))):
        kind, labels = LABEL_KINDS.get(y.dtype.kind, "text"), class_numbers(y, numbers)
        norms, hashes = np.empty(len(X)), np.empty(len(X), dtype=np.int64)
        for rows in slices(len(X), max(1, BLOCK_ENTRIES // width)):
            # Adding 0 turns -0 into 0, so that equal rows have equal bits.
            block = np.add(X[rows], 0.0, dtype=np.float64)
            norms[rows] = entries.add(block)
            # 64 bits of each row, kept instead of its features: equal for equal rows, and else by rare chance.
            hashes[rows] = [hash(row.tobytes()) for row in block]
        batches.append((labels, norms, hashes))
        usable = np.flatnonzero((labels >= 0) & (labels < MOST_CLASSES) & ~np.isnan(norms))
        usable = usable[np.argsort(labels[usable], kind="stable")]
        classes = labels[usable]
        usable = usable[n_sampled[classes] + np.arange(len(usable)) - np.searchsorted(classes, classes) < most_rows]
        n_sampled += np.bincount(labels[usable], minlength=MOST_CLASSES)
        sample.append((X[usable], labels[usable]))
        done += len(X)
        if watch is not None:
            watch(done, source.n_samples)
    if not done:
        raise InputError(f"{source.path} holds no samples: write it again from the features.")
    labels, norms, hashes = map(np.concatenate, zip(*batches, strict=True))
    names = tuple(numbers)
    counts = np.bincount(labels[labels >= 0], minlength=len(names))
    comparable = np.flatnonzero((labels >= 0) & (norms != 0))
    values = {
        "file": name,
        "role": role,
        "samples": done,
        "features": width,
        "dtype": str(source.dtype),
        # Headers of strangers may hold NaN, which JSON has no word for.
        "about": json.loads(json.dumps(source.about, default=str), parse_constant=str),
        "classes": {"labels": kind, "missing_labels": int(np.sum(labels < 0)), **_class_sizes(names, counts)},
        **entries.sections(lambda row: names[labels[row]] if labels[row] >= 0 else None),
        "duplicates": _duplicates(hashes[comparable], labels[comparable], comparable),
        "norms": _norms(norms),
        "deviation_within_classes": deviation_within_classes(*map(np.concatenate, zip(*sample, strict=True))),
    }
    return InspectedFile(name, role, values, names, counts, labels, hashes, comparable, source.columns.get(ID))


class Entries:
    """Zeros, negatives, NaN and infinities among the entries, and the extremes of each feature."""

    def __init__(self, width: int) -> None:
        self._rows = self._zeros = self._negatives = 0
        # Of the finite entries.
        self._lows, self._highs = np.full(width, np.inf), np.full(width, -np.inf)
        self._bad: dict[str, Section] = {}

    def add(self, block: np.ndarray) -> np.ndarray:
        """Count rows (rows, V) in float64; their norms."""
        self._zeros += block.size - int(np.count_nonzero(block))
        norms = row_norms(block)
        if np.isnan(norms).any():
            for kind, is_bad in BAD_KINDS.items():
                self._add_bad(kind, is_bad(block))
            # NaN compares with nothing, and fmin and fmax pass it over.
            block = np.where(np.isfinite(block), block, np.nan)
        self._negatives += int(np.count_nonzero(block < 0))
        np.fmin(self._lows, np.fmin.reduce(block, axis=0), out=self._lows)
        np.fmax(self._highs, np.fmax.reduce(block, axis=0), out=self._highs)
        self._rows += len(block)
        return norms

    def _add_bad(self, kind: str, bad: np.ndarray) -> None:
        if not bad.any():
            return
        row, column = np.argwhere(bad)[0].tolist()
        first = {"row": self._rows + row, "column": column}
        section = self._bad.setdefault(kind, {"count": 0, "samples": 0, "features": False, **first})
        section["count"] += int(bad.sum())
        section["samples"] += int(bad.any(axis=1).sum())
        section["features"] = section["features"] | bad.any(axis=0)

    def sections(self, label_of: Callable[[int], Any]) -> Section:
        """What the document says of the entries, of the features that have one value only, and of powers."""
        size, low, high = self._rows * len(self._lows), float(self._lows.min()), float(self._highs.max())
        constant = np.flatnonzero(self._lows == self._highs)
        power = {"auto": choose_power("auto", low), "half": low >= 0, "log": low > 0}
        for bad in self._bad.values():
            bad |= {"features": int(bad["features"].sum()), "class": label_of(bad["row"])}
        return {
            "entries": {
                "zero_share": self._zeros / size,
                "negative_share": self._negatives / size,
                "smallest": low if low <= high else None,
                "largest": high if low <= high else None,
                **{kind: self._bad.get(kind) for kind in BAD_KINDS},
            },
            "constant_features": {
                "count": len(constant),
                "all_zero": int(np.sum(self._lows[constant] == 0)),
                "columns": constant[:10].tolist(),
            },
            "power": power if low <= high else None,
        }


def class_numbers(y: np.ndarray, numbers: dict[Any, int]) -> np.ndarray:
    """Number of the class of each label (rows,), -1 for NaN and infinity; new classes enter `numbers` in turn."""
    is_label = np.isfinite(y) if y.dtype.kind == "f" else np.ones(len(y), dtype=bool)
    given = y[is_label]
    # Most files are sorted by class: one look at the first label of each run is enough.
    first = np.append(np.ones(min(len(given), 1), dtype=bool), given[1:] != given[:-1])
    runs = [numbers.setdefault(label, len(numbers)) for label in given[first].tolist()]
    labels = np.full(len(y), -1, dtype=np.int64)
    labels[is_label] = np.asarray(runs, dtype=np.int64)[np.cumsum(first) - 1]
    return labels


def row_norms(block: np.ndarray) -> np.ndarray:
    """Euclidean norms of rows (rows, V), NaN for rows that are not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        largest = np.abs(block).max(axis=1)
        largest[np.isinf(largest)] = np.nan
        # Dividing by the largest entry keeps the squares of huge and tiny entries representable.
        scaled = block / np.where(largest > 0, largest, 1.0)[:, None]
        return largest * np.sqrt(np.einsum("ij,ij->i", scaled, scaled))


def deviation_within_classes(X: np.ndarray, labels: np.ndarray) -> float | None:
    """Root of the mean variance of a feature within classes; of all samples where no class has two."""
    if not len(X):
        return None
    if len(np.unique(labels)) == len(labels):
        labels = np.zeros(len(X), dtype=int)
    order = np.argsort(labels, kind="stable")
    scale = max(float(X.max()), -float(X.min())) or 1.0
    X = X[order] / np.float64(scale)
    _, starts, counts = np.unique(labels[order], return_index=True, return_counts=True)
    X -= np.repeat(np.add.reduceat(X, starts, axis=0) / counts[:, None], counts, axis=0)
    freedom = max(len(X) - len(counts), 1)
    return float(np.sqrt(np.vdot(X, X) / (freedom * X.shape[1]))) * scale


def _class_sizes(names: tuple[Any, ...], counts: np.ndarray) -> Section:
    if not names:
        return {"count": 0, "smallest": None, "median_samples": None, "largest": None, "with_one_sample": 0}
    places = {"smallest": counts.argmin(), "largest": counts.argmax()}
    sizes = {key: {"name": names[place], "samples": int(counts[place])} for key, place in places.items()}
    median, alone = float(np.median(counts)), int(np.sum(counts == 1))
    return {"count": len(names), "median_samples": median, "with_one_sample": alone, **sizes}


def _norms(norms: np.ndarray) -> Section | None:
    zeros, norms = np.flatnonzero(norms == 0), norms[~np.isnan(norms)]
    if not len(norms):
        return None
    directed = norms[norms > 0]
    return {
        "smallest": float(norms.min()),
        "median": float(np.median(norms)),
        "largest": float(norms.max()),
        "zero_vectors": len(zeros),
        "zero_vector": int(zeros[0]) if len(zeros) else None,
        "unit": bool(len(directed) and (np.abs(directed - 1) <= UNIT_TOLERANCE).all()),
    }


def _duplicates(hashes: np.ndarray, labels: np.ndarray, rows: np.ndarray) -> Section:
    """Rows that equal an earlier row of their class, vectors of more than one class, and the first of each."""
    order = np.lexsort((labels, hashes))
    hashes, labels, rows = hashes[order], labels[order], rows[order]
    equal, same = hashes[1:] == hashes[:-1], labels[1:] == labels[:-1]
    # Sorted by vector, then by class: a vector changes its class as often as it has further ones.
    repeats, changes = np.flatnonzero(equal & same), np.flatnonzero(equal & ~same)

    def first(places: np.ndarray) -> list[int] | None:
        """Of the pairs of neighbours at these places, the one whose later row comes first in the file."""
        pairs = np.sort([rows[places], rows[places + 1]], axis=0)
        return pairs[:, pairs[1].argmin()].tolist() if len(places) else None

    counts = {"repeats": len(repeats), "conflicts": len(np.unique(hashes[changes]))}
    return {**counts, "repeat": first(repeats), "conflict": first(changes)}


# --- what is wrong with one file, or with two together: codes that stay, and sentences with the remedy

# Sentences are filled from the JSON document of the file and from what comes with a problem, see `filled`.
BAD = "{n:entry is|entries are} {kind}, in {samples:sample} and {features:feature}, {where}: {remedy}."
ALIKE = "{n:class has|classes have} almost the same name as {whose}, such as '{second:name}' and '{first:name}'"
ORIGIN = "The {key} is '{base:name}' in the base file and '{novel:name}' in the novel file: use one kind of features."
SMALLEST = "Class '{classes[smallest][name]:name}' has {classes[smallest][samples]:sample}"
SENTENCES = {
    FAULT: {
        "nan": BAD,
        "infinity": BAD,
        "missing-labels": "{n:sample has|samples have} no label (NaN or infinity): label or remove them.",
        "fractional-labels": "Labels have fractions, so they are not classes: name the column of labels.",
        "all-constant": "All samples are the same, so no method can tell them apart: extract the features again.",
        "width-mismatch": "The base file has {base:feature} and the novel file {features}: use the same extractor.",
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
        "few-novel-samples": SMALLEST + ", too few for one shot and {queries} queries: leave it out of evaluations, "
        "or ask for fewer --queries.",
        "power-mismatch": "The {signed} file has negative entries and the {plain} file has none, and power 'auto' "
        "follows the base file: check that both were extracted the same way.",
        "scale-mismatch": "The median norm is {base} in the base file and {novel} in the novel file: normalise alike.",
        "similar-classes": ALIKE + ": remove from one file what is the same class.",
        "transform-mismatch": ORIGIN,
    },
    NOTE: {
        "constant-features": "{n:feature is|features are} {what} (column {columns}): harmless, leave out to save time.",
        "whole-numbers": "Features are whole numbers ({dtype}), perhaps pixels or codes: decode codes before use.",
        "stray-negatives": "Negative entries are few ({share:%}) and small (down to {entries[smallest]:2}), as after "
        "rounding: set them to 0 to allow the power transform 0.5.",
        "dtype-mismatch": "The base file is {base} and the novel file {dtype}, so rounding may hide samples that are "
        "in both: store both the same way.",
    },
}
SEVERITY = {code: severity for severity, sentences in SENTENCES.items() for code in sentences}


class _Words(Formatter):
    """Fills sentences: {n:2} two digits, {n:%} a share, {n:sample} with a noun, {n:name} a name."""

    def format_field(self, value: Any, spec: str) -> str:
        if value is None:
            raise TypeError("nothing was measured")
        if isinstance(value, bool):
            return "yes" if value else "no"
        if spec == "%":
            return bounded_percentage(value)
        if spec == "name":
            return shortened(value)
        if spec.isdigit() or (isinstance(value, float) and not spec):
            return significant(value, int(spec) if spec else 3)
        if spec[:1].isalpha():
            return count(value, *spec.split("|"))
        return super().format_field(value, "," if isinstance(value, int) and not spec else spec)


def filled(sentence: str, values: dict[str, Any]) -> str:
    """A sentence with its values, by the rules of `_Words`."""
    return _Words().vformat(sentence, (), values)


def find_problems(file: InspectedFile, base: InspectedFile) -> Iterator[Finding]:
    """All problems of a file, and those that it has with the base file where it is novel."""
    alone = [*_bad_entries(file), *_feature_problems(file), *_label_problems(file)]
    both = _pair_problems(base, file) if file.role == NOVEL else ()
    for problems, role in ((alone, file.role), (both, BOTH)):
        for code, values in problems:
            sentence = filled(SENTENCES[SEVERITY[code]][code], {**file.values, **values})
            yield Finding(SEVERITY[code], code, sentence, file.name, role)


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
    constant, entries, norms = values["constant_features"], values["entries"], values["norms"]
    repeat, conflict = values["duplicates"]["repeat"], values["duplicates"]["conflict"]
    n, zero = constant["count"], constant["all_zero"]
    if n == values["features"] and values["samples"] > 1:
        yield "all-constant", {}
        return
    if conflict is not None:
        rows = [f"{file.row(row)} ('{shortened(file.class_names[file.labels[row]])}')" for row in conflict]
        yield "conflicting-duplicates", {"n": values["duplicates"]["conflicts"], "rows": " and ".join(rows)}
    if repeat is not None:
        earlier, later = map(file.row, repeat)
        yield "duplicates", {"n": values["duplicates"]["repeats"], "earlier": earlier, "later": later}
    if norms is not None and norms["zero_vectors"]:
        yield "zero-vectors", {"n": norms["zero_vectors"], "first": file.row(norms["zero_vector"])}
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
    names, sizes, missing = file.class_names, file.class_counts, file.values["classes"]["missing_labels"]
    if missing:
        yield "missing-labels", {"n": missing}
    if any(isinstance(name, float) and name != int(name) for name in names):
        yield "fractional-labels", {}
    if blank := sum(int(n) for name, n in zip(names, sizes, strict=True) if not str(name).strip()):
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
        yield "few-novel-samples", {"queries": QUERIES}


def _pair_problems(base: InspectedFile, novel: InspectedFile) -> Iterator[Problem]:
    width, dtype, norms, about = (base.values[key] for key in ("features", "dtype", "norms", "about"))
    if width == novel.values["features"]:
        hashes = base.hashes[base.comparable]
        shared = novel.comparable[np.isin(novel.hashes[novel.comparable], hashes)]
        if len(shared):
            twin = base.row(base.comparable[np.argmax(hashes == novel.hashes[shared[0]])])
            yield "row-overlap", {"n": len(shared), "row": novel.row(shared[0]), "twin": twin}
        if dtype != novel.values["dtype"]:
            yield "dtype-mismatch", {"base": dtype}
        signed = [file.role for file in (base, novel) if file.values["entries"]["negative_share"]]
        if len(signed) == 1:
            yield "power-mismatch", {"signed": signed[0], "plain": NOVEL if signed[0] == BASE else BASE}
        others = novel.values["norms"]
        if norms is not None and others is not None:
            low, high = sorted((norms["median"], others["median"]))
            if low and (high > USUAL_RATIO * low or norms["unit"] != others["unit"]):
                yield "scale-mismatch", {"base": norms["median"], "novel": others["median"]}
    else:
        yield "width-mismatch", {"base": width}
    yield from _class_overlap(base.class_names, novel.class_names)
    yield from _similar("similar-classes", base.class_names, novel.class_names, "a base class")
    yield from _origin_mismatches(about, novel.values["about"])


def refuse_mixed(
    base: Sequence[Any], base_about: Mapping[str, Any], novel: Sequence[Any], novel_about: Mapping[str, Any]
) -> None:
    """Raise if base and novel classes (names) overlap, or if their features come from different extractors."""
    for code, values in (*_origin_mismatches(base_about, novel_about), *_class_overlap(base, novel)):
        if SEVERITY[code] == FAULT:
            raise InputError(filled(SENTENCES[FAULT][code], values))


def _class_overlap(base: Sequence[Any], novel: Sequence[Any]) -> Iterator[Problem]:
    """Names of novel classes that base classes have; a number and the same number as text are one name."""
    base_names = {str(name) for name in base}
    shared = [name for name in novel if str(name) in base_names]
    if shared:
        numbers = not any(isinstance(name, str) for name in (*base, *novel))
        also = ", or give names to classes that only share a number" if numbers else ""
        yield "class-overlap", {"n": len(shared), "name": shared[0], "also": also}


def _origin_mismatches(base: Mapping[str, Any], novel: Mapping[str, Any]) -> Iterator[Problem]:
    """What the headers of two files say differently of where their features come from."""
    for key in (EXTRACTOR, TRANSFORM):
        names = {"base": base.get(key), "novel": novel.get(key)}
        if None not in names.values() and names["base"] != names["novel"]:
            yield f"{key}-mismatch", {"key": key, **names}


def _similar(code: str, names: Iterable[Any], others: Iterable[Any], whose: str) -> Iterator[Problem]:
    """Pairs of a name and another that differ only in case, spaces, hyphens or underscores."""

    def plain(name: Any) -> str:
        return re.sub(r"[\s_-]+", " ", str(name)).strip().casefold()

    first: dict[str, Any] = {}
    for name in names:
        first.setdefault(plain(name), name)
    pairs = [(first.get(plain(other), other), other) for other in others]
    pairs = [(name, other) for name, other in pairs if str(name) != str(other)]
    if pairs:
        yield code, {"n": len(pairs), "whose": whose, "first": pairs[0][0], "second": pairs[0][1]}


# --- what follows for each method

SIGNED = "Power 'auto' is 0.5 by the base file, but the novel file has negative entries: pass power=1."
PENALTY = "The penalty is too {} at a median norm of {{norms[median]:2}}: scale the features to unit norm."
SLOW = "They first train a classifier on all {base_samples} base samples, which takes minutes."
MIXED = "Base and novel features seem to be of different kinds."
TASKS = "Tasks of up to {classes[count]} ways, and up to {shots:shot} with {queries} queries"
# What speaks against methods, by conditions that are codes of findings or stand in `advise`: the first that applies
# counts, and methods for which none does are fine. Sentences are filled from the document.
ADVICE = [
    (NORMALISED + WEIGHTED + FREE_LUNCH, "signed", REFUSED, SIGNED),
    (NORMALISED + WEIGHTED + FREE_LUNCH + PUBLISHED_SETS, "mismatch", CARE, MIXED),
    (FREE_LUNCH, "scale", CARE, "Rescale for its alpha and C, or pass normalize='centre-l2' and alpha=0."),
    (PUBLISHED_SETS, "no-power-and-scale", REFUSED, "Power 0.5 needs non-negative features: pass power=1 and rescale."),
    (PUBLISHED_SETS, "no-power", REFUSED, "Power 0.5 needs features without negative entries: pass power=1."),
    (PUBLISHED_SETS, "scale", CARE, "The scale does not suit their alpha and C: rescale the features."),
    (WEIGHTED + PUBLISHED_SETS, "slow", CARE, SLOW),
    (DIRECTIONS, "zero-vectors", CARE, "They can only guess for {norms[zero_vectors]:zero vector}."),
    (LINEAR, "norms-small", CARE, PENALTY.format("strong")),
    (LINEAR, "norms-large", CARE, PENALTY.format("weak")),
    (EVALUATE, "class-overlap", REFUSED, "It refuses files that have classes in common."),
    (EVALUATE, "one-class", REFUSED, "It needs at least two novel classes."),
    (EVALUATE, "no-query", REFUSED, SMALLEST + ", but a shot and a query need two: leave it out."),
    (EVALUATE, "few-samples", CARE, SMALLEST + ": ask for --queries {most_queries} or fewer, or leave it out."),
    (EVALUATE, "repeated-rows", CARE, TASKS + "; repeated rows make its results too good."),
    (EVALUATE, "few-classes", CARE, TASKS + ": ask for --ways {classes[count]}."),
    (EVALUATE, "", FINE, TASKS + "."),
    (WITH_BASE + WITHOUT_BASE, "", FINE, "These features suit them."),
]


def advise(base: InspectedFile, novel: InspectedFile, findings: Sequence[Finding]) -> list[Advice]:
    """Advice for every method on these files; the same file twice where there is one that may become either."""
    stopped = {finding.role for finding in findings if finding.severity == FAULT and "overlap" not in finding.code}
    if stopped - {BASE, BOTH}:
        sentence = "Fix the faults first: no method takes these features as they are."
        return [Advice(WITH_BASE + WITHOUT_BASE + EVALUATE, REFUSED, sentence)]
    codes = {finding.code for finding in findings if finding.role != BASE or finding.code == "scale"}
    power, least = choose_power("auto", base.smallest), novel.values["classes"]["smallest"]["samples"]
    least_entry, median = min(base.smallest, novel.smallest), novel.values["norms"]["median"]
    n_samples, n_classes = base.values["samples"], base.values["classes"]["count"]
    conditions = {
        "": True,
        "signed": power != 1 and least_entry < 0,
        "no-power": least_entry < 0,
        "no-power-and-scale": least_entry < 0 and "scale" in codes,
        "slow": n_samples * n_classes * base.values["features"] > SLOW_CLASSIFIER,
        "norms-small": median < USUAL_NORMS[0],
        "norms-large": median > USUAL_NORMS[1],
        "no-query": least < 2,
        "few-samples": least <= QUERIES,
        "mismatch": bool(codes & {"scale-mismatch", "power-mismatch", "transform-mismatch"}),
        "repeated-rows": bool(codes & {"row-overlap", "duplicates"}),
        "few-classes": novel.values["classes"]["count"] < 5,
    }
    codes |= {code for code, holds in conditions.items() if holds}
    values = {"shots": least - QUERIES, "most_queries": least - 1, "queries": QUERIES}
    values |= {**novel.values, "base_samples": n_samples}
    groups: dict[tuple[str, str], list[str]] = {}
    for method in WITHOUT_BASE if stopped else WITH_BASE + WITHOUT_BASE + EVALUATE:
        verdict, sentence = next(rule[2:] for rule in ADVICE if method in rule[0] and rule[1] in codes)
        groups.setdefault((verdict, filled(sentence, values)), []).append(method)
    advice = [Advice(tuple(methods), verdict, sentence) for (verdict, sentence), methods in groups.items()]
    if stopped:
        sentence = "Fix the faults first: these base classes cannot be used with the novel ones."
        advice.insert(0, Advice(WITH_BASE + EVALUATE, REFUSED, sentence))
    return advice


# --- for people and for programs

# Lines of a table, filled from the JSON document.
FACTS = {
    "samples": "{samples}",
    "classes": "{classes[count]}, labels are {classes[labels]}",
    "samples per class": "{classes[smallest][samples]} ({classes[smallest][name]:name}) to {classes[largest][samples]} "
    "({classes[largest][name]:name}), median {classes[median_samples]:6}",
    "features": "{features}, {dtype}",
    "entries": "{entries[smallest]} to {entries[largest]}, {entries[zero_share]:%} zero, "
    "{entries[negative_share]:%} negative",
    "NaN": "{entries[nan][count]:entry|entries} in {entries[nan][samples]:sample}",
    "infinity": "{entries[infinite][count]:entry|entries} in {entries[infinite][samples]:sample}",
    "duplicate rows": "{duplicates[repeats]} within a class, {duplicates[conflicts]:vector} in several classes",
    "constant features": "{constant_features[count]}, {constant_features[all_zero]} of them always 0",
    "norms": "{norms[smallest]} to {norms[largest]}, median {norms[median]}, {norms[zero_vectors]:zero vector}",
    "deviation within classes": "{deviation_within_classes:2} per feature",
    "power transform": "'auto' is {power[auto]}; possible without an offset: 0.5 {power[half]}, log {power[log]}",
}


def facts(file: InspectedFile) -> dict[str, str]:
    """Lines of a table: what is measured, and the value in words; a dash where there is nothing to measure."""
    lines = dict.fromkeys(FACTS, "–")
    for name, sentence in FACTS.items():
        # A part of the document may be null.
        with suppress(TypeError):
            lines[name] = filled(sentence, file.values)
    classes, norms = file.values["classes"], file.values["norms"]
    if classes["count"] and classes["smallest"]["samples"] == classes["largest"]["samples"]:
        lines["samples per class"] = f"{classes['largest']['samples']:,} in every class"
    if norms is not None and norms["unit"]:
        lines["norms"] = f"1 (unit vectors), {count(norms['zero_vectors'], 'zero vector')}"
    return lines


def document(found: Inspection) -> dict[str, Any]:
    """All of an inspection as JSON values; rows and columns are counted from 0, and what is unknown is null.

    - `format`, `ok` (no faults), `verdict` (one sentence);
    - `files`: a list, each with `file`, `role`, `samples`, `features`, `dtype`, `about`,
      `classes` {`count`, `labels`, `missing_labels`, `smallest` {`name`, `samples`}, `median_samples`,
      `largest` {`name`, `samples`}, `with_one_sample`},
      `entries` {`zero_share`, `negative_share`, `smallest`, `largest`, and `nan` and `infinite`, null or
      {`count`, `samples`, `features`, and `row`, `column`, `class` of the first}},
      `duplicates` {`repeats`, `repeat` [rows], `conflicts`, `conflict` [rows]},
      `constant_features` {`count`, `all_zero`, `columns` (the first ten)},
      `norms` {`smallest`, `median`, `largest`, `zero_vectors`, `zero_vector` (row of the first), `unit`},
      `deviation_within_classes`,
      `power` {`auto`, `half`, `log` (booleans: possible without an offset)};
    - `findings`: a list, the worst first, each with `severity` ("fault", "warning" or "note"), `code`, `sentence`,
      `file` and `role` ("base", "novel", "both" or null);
    - `methods`: a list, each with `methods`, `verdict` ("fine", "with care" or "refused") and `sentence`.
    """
    return {
        "format": FORMAT,
        "ok": found.ok,
        "verdict": found.verdict,
        "files": [file.values for file in found.files],
        "findings": [asdict(finding) for finding in found.findings],
        "methods": [{**asdict(advice), "methods": list(advice.methods)} for advice in found.advice],
    }
