"""Checks of feature files before use: what is in them, and what is wrong with one or with two together."""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hotshot.arrays import slices
from hotshot.bank.space import choose_power
from hotshot.classifiers.calibrated import USUAL_DEVIATION
from hotshot.errors import InputError
from hotshot.evaluation.data import BASE, FAULT, NOVEL, WARNING, Problem, class_overlap, origin_mismatches
from hotshot.evaluation.tasks import QUERIES
from hotshot.files import FeatureSource
from hotshot.files.samples import ID, ROWS_AT_ONCE
from hotshot.formatting import bounded_percentage, count, listed, shortened, significant

FORMAT = "hotshot inspection 3"
BOTH = "both"
SEVERITIES = FAULT, WARNING

# Entries of a batch, of the blocks of it that stay in a core's cache, and of the sample of which deviations are taken.
BATCH_ENTRIES, BLOCK_ENTRIES, SAMPLE_ENTRIES = 2**23, 2**16, 2**24
# How far from 1 norms may be that were 1 before they were rounded to 16 bits.
UNIT_TOLERANCE = 2e-3
LABEL_KINDS = {"i": "whole numbers", "u": "whole numbers", "b": "true and false", "f": "numbers"}
# Factor between the median norms of two files beyond which they were hardly made the same way.
USUAL_RATIO = 3.0

# Part of the JSON document; called with the rows read and their total.
Section = dict[str, Any]
Watch = Callable[[int, int | None], None]


@dataclass(frozen=True)
class InspectedFile:
    """A file with its name, its role ("base", "novel" or None) and all that was measured of it.

    `values` is its part of the JSON document, see `document`. Beside it are the classes by first appearance and their
    numbers of samples (classes,), the class of each row (samples,), -1 where its label is missing, a hash of each row
    (samples,), the rows (n,) that have a label and are not all zeros, and the ids of the rows, if there are any.
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

    def class_of(self, row: int) -> Any:
        """The class of a row, None where its label is missing."""
        return self.class_names[self.labels[row]] if self.labels[row] >= 0 else None


@dataclass(frozen=True)
class Finding:
    """A problem with its severity, the file it is about, and that file's role, or "both" if it is about two."""

    severity: str
    code: str
    sentence: str
    file: str
    role: str | None


