"""Figures for papers and reports: arrays in, `matplotlib.figure.Figure` out, `save` writes the files.

Examples
--------
>>> from hotshot.figures import ranking
>>> figure = ranking(["wolf", "lion", "couch"], [0.31, 0.42, 0.05], label="transfer weight")
>>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
['lion', 'wolf', 'couch']
"""

from hotshot.figures.comparisons import grouped_bars
from hotshot.figures.curves import lines
from hotshot.figures.embeddings import embedding
from hotshot.figures.heatmaps import heatmap
from hotshot.figures.histograms import histogram
from hotshot.figures.rankings import ranking
from hotshot.figures.recovered import weights
from hotshot.figures.saving import save
from hotshot.figures.text import short
from hotshot.figures.transfer import plans
from hotshot.figures.within_class import sample_weights

__all__ = [
    "embedding",
    "grouped_bars",
    "heatmap",
    "histogram",
    "lines",
    "plans",
    "ranking",
    "sample_weights",
    "save",
    "short",
    "weights",
]
