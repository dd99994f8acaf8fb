"""What each kind of figure shows: the numbers given, in the order promised, within the axes."""

from __future__ import annotations

import figure_examples as examples
import matplotlib
import numpy as np
import pytest

from hotshot.evaluation.tables import Number
from hotshot.paper import figures

PAIRS = {"hot": [Number(60.0, 1.0), Number(70.0, 5.0)], "svm": [Number(50.0, 2.0), Number(55.0)]}


def ticks(axis):
    return [text.get_text() for text in examples.tick_texts(axis)]


def test_heatmaps_show_the_values_given_first_row_on_top():
    values = np.arange(6.0).reshape(3, 2)
    axes, bar = figures.heatmap(values, ["a", "b", "c"], ["x", "y"], label="cost").axes
    np.testing.assert_array_equal(np.asarray(axes.collections[0].get_array()).reshape(3, 2), values)
    assert ticks(axes.yaxis) == ["a", "b", "c"]
    assert ticks(axes.xaxis) == ["x", "y"]
    assert axes.yaxis_inverted()
    assert bar.get_ylabel() == "cost"
    red, green, blue = matplotlib.colormaps[figures.COLOUR_MAP](np.arange(256))[:, :3].T
    assert (np.diff(0.2126 * red + 0.7152 * green + 0.0722 * blue) < 1e-3).all()


@pytest.mark.parametrize(("rows", "named"), [(1, 1), (64, 64), (120, 120), (150, 75)])
def test_rows_are_named_on_one_page(rows, named):
    figure = figures.heatmap(np.ones((rows, 2)), [f"class_{i}" for i in range(rows)], ["x", "y"], label="")
    assert len(ticks(figure.axes[0].yaxis)) == named
    assert figure.get_figheight() < 11.5


def test_dots_stand_at_the_means_with_their_intervals():
    axes = figures.grouped_bars(["a", "b"], PAIRS, label="accuracy").axes[0]
    hot, svm = axes.containers
    np.testing.assert_array_equal(hot.lines[0].get_xdata(), [60, 70])
    np.testing.assert_array_equal(svm.lines[0].get_xdata(), [50, 55])
    (bars,) = hot.lines[2]
    assert [segment[:, 0].tolist() for segment in bars.get_segments()] == [[59, 61], [65, 75]]
    low, high = axes.get_xlim()
    assert low < 48
    assert high > 75


@pytest.mark.parametrize("half", [None, float("inf"), float("nan")])
def test_values_without_interval_are_dots_only(half):
    axes = figures.grouped_bars(["a", "b"], {"hot": [Number(60.0, half), Number(70.0, half)]}, label="accuracy").axes[0]
    assert axes.get_xlim()[1] < 72


def test_series_differ_without_colour():
    series = {str(i): [Number(float(i), 0.1)] for i in range(5)}
    dots = figures.grouped_bars(["a"], series, label="accuracy").axes[0]
    assert len({c.lines[0].get_marker() for c in dots.containers}) == 5
    curves = figures.lines([1], series, x_label="", label="").axes[0]
    assert len({line.get_marker() for line in curves.lines}) == 5
    bars = figures.histogram({k: [1.0] for k in series}, edges=np.array([0, 2])).axes[0]
    assert len({c.patches[0].get_hatch() for c in bars.containers}) == 5


def test_lines_go_through_the_means_within_bands():
    figure = figures.lines([1, 2], PAIRS, x_label="n", label="accuracy", limits={"best": 80.0, "chance": 20.0})
    axes = figure.axes[0]
    hot, svm, best, chance = axes.lines
    np.testing.assert_array_equal(hot.get_ydata(), [60, 70])
    np.testing.assert_array_equal(svm.get_ydata(), [50, 55])
    assert set(best.get_ydata()) == {80.0}
    assert set(chance.get_ydata()) == {20.0}
    assert best.get_linestyle() != chance.get_linestyle()
    band = axes.collections[0].get_paths()[0].vertices
    assert (band[:, 1].min(), band[:, 1].max()) == (59.0, 75.0)
    low, high = axes.get_ylim()
    assert low < 20
    assert high > 80
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["hot", "svm", "best", "chance"]


def test_numbers_on_a_logarithmic_axis_are_plain():
    figure = figures.lines([1, 10, 1000], {"a": examples.estimates(3)}, x_label="n", label="accuracy", log=True)
    assert ticks(figure.axes[0].xaxis) == ["1", "10", "1000"]
    assert not figure.legends[0].get_texts()


def test_histograms_count_every_task_in_bars_side_by_side():
    values = {"a": np.array([0, 9.9, 10, 55, 100]), "b": np.array([100.0, 100.0])}
    edges = np.array([0, 10, 50, 100])
    axes = figures.histogram(values, edges=edges).axes[0]
    first, second = axes.containers
    assert [bar.get_height() for bar in first] == [2, 1, 2]
    assert [bar.get_height() for bar in second] == [0, 0, 2]
    assert first[0].get_x() + first[0].get_width() <= second[0].get_x() + 1e-12
    assert axes.get_xlim() == (0, 100)
    assert all(label.isdigit() for label in ticks(axes.yaxis))


def test_true_weights_go_down_and_learned_ones_follow():
    truth, learned = np.array([0.2, 0.5, 0.3]), np.array([0.1, 0.6, 0.3])
    axes = figures.weights(truth, {"ot": learned}, ["a", "b", "c"]).axes[0]
    assert ticks(axes.yaxis) == ["b", "c", "a"]
    assert [bar.get_width() for bar in axes.patches] == [0.5, 0.3, 0.2]
    assert axes.lines[0].get_xdata().tolist() == [0.6, 0.3, 0.1]
    assert axes.get_xlim()[1] > 0.6


def test_stars_are_support_and_diamonds_generated():
    given = examples.panel(3.0)
    axes = figures.embedding({"hot": given}, list("abcd")).axes[0]
    generated, support = axes.collections
    np.testing.assert_array_equal(generated.get_offsets(), given["generated"])
    np.testing.assert_array_equal(support.get_offsets(), given["support"])
    assert len(support.get_paths()[0].vertices) > len(generated.get_paths()[0].vertices)
    assert len({tuple(colour) for colour in support.get_facecolors()}) == 4
    box = axes.get_window_extent()
    scales = np.array([box.width, box.height]) / [np.ptp(axes.get_xlim()), np.ptp(axes.get_ylim())]
    assert scales[0] == pytest.approx(scales[1], rel=1e-3)


@pytest.mark.parametrize("n_names", [0, 64])
def test_panels_of_weights_keep_their_order_on_one_scale(n_names):
    given = {"in": np.array([0.1, 0.6, 0.3]), "cross": np.full(64, 0.2)}
    names = [f"name_of_class_{i}" for i in range(n_names)]
    panels = {heading: (values, names[: len(values)]) for heading, values in given.items()}
    figure = figures.weight_panels(panels, label="weight", x_label="")
    for axes, values in zip(figure.axes, given.values(), strict=True):
        assert [bar.get_height() for bar in axes.patches] == values.tolist()
        np.testing.assert_allclose(axes.lines[0].get_ydata(), values.mean())
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()
    if n_names:
        assert ticks(figure.axes[0].xaxis) == names[:3]
        assert len(ticks(figure.axes[1].xaxis)) == 64
