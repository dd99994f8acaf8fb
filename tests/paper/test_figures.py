"""Figures: nothing is cut off, nothing is mathematics, same input same bytes; and each shows the numbers given."""

from __future__ import annotations

from functools import cache
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest

from hotshot.evaluation.tables import Number
from hotshot.paper import figures
from hotshot.paper.figures import file_content, fitted, save

HOSTILE = (
    "card_payment_wrong_exchange_rate",
    "$x_1$",
    "<img src=x onerror=alert(1)>",
    "100% off & more",
    "汉字类别名称很长很长很长很长很长",
    "اسم الصنف",
    "_hidden",
    "W" * 90,
    "",
    "line\nbreak\ttab\x00\ud800\u202e",
)


def names(count):
    return [HOSTILE[i] if i < len(HOSTILE) else f"class_number_{i}" for i in range(count)]


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).gamma(0.6, size=shape)


def estimates(count, mean=60.0):
    return [Number(mean + 0.3 * i, 0.4 + 0.1 * i) for i in range(count)]


def panel(spread):
    centres = np.array([[0, 0], [1, 5], [6, 0], [0.1, 0]]) * 10.0
    labels = np.repeat(np.arange(4), 20)
    points = centres[labels] + spread * np.random.default_rng(0).normal(size=(80, 2))
    return {"support": centres, "generated": points, "generated_labels": labels}


# One figure of every kind, with hostile names.
EXAMPLES = {
    "heatmap": lambda: figures.heatmap(
        numbers(12, 5), names(12), names(5), label="learned cost $c$", title="$a_b$ 50% <b>"
    ),
    "heatmap of many": lambda: figures.heatmap(numbers(150, 77), names(150), names(77), label="cost $c$"),
    "grouped_bars": lambda: figures.grouped_bars(
        names(10),
        {"_first": estimates(10), "$y$": [Number(60.0), *estimates(9, 65.0)]},
        label="accuracy (%)",
        title="Some title that is too long for one line of a column, and $x$",
    ),
    "lines": lambda: figures.lines(
        [1, 2, 5, 10, 64],
        {"_first": estimates(5), "$y$": estimates(5, 65.0)},
        x_label="retrieved $n$",
        label="accuracy (%)",
        limits={"limit": 68.0, "other": 58.0},
    ),
    "histogram": lambda: figures.histogram(
        {"_first": 100 * numbers(50) / numbers(50).max(), "$y$": np.arange(0, 101, 2)},
        edges=np.arange(0, 101, 5),
        title="Tasks",
    ),
    "weight_panels": lambda: figures.weight_panels(
        {"$y$": numbers(60), HOSTILE[2] * 3: numbers(75, seed=1)},
        label="weight $m$",
        x_label="samples",
        title="Samples",
    ),
    "embedding": lambda: figures.embedding({"_first": panel(5.0), "$y$": panel(2.0)}, names(4), title="Generated"),
}
every_figure = pytest.mark.parametrize("kind", EXAMPLES)


@cache
def example(kind):
    return EXAMPLES[kind]()


@cache
def svg(kind):
    return file_content(example(kind), "svg")


def tick_texts(axis):
    """Texts of the ticks that are in view; those of a colour bar are on the other side."""
    low, high = sorted(axis.get_view_interval())
    room = 1e-9 * (high - low)
    ticks = [tick for tick in axis.get_major_ticks() if low - room <= tick.get_loc() <= high + room]
    texts = [text for tick in ticks for text in (tick.label1, tick.label2)]
    return [text for text in texts if text.get_visible() and text.get_text()]


def ticks(axis):
    return [text.get_text() for text in tick_texts(axis)]


def shown_texts(figure):
    """Every text that a reader sees."""
    texts = [text for legend in figure.legends for text in (legend.get_title(), *legend.get_texts())]
    for axes in figure.axes:
        texts += [axes.title, axes._left_title, axes.xaxis.label, axes.yaxis.label, *axes.texts]
        texts += [axes.xaxis.offsetText, axes.yaxis.offsetText]
        texts += tick_texts(axes.xaxis) + tick_texts(axes.yaxis)
    return [text for text in texts if text.get_visible() and text.get_text()]


