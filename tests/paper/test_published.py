"""The transcribed tables keep the paper's laws and, where the paper is beside the project, its very characters."""

from __future__ import annotations

import re

import pytest

from conftest import DATA
from hotshot.evaluation.tables import Number
from hotshot.paper.published import POWERS, published, published_dataset, published_systems, table

# Of each table the number of leading cells that are in the paper's words.
TABLES = {1: 2, 2: 2, 3: 0, 4: 1, 5: 1, 6: 0}


NUMBER = r"\d+\.\d+( ± (\d\.\d+|n/a))?"


def printed(row):
    """The cells of a transcribed row that hold a number or the dash of a missing one, without spaces."""
    return [cell.replace(" ", "") for cell in row.values() if cell == "-" or re.fullmatch(NUMBER, cell)]


def rows_of_the_paper(path):
    """The rows of its LaTeX tables, without marks and spaces."""
    text = path.read_text(encoding="utf-8").replace(r"\pm", "±")
    marks = r"\\cite\{[^}]*\}|\\(textbf|text|midrule|hline|rowcolor\{mygray\})|\^\\(star|circ)|\^\*|\^\{\\div\}|[\s{}$]"
    return [re.sub(marks, "", row) for row in text.split("\\\\")]


@pytest.mark.parametrize("number", TABLES)
def test_every_row_is_a_row_of_the_paper(number):
    paper = DATA.parent / "paper.tex"
    if not paper.exists():
        pytest.skip(f"the paper is not beside the project (looked for {paper})")
    rows = rows_of_the_paper(paper)
    for row in table(number):
        # Seconds have their unit, and names go before numbers.
        numbers = "&".join(rf"{re.escape(cell)}s?" for cell in printed(row))
        found = [line for line in rows if re.search(f"&{numbers}$", line)]
        assert found, row
        names = [cell.replace(" ", "") for cell in [*row.values()][: TABLES[number]]]
        assert any(all(part in line for part in names) for line in found), row


@pytest.mark.parametrize(
    ("spelt", "name"),
    [
        *((name, name) for name in POWERS),
        ("mini-ImageNet", "miniImageNet"),
        ("cifar_fs", "CIFAR-FS"),
        ("CUB-200-2011", "CUB"),
        ("imagenet", None),
        ("miniImageNet, validation classes", None),
        ("", None),
    ],
)
def test_datasets_are_known_however_they_are_spelt(spelt, name):
    assert published_dataset(spelt) == name


def systems_by(dataset, name):
    """One- and five-shot accuracies by backbone."""
    return {backbone: numbers for system, backbone, _, numbers in published_systems(dataset) if system == name}


def test_numbers_that_two_tables_print_agree_but_for_one():
    for dataset in ("miniImageNet", "tieredImageNet", "CUB"):
        for name, method in (("Free-Lunch", "free-lunch"), ("H-OT", "hot")):
            assert systems_by(dataset, name)["WRN28+RTloss"][0] == published(3, method, dataset)
    assert published(4, "WRN28+RTloss", "hot") == published(3, "hot", "miniImageNet")
    assert published(4, "WRN28+RTloss", "free-lunch") == published(3, "free-lunch", "miniImageNet")
    assert published(6, "free-lunch", "2") == published(3, "free-lunch", "CUB")
    assert published(6, "ot-euclidean", "all") == published(3, "ot-euclidean", "CUB")
    assert published(6, "hot", "all") == published(3, "hot", "CUB")
    # The one, kept as printed in both.
    assert systems_by("CIFAR-FS", "Free-Lunch")["WRN28+RTloss"][0] == Number(74.9, 0.4, published=True)
    assert published(3, "free-lunch", "CIFAR-FS") == Number(74.94, 0.64, published=True)


def test_some_numbers_are_where_they_stand_in_the_paper():
    assert published(3, "ot-cosine-weighted", "tieredimagenet") == Number(75.55, 0.41, published=True)
    assert published(4, "resnet10", "free-lunch") == Number(64.41, 0.33, published=True)
    assert published(5, "tieredImageNet", "hot, 5") == Number(41.12, published=True)
    assert published(6, "free-lunch", "all") == Number(69.14, 0.88, published=True)
    assert systems_by("CUB", "MatchNet +POT")["ResNet34"] == [None, Number(85.50, 0.66, published=True)]
    assert systems_by("miniImageNet", "E3BM")["ResNet25"][0] == Number(64.3, None, published=True)
    assert systems_by("CIFAR-FS", "RelaNet")["64-96-128-256"][1] == Number(69.3, 0.8, published=True)


def test_nothing_is_published_for_what_is_not_in_the_paper():
    assert published_systems("banking77") == []
    assert published(3, "hot", "banking77") is published(3, "svm", "CUB") is None
    assert published(4, "", "hot") is published(4, "ResNet50", "hot") is None
    assert published(5, "banking77", "hot, 1") is published(5, "CUB", "hot, 2") is None
    assert published(6, "hot", "3") is None
