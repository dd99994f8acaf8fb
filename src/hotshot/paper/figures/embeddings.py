"""Support samples and generated features in the plane."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.errors import ParameterError
from hotshot.paper.figures.checks import named, names_of, numbers
from hotshot.paper.figures.style import COLUMN, PAGE, POINTS, SMALL, SOFT, TEXT, colour, drawing
from hotshot.paper.figures.text import add_header, fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PARTS = ("support", "generated")
# Beyond so many points an image replaces them in vector files.
MOST_OUTLINED = 4000
MOST_ABREAST = 3
# Least distance in points between the middles of two class numbers, or of a number and a star.
APART = 11.0
# Height of a panel over its width.
FLATNESS = 0.8


@dataclass(frozen=True)
class Points:
    """Places (points, 2) and the class of each."""

    places: np.ndarray
    labels: np.ndarray


def embedding(panels: Mapping[str, Mapping[str, Any]], names: Iterable[Any], *, title: str = "") -> Figure:
    """Points in the plane by class, one panel for each method, each on a scale of its own.

    Support samples are stars and generated features small diamonds. Each class has a colour, and a number that stands
    near the middle of its features. A panel has "support" (N*K, 2) and "generated" (G, 2), with "support_labels" and
    "generated_labels", indices into names.
    """
    class_names = names_of(names, None, "names")
    given = {
        name: tuple(_points(panel, name, part, len(class_names)) for part in PARTS)
        for name, panel in named(panels, "panels").items()
    }
    width = COLUMN if len(given) == 1 else PAGE
    abreast = min(len(given), MOST_ABREAST)
    rows = -(-len(given) // abreast)
    side = (width - 0.2) / abreast
    with drawing(width, rows * (FLATNESS * side + 0.28)) as figure:
        grid = figure.subplots(rows, abreast, squeeze=False).ravel()
        for axes in grid[len(given) :]:
            axes.set_visible(False)
        shown = fitted(given, 0.9 * side, TEXT)
        for axes, name, (support, generated) in zip(grid, shown, given.values(), strict=False):
            middle, reach = _extent(np.concatenate([support.places, generated.places]))
            _scatter(axes, generated, marker="D", s=4, alpha=0.5, linewidths=0)
            _scatter(axes, support, marker="*", s=75, edgecolors="black", linewidths=0.6, zorder=3)
            apart = APART * 2 * reach / (side * POINTS)
            for label, place in _number_places(support, generated, apart).items():
                circle = {"boxstyle": "circle,pad=0.2", "facecolor": "white", "linewidth": 0.8}
                axes.annotate(
                    str(label + 1),
                    place,
                    fontsize=SMALL,
                    horizontalalignment="center",
                    verticalalignment="center_baseline",
                    zorder=4,
                    bbox={**circle, "edgecolor": colour(label)},
                )
            axes.set(title=name, aspect="equal", xticks=[], yticks=[])
            axes.set_xlim(middle[0] - reach, middle[0] + reach)
            axes.set_ylim(middle[1] - FLATNESS * reach, middle[1] + FLATNESS * reach)
            axes.spines[:].set(visible=True, color="#BBBBBB")
        key = {"support": ("*", SOFT, 8.0), "generated": ("D", SOFT, 2.5)}
        key |= {f"{i} {name}": ("o", colour(i - 1), 3.8) for i, name in enumerate(class_names, 1)}
        handles = [
            grid[0].plot([], [], linestyle="none", marker=mark, color=own, markersize=size)[0]
            for mark, own, size in key.values()
        ]
        add_header(figure, title, handles, key)
    return figure


def _points(panel: Any, name: str, part: str, n_classes: int) -> Points:
    if not isinstance(panel, Mapping) or not {part, f"{part}_labels"} <= panel.keys():
        raise ParameterError(f"panels[{name!r}] must be a dict with {part!r} and '{part}_labels', got {panel!r:.80}.")
    places = numbers(panel[part], f"panels[{name!r}][{part!r}]", ("points", "2"))
    labels = numbers(panel[f"{part}_labels"], f"panels[{name!r}]['{part}_labels']", ("points",))
    if places.shape != (len(labels), 2):
        raise ParameterError(
            f"panels[{name!r}][{part!r}] must be ({len(labels)}, 2), a place for each label, got {places.shape}."
        )
    if labels.min() < 0 or labels.max() >= n_classes or (labels % 1).any():
        raise ParameterError(
            f"panels[{name!r}]['{part}_labels'] must be indices into the {n_classes} names, "
            f"got {labels.min():g} to {labels.max():g}."
        )
    return Points(places, labels.astype(int))


def _extent(places: np.ndarray) -> tuple[np.ndarray, float]:
    """The middle of a panel and half its width, so that it holds all places (points, 2)."""
    low, high = places.min(axis=0), places.max(axis=0)
    return (low + high) / 2, 1.06 * float(((high - low) / 2 / (1, FLATNESS)).max()) or 1.0


def _scatter(axes: Axes, points: Points, **how: Any) -> None:
    colours = [colour(label) for label in points.labels]
    x, y = points.places.T
    axes.scatter(x, y, c=colours, rasterized=len(colours) > MOST_OUTLINED, **how)


def _number_places(support: Points, generated: Points, apart: float) -> dict[int, np.ndarray]:
    """Where the number of each class stands: in the middle of its features, or at the first free place around it."""
    turns = np.arange(8) * np.pi / 4
    ring = 1.02 * apart * np.stack([np.cos(turns), np.sin(turns)], axis=1)
    around = np.concatenate([np.zeros((1, 2)), ring, 2 * ring, 3 * ring])
    taken, found = list(support.places), {}
    for label in np.unique(generated.labels).tolist():
        places = np.median(generated.places[generated.labels == label], axis=0) + around
        is_free = np.linalg.norm(places[:, None] - np.array(taken), axis=2).min(axis=1) >= apart
        found[label] = places[is_free.argmax()]
        taken.append(found[label])
    return found
