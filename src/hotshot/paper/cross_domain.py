"""Figure 1: novel classes of one dataset, base classes of another or a stand-in for them."""

from dataclasses import replace

import numpy as np

from hotshot.bank import BaseClasses
from hotshot.errors import ParameterError
from hotshot.evaluation import paired_difference
from hotshot.evaluation.tables import Cell, Number, Table, percent
from hotshot.paper.findings import Findings, claim, dots, gap, shared_accuracies
from hotshot.paper.setting import FeatureSet, Setting
from hotshot.transport.costs import cosine

NEARER, FARTHER = "the nearer half", "the farther half"
AHEAD = "H-OT minus Free-Lunch"
COLUMNS = (
    "base classes", "number", "H-OT", "Free-Lunch", AHEAD, "loss of H-OT against in-domain",
    "loss of Free-Lunch against in-domain",
)  # fmt: skip


def run_cross_domain(setting: Setting) -> Findings:
    """Both methods with the dataset's own base classes and with those of others, on the same tasks."""
    inside = f"{setting.features.name}, in-domain"
    others, sentences = other_bases(setting)
    if not others:
        raise ParameterError(
            "A bank of one class or without samples cannot be halved: give another dataset with --other."
        )
    banks = {inside: setting.features.base, **others}
    hot, free_lunch = {}, {}
    rows: list[tuple[Cell, ...]] = []
    for label, base in banks.items():
        features = replace(setting.features, base=base)
        # In-domain, Free-Lunch is shared with other experiments.
        tasks = None if label == inside else setting.few_tasks
        hot[label] = setting.evaluate(["hot"], features=features)["hot", 1]
        free_lunch[label] = setting.evaluate(["free-lunch"], features=features, tasks=tasks)["free-lunch", 1]
        lost = [None if label == inside else gap(results[inside], results[label]) for results in (hot, free_lunch)]
        accuracies = percent(hot[label].accuracy), percent(free_lunch[label].accuracy)
        number = Number(len(base.names), places=0)
        rows.append((label, number, *accuracies, gap(hot[label], free_lunch[label]), *lost))
    notes = ("Differences are paired.", *setting.few_note("Free-Lunch with other base classes"))
    table = Table(setting.one_shot_accuracy(), COLUMNS, tuple(rows), notes)

    # Where there are halves, the nearer one is what the farther one is compared with.
    near = NEARER if NEARER in banks else inside
    if near == NEARER:
        losses = [gap(results[NEARER], results[FARTHER]) for results in (hot, free_lunch)]
        sentences.append("From the nearer to the farther half H-OT loses {} points and Free-Lunch {}.".format(*losses))
    claims = []
    for label in [label for label in others if label != near]:
        results = free_lunch[near], free_lunch[label], hot[near], hot[label]
        lunch_near, lunch_far, hot_near, hot_far = shared_accuracies(*results)
        lost_more = percent(paired_difference(lunch_near - lunch_far, hot_near - hot_far), signed=True)
        all_classes = gap(hot[label], free_lunch[inside])
        classes = f"base classes of {label}"
        claims += [
            claim(f"H-OT is ahead of Free-Lunch with {classes}.", gap(hot[label], free_lunch[label])),
            claim(f"H-OT with {classes} is ahead of Free-Lunch with all base classes.", all_classes),
            claim(f"H-OT is less affected than Free-Lunch by the shift from {near} to {label}.", lost_more),
        ]
    figures = {"cross-domain": dots(table, "H-OT", "Free-Lunch"), "cross-domain-differences": dots(table, AHEAD)}
    return Findings(sentences, [table], figures, claims)


def other_bases(setting: Setting) -> tuple[dict[str, BaseClasses], list[str]]:
    """Banks of the other feature sets by name, or else the two halves of the dataset's own, and words on the choice.

    Feature sets that do not fit are left out. There is no bank where a bank cannot be halved: it needs two classes
    and their samples.
    """
    features = setting.features
    banks, sentences = {}, []
    for other in setting.others:
        extractors = {each.backbone for each in (features, other) if each.backbone}
        if other.base.n_features != features.base.n_features or len(extractors) > 1:
            sentences.append(f"{other.name} was left out: its features come from another extractor.")
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
