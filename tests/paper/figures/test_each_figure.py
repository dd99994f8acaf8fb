"""What each kind of figure shows: the numbers given, in the order promised, within the axes."""

from __future__ import annotations

import figure_examples as examples
import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_hex

from hotshot.paper import figures
from hotshot.paper.figures.base_class_plots import COLOUR_MAP
from hotshot.paper.figures.style import COLOURS, HATCHES, MARKERS

PAIRS = {"hot": [(60.0, 1.0), (70.0, 5.0)], "svm": [(50.0, 2.0), None]}


def ticks(axis):
    return [text.get_text() for text in examples.tick_texts(axis)]


def test_heatmaps_show_the_values_given_first_row_on_top():
    values = np.arange(6.0).reshape(3, 2)
    axes = figures.heatmap(values, ["a", "b", "c"], ["x", "y"], label="cost").axes[0]
    np.testing.assert_array_equal(np.asarray(axes.collections[0].get_array()).reshape(3, 2), values)
    assert ticks(axes.yaxis) == ["a", "b", "c"]
    assert ticks(axes.xaxis) == ["x", "y"]
    assert axes.yaxis_inverted()


def test_lighter_is_smaller():
    red, green, blue = matplotlib.colormaps[COLOUR_MAP](np.arange(256))[:, :3].T
    assert (np.diff(0.2126 * red + 0.7152 * green + 0.0722 * blue) < 1e-3).all()


def test_heatmaps_name_their_colours():
    figure = figures.heatmap([[1.0, 2.0]], ["a"], ["x", "y"], label="transport plan")
    assert figure.axes[1].get_ylabel() == "transport plan"


def test_a_single_value_has_the_middle_of_the_colours():
    mesh = figures.heatmap([[3.0]], ["a"], ["x"], label="cost").axes[0].collections[0]
    assert mesh.get_clim() == (2.5, 3.5)
    np.testing.assert_array_equal(mesh.to_rgba(3.0), matplotlib.colormaps[COLOUR_MAP](0.5))


def test_all_of_64_rows_are_named_on_one_page():
    figure = figures.heatmap(np.eye(64, 5), [f"name_of_class_{i}" for i in range(64)], list("abcde"), label="")
    assert len(ticks(figure.axes[0].yaxis)) == 64
    assert figure.get_figheight() < 9.4
    assert figure.get_figwidth() == 3.4


def test_all_of_120_rows_are_named():
    figure = figures.heatmap(np.ones((120, 1)), [str(i) for i in range(120)], ["x"], label="")
    assert len(ticks(figure.axes[0].yaxis)) == 120
    assert figure.get_figheight() < 11.5


def test_dots_stand_at_the_means_with_their_intervals():
    axes = figures.grouped_bars(["a", "b"], PAIRS, label="accuracy").axes[0]
    hot, svm = axes.containers
    np.testing.assert_array_equal(hot.lines[0].get_xdata(), [60, 70])
    np.testing.assert_array_equal(svm.lines[0].get_xdata(), [50, np.nan])
    (bars,) = hot.lines[2]
    assert [segment[:, 0].tolist() for segment in bars.get_segments()] == [[59, 61], [65, 75]]
    low, high = axes.get_xlim()
    assert low < 48
    assert high > 75


@pytest.mark.parametrize("half", [None, float("inf"), float("nan")])
def test_values_without_interval_are_dots_only(half):
    axes = figures.grouped_bars(["a", "b"], {"hot": [(60.0, half), (70.0, half)]}, label="accuracy").axes[0]
    assert np.isfinite(axes.get_xlim()).all()
    assert axes.get_xlim()[1] < 72


def test_series_differ_without_colour():
    series = {str(i): [(float(i), 0.1)] for i in range(5)}
    dots = figures.grouped_bars(["a"], series, label="accuracy").axes[0]
    assert len({c.lines[0].get_marker() for c in dots.containers}) == 5
    curves = figures.lines([1], series, x_label="", label="").axes[0]
    assert len({line.get_marker() for line in curves.lines}) == 5
    bars = figures.histogram({k: [1.0] for k in series}, edges=[0, 2], x_label="", label="").axes[0]
    assert len({c.patches[0].get_hatch() for c in bars.containers}) == 5


def test_styles_repeat_late():
    assert len({(COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]) for i in range(50)}) == 50
    assert len({(COLOURS[i % len(COLOURS)], HATCHES[i % len(HATCHES)]) for i in range(50)}) == 50


