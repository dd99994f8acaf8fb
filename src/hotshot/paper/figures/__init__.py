"""Figures for papers and reports: arrays in, `matplotlib.figure.Figure` out, `save` writes the files.

Examples
--------
>>> from hotshot.paper.figures import ranking
>>> figure = ranking(["wolf", "lion", "couch"], [0.31, 0.42, 0.05], label="transfer weight")
>>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
['lion', 'wolf', 'couch']
"""

from hotshot.paper.figures.accuracy_plots import grouped_bars, histogram, lines
from hotshot.paper.figures.base_class_plots import heatmap, plans, ranking, sample_weights, weights
from hotshot.paper.figures.embeddings import embedding
from hotshot.paper.figures.style import save
from hotshot.paper.figures.text import short

__all__ = [
    "embedding", "grouped_bars", "heatmap", "histogram", "lines", "plans", "ranking", "sample_weights",
    "save", "short", "weights",
]  # fmt: skip
