"""From tasks to accuracies with intervals."""

from hotshot.evaluation.statistics import Estimate, mean_interval, paired_difference

__all__ = ["Estimate", "mean_interval", "paired_difference"]
