"""Figure 1: novel classes of one dataset, base classes of another or a stand-in for them."""

from dataclasses import dataclass, replace

import numpy as np

from hotshot.bank import BaseClasses
from hotshot.errors import ParameterError
from hotshot.evaluation import MethodResult, paired_difference
from hotshot.evaluation.tables import Cell, Number, Table, percent
from hotshot.paper.figures import grouped_bars
from hotshot.paper.findings import Claim, Findings, claim, gap, shared_accuracies
from hotshot.paper.setting import FeatureSet, Setting
from hotshot.transport.costs import cosine

NEARER, FARTHER = "the nearer half", "the farther half"
COLUMNS = (
    "base classes", "number", "H-OT", "Free-Lunch", "H-OT minus Free-Lunch", "loss of H-OT against in-domain",
    "loss of Free-Lunch against in-domain",
)  # fmt: skip


@dataclass(frozen=True)
class Domain:
    """Base classes, and both methods with them on the same tasks."""

    label: str
    n_base: int
    hot: MethodResult
    free_lunch: MethodResult


def run_cross_domain(setting: Setting) -> Findings:
    """Both methods with the dataset's own base classes and with those of others, on the same tasks."""
    features = setting.features
    banks, sentences = other_bases(setting)
    if not banks:
        raise ParameterError(
            "A bank of one class or without samples cannot be halved: give another dataset with --other."
        )
    inside = _domain(setting, f"{features.name}, in-domain", features.base)
    domains = [inside, *(_domain(setting, label, base) for label, base in banks.items())]
    near, others = inside, domains[1:]
    if NEARER in banks:
        # Where there are halves, the nearer one is what the farther one is compared with.
        near, far = others
        others = [far]
        sentences.append(
            f"From the nearer to the farther half H-OT loses {gap(near.hot, far.hot)} points and Free-Lunch "
            f"{gap(near.free_lunch, far.free_lunch)}."
        )
    rows: list[tuple[Cell, ...]] = []
    for domain in domains:
        lost: list[Cell] = [None, None]
        if domain is not inside:
            lost = [gap(inside.hot, domain.hot), gap(inside.free_lunch, domain.free_lunch)]
        accuracies = percent(domain.hot.accuracy), percent(domain.free_lunch.accuracy)
        number = Number(domain.n_base, places=0)
        rows.append((domain.label, number, *accuracies, gap(domain.hot, domain.free_lunch), *lost))
    notes = ("Differences are paired.", *setting.few_note("Free-Lunch with other base classes"))
    labels, _, hot, free_lunch, ahead, *_ = (list(column) for column in zip(*rows, strict=True))
    figures = {
        "cross-domain": grouped_bars(
            labels,
            {"H-OT": hot, "Free-Lunch": free_lunch},
            label="accuracy in %",
            title=f"Accuracy by base classes used, {features.title}",
        ),
        "cross-domain-differences": grouped_bars(
            labels,
            {"H-OT minus Free-Lunch": ahead},
            label="paired difference in points, 95%",
            zero=True,
            title=f"Lead of H-OT over Free-Lunch by base classes used, {features.title}",
        ),
    }
    claims = [each for domain in others for each in _claims(inside, near, domain)]
    return Findings(sentences, [Table(setting.one_shot_accuracy(), COLUMNS, tuple(rows), notes)], figures, {}, claims)


def _domain(setting: Setting, label: str, base: BaseClasses) -> Domain:
    features = replace(setting.features, base=base)
    # In-domain, Free-Lunch is shared with other experiments.
    tasks = setting.tasks if base is setting.features.base else setting.few_tasks
    hot = setting.evaluate(["hot"], features=features)["hot", 1]
    free_lunch = setting.evaluate(["free-lunch"], features=features, tasks=tasks)["free-lunch", 1]
    return Domain(label, len(base.names), hot, free_lunch)


def _claims(inside: Domain, near: Domain, outside: Domain) -> list[Claim]:
    """With base classes `outside`, against all that are the dataset's own and against those that are `near`."""
    where = outside.label
    results = near.free_lunch, outside.free_lunch, near.hot, outside.hot
    lunch_near, lunch_far, hot_near, hot_far = shared_accuracies(*results)
    lost_more = percent(paired_difference(lunch_near - lunch_far, hot_near - hot_far), signed=True)
    all_classes = gap(outside.hot, inside.free_lunch)
    return [
        claim(f"H-OT is ahead of Free-Lunch with base classes of {where}.", {"": gap(outside.hot, outside.free_lunch)}),
        claim(f"H-OT with base classes of {where} is ahead of Free-Lunch with all base classes.", {"": all_classes}),
        claim(f"H-OT is less affected than Free-Lunch by the shift from {near.label} to {where}.", {"": lost_more}),
    ]


def other_bases(setting: Setting) -> tuple[dict[str, BaseClasses], list[str]]:
    """Banks of the other feature sets by name, or else the two halves of the dataset's own, and words on the choice.

    Feature sets that do not fit are left out. There is no bank where a bank cannot be halved: it needs two classes
    and their samples.
    """
    features = setting.features
    banks, sentences = {}, []
    for other in setting.others:
        why = f"{other.name} was left out: its features"
        if other.base.n_features != features.base.n_features:
            entries = f"{other.base.n_features} entries, those of {features.name} {features.base.n_features}"
            sentences.append(f"{why} have {entries}.")
        elif other.backbone and features.backbone and other.backbone != features.backbone:
            sentences.append(f"{why} come from {other.backbone}, those of {features.name} from {features.backbone}.")
        else:
            banks[other.title] = other.base
    if not banks and features.base.samples is not None and len(features.base.names) > 1:
        banks = halves(features)
        sentences.append(
            "There is no other dataset from the same extractor (--other adds one). Instead, the base classes are split "
            "into the half most like the novel classes and the half least like them."
        )
    return banks, sentences


def halves(features: FeatureSet) -> dict[str, BaseClasses]:
    """The base classes more and less like the novel ones, by the mean cosine between centred class means."""
    base = features.base
    centre = base.centre(1.0)
    novel = np.stack([features.X[features.y == name].mean(axis=0) for name in np.unique(features.y)])
    order = np.argsort(cosine(base.means - centre, novel - centre).mean(axis=1), kind="stable")
    middle = (len(order) + 1) // 2
    return {NEARER: subset(base, order[:middle]), FARTHER: subset(base, order[middle:])}


def subset(base: BaseClasses, classes: np.ndarray) -> BaseClasses:
    """A bank of some of the classes of a bank with samples."""
    assert base.samples is not None
    rows = np.isin(base.labels, classes)
    return BaseClasses.from_samples(base.samples[rows], base.names[base.labels[rows]])
