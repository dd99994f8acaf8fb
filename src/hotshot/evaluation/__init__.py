"""From tasks to accuracies with intervals: runner, journal, statistics, tuning."""

from hotshot.evaluation.results import (
    Estimate,
    Evaluation,
    MethodResult,
    class_interval,
    mean_interval,
    paired_difference,
)
from hotshot.evaluation.runner import evaluate
from hotshot.evaluation.tuning import Tuning, tune

__all__ = [
    "Estimate",
    "Evaluation",
    "MethodResult",
    "Tuning",
    "class_interval",
    "evaluate",
    "mean_interval",
    "paired_difference",
    "tune",
]