def test_lines_go_through_the_means_within_bands():
    figure = figures.lines([1, 2], PAIRS, x_label="n", label="accuracy", limits={"hot": 80.0, "chance": 20.0})
    axes = figure.axes[0]
    hot, svm, hot_limit, chance = axes.lines
    np.testing.assert_array_equal(hot.get_ydata(), [60, 70])
    np.testing.assert_array_equal(svm.get_ydata(), [50])
    assert set(hot_limit.get_ydata()) == {80.0}
    assert set(chance.get_ydata()) == {20.0}
    assert hot_limit.get_linestyle() == "--"
    assert hot_limit.get_color() == hot.get_color() != chance.get_color()
    band = axes.collections[0].get_paths()[0].vertices
    assert (band[:, 1].min(), band[:, 1].max()) == (59.0, 75.0)
    low, high = axes.get_ylim()
    assert low < 20
    assert high > 80
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["hot", "svm", "hot (limit)", "chance"]


def test_a_single_line_needs_no_legend():
    assert not figures.lines([1, 2], {"hot": PAIRS["hot"]}, x_label="n", label="accuracy").legends


def test_numbers_on_a_logarithmic_axis_are_plain():
    figure = figures.lines([1, 10, 1000], {"a": examples.estimates(3)}, x_label="n", label="accuracy", log=True)
    assert ticks(figure.axes[0].xaxis) == ["1", "10", "1000"]


def test_histograms_count_every_task():
    values = {"a": np.array([0, 9.9, 10, 55, 100]), "b": np.array([100.0, 100.0])}
    axes = figures.histogram(values, edges=[0, 10, 50, 100], x_label="accuracy", label="tasks").axes[0]
    counts = [[bar.get_height() for bar in container] for container in axes.containers]
    assert counts == [[2, 1, 2], [0, 0, 2]]
    assert axes.get_xlim() == (0, 100)


def test_tasks_are_counted_in_whole_numbers():
    axes = figures.histogram({"a": [1.0]}, edges=[0, 2], x_label="", label="tasks").axes[0]
    assert ticks(axes.yaxis) == ["0", "1"]


def test_long_names_do_not_squeeze_the_lines():
    given = {"x_label": "n", "label": "accuracy"}
    short, long = (
        figures.lines([1, 2], {"hot": PAIRS["hot"]}, x_names=names, **given)
        for names in (["a", "b"], [examples.HOSTILE[0], examples.HOSTILE[7]])
    )
    heights = [figure.axes[0].get_window_extent().height for figure in (short, long)]
    assert heights[0] == pytest.approx(heights[1], rel=0.02)


def test_bars_of_a_bin_stand_side_by_side():
    axes = figures.histogram({"a": [1.0], "b": [1.0]}, edges=[0, 2], x_label="", label="").axes[0]
    (first,), (second,) = axes.containers
    assert first.get_x() + first.get_width() <= second.get_x() + 1e-12


def test_true_weights_go_down_and_learned_ones_follow():
    truth, learned = [0.2, 0.5, 0.3], [0.1, 0.6, 0.3]
    axes = figures.weights(truth, {"ot": learned}, ["a", "b", "c"]).axes[0]
    assert ticks(axes.yaxis) == ["b", "c", "a"]
    assert [bar.get_width() for bar in axes.patches] == [0.5, 0.3, 0.2]
    assert axes.lines[0].get_xdata().tolist() == [0.6, 0.3, 0.1]
    assert axes.get_xlim()[1] > 0.6


def test_rankings_put_the_largest_on_top_with_its_number():
    axes = figures.ranking(["a", "b", "c", "d"], [0.1, 0.3, -0.2, 0.3], label="gain").axes[0]
    assert ticks(axes.yaxis) == ["b", "d", "a", "c"]
    assert axes.yaxis_inverted()
    assert [text.get_text() for text in axes.texts] == ["0.300", "0.300", "0.100", "−0.200"]


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([68.57, 9.0], ["68.6", "9.0"]),
        ([1234567.0, 1.0], ["1234567", "1"]),
        ([12345678.0], ["1.23e+07"]),
        ([0.5, 1e-6, 0.0, -1e-6], ["0.500", "<0.001", "0", ">−0.001"]),
        ([2e-7], ["2.00e-07"]),
        ([0.0, 0.0], ["0", "0"]),
    ],
)
def test_numbers_beside_bars(values, shown):
    axes = figures.ranking([str(i) for i in values], values, label="").axes[0]
    assert [text.get_text() for text in axes.texts] == shown


def test_of_more_than_120_rows_every_second_has_name_and_number():
    figure = figures.ranking([f"class_{i}" for i in range(150)], np.arange(150), label="weight")
    texts = figure.axes[0].texts
    assert len(texts) == len(ticks(figure.axes[0].yaxis)) == 75
    above, below = texts[0].get_window_extent(), texts[1].get_window_extent()
    assert below.y1 <= above.y0 + 0.15 * above.height


