"""Table 4: H-OT and Free-Lunch on features of several backbones, for one dataset."""

from __future__ import annotations

from hotshot.evaluation.tables import Cell, Number, Table, percent
from hotshot.paper.experiments.claims import claim
from hotshot.paper.experiments.comparison import gap
from hotshot.paper.experiments.experiment import Experiment
from hotshot.paper.experiments.findings import Findings
from hotshot.paper.experiments.published import published_backbone, published_dataset
from hotshot.paper.experiments.setting import FeatureSet, Setting


def run(setting: Setting) -> Findings:
    """Accuracy of both methods on every feature set of the main dataset, and how far H-OT is ahead."""
    own = setting.features
    sets = (own, *(other for other in setting.others if _same_dataset(other, own)))
    rows: list[tuple[Cell, ...]] = []
    differences = {}
    for number, features in enumerate(sets, 1):
        label = features.backbone or ("as given" if len(sets) == 1 else f"feature set {number}")
        found = setting.evaluate(("hot", "free-lunch"), features=features)
        hot, free_lunch = found["hot", 1], found["free-lunch", 1]
        differences[label] = gap(hot, free_lunch)
        rows.append(
            (
                label,
                Number(features.base.n_features, places=0),
                percent(free_lunch.accuracy),
                percent(hot.accuracy),
                differences[label],
                *(
                    # The paper compares backbones on this dataset alone.
                    published_backbone(features.backbone, method)
                    if published_dataset(own.name) == "miniImageNet"
                    else None
                    for method in ("free-lunch", "hot")
                ),
            )
        )
    table = Table(
        f"{setting.ways}-way-1-shot accuracy in %, {setting.tasks} tasks of {own.name}",
        (
            "backbone",
            "width",
            "Free-Lunch",
            "H-OT",
            "H-OT minus Free-Lunch, paired",
            "Free-Lunch in the paper",
            "H-OT in the paper",
        ),
        tuple(rows),
    )
    alone = f"One backbone was given; --other adds feature sets of further ones, called {own.name} too."
    return Findings(
        (alone,) if len(sets) == 1 else (),
        (table,),
        claims=(claim("H-OT is ahead of Free-Lunch whatever the backbone.", differences),),
    )


def _same_dataset(one: FeatureSet, other: FeatureSet) -> bool:
    names = {published_dataset(features.name) or features.name for features in (one, other)}
    return len(names) == 1


EXPERIMENT = Experiment(
    "backbones", "Backbones", "Table 4", run, others="features of the same dataset from other backbones"
)
