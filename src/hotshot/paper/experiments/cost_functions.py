"""Table 3: what the low-level transport adds to costs chosen by hand."""

from typing import Any

from hotshot.bank import BaseClasses
from hotshot.classifiers import HOTClassifier
from hotshot.evaluation import Estimate, Evaluation
from hotshot.evaluation.results import AHEAD, verdict
from hotshot.evaluation.tables import Table, percent
from hotshot.paper.findings import FAILS, HOLDS, UNDECIDED, Claim, Findings, claim, gap, leads, listed, paired
from hotshot.paper.published import ROW_NAMES, published
from hotshot.paper.setting import Setting

# The learned cost is a share of a plan and so a number of targets smaller than a distance: under the same epsilon the
# plans of the other costs are sharper. Divided by that number too, they show what remains of the difference.
MATCHED = {
    "ot-euclidean, matched": "High-level OT, Euclidean, matched",
    "ot-cosine, matched": "High-level OT, cosine, matched",
    "ot-mean-cosine": "Mean cosine distance to the samples, matched",
}
LABELS = {**ROW_NAMES, **MATCHED}
# A gain in accuracy that is as good as none.
LITTLE = 0.0025


def run(setting: Setting) -> Findings:
    """Accuracy under each cost, and how far H-OT is ahead."""
    found = setting.evaluate(methods(setting.features.base))
    ahead = {name: gap(found["hot", 1], found[name, 1]) for name in LABELS if name != "hot"}
    table = Table(
        setting.one_shot_accuracy(),
        ("cost", "accuracy", "lead of H-OT, paired", "in the paper"),
        tuple(
            (label, percent(found[name, 1].accuracy), ahead.get(name), published(3, name, setting.features.name))
            for name, label in LABELS.items()
        ),
        (
            "Matched: the cost is divided by the number of targets, as the learned cost is, so that epsilon means the "
            "same.",
        ),
    )
    figure = leads({LABELS[name]: [own] for name, own in ahead.items()}, ["1 shot"], "cost", setting.features.title)
    return Findings((), (table,), {"costs": figure}, claims=_claims(found))


def methods(base: BaseClasses) -> dict[str, Any]:
    """Everything in the table; H-OT stands first in the comparison."""
    matched = {
        f"ot-{cost}, matched": HOTClassifier(base, cost=cost, cost_scale="over-targets")
        for cost in ("euclidean", "cosine")
    }
    return {name: name for name in ("hot", *ROW_NAMES)} | matched | {"ot-mean-cosine": "ot-mean-cosine"}


def _claims(found: Evaluation) -> tuple[Claim, ...]:
    by_hand = [name for name in ROW_NAMES if name.startswith("ot-")]
    from_weights = {
        LABELS[f"{name}-weighted"]: paired(found[f"{name}-weighted", 1], found[name, 1])
        for name in ("ot-euclidean", "ot-cosine")
    }
    return (
        claim(
            "H-OT is ahead of the high-level transport with every cost chosen by hand.",
            {LABELS[name]: gap(found["hot", 1], found[name, 1]) for name in by_hand},
        ),
        claim(
            "The gain comes from the low-level transport: H-OT is ahead even if epsilon means the same for every cost.",
            {LABELS[name]: gap(found["hot", 1], found[name, 1]) for name in MATCHED},
        ),
        claim(
            "The high-level transport is ahead of Free-Lunch even with costs chosen by hand.",
            {LABELS[name]: gap(found[name, 1], found["free-lunch", 1]) for name in by_hand},
        ),
        Claim(
            "Weighted means do not improve a cost chosen by hand.",
            _no_gain(list(from_weights.values())),
            listed({label: percent(gain, signed=True) for label, gain in from_weights.items()}),
        ),
    )


def _no_gain(gains: list[Estimate]) -> str:
    """The verdict on a claim that nothing is gained, which few tasks do not show."""
    if any(verdict(gain) == AHEAD for gain in gains):
        return FAILS
    return HOLDS if all(gain.high < LITTLE for gain in gains) else UNDECIDED
