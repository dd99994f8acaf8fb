"""Figure 3: the base classes that lend most to a novel sample."""

from __future__ import annotations

from hotshot.evaluation.tables import Table
from hotshot.paper.experiments.experiment import Experiment
from hotshot.paper.experiments.findings import Findings
from hotshot.paper.experiments.setting import Setting
from hotshot.paper.experiments.tasks import fitted
from hotshot.paper.figures import ranking

TOP = 5


def run(setting: Setting) -> Findings:
    """The five largest lenders to each novel class of the first one-shot task; a figure of the first."""
    loans = fitted(setting).explain().loans
    table = Table(
        f"Base classes that lend most, first {setting.ways}-way-1-shot task of {setting.features.name}",
        ("novel class", *(f"{rank + 1}." for rank in range(TOP))),
        tuple((str(loan.label), *(_lender(loan.lenders, rank) for rank in range(TOP))) for loan in loans),
    )
    first = loans[0]
    names, values = zip(*first.lenders[:TOP], strict=True)
    figure = ranking(
        [str(name) for name in names],
        [100 * value for value in values],
        label=f"lends to {first.label}, % of its borrowed mean",
    )
    return Findings((first.in_words(TOP).replace("`", ""),), (table,), {"nearest": figure})


def _lender(lenders: tuple[tuple[object, float], ...], rank: int) -> str:
    return f"{lenders[rank][0]} {100 * lenders[rank][1]:.0f}%" if rank < len(lenders) else ""


EXPERIMENT = Experiment("nearest", "Nearest base classes of a novel sample", "Figure 3", run)
