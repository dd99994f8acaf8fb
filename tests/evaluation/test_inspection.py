"""Inspection of feature files: measures equal plain computations, and each fault has its finding and no other."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hotshot.bank import BaseClasses
from hotshot.classifiers import FreeLunchClassifier
from hotshot.errors import InputError, ScaleWarning
from hotshot.evaluation.inspection import deviation_within_classes, document, facts, inspect_sources, measure
from hotshot.files.samples import FeatureSource


def source(X, y, about=None, rows=None, columns=None):
    """A source of arrays, in batches of `rows` whatever is asked for."""
    X, y = np.asarray(X), np.asarray(y)

    def pieces(asked):
        step = rows or asked
        for start in range(0, len(X), step):
            yield X[start : start + step], y[start : start + step]

    return FeatureSource(Path("made-up"), len(X), X.shape[1], X.dtype, pieces, about or {}, columns or {})


def classes(n_classes=12, per_class=30, width=20, seed=0, name="class"):
    """Positive float32 features of Gaussian classes with nothing wrong."""
    rng = np.random.default_rng(seed)
    y = np.repeat([f"{name} {c}" for c in range(n_classes)], per_class)
    centres = rng.normal(size=(n_classes, width))
    X = np.repeat(centres, per_class, axis=0) + 0.5 * rng.normal(size=(len(y), width))
    return np.exp(0.5 * X).astype(np.float32), y


def inspected(*files):
    """Inspection of files given as (X, y), (X, y, about), or arguments of `source` by name."""
    return inspect_sources(
        [(f"file {i}", source(**file) if isinstance(file, dict) else source(*file)) for i, file in enumerate(files)]
    )


def measured(X, y, rows=None):
    """One file measured in batches of `rows`."""
    return measure(source(X, y, rows=rows), "file", None, None)


def codes(found):
    return {finding.code for finding in found.findings}


ENTRIES = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.5, np.nan, np.inf, -np.inf, 1e200, -1e-200, 3.0])
TABLES = st.tuples(st.integers(1, 25), st.integers(1, 4)).flatmap(
    lambda shape: st.tuples(
        arrays(np.float64, shape, elements=ENTRIES), arrays(np.int64, shape[0], elements=st.integers(0, 3))
    )
)


# --- measures


@given(TABLES, st.integers(1, 30))
def test_measures_equal_plain_computations(table, rows):
    X, y = table
    found = measured(X, y, rows)
    finite = np.isfinite(X)
    entries, bad, norms_found = (found.values[key] for key in ("entries", "not_finite", "norms"))
    assert entries["zero_share"] == (X == 0).mean()
    assert entries["negative_share"] == ((X < 0) & finite).mean()
    assert entries["smallest"] == (X[finite].min() if finite.any() else None)
    assert entries["largest"] == (X[finite].max() if finite.any() else None)
    assert bad == {
        "count": (~finite).sum(),
        "samples": (~finite).any(axis=1).sum(),
        "first": None if finite.all() else np.argwhere(~finite)[0].tolist(),
    }
    names, counts = np.unique(y, return_counts=True)
    assert dict(zip(found.class_names, found.class_counts.tolist(), strict=True)) == dict(
        zip(names.tolist(), counts.tolist(), strict=True)
    )
    whole = X[finite.all(axis=1)]
    if len(whole):
        # hypot neither over- nor underflows.
        norms = np.hypot.reduce(whole, axis=1, initial=0)
        assert norms_found["median"] == pytest.approx(np.median(norms), rel=1e-12)
        assert norms_found["zero_vectors"] == (norms == 0).sum()
    else:
        assert norms_found is None


@given(TABLES, st.integers(1, 30))
def test_duplicates_equal_a_plain_search(table, rows):
    X, y = table
    found = measured(X, y, rows).values["duplicates"]
    labels_of = {}
    for x, label in zip(X, y, strict=True):
        if x.any():
            # Adding 0 makes -0 the same as 0, and NaN is the same as NaN.
            labels_of.setdefault((x + 0.0).tobytes(), []).append(label)
    assert found["repeats"] == sum(len(labels) - len(set(labels)) for labels in labels_of.values())
    assert found["conflicts"] == sum(len(set(labels)) > 1 for labels in labels_of.values())
    assert (found["repeat"] is None) == (found["repeats"] == 0)
    for pair, same in ((found["repeat"], True), (found["conflict"], False)):
        if pair is not None:
            first, second = pair
            assert first < second
            np.testing.assert_array_equal(X[first], X[second])
            assert (y[first] == y[second]) == same


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_deviation_is_that_of_the_pooled_covariance(scale):
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], [4, 10, 1])
    X = rng.normal(size=(15, 6)) * rng.uniform(1, 3, size=6)
    squares = sum(((X[labels == c] - X[labels == c].mean(axis=0)) ** 2).sum(axis=0) for c in range(3))
    expected = scale * np.sqrt(np.mean(squares / 12))
    assert deviation_within_classes(scale * X, labels) == pytest.approx(expected, rel=1e-12)
    alone = deviation_within_classes(scale * X, np.arange(15))
    assert alone == pytest.approx(scale * np.sqrt(X.var(axis=0, ddof=1).mean()))


@pytest.mark.parametrize("scale", [0.01, 1.0, 50.0])
def test_the_finding_about_scale_is_the_warning_of_the_estimator(scale):
    X, y = classes(10, 20, 6)
    X = scale * X
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ScaleWarning)
        FreeLunchClassifier(BaseClasses.from_samples(X, y), random_state=0).fit(X[:40:20], ["a", "b"])
    warned = any(issubclass(w.category, ScaleWarning) for w in caught)
    assert ("scale" in codes(inspected((X, y)))) == warned


# --- findings

NUMBERS = np.arange(360) // 30


def put(place, *values):
    """A change of features: each value to its part of the place."""

    def change(X, y):
        X[place] = values if len(values) > 1 else values[0]

    return change


def name(rows, *names):
    """A change of labels."""

    def change(X, y):
        y[rows] = names if len(names) > 1 else names[0]

    return change


# A change of clean features X and labels y, and the only finding that it must lead to.
FAULTS = [
    (put((40, 3), np.nan), "fault", "not-finite", "1 entry is NaN.*first in row 40, column 3, class 'class 1'"),
    (put((np.s_[3:5], 2), -np.inf, np.inf), "fault", "not-finite", "2 entries are NaN or infinite, in 2 samples"),
    (lambda X, y: (float16_overflow(X), y), "fault", "not-finite", "float32, as float16 ends at 65504"),
    (lambda X, y: (X, np.where(np.arange(360) == 5, np.nan, NUMBERS)), "fault", "missing-labels", "1 sample has no"),
    (put(np.s_[:], 0.7), "fault", "all-constant", "All samples are the same"),
    (lambda X, y: put(300, X[2])(X, y), "warning", "conflicting-duplicates", r"row 2 \('class 0'\) and row 300 \('cla"),
    (lambda X, y: put(8, X[2])(X, y), "warning", "duplicates", r"1 row repeats.*row 8 \(equal to row 2\)"),
    (put([11, 50], 0), "warning", "zero-vectors", "2 samples are all zeros, such as row 11,"),
    (name(np.s_[:2], "alone", "lonely"), "warning", "one-sample-classes", "2 classes have one sample, such as 'alone'"),
    (lambda X, y: (1e-3 * X, y), "warning", "scale", "multiply the features by [0-9]00"),
    (lambda X, y: (X.astype(np.float64) * 1e200, y), "warning", "scale", r"multiply the features by [0-9]e-20[0-9]"),
]


def float16_overflow(X):
    X = X.astype(np.float16)
    X[9, 9] = np.inf
    return X


@pytest.mark.parametrize(("change", "severity", "code", "sentence"), FAULTS)
def test_each_fault_has_its_finding_and_no_other(change, severity, code, sentence):
    X, y = classes()
    y = y.astype("U40")
    found = inspected(change(X, y) or (X, y))
    (finding,) = found.findings
    assert (finding.severity, finding.code) == (severity, code)
    assert found.ok == (severity != "fault")
    assert re.search(sentence, finding.sentence), finding.sentence
    assert finding.sentence.endswith(".")
    assert ": " in finding.sentence
    document(found)


def test_clean_files_have_no_findings():
    found = inspected(classes(), novel())
    assert (found.findings, found.ok, found.verdict) == ((), True, "file 0 and file 1: fine.")
    assert [file.role for file in found.files] == ["base", "novel"]
    with pytest.raises(InputError, match="holds no samples"):
        measured(np.empty((0, 3)), np.empty(0, dtype=int))


def test_samples_go_by_their_ids():
    X, y = classes()
    X[[11, 50]], X[8], X[300], X[40, 3] = 0, X[2], X[5], np.nan
    ids = [f"birds/{i}\n{'x' * (i == 8) * 99}.png" for i in range(len(X))]
    words = {finding.code: finding.sentence for finding in inspected({"X": X, "y": y, "columns": {"id": ids}}).findings}
    assert r"the first in 'birds/40\n.png', column 3" in words["not-finite"]
    assert r"such as 'birds/11\n.png'," in words["zero-vectors"]
    assert r"'birds/5\n.png' ('class 0') and 'birds/300\n.png'" in words["conflicting-duplicates"]
    assert f"such as '…{'x' * 35}.png' (equal to 'birds/2\\n.png')" in words["duplicates"]
    assert "row " not in " ".join(words.values()).replace("earlier row", "").replace("1 row", "")
    base, novel = ({"X": X[:9], "y": y[:9], "columns": columns} for columns in (None, {"id": ids[:9]}))
    shared = next(f for f in inspected(base, novel).findings if f.code == "row-overlap")
    assert r"such as 'birds/0\n.png' (row 0 there)" in shared.sentence


# --- two files


def novel(n_classes=6, **sizes):
    return classes(n_classes, seed=5, name="new", **sizes)


def with_names(change, **more):
    X, y = novel()
    return {"X": X, "y": np.where(y == "new 1", change, y), **more}


def with_a_base_row(dtype=np.float32):
    X, y = novel()
    X[4] = classes()[0][17]
    return X.astype(dtype), y


def unit(X, y):
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


RESNET = (*classes(), {"extractor": "resnet", "transform": "none", "date": "1"})


@pytest.mark.parametrize(
    ("first", "second", "severity", "code", "sentence"),
    [
        (classes(), with_names("class 3"), "fault", "class-overlap", "1 class in both files, such as 'class 3'"),
        ((classes()[0], NUMBERS), (novel()[0], NUMBERS[:180]), "fault", "class-overlap", "that only share a number"),
        (classes(), with_a_base_row(), "fault", "row-overlap", "such as row 4 (row 17 there)"),
        (classes(), novel(width=15), "fault", "width-mismatch", "20 features and the novel file 15"),
        (RESNET, (*novel(), {"extractor": "clip"}), "fault", "extractor-mismatch", "'resnet' in the base file"),
        (RESNET, (*novel(), {"transform": "log"}), "warning", "transform-mismatch", "'log' in the novel file"),
        (classes(), with_names("CLASS-3"), "warning", "similar-classes", "'CLASS-3' and 'class 3'"),
        (classes(), unit(*novel()), "warning", "scale-mismatch", "in the base file and 1 in the novel file"),
        (classes(), (novel()[0] - 1, novel()[1]), "warning", "power-mismatch", "The novel file has negative entries"),
        (classes(), novel(per_class=12), "warning", "few-novel-samples", "Class 'new 0' has 12 samples"),
    ],
    ids=lambda value: value if isinstance(value, str) and "-" in value else "",
)
def test_each_misfit_has_its_finding_and_no_other(first, second, severity, code, sentence):
    found = inspected(first, second)
    (finding,) = found.findings
    assert (finding.severity, finding.code) == (severity, code)
    assert sentence in finding.sentence
    assert found.ok == (severity != "fault")


def test_more_than_two_files_are_compared_with_the_first():
    second, third = novel(), classes(6, seed=7, name="newer")
    third[0][3] = classes()[0][5]
    found = inspected(classes(), second, third)
    (finding,) = found.findings
    assert (finding.code, finding.file) == ("row-overlap", "file 2")
    assert found.verdict == "file 0, file 1 and file 2: 1 fault to fix before use."


# --- documents


def test_facts_have_a_line_for_each_measure_whatever_is_missing():
    X, y = classes()
    whole, empty = (facts(inspected((x, y)).files[0]) for x in (X, np.full_like(X, np.nan)))
    assert list(whole) == list(empty)
    assert "–" not in whole.values()
    assert empty["norms"] == empty["entries"] == "–"
    assert empty["NaN or infinity"] == "7,200 entries in 360 samples"


KEYS = {
    "file", "role", "samples", "features", "dtype", "about", "classes", "entries", "not_finite", "duplicates",
    "norms", "deviation_within_classes",
}  # fmt: skip


def test_the_document_has_the_keys_it_promises():
    X, y = classes()
    X[3, 3] = np.nan
    about = {"loss": float("nan"), "path": Path("x"), "nested": [float("inf")]}
    found = json.loads(json.dumps(document(inspected((X, y, about))), allow_nan=False))
    assert set(found) == {"format", "ok", "verdict", "files", "findings"}
    (file,) = found["files"]
    assert set(file) == KEYS
    assert file["about"] == {"loss": "NaN", "path": "x", "nested": ["Infinity"]}
    assert file["not_finite"] == {"count": 1, "samples": 1, "first": [3, 3]}
    assert file["classes"]["smallest"] == {"name": "class 0", "samples": 30}
    assert [set(finding) for finding in found["findings"]] == [{"severity", "code", "sentence", "file", "role"}]
    for key in KEYS | set(found) | set(file["entries"]) | set(file["classes"]):
        assert f"`{key}`" in document.__doc__


@given(TABLES)
def test_any_file_can_be_inspected_and_written_down(table):
    X, y = table
    found = inspected((X, y))
    json.dumps(document(found), allow_nan=False)
    assert found.ok == (not {"not-finite", "all-constant"} & codes(found))
