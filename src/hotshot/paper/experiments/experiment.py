"""The one shape of an experiment: what it asks, where the paper has it, what it needs, how it is run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hotshot.paper.experiments.findings import Findings
from hotshot.paper.experiments.setting import Setting


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper.

    Attributes
    ----------
    name : str
        On the command line.
    title : str
    paper : str
        Where it is in the paper, such as "Table 3".
    run : function of a Setting
        Gives Findings.
    others : str
        What further feature sets it needs, in words; empty where one will do.
    """

    name: str
    title: str
    paper: str
    run: Callable[[Setting], Findings]
    others: str = ""
