"""Each way in which two files do not fit has its finding and no other."""

from __future__ import annotations

import numpy as np
import pytest
from inspected_files import classes, codes, inspected

from hotshot.evaluation.inspection.advice import WITH_BASE


def novel(n_classes=6, **sizes):
    return classes(n_classes, seed=5, name="new", **sizes)


def test_files_that_fit():
    found = inspected(classes(), novel())
    assert found.findings == ()
    assert found.verdict == "file 0 and file 1 are fine and fit each other."
    assert [file.role for file in found.files] == ["base", "novel"]
    assert found.files[0].values["costs"] is None
    assert found.files[1].values["costs"]["base_classes"] == 12


def with_overlap():
    X, y = novel()
    return X, np.where(y == "new 1", "class 3", y)


def with_a_base_row():
    X, y = novel()
    X[4] = classes()[0][17]
    return X, y


def with_similar_name():
    X, y = novel()
    return X, np.where(y == "new 1", "CLASS-3", y)


def unit(X, y):
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


@pytest.mark.parametrize(
    ("second", "severity", "code", "sentence"),
    [
        (with_overlap(), "fault", "class-overlap", "1 class in both files, such as 'class 3'"),
        (with_a_base_row(), "fault", "row-overlap", "such as row 4 (row 17 there)"),
        (novel(width=15), "fault", "width-mismatch", "20 features and the novel file 15"),
        (with_similar_name(), "warning", "similar-classes", "'CLASS-3' and 'class 3'"),
        (unit(*novel()), "warning", "scale-mismatch", "in the base file and 1 in the novel file"),
        (novel(per_class=12), "warning", "few-novel-samples", "Class 'new 0' has 12 samples"),
        ((novel()[0].astype(np.float64), novel()[1]), "note", "dtype-mismatch", "float32 and the novel file float64"),
    ],
    ids=lambda value: value if isinstance(value, str) and "-" in value else "",
)
def test_each_misfit_has_its_finding_and_no_other(second, severity, code, sentence):
    found = inspected(classes(), second)
    (finding,) = found.findings
    assert (finding.severity, finding.code, finding.file) == (severity, code, "file 1")
    assert sentence in finding.sentence
    assert found.ok == (severity != "fault")


def test_negatives_in_the_novel_file_alone_are_refused_under_the_power_of_the_base_file():
    X, y = novel()
    found = inspected(classes(), (X - 1, y))
    assert codes(found) == {"power-mismatch"}
    assert "The novel file has negative entries and the base file has none" in found.findings[0].sentence
    assert next(a for a in found.advice if "hot" in a.methods).verdict == "refused"
    signed_base = inspected((classes()[0] - 1, classes()[1]), novel())
    assert next(a for a in signed_base.advice if "hot" in a.methods).verdict == "with care"


def test_a_file_against_itself_is_all_overlap():
    found = inspected(classes(), classes())
    assert codes(found) == {"class-overlap", "row-overlap"}
    assert any("360 rows" in finding.sentence for finding in found.findings)


def test_rows_are_recognised_in_another_precision():
    X, y = novel()
    short = X.astype(np.float16)
    base = classes()
    base[0][17] = short[4].astype(np.float32)
    assert codes(inspected(base, (short, y))) == {"row-overlap", "dtype-mismatch"}


def test_numbers_for_names_are_told_how_to_differ():
    (X, _), (Z, _) = classes(), novel()
    found = inspected((X, np.arange(360) // 30), (Z, np.arange(180) // 30))
    assert codes(found) == {"class-overlap"}
    assert "give names to classes that only share a number" in found.findings[0].sentence


@pytest.mark.parametrize(("key", "severity"), [("extractor", "fault"), ("transform", "warning")])
def test_other_provenance_is_said(key, severity):
    found = inspected((*classes(), {key: "resnet", "date": "1"}), (*novel(), {key: "clip", "date": "2"}))
    assert codes(found) == {f"{key}-mismatch"}
    assert "'resnet'" in found.findings[0].sentence
    assert found.findings[0].severity == severity
    assert inspected((*classes(), {key: "clip"}), (*novel(), {})).findings == ()


def test_more_than_two_files_are_compared_with_the_first():
    second, third = novel(), classes(6, seed=7, name="newer")
    third[0][3] = classes()[0][5]
    found = inspected(classes(), second, third)
    (finding,) = found.findings
    assert (finding.code, finding.file) == ("row-overlap", "file 2")
    assert found.verdict == "file 0, file 1 and file 2 have 1 fault to fix before use."


def test_few_base_classes_are_said():
    found = inspected(classes(5), novel())
    assert codes(found) == {"few-base-classes"}
    assert next(a for a in found.advice if "hot" in a.methods).verdict == "with care"


def test_faults_of_the_base_file_leave_the_methods_without_base():
    X, y = classes()
    X[0, 0] = np.nan
    found = inspected((X, y), novel())
    refused = {method for advice in found.advice if advice.verdict == "refused" for method in advice.methods}
    assert refused == {*WITH_BASE, "hotshot evaluate"}
    everyone = inspected(novel(), (X, y)).advice
    assert [advice.verdict for advice in everyone] == ["refused"]