@dataclass(frozen=True)
class Inspection:
    """All files, and all findings with the worst first."""

    files: tuple[InspectedFile, ...]
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing was found that stops or spoils a method."""
        return not any(finding.severity == FAULT for finding in self.findings)

    @property
    def verdict(self) -> str:
        """One sentence that says whether the files can be used."""
        names = listed([shortened(file.name, 60, keep="end") for file in self.files])
        severities = [finding.severity for finding in self.findings]
        warnings = f", with {count(severities.count(WARNING), 'warning')}" if WARNING in severities else ""
        if self.ok:
            return f"{names}: fine{warnings}."
        return f"{names}: {count(severities.count(FAULT), 'fault')} to fix before use{warnings}."


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
    findings = []
    for file in files:
        findings += [Finding(*problem, file.name, file.role) for problem in _problems(file)]
        if file.role == NOVEL:
            findings += [Finding(*problem, file.name, BOTH) for problem in _pair_problems(files[0], file)]
    return Inspection(tuple(files), tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))))


# --- measures of one file, in one pass over its batches and in bounded memory


def measure(source: FeatureSource, name: str, role: str | None, watch: Watch | None = None) -> InspectedFile:
    """Read a file once and measure it; `watch` hears of the rows done and their total, if known."""
    width = source.n_features
    entries, numbers, kind, done = Entries(), dict[Any, int](), "", 0
    batches: list[tuple[np.ndarray, ...]] = []
    sample: list[np.ndarray] = []
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
        sample.append(np.array(X[: max(0, SAMPLE_ENTRIES // width - done)]))
        done += len(X)
        if watch is not None:
            watch(done, source.n_samples)
    if not done:
        raise InputError(f"{source.path} holds no samples: write it again from the features.")
    labels, norms, hashes = map(np.concatenate, zip(*batches, strict=True))
    first = np.concatenate(sample)
    usable = np.flatnonzero((labels >= 0) & ~np.isnan(norms))
    usable = usable[usable < len(first)]
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
        "entries": {
            "zero_share": entries.zeros / (done * width),
            "negative_share": entries.negatives / (done * width),
            "smallest": entries.smallest if entries.smallest <= entries.largest else None,
            "largest": entries.largest if entries.smallest <= entries.largest else None,
        },
        "not_finite": {"count": entries.bad, "samples": int(np.isnan(norms).sum()), "first": entries.first_bad},
        "duplicates": _duplicates(hashes[comparable], labels[comparable], comparable),
        "norms": _norms(norms),
        "deviation_within_classes": deviation_within_classes(first[usable], labels[usable]),
    }
    return InspectedFile(name, role, values, names, counts, labels, hashes, comparable, source.columns.get(ID))


@dataclass
class Entries:
    """Zeros, negatives, NaN and infinities among the entries, and the extremes of those that are finite."""

    rows: int = 0
    zeros: int = 0
    negatives: int = 0
    smallest: float = np.inf
    largest: float = -np.inf
    bad: int = 0
    first_bad: list[int] | None = None

    def add(self, block: np.ndarray) -> np.ndarray:
        """Count rows (rows, V) in float64; their norms."""
        self.zeros += block.size - int(np.count_nonzero(block))
        norms, entries = row_norms(block), block
        if np.isnan(norms).any():
            bad = ~np.isfinite(block)
            self.bad += int(bad.sum())
            if self.first_bad is None:
                row, column = np.argwhere(bad)[0].tolist()
                self.first_bad = [self.rows + row, column]
            entries = block[~bad]
        self.negatives += int(np.count_nonzero(entries < 0))
        self.smallest = min(self.smallest, float(entries.min(initial=np.inf)))
        self.largest = max(self.largest, float(entries.max(initial=-np.inf)))
        self.rows += len(block)
        return norms


def class_numbers(y: np.ndarray, numbers: dict[Any, int]) -> np.ndarray:
    """Number of the class of each label (rows,), -1 for NaN and infinity; new classes enter `numbers` in turn."""
    is_label = np.isfinite(y) if y.dtype.kind == "f" else np.ones(len(y), dtype=bool)
    names, first, members = np.unique(y[is_label], return_index=True, return_inverse=True)
    for name in names[np.argsort(first)].tolist():
        numbers.setdefault(name, len(numbers))
    labels = np.full(len(y), -1, dtype=np.int64)
    labels[is_label] = np.array([numbers[name] for name in names.tolist()], dtype=np.int64)[members]
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
    _, members, counts = np.unique(labels, return_inverse=True, return_counts=True)
    if len(counts) == len(labels):
        members, counts = np.zeros(len(X), dtype=int), np.array([len(X)])
    scale = max(float(X.max()), -float(X.min())) or 1.0
    X = X[np.argsort(members, kind="stable")] / np.float64(scale)
    means = np.add.reduceat(X, np.cumsum(counts) - counts, axis=0) / counts[:, None]
    X -= np.repeat(means, counts, axis=0)
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
        "median": float(np.median(norms)),
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


# --- what is wrong with one file: severities, codes that stay, and sentences with the remedy


def _problems(file: InspectedFile) -> Iterator[Problem]:
    bad = file.values["not_finite"]
    if bad["count"]:
        row, column = bad["first"]
        of_class = f", class '{shortened(file.class_of(row))}'" if file.labels[row] >= 0 else ""
        what = f"{count(bad['count'], 'entry is', 'entries are')} NaN or infinite, in {count(bad['samples'], 'sample')}"
        remedy = "remove the samples or extract again"
        if file.values["dtype"] == "float16":
            remedy = "extract the features again in float32, as float16 ends at 65504"
        yield FAULT, "not-finite", f"{what}, the first in {file.row(row)}, column {column}{of_class}: {remedy}."
    if file.values["samples"] > 1 and (file.hashes == file.hashes[0]).all():
        yield FAULT, "all-constant", "All samples are the same, so no method can tell them apart: extract again."
    else:
        yield from _feature_problems(file)
    yield from _label_problems(file)


def _feature_problems(file: InspectedFile) -> Iterator[Problem]:
    values = file.values
    norms, duplicates = values["norms"], values["duplicates"]
    if duplicates["conflict"] is not None:
        vectors = count(duplicates["conflicts"], "vector occurs", "vectors occur")
        both = [f"{file.row(row)} ('{shortened(file.class_of(row))}')" for row in duplicates["conflict"]]
        sentence = f"{vectors} under different labels, such as {' and '.join(both)}: keep one."
        yield WARNING, "conflicting-duplicates", sentence
    if duplicates["repeat"] is not None:
        earlier, later = map(file.row, duplicates["repeat"])
        rows = f"{count(duplicates['repeats'], 'row repeats', 'rows repeat')} an earlier row of the same class"
        such = f"such as {later} (equal to {earlier}), so a query may be in its own support"
        yield WARNING, "duplicates", f"{rows}, {such}: remove the copies."
    if norms is not None and norms["zero_vectors"]:
        samples = f"{count(norms['zero_vectors'], 'sample is', 'samples are')} all zeros"
        such = f"such as {file.row(norms['zero_vector'])}, where cosine and matching guess"
        yield WARNING, "zero-vectors", f"{samples}, {such}: check the extractor."
    (low, high), deviation = USUAL_DEVIATION, values["deviation_within_classes"]
    if file.role != NOVEL and deviation and not low <= deviation <= high:
        factor = significant(math.sqrt(low * high) / deviation, 1)
        usual = f"{significant(deviation, 2)} within classes, where {significant(low)} to {significant(high)} is usual"
        remedy = f"for free-lunch and the published parameter sets, multiply the features by {factor}"
        yield WARNING, "scale", f"Features deviate by {usual}: {remedy}."


def _label_problems(file: InspectedFile) -> Iterator[Problem]:
    names, sizes, missing = file.class_names, file.class_counts, file.values["classes"]["missing_labels"]
    if missing:
        samples = count(missing, "sample has", "samples have")
        yield FAULT, "missing-labels", f"{samples} no label (NaN or infinity): label or remove them."
    if len(names) > 20 and len(names) > file.values["samples"] / 2:
        many = f"There are {len(names):,} classes for {file.values['samples']:,} samples"
        yield WARNING, "labels-like-ids", f"{many}: name the column of classes."
    alone = [name for name, n in zip(names, sizes, strict=True) if n == 1]
    if alone and file.role != NOVEL:
        classes = f"{count(len(alone), 'class has', 'classes have')} one sample, such as '{shortened(alone[0])}'"
        only = "and as base class only the covariance of all classes together"
        yield WARNING, "one-sample-classes", f"{classes}, {only}: add samples, or leave out."
    if file.role == NOVEL and names and sizes.min() <= QUERIES:
        name, n = names[sizes.argmin()], int(sizes.min())
        few = f"Class '{shortened(name)}' has {count(n, 'sample')}, too few for one shot and {QUERIES} queries"
        remedy = f"leave it out of evaluations, or ask for --queries {n - 1} or fewer" if n > 1 else "leave it out"
        yield WARNING, "few-novel-samples", f"{few}: {remedy}."


# --- what is wrong with two files together


def _pair_problems(base: InspectedFile, novel: InspectedFile) -> Iterator[Problem]:
    width, norms, about = (base.values[key] for key in ("features", "norms", "about"))
    if width != novel.values["features"]:
        widths = f"The base file has {count(width, 'feature')} and the novel file {novel.values['features']:,}"
        yield FAULT, "width-mismatch", f"{widths}: use the same extractor."
    else:
        hashes = base.hashes[base.comparable]
        shared = novel.comparable[np.isin(novel.hashes[novel.comparable], hashes)]
        if len(shared):
            twin = base.row(base.comparable[np.argmax(hashes == novel.hashes[shared[0]])])
            rows = f"{count(len(shared), 'row')} of the novel file also in the base file"
            such = f"such as {novel.row(shared[0])} ({twin} there)"
            yield FAULT, "row-overlap", f"{rows}, {such}: remove from one file, or results will be too good."
        signed = [file.role for file in (base, novel) if file.values["entries"]["negative_share"]]
        if len(signed) == 1:
            plain = NOVEL if signed[0] == BASE else BASE
            negative = f"The {signed[0]} file has negative entries and the {plain} file has none"
            follows = "and power 'auto' follows the base file"
            sentence = f"{negative}, {follows}: check that both were extracted the same way, or pass power=1."
            yield WARNING, "power-mismatch", sentence
        others = novel.values["norms"]
        if norms is not None and others is not None:
            low, high = sorted((norms["median"], others["median"]))
            if low and (high > USUAL_RATIO * low or norms["unit"] != others["unit"]):
                medians = [significant(each["median"]) for each in (norms, others)]
                sentence = f"The median norm is {medians[0]} in the base file and {medians[1]} in the novel file"
                yield WARNING, "scale-mismatch", f"{sentence}: normalise alike."
    yield from class_overlap(base.class_names, novel.class_names)
    yield from origin_mismatches(about, novel.values["about"])


# --- for people and for programs


def facts(file: InspectedFile) -> dict[str, str]:
    """Lines of a table: what is measured, and the value in words; a dash where there is nothing to measure."""
    values, classes = file.values, file.values["classes"]
    bad, duplicates, entries, norms = (values[key] for key in ("not_finite", "duplicates", "entries", "norms"))
    deviation, low = values["deviation_within_classes"], entries["smallest"]
    lines = {
        "samples": f"{values['samples']:,}",
        "classes": f"{classes['count']:,}, labels are {classes['labels']}",
        "samples per class": "–",
        "features": f"{values['features']:,}, {values['dtype']}",
        "entries": "–",
        "NaN or infinity": f"{count(bad['count'], 'entry', 'entries')} in {count(bad['samples'], 'sample')}",
        "duplicate rows": f"{duplicates['repeats']:,} within a class, "
        f"{count(duplicates['conflicts'], 'vector')} in several classes",
        "norms": "–",
        "deviation within classes": "–" if deviation is None else f"{significant(deviation, 2)} per feature",
        "power transform": "–",
    }
    if classes["count"]:
        ends = [f"{end['samples']:,} ({shortened(end['name'])})" for end in (classes["smallest"], classes["largest"])]
        lines["samples per class"] = f"{' to '.join(ends)}, median {significant(classes['median_samples'], 6)}"
    if low is not None:
        shares = [bounded_percentage(entries[key]) for key in ("zero_share", "negative_share")]
        extremes = f"{significant(low)} to {significant(entries['largest'])}"
        lines["entries"] = f"{extremes}, {shares[0]} zero, {shares[1]} negative"
        lines["power transform"] = f"'auto' is {choose_power('auto', low):g}"
    if norms is not None:
        what = "1 (unit vectors)" if norms["unit"] else f"median {significant(norms['median'])}"
        lines["norms"] = f"{what}, {count(norms['zero_vectors'], 'zero vector')}"
    return lines


def document(found: Inspection) -> dict[str, Any]:
    """All of an inspection as JSON values; rows and columns are counted from 0, and what is unknown is null.

    - `format`, `ok` (no faults), `verdict` (one sentence);
    - `files`: a list, each with `file`, `role`, `samples`, `features`, `dtype`, `about`,
      `classes` {`count`, `labels`, `missing_labels`, `smallest` {`name`, `samples`}, `median_samples`,
      `largest` {`name`, `samples`}, `with_one_sample`},
      `entries` {`zero_share`, `negative_share`, `smallest`, `largest`},
      `not_finite` {`count`, `samples`, `first` [row, column]},
      `duplicates` {`repeats`, `repeat` [rows], `conflicts`, `conflict` [rows]},
      `norms` {`median`, `zero_vectors`, `zero_vector` (row of the first), `unit`},
      `deviation_within_classes`;
    - `findings`: a list, the worst first, each with `severity` ("fault" or "warning"), `code`, `sentence`,
      `file` and `role` ("base", "novel", "both" or null).
    """
    return {
        "format": FORMAT,
        "ok": found.ok,
        "verdict": found.verdict,
        "files": [file.values for file in found.files],
        "findings": [asdict(finding) for finding in found.findings],
    }
