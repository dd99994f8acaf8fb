"""Each fault of a file has its finding and no other."""

from __future__ import annotations

import re

import numpy as np
import pytest
from inspected_files import classes, codes, inspected, measured

from hotshot.evaluation.inspection import document
from hotshot.files import Kept

FAULTS = []


def fault(severity, code, sentence):
    """Register a change of clean features X and labels y, and the finding that it must lead to."""

    def register(change):
        FAULTS.append(pytest.param(change, severity, code, sentence, id=change.__name__))
        return change

    return register


@fault("fault", "nan", "1 entry is NaN.*the first in row 40, column 3, class 'class 1': remove this sample")
def one_nan(X, y):
    X[40, 3] = np.nan


@fault("fault", "nan", "360 entries are NaN, in 360 samples and 1 feature.*leave out this feature")
def a_feature_of_nan(X, y):
    X[:, 3] = np.nan


@fault("fault", "infinity", "2 entries are infinite, in 2 samples and 1 feature.*remove these samples")
def infinities(X, y):
    X[3:5, 2] = -np.inf, np.inf


@fault("fault", "infinity", "float32, as float16 ends at 65504")
def overflow_of_short_floats(X, y):
    X = X.astype(np.float16)
    X[9, 9] = np.inf
    return X, y


@fault("fault", "missing-labels", "1 sample has no label")
def a_label_of_nan(X, y):
    return X, np.where(np.arange(360) == 5, np.nan, np.arange(360) // 30)


@fault("fault", "fractional-labels", "fractions")
def measurements_for_labels(X, y):
    return X, np.arange(360) // 30 + 0.5


@fault("fault", "all-constant", "All samples are the same")
def the_same_sample_again_and_again(X, y):
    X[:] = 0.7


@fault("warning", "conflicting-duplicates", r"row 2 \('class 0'\) and row 300 \('class 10'\)")
def a_vector_of_two_classes(X, y):
    X[300] = X[2]


@fault("warning", "duplicates", r"1 row repeats.*row 8 \(equal to row 2\)")
def a_vector_twice_in_a_class(X, y):
    X[8] = X[2]


@fault("warning", "zero-vectors", "2 samples are all zeros, such as row 11,")
def vectors_of_zeros(X, y):
    X[[11, 50]] = 0


@fault("warning", "one-sample-classes", "1 class has one sample, such as 'alone'")
def a_class_of_one_sample(X, y):
    y[0] = "alone"


@fault("warning", "one-sample-classes", "2 classes have one sample, such as 'alone'")
def two_classes_of_one_sample(X, y):
    y[:2] = "alone", "lonely"


@fault("warning", "blank-labels", "30 samples have an empty label")
def blank_labels(X, y):
    y[:30] = " "


@fault("warning", "similar-names", "1 class has.*'class 0' and 'Class_0'")
def nearly_the_same_name(X, y):
    y[:15] = "Class_0"


@fault("warning", "one-class", "nothing to classify")
def a_single_class(X, y):
    y[:] = "all"


@fault("warning", "scale", "multiply the features by [0-9]00")
def tiny_features(X, y):
    return 1e-3 * X, y


@fault("warning", "scale", r"multiply the features by [0-9]e-20[0-9]")
def huge_features(X, y):
    return X.astype(np.float64) * 1e200, y


@fault("note", "constant-features", r"1 feature is constant in all samples \(column 4\)")
def a_constant_feature(X, y):
    X[:, 4] = 1


@fault("note", "constant-features", r"2 features are always 0 in all samples \(column 4, 7\)")
def features_of_zeros(X, y):
    X[:, [4, 7]] = 0


@fault("note", "constant-features", r"3 features are constant in all samples, 2 of them 0")
def constant_features_of_both_kinds(X, y):
    X[:, [4, 7, 8]] = 0, 0, 1


@fault("note", "whole-numbers", "uint8")
def codes_of_eight_bits(X, y):
    return (2 * X).astype(np.uint8), y


@fault("note", "stray-negatives", "few.*small.*set them to 0")
def rounding_below_zero(X, y):
    X[7, 7] = -1e-6


def test_clean_features_have_no_findings():
    found = inspected(classes())
    assert (found.findings, found.ok, found.verdict) == ((), True, "file 0 is fine.")
    assert {advice.verdict for advice in found.advice} == {"fine"}


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


def test_samples_go_by_their_ids():
    X, y = classes()
    X[[11, 50]], X[8], X[300], X[40, 3] = 0, X[2], X[5], np.nan
    ids = [f"birds/{i}\n{'x' * (i == 8) * 99}.png" for i in range(len(X))]
    words = {finding.code: finding.sentence for finding in inspected({"X": X, "y": y, "kept": Kept(ids)}).findings}
    assert r"the first in 'birds/40\n.png', column 3" in words["nan"]
    assert r"such as 'birds/11\n.png'," in words["zero-vectors"]
    assert r"'birds/5\n.png' ('class 0') and 'birds/300\n.png'" in words["conflicting-duplicates"]
    assert f"such as '…{'x' * 35}.png' (equal to 'birds/2\\n.png')" in words["duplicates"]
    assert "row " not in " ".join(words.values()).replace("earlier row", "").replace("1 row", "")
    base, novel = ({"X": X[:9], "y": y[:9], "kept": kept} for kept in (None, Kept(ids[:9])))
    shared = next(f for f in inspected(base, novel).findings if f.code == "row-overlap")
    assert r"such as 'birds/0\n.png' (row 0 there)" in shared.sentence


def test_labels_that_are_names_of_samples():
    X, _ = classes()
    found = inspected((X, [f"image {i}" for i in range(len(X))]))
    assert codes(found) == {"labels-like-ids", "one-sample-classes"}


def test_nan_and_infinity_have_their_own_places():
    X, y = classes()
    X[41, 5], X[40, 3] = np.nan, np.inf
    nan, infinity = inspected((X, y)).findings
    assert "row 41, column 5" in nan.sentence
    assert "row 40, column 3" in infinity.sentence


def test_what_is_finite_is_measured_beside_what_is_not():
    X, y = classes()
    expected = measured(np.delete(X, 40, axis=0), np.delete(y, 40)).values
    X[40, 3] = np.nan
    found = inspected((X, y)).files[0].values
    assert (found["norms"], found["ranks"]) == (expected["norms"], expected["ranks"])
    assert found["deviation_within_classes"] == pytest.approx(expected["deviation_within_classes"])
    assert found["costs"] is not None
