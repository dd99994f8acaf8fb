"""Table 4: H-OT and Free-Lunch on features of several backbones, for one dataset."""

from __future__ import annotations

from hotshot.evaluation.tables import Cell, Number, Table, percent
from hotshot.paper.claims import claim, gap
from hotshot.paper.findings import Experiment, Findings
from hotshot.paper.published import published_backbone, published_dataset
from hotshot.paper.setting import FeatureSet, Setting

COLUMNS = (
    "backbone", "width", "Free-Lunch", "H-OT", "H-OT minus Free-Lunch, paired", "Free-Lunch in the paper",
    "H-OT in the paper",
)  # fmt: skip


def run(setting: Setting) -> Findings:
    """Accuracy of both methods on every feature set of the main dataset, and how far H-OT is ahead."""
    own = setting.features
    sets = (own, *(other for other in setting.others if _same_dataset(other, own)))
    # The paper compares backbones on this dataset alone.
    in_paper = published_dataset(own.name) == "miniImageNet"
    rows: list[tuple[Cell, ...]] = []
    differences = {}
    for number, features in enumerate(sets, 1):
        label = features.backbone or ("as given" if len(sets) == 1 else f"feature set {number}")
        found = setting.evaluate(("hot", "free-lunch"), features=features)
        hot, free_lunch = found["hot", 1], found["free-lunch", 1]
        differences[label] = gap(hot, free_lunch)
        published = [
            published_backbone(features.backbone, method) if in_paper else None for method in ("free-lunch", "hot")
        ]
        width = Number(features.base.n_features, places=0)
        accuracies = percent(free_lunch.accuracy), percent(hot.accuracy)
        rows.append((label, width, *accuracies, differences[label], *published))
    title = f"{setting.ways}-way-1-shot accuracy in %, {setting.tasks} tasks of {own.name}"
    alone = f"Only one backbone was given: --other adds features of {own.name} from other backbones."
    return Findings(
        (alone,) if len(sets) == 1 else (),
        (Table(title, COLUMNS, tuple(rows)),),
        claims=(claim("H-OT is ahead of Free-Lunch whatever the backbone.", differences),),
    )


def _same_dataset(one: FeatureSet, other: FeatureSet) -> bool:
    names = {published_dataset(features.name) or features.name for features in (one, other)}
    return len(names) == 1


OTHERS = "features of the same dataset from other backbones"
BACKBONES = Experiment("backbones", "Backbones", "Table 4", run, OTHERS)
