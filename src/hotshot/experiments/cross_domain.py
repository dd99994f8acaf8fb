"""Figure 1: novel classes of one dataset, base classes of another."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hotshot.base import BaseClasses
from hotshot.errors import ParameterError
from hotshot.evaluation import MethodResult
from hotshot.experiments.comparison import bar, few_tasks, gap, paired, verdicts
from hotshot.experiments.experiment import Experiment
from hotshot.experiments.findings import Findings, Table, percent
from hotshot.experiments.setting import FeatureSet, Setting
from hotshot.figures import grouped_bars
from hotshot.transport.costs import cosine

PAPER = (
    "The paper has H-OT ahead of Free-Lunch on novel classes of CUB with base classes of miniImageNet and of CIFAR-FS, "
    "with the latter even of Free-Lunch with base classes of CUB; it prints no numbers."
)


@dataclass(frozen=True)
class Domain:
    """Base classes, and both methods with them on the same tasks."""

    label: str
    base: BaseClasses
    hot: MethodResult
    free_lunch: MethodResult


def run(setting: Setting) -> Findings:
    """Both methods with the dataset's own base classes and with those of others, on the same tasks."""
    own = setting.features
    sentences = [
        f"{other.name} was left out: {reason}." for other in setting.others if (reason := _unfit(other, own))
    ]
    banks = [(other.name, other.base) for other in setting.others if not _unfit(other, own)]
    halved = not banks
    if halved:
        banks = list(zip(("the nearer half", "the farther half"), halves(own), strict=True))
        sentences.append(
            "Without another dataset from the same extractor, which --other adds, its stand-in is the half of the base "
            "classes that are less like the novel classes, beside the half that are more like them."
        )
    inside = _domain(setting, f"{own.name}, in-domain", own.base)
    outside = [_domain(setting, name, base) for name, base in banks]
    domains = (inside, *outside)
    sentences += [_in_words(inside, domain) for domain in outside]
    if halved:
        near, far = outside
        sentences.append(
            f"From the nearer to the farther half H-OT loses {gap(near.hot, far.hot)} points and Free-Lunch "
            f"{gap(near.free_lunch, far.free_lunch)}."
        )
    notes = ["Differences are paired."]
    if few_tasks(setting) < setting.tasks:
        notes.append(f"Free-Lunch, but for in-domain: the first {few_tasks(setting)} tasks only.")
    table = Table(
        f"{setting.ways}-way-1-shot accuracy in %, {setting.tasks} tasks of {own.name}",
        (
            "base classes",
            "number",
            "H-OT",
            "Free-Lunch",
            "H-OT minus Free-Lunch",
            "lost by H-OT against in-domain",
            "lost by Free-Lunch against in-domain",
        ),
        tuple(
            (
                domain.label,
                str(len(domain.base.names)),
                percent(domain.hot.accuracy),
                percent(domain.free_lunch.accuracy),
                gap(domain.hot, domain.free_lunch),
                None if domain is inside else gap(inside.hot, domain.hot),
                None if domain is inside else gap(inside.free_lunch, domain.free_lunch),
            )
            for domain in domains
        ),
        tuple(notes),
    )
    figure = grouped_bars(
        [domain.label for domain in domains],
        {
            "H-OT": [bar(domain.hot) for domain in domains],
            "Free-Lunch": [bar(domain.free_lunch) for domain in domains],
        },
        label="accuracy in %",
    )
    return Findings(
        (*sentences, PAPER),
        (table,),
        {"cross-domain": figure},
    )


def halves(features: FeatureSet) -> tuple[BaseClasses, BaseClasses]:
    """The base classes more and less like the novel ones, by the mean cosine between centred class means."""
    base = features.base
    centre = base.centre(1.0)
    novel = np.stack([features.X[features.y == name].mean(axis=0) for name in np.unique(features.y)])
    distance = cosine(base.means - centre, novel - centre).mean(axis=1)
    order = np.argsort(distance, kind="stable")
    middle = (len(order) + 1) // 2
    return _only(base, order[:middle]), _only(base, order[middle:])


def _only(base: BaseClasses, classes: np.ndarray) -> BaseClasses:
    """A bank of some of the classes."""
    if base.samples is None:
        raise ParameterError("A bank without samples cannot be halved: give another dataset with --other.")
    rows = np.isin(base.labels, classes)
    return BaseClasses.from_samples(base.samples[rows], base.names[base.labels[rows]])


def _unfit(other: FeatureSet, own: FeatureSet) -> str:
    """Why base classes of `other` cannot lend to the novel classes of `own`; empty where they can."""
    if other.base.n_features != own.base.n_features:
        return f"its features have {other.base.n_features} entries, those of {own.name} {own.base.n_features}"
    if other.backbone and own.backbone and other.backbone != own.backbone:
        return f"its features come from {other.backbone}, those of {own.name} from {own.backbone}"
    return ""


def _domain(setting: Setting, label: str, base: BaseClasses) -> Domain:
    features = replace(setting.features, base=base)
    # In-domain, Free-Lunch is shared with other experiments.
    tasks = setting.tasks if base is setting.features.base else few_tasks(setting)
    hot = setting.evaluate(["hot"], features=features)["hot", 1]
    free_lunch = setting.evaluate(["free-lunch"], features=features, tasks=tasks)["free-lunch", 1]
    return Domain(label, base, hot, free_lunch)


def _in_words(inside: Domain, outside: Domain) -> str:
    differences = {
        "Free-Lunch": paired(outside.hot, outside.free_lunch),
        "Free-Lunch with in-domain base classes": paired(outside.hot, inside.free_lunch),
    }
    return f"Base classes of {outside.label}: {verdicts(differences)}"


EXPERIMENT = Experiment(
    "cross-domain",
    "Base classes of another dataset",
    "Figure 1",
    run,
    others="base classes of another dataset from the same extractor",
)