def test_sample_weights_have_the_order_of_the_first_panel_on_one_scale():
    first, second = examples.numbers(30), examples.numbers(30, seed=1)
    axes = figures.sample_weights({"a": first, "b": second}, label="weight").axes
    for panel, weights in zip(axes, (first, second), strict=True):
        segments = panel.collections[0].get_segments()
        np.testing.assert_allclose([segment[1, 1] for segment in segments], weights[np.argsort(-first)])
        np.testing.assert_allclose(panel.lines[0].get_ydata(), weights.mean())
    assert axes[0].get_ylim() == axes[1].get_ylim()
    assert axes[0].get_ylim()[1] > max(first.max(), second.max())


def test_ticks_that_change_with_the_size_of_the_axes_push_no_label_out_of_the_figure():
    # Whether the uppermost number sticks out decides how many ticks fit, and those decide which number is uppermost.
    series = {
        "Free-Lunch": [(50.9, 1.4), (50.9, 0.5), (50.8, 1.3), (51, 1.3), (38.7, 1.2)],
        "High-level OT, Euclidean": [(49.9, 0.5)] * 5,
        "H-OT": [(52.8, 0.5)] * 5,
    }
    (axes,) = figures.lines(
        range(5), series, x_names=list("abcde"), x_label="base classes that lend", label="accuracy in %"
    ).axes
    assert axes.yaxis.label.get_window_extent().x0 >= 0


def test_stars_are_support_and_diamonds_generated():
    given = examples.panel(3.0)
    axes = figures.embedding({"hot": given}, list("abcd")).axes[0]
    generated, support = axes.collections
    np.testing.assert_array_equal(generated.get_offsets(), given["generated"])
    np.testing.assert_array_equal(support.get_offsets(), given["support"])
    assert len(support.get_paths()[0].vertices) > len(generated.get_paths()[0].vertices)
    assert [to_hex(c).upper() for c in support.get_facecolors()] == list(COLOURS[:4])


@pytest.mark.parametrize("stretch", [(1, 1), (9, 1), (1, 9)])
def test_a_panel_of_an_embedding_is_just_as_large_as_its_points_with_equal_axes(stretch):
    panels = {name: examples.panel(spread) for name, spread in (("a", 9.0), ("b", 1.0))}
    for panel in panels.values():
        for part in ("support", "generated"):
            panel[part] = panel[part] * stretch
    figure = figures.embedding(panels, list("abcd"))
    for axes, panel in zip(figure.axes, panels.values(), strict=True):
        places = np.concatenate([panel["support"], panel["generated"]])
        shares = []
        for (low, high), own in zip((axes.get_xlim(), axes.get_ylim()), places.T, strict=True):
            assert low < own.min()
            assert high > own.max()
            shares.append(np.ptp(own) / (high - low))
        assert max(shares) > 0.9
        box = axes.get_window_extent()
        scales = np.array([box.width, box.height]) / [np.ptp(axes.get_xlim()), np.ptp(axes.get_ylim())]
        assert scales[0] == pytest.approx(scales[1], rel=1e-3)


def test_numbers_of_classes_stand_apart_even_where_classes_coincide():
    panel = examples.panel(0.0)
    panel["generated"][:] = 0
    figure = figures.embedding({"a": panel}, list("abcd"))
    places = figure.axes[0].transData.transform([text.xy for text in figure.axes[0].texts]) * 72 / figure.dpi
    assert len(places) == 4
    distances = np.linalg.norm(places[:, None] - places[None], axis=2)[np.triu_indices(4, 1)]
    assert distances.min() > 9


def test_plans_go_down_on_one_scale_and_names_follow():
    given = {"in": [0.1, 0.6, 0.3], "cross": [0.4, 0.2]}
    figure = figures.plans(given, {"in": ["a", "b", "c"], "cross": ["x", "y"]}, label="weight")
    inside, cross = figure.axes
    assert [bar.get_height() for bar in inside.patches] == [0.6, 0.3, 0.1]
    assert ticks(inside.xaxis) == ["b", "c", "a"]
    assert ticks(cross.xaxis) == ["x", "y"]
    assert inside.get_ylim() == cross.get_ylim()
    assert inside.get_ylim()[1] > 0.6


def test_all_of_64_lenders_are_named():
    figure = figures.plans({"in": np.ones(64)}, {"in": [f"name_of_class_{i}" for i in range(64)]}, label="weight")
    assert len(ticks(figure.axes[0].xaxis)) == 64


def test_arrays_of_every_library_are_drawn(xp):
    axes = figures.ranking(["a", "b"], xp.asarray([1.0, 2.0]), label="weight").axes[0]
    assert [bar.get_width() for bar in axes.patches] == [2.0, 1.0]