@every_figure
def test_names_are_never_mathematics_and_no_text_is_cut_off(kind):
    figure = example(kind)
    assert any("$" in text.get_text() for text in shown_texts(figure))
    assert not any(text.get_parse_math() for text in figure.findobj(matplotlib.text.Text))
    for text in shown_texts(figure):
        box = text.get_window_extent()
        assert min(box.x0, box.y0) >= -1, text
        assert box.x1 <= figure.bbox.x1 + 1, text
        assert box.y1 <= figure.bbox.y1 + 1, text


@every_figure
def test_title_and_legend_hide_no_data(kind):
    (header,) = example(kind).legends
    lowest = header.get_window_extent().y0
    assert all(axes.get_window_extent().y1 <= lowest for axes in example(kind).axes)


@every_figure
def test_the_users_settings_change_nothing_and_are_left_alone(kind):
    with matplotlib.rc_context({"font.size": 20, "axes.grid": True, "text.parse_math": True}):
        before = dict(matplotlib.rcParams)
        assert file_content(EXAMPLES[kind](), "svg") == svg(kind)
        assert dict(matplotlib.rcParams) == before


@every_figure
def test_svg_holds_names_as_text_and_no_date(kind):
    root = ElementTree.fromstring(svg(kind))
    texts = {"".join(node.itertext()) for node in root.iter() if node.tag.endswith("}text")}
    assert {line for text in shown_texts(example(kind)) for line in text.get_text().split("\n") if line} <= texts
    assert not any(node.tag.endswith(("img", "}date")) for node in root.iter())


def test_files_do_not_depend_on_those_written_before(tmp_path):
    figure = EXAMPLES["histogram"]()
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


# What each kind shows

PAIRS = {"hot": [Number(60.0, 1.0), Number(70.0, 5.0)], "svm": [Number(50.0, 2.0), Number(55.0)]}


def test_heatmaps_show_the_values_given_first_row_on_top():
    values = np.arange(6.0).reshape(3, 2)
    axes, bar = figures.heatmap(values, ["a", "b", "c"], ["x", "y"], label="cost").axes
    np.testing.assert_array_equal(axes.images[0].get_array(), values)
    assert (ticks(axes.yaxis), ticks(axes.xaxis), bar.get_ylabel()) == (["a", "b", "c"], ["x", "y"], "cost")
    assert axes.yaxis_inverted()
    assert axes.images[0].get_extent() == [-0.5, 1.5, 2.5, -0.5]
    red, green, blue = matplotlib.colormaps[figures.COLOUR_MAP](np.arange(256))[:, :3].T
    assert (np.diff(0.2126 * red + 0.7152 * green + 0.0722 * blue) < 1e-3).all()


@pytest.mark.parametrize(("rows", "named"), [(1, 1), (64, 64), (120, 120), (150, 75)])
def test_rows_are_named_on_one_page(rows, named):
    figure = figures.heatmap(np.ones((rows, 2)), [f"class_{i}" for i in range(rows)], ["x", "y"], label="")
    assert len(ticks(figure.axes[0].yaxis)) == named
    assert figure.get_figheight() < 11.5


@pytest.mark.parametrize("missing", [None, float("inf"), float("nan")])
def test_dots_stand_at_the_means_with_their_intervals(missing):
    axes = figures.grouped_bars(["a", "b"], PAIRS, label="accuracy").axes[0]
    hot, svm = axes.containers
    np.testing.assert_array_equal(hot.lines[0].get_xdata(), [60, 70])
    np.testing.assert_array_equal(svm.lines[0].get_xdata(), [50, 55])
    (bars,) = hot.lines[2]
    assert [segment[:, 0].tolist() for segment in bars.get_segments()] == [[59, 61], [65, 75]]
    low, high = axes.get_xlim()
    assert low < 48
    assert high > 75
    alone = {"hot": [Number(60.0, missing), Number(70.0, missing)]}
    assert figures.grouped_bars(["a", "b"], alone, label="accuracy").axes[0].get_xlim()[1] < 72


