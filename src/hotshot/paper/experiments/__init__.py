"""The tables and figures of the paper, each a small module of one shape, on features of your own.

>>> from hotshot.paper.experiments import EXPERIMENTS
>>> EXPERIMENTS["costs"].paper
'Table 3'
"""

from __future__ import annotations

from hotshot.evaluation.tables import Number, Table
from hotshot.paper.experiments import (
    accuracy,
    backbones,
    cost,
    costs,
    cross_domain,
    generated,
    histogram,
    nearest,
    plan,
    retrieved,
    sample_weights,
    speed,
    toy_weights,
    tsne,
)
from hotshot.paper.experiments.claims import Claim
from hotshot.paper.experiments.experiment import Experiment
from hotshot.paper.experiments.findings import Findings, load_findings, save_findings
from hotshot.paper.experiments.setting import FeatureSet, Setting

_MODULES = (
    accuracy,
    costs,
    backbones,
    retrieved,
    generated,
    cross_domain,
    speed,
    histogram,
    toy_weights,
    plan,
    cost,
    nearest,
    sample_weights,
    tsne,
)
EXPERIMENTS: dict[str, Experiment] = {module.EXPERIMENT.name: module.EXPERIMENT for module in _MODULES}

__all__ = [
    "EXPERIMENTS",
    "Claim",
    "Experiment",
    "FeatureSet",
    "Findings",
    "Number",
    "Setting",
    "Table",
    "load_findings",
    "save_findings",
]
