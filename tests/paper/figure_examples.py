"""One figure of every kind on small data with hostile names, and the texts that a figure shows."""

from __future__ import annotations

import numpy as np

from hotshot.evaluation.tables import Number
from hotshot.paper import figures

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


def panel(spread, seed=0):
    rng = np.random.default_rng(seed)
    centres = np.array([[0, 0], [1, 5], [6, 0], [0.1, 0]]) * 10.0
    labels = np.repeat(np.arange(4), 20)
    return {
        "support": centres,
        "support_labels": np.arange(4),
        "generated": centres[labels] + spread * rng.normal(size=(80, 2)),
        "generated_labels": labels,
    }


EXAMPLES = {
    "heatmap": lambda: figures.heatmap(
        numbers(12, 5), names(12), names(5), label="learned cost $c$", title="$a_b$ 50% <b>"
    ),
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
        log=True,
    ),
    "histogram": lambda: figures.histogram(
        {"_first": 100 * numbers(50) / numbers(50).max(), "$y$": np.arange(0, 101, 2)},
        edges=np.arange(0, 101, 5),
        title="Tasks",
    ),
    "weights": lambda: figures.weights(
        numbers(12), {"_first": numbers(12, seed=1), "$y$": numbers(12, seed=2)}, names(12), title="Weights"
    ),
    "numbered panels": lambda: figures.weight_panels(
        {"$y$": (numbers(60), []), HOSTILE[2] * 3: (numbers(60, seed=1), [])},
        label="weight $m$",
        x_label="samples",
        title="Samples",
    ),
    "named panels": lambda: figures.weight_panels(
        {"_in": (numbers(30), names(30)), "$cross$": (numbers(75, seed=1) / 4, names(75))},
        label="weight $m$",
        x_label="base class",
        title="Plans",
    ),
    "embedding": lambda: figures.embedding(
        {"_first": panel(5.0), "$y$": panel(2.0)}, names(4), title="Generated features"
    ),
}


def tick_texts(axis):
    """Texts of the ticks that are in view; those of a colour bar are on the other side."""
    low, high = sorted(axis.get_view_interval())
    room = 1e-9 * (high - low)
    ticks = [tick for tick in axis.get_major_ticks() if low - room <= tick.get_loc() <= high + room]
    texts = [text for tick in ticks for text in (tick.label1, tick.label2)]
    return [text for text in texts if text.get_visible() and text.get_text()]


def shown_texts(figure):
    """Every text that a reader sees."""
    texts = [*figure.texts, *([figure._supylabel] if figure._supylabel else [])]
    for legend in figure.legends:
        texts += [legend.get_title(), *legend.get_texts()]
    for axes in figure.axes:
        texts += [axes.title, axes._left_title, axes.xaxis.label, axes.yaxis.label, *axes.texts]
        texts += [axes.xaxis.offsetText, axes.yaxis.offsetText]
        texts += tick_texts(axes.xaxis) + tick_texts(axes.yaxis)
    found = {id(text): text for text in texts if text.get_visible() and text.get_text()}
    return list(found.values())


def words(figure):
    return [text.get_text() for text in shown_texts(figure)]
