"""From tasks to accuracies with intervals: runner, journal, statistics, tuning."""

from hotshot.evaluation.results import Evaluation, MethodResult, paired_difference
from hotshot.evaluation.runner import evaluate
from hotshot.evaluation.tuning import Tuning, tune
from hotshot.intervals import Estimate, class_interval, mean_interval

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
