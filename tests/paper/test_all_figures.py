"""What holds for every figure: nothing is cut off, nothing is mathematics, same input same bytes."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import figure_examples as examples
import matplotlib
import pytest

from hotshot.paper import figures
from hotshot.paper.figures import file_content, fitted, save

every_figure = pytest.mark.parametrize("kind", examples.EXAMPLES)


@cache
def example(kind):
    return examples.EXAMPLES[kind]()


@cache
def svg(kind):
    return file_content(example(kind), "svg")


@every_figure
def test_names_are_never_mathematics(kind):
    figure = example(kind)
    assert any("$" in word for word in examples.words(figure))
    assert not any(text.get_parse_math() for text in figure.findobj(matplotlib.text.Text))


@every_figure
def test_no_text_is_cut_off(kind):
    figure = example(kind)
    for text in examples.shown_texts(figure):
        box = text.get_window_extent()
        assert box.x0 >= -1, text
        assert box.y0 >= -1, text
        assert box.x1 <= figure.bbox.x1 + 1, text
        assert box.y1 <= figure.bbox.y1 + 1, text


@every_figure
def test_title_and_legend_hide_no_data(kind):
    figure = example(kind)
    (header,) = figure.legends
    lowest = header.get_window_extent().y0
    assert all(axes.get_window_extent().y1 <= lowest for axes in figure.axes)


@every_figure
def test_the_users_settings_change_nothing_and_are_left_alone(kind):
    with matplotlib.rc_context({"font.size": 20, "axes.grid": True, "text.parse_math": True}):
        before = dict(matplotlib.rcParams)
        assert file_content(examples.EXAMPLES[kind](), "svg") == svg(kind)
        assert dict(matplotlib.rcParams) == before


@every_figure
def test_svg_holds_names_as_text_and_no_date(kind):
    root = ElementTree.fromstring(svg(kind))
    found = {"".join(node.itertext()) for node in root.iter() if node.tag.endswith("}text")}
    assert {line for word in examples.words(example(kind)) for line in word.split("\n") if line} <= found
    assert not any(node.tag.endswith(("img", "}date")) for node in root.iter())


def test_files_do_not_depend_on_those_written_before(tmp_path):
    figure = examples.EXAMPLES["histogram"]()
    png = file_content(figure, "png")
    save(figure, tmp_path / "plan.v2")
    assert (tmp_path / "plan.v2.svg").read_bytes() == svg("histogram")
    assert (tmp_path / "plan.v2.png").read_bytes() == png
    # The width in pixels.
    assert int.from_bytes(png[16:20], "big") == 3.4 * 200


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("wolf", "wolf"),
        ("card_payment_wrong", "card_…rong"),
        ("汉字类别名称很长", "汉字…很长"),
        ("a\n b\t c", "a b c"),
        (17, "17"),
    ],
)
def test_names_are_shortened_in_the_middle(name, shown):
    assert fitted([name], 10) == [shown]


def imported(nodes):
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_matplotlib_is_imported_where_it_is_needed_and_pyplot_never():
    tree = ast.parse(Path(figures.__file__).read_text())
    assert not [name for name in imported(tree.body) if "matplotlib" in name]
    assert not [name for name in imported(ast.walk(tree)) if "pyplot" in name]
