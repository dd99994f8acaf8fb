"""The paper on your own features: each of its tables and figures is a function from a `Setting` to `Findings`.

>>> from hotshot.paper import EXPERIMENTS
>>> EXPERIMENTS["costs"].paper
'Table 3'
"""

from hotshot.paper import ablations, accuracy, cross_domain, transport
from hotshot.paper.findings import Claim, Experiment, Findings, claim, load_findings, save_findings
from hotshot.paper.setting import FeatureSet, Setting

_BACKBONES = "features of the same dataset from other backbones"
_DOMAINS = "base classes of another dataset from the same extractor"
_IN_ORDER = (
    Experiment("accuracy", "Accuracy on each dataset", "Tables 1 and 2", accuracy.run_accuracy),
    Experiment("costs", "Cost functions of the high-level transport", "Table 3", ablations.run_costs),
    Experiment("backbones", "Backbones", "Table 4", accuracy.run_backbones, _BACKBONES),
    Experiment("retrieved", "Number of base classes that lend", "Table 6 (appendix)", ablations.run_retrieved),
    Experiment("generated", "Number of generated features", "Figure 2", ablations.run_generated),
    Experiment("cross-domain", "Base classes of another dataset", "Figure 1", cross_domain.run_cross_domain, _DOMAINS),
    Experiment("speed", "Time per task", "Table 5 (appendix)", accuracy.run_speed),
    Experiment("histogram", "Tasks by accuracy", "Figure 4 (appendix)", accuracy.run_histogram),
    Experiment("toy-weights", "Recovery of known weights", "Figure 7 (appendix)", transport.run_known_weights),
    Experiment("plan", "Transport plan of a task", "Figures 8 and 10 (appendix)", transport.run_plan),
    Experiment("cost", "Learned cost of a task", "Figure 8 (appendix)", transport.run_cost),
    Experiment("nearest", "Nearest base classes of a novel sample", "Figure 3", transport.run_nearest),
    Experiment("sample-weights", "Low-level weights within a base class", "Figure 9 (appendix)", transport.run_samples),
    Experiment("tsne", "Generated features in two dimensions", "Figures 5 and 6 (appendix)", transport.run_generated),
)
EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _IN_ORDER}

__all__ = [
    "EXPERIMENTS", "Claim", "Experiment", "FeatureSet", "Findings", "Setting", "claim", "load_findings",
    "save_findings",
]  # fmt: skip
