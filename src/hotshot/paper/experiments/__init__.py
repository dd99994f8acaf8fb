"""The tables and figures of the paper, each a function from a `Setting` to `Findings`, on features of your own.

>>> from hotshot.paper.experiments import EXPERIMENTS
>>> EXPERIMENTS["costs"].paper
'Table 3'
"""

from hotshot.evaluation.tables import Number, Table
from hotshot.paper.experiments.accuracy import ACCURACY, BACKBONES, HISTOGRAM
from hotshot.paper.experiments.cost_functions import COSTS
from hotshot.paper.experiments.cross_domain import CROSS_DOMAIN
from hotshot.paper.experiments.generated_features import TSNE
from hotshot.paper.experiments.known_weights import TOY_WEIGHTS
from hotshot.paper.experiments.one_task import COST, NEAREST, PLAN, SAMPLE_WEIGHTS
from hotshot.paper.experiments.speed import SPEED
from hotshot.paper.experiments.varied_numbers import GENERATED, RETRIEVED
from hotshot.paper.findings import Claim, Experiment, Findings, claim, load_findings, save_findings
from hotshot.paper.setting import FeatureSet, Setting

_IN_ORDER = (
    ACCURACY, COSTS, BACKBONES, RETRIEVED, GENERATED, CROSS_DOMAIN, SPEED, HISTOGRAM, TOY_WEIGHTS,
    PLAN, COST, NEAREST, SAMPLE_WEIGHTS, TSNE,
)  # fmt: skip
EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _IN_ORDER}

__all__ = [
    "EXPERIMENTS", "Claim", "Experiment", "FeatureSet", "Findings", "Number", "Setting", "Table", "claim",
    "load_findings", "save_findings",
]  # fmt: skip
