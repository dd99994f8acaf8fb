"""What holds for every figure: nothing overlaps, nothing is cut off, nothing is mathematics, same input same bytes."""

from __future__ import annotations

import ast
from functools import cache
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import figure_examples as examples
import matplotlib
import numpy as np
import pytest

from hotshot.paper import figures
from hotshot.paper.figures.style import file_content

every_figure = pytest.mark.parametrize("kind", examples.EXAMPLES)


@cache
def example(kind):
    return examples.EXAMPLES[kind]()


@cache
def svg(kind):
    return file_content(example(kind), "svg")


def boxes(figure):
    return [(text, text.get_window_extent()) for text in examples.shown_texts(figure)]


def test_every_kind_has_an_example():
    assert set(figures.__all__) == {*examples.EXAMPLES, "save", "short"}


@every_figure
def test_names_are_never_mathematics(kind):
    figure = example(kind)
    assert any("$" in word for word in examples.words(figure))
    assert not any(text.get_parse_math() for text in figure.findobj(matplotlib.text.Text))


@every_figure
def test_no_text_is_cut_off(kind):
    figure = example(kind)
    for text, box in boxes(figure):
        assert box.x0 >= -1, text
        assert box.y0 >= -1, text
        assert box.x1 <= figure.bbox.x1 + 1, text
        assert box.y1 <= figure.bbox.y1 + 1, text


@every_figure
def test_no_text_lies_on_another(kind):
    # The box of a slanted text holds mostly nothing; those are checked by their distance below.
    straight = [(text, box) for text, box in boxes(example(kind)) if text.get_rotation() % 90 == 0]
    for i, (text, box) in enumerate(straight):
        for other, other_box in straight[i + 1 :]:
            wide = min(box.x1, other_box.x1) - max(box.x0, other_box.x0)
            high = min(box.y1, other_box.y1) - max(box.y0, other_box.y0)
            # Boxes of lines of text may touch; letters then do not.
            assert min(wide, high) < 0.15 * min(box.height, other_box.height), (text, other)


@every_figure
def test_slanted_names_do_not_touch(kind):
    figure = example(kind)
    for axes in figure.axes:
        slanted = [t for t in examples.tick_texts(axes.xaxis) if t.get_rotation() % 90]
        places = sorted(axes.transData.transform((t.get_position()[0], 0))[0] for t in slanted)
        for left, right in pairwise(places):
            apart = (right - left) * np.sin(np.deg2rad(45)) * 72 / figure.dpi
            assert apart >= slanted[0].get_fontsize()


@every_figure
def test_text_can_be_read(kind):
    assert all(text.get_fontsize() >= 5 for text in examples.shown_texts(example(kind)))


@every_figure
def test_legends_hide_no_data(kind):
    figure = example(kind)
    for legend in figure.legends:
        lowest = legend.get_window_extent().y0
        assert all(axes.get_window_extent().y1 <= lowest for axes in figure.axes)


@every_figure
def test_figures_are_as_wide_as_a_column_or_a_page(kind):
    width, height = example(kind).get_size_inches()
    assert width in (3.4, 7.0)
    assert height < 9.5


@every_figure
def test_axes_have_room(kind):
    figure = example(kind)
    for axes in figure.axes:
        box = axes.get_window_extent()
        if axes.get_label() != "<colorbar>":
            assert box.width > 0.25 * figure.bbox.width
        assert box.height > 0.5 * figure.dpi


@every_figure
def test_same_input_same_bytes(kind):
    with matplotlib.rc_context({"font.size": 20, "axes.grid": True, "text.parse_math": True}):
        again = file_content(examples.EXAMPLES[kind](), "svg")
    assert again == svg(kind)


def test_a_file_does_not_depend_on_those_written_before():
    figure = examples.EXAMPLES["histogram"]()
    pictures = [file_content(figure, kind) for kind in ("png", "svg", "pdf", "png", "pdf")]
    assert pictures[1] == svg("histogram")
    assert pictures[0] == pictures[3]
    assert pictures[2] == pictures[4]


@every_figure
def test_svg_holds_names_as_text(kind):
    root = ElementTree.fromstring(svg(kind))
    found = {"".join(node.itertext()) for node in root.iter() if node.tag.endswith("}text")}
    assert {line for word in examples.words(example(kind)) for line in word.split("\n") if line} <= found
    assert not any(node.tag.endswith("img") for node in root.iter())


def test_the_users_settings_are_left_alone():
    with matplotlib.rc_context({"font.size": 17}):
        before = dict(matplotlib.rcParams)
        figures.ranking(["a"], [1.0], label="weight")
        assert dict(matplotlib.rcParams) == before


every_module = pytest.mark.parametrize(
    "path", sorted(Path(figures.__file__).parent.glob("*.py")), ids=lambda path: path.name
)


def imported(nodes):
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@every_module
def test_matplotlib_is_not_imported_before_it_is_needed(path):
    assert not [name for name in imported(ast.parse(path.read_text()).body) if "matplotlib" in name]


@every_module
def test_pyplot_is_never_imported(path):
    assert not [name for name in imported(ast.walk(ast.parse(path.read_text()))) if "pyplot" in name]