def test_series_differ_without_colour():
    series = {str(i): [Number(float(i), 0.1)] for i in range(5)}
    dots = figures.grouped_bars(["a"], series, label="accuracy").axes[0]
    assert len({c.lines[0].get_marker() for c in dots.containers}) == 5
    curves = figures.lines([1], series, x_label="", label="").axes[0]
    assert len({line.get_marker() for line in curves.lines}) == 5
    bars = figures.histogram({k: [1.0] for k in series}, edges=np.array([0, 2])).axes[0]
    assert len({c.patches[0].get_hatch() for c in bars.containers}) == 5


@pytest.mark.parametrize("x", [[1, 10], ["1", "all"]])
def test_lines_go_through_the_means_within_bands(x):
    figure = figures.lines(x, PAIRS, x_label="n", label="accuracy", limits={"best": 80.0, "chance": 20.0})
    axes = figure.axes[0]
    hot, svm, best, chance = axes.lines
    np.testing.assert_array_equal(hot.get_ydata(), [60, 70])
    np.testing.assert_array_equal(svm.get_ydata(), [50, 55])
    assert (set(best.get_ydata()), set(chance.get_ydata())) == ({80.0}, {20.0})
    assert best.get_linestyle() != chance.get_linestyle()
    band = axes.collections[0].get_paths()[0].vertices
    assert (band[:, 1].min(), band[:, 1].max()) == (59.0, 75.0)
    low, high = axes.get_ylim()
    assert low < 20
    assert high > 80
    assert ticks(axes.xaxis) == [str(value) for value in x]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["hot", "svm", "best", "chance"]
    assert not figures.lines(x, {"a": PAIRS["hot"]}, x_label="n", label="").legends[0].get_texts()


def test_histograms_count_every_task_in_bars_side_by_side():
    values = {"a": np.array([0, 9.9, 10, 55, 100]), "b": np.array([100.0, 100.0])}
    axes = figures.histogram(values, edges=np.array([0, 10, 50, 100])).axes[0]
    first, second = axes.containers
    assert [bar.get_height() for bar in first] == [2, 1, 2]
    assert [bar.get_height() for bar in second] == [0, 0, 2]
    assert first[0].get_x() + first[0].get_width() <= second[0].get_x() + 1e-12
    assert axes.get_xlim() == (0, 100)
    assert all(label.isdigit() for label in ticks(axes.yaxis))


def test_stars_are_support_and_diamonds_generated():
    given = panel(3.0)
    axes = figures.embedding({"hot": given}, list("abcd")).axes[0]
    generated, support = axes.collections
    np.testing.assert_array_equal(generated.get_offsets(), given["generated"])
    np.testing.assert_array_equal(support.get_offsets(), given["support"])
    assert len(support.get_paths()[0].vertices) > len(generated.get_paths()[0].vertices)
    assert len({tuple(colour) for colour in support.get_facecolors()}) == 4
    box = axes.get_window_extent()
    scales = np.array([box.width, box.height]) / [np.ptp(axes.get_xlim()), np.ptp(axes.get_ylim())]
    assert scales[0] == pytest.approx(scales[1], rel=1e-3)


def test_panels_of_weights_keep_their_order_on_one_scale():
    given = {"in": np.array([0.1, 0.6, 0.3]), "cross": np.full(64, 0.2)}
    figure = figures.weight_panels(given, label="weight", x_label="")
    for axes, values in zip(figure.axes, given.values(), strict=True):
        assert [bar.get_height() for bar in axes.patches] == values.tolist()
        np.testing.assert_allclose(axes.lines[0].get_ydata(), values.mean())
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()
