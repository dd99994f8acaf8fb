"""How the accuracies of tasks are spread, drawn into the page in its own colours."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from hotshot.evaluation import Evaluation
from hotshot.paper.figures import histogram
from hotshot.paper.figures.style import file_content
from hotshot.report.drawing import inline_svg
from hotshot.report.numbers import shots_in_words

# Width of a bin, in percent.
STEP = 5


def task_histogram(found: Evaluation, shots: int, prefix: str) -> Markup:
    """Tasks by accuracy: the reference beside the best of the others."""
    others = [method for method in found.methods if method != found.reference]
    best = sorted(others, key=lambda method: -found[method, shots].accuracy.mean)[:1]
    values = {method: 100 * found[method, shots].accuracies for method in (found.reference, *best)}
    lowest = min(each.min() for each in values.values())
    edges = np.arange(STEP * min(lowest // STEP, 100 / STEP - 4), 100 + STEP / 2, STEP)
    figure = histogram(values, edges=edges, x_label="accuracy in %", label="tasks")
    label = f"Tasks by accuracy at {shots_in_words(shots)}: {' beside '.join(values)}"
    return inline_svg(file_content(figure, "svg").decode(), prefix, label)
