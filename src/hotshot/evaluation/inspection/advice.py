"""What the findings mean for each method: fine as it is, to be used with care, or refused."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hotshot.base.space import choose_power
from hotshot.evaluation.inspection.costs import CostSpread
from hotshot.evaluation.inspection.findings import BASE, BOTH, Finding
from hotshot.evaluation.inspection.labels import FEW_BASE_CLASSES, QUERIES
from hotshot.evaluation.inspection.measures import Measures
from hotshot.evaluation.inspection.words import count, number, shown

FINE, CARE, REFUSED = "fine", "with care", "refused"

NORMALISED = ("hot", "ot-cosine", "ot-euclidean", "ot-mean-cosine")
WEIGHTED = ("ot-cosine-weighted", "ot-euclidean-weighted")
FREE_LUNCH = ("free-lunch",)
PUBLISHED = ("parameter_set('paper')", "parameter_set('authors')")
CENTRED = ("centroid-cl2n",)
WITH_BASE = NORMALISED + WEIGHTED + FREE_LUNCH + PUBLISHED + CENTRED
CENTROID = ("centroid",)
DIRECTIONS = ("cosine", "matching")
LINEAR = ("logistic", "logistic-raw", "ridge", "svm")
WITHOUT_BASE = CENTROID + DIRECTIONS + LINEAR
EVALUATE = ("hotshot evaluate",)

# Findings after which no method takes a file, and those after which two files hardly belong together.
STOPPING = {"nan", "infinity", "missing-labels", "fractional-labels", "all-constant", "width-mismatch"}
MISMATCHED = {"scale-mismatch", "power-mismatch", "extractor-mismatch", "transform-mismatch"}
# Base samples times classes times features that the base classifier takes about a minute for.
SLOW_CLASSIFIER = 8e9
# Median norms between which a penalty of C = 1 is neither everything nor nothing.
USUAL_NORMS = (0.1, 1000.0)


@dataclass(frozen=True)
class Advice:
    """What follows for some methods: their names, a verdict and a sentence."""

    methods: tuple[str, ...]
    verdict: str
    sentence: str


def advise(
    base: Measures, novel: Measures, spread: CostSpread | None, findings: list[Finding]
) -> list[Advice]:
    """Advice for every method on these files; the same file twice where there is one that may become either."""
    stopped = {finding.role for finding in findings if finding.code in STOPPING}
    if stopped - {BASE, BOTH}:
        sentence = "Mend the faults first: no method takes these features as they are."
        return [Advice(WITH_BASE + WITHOUT_BASE + EVALUATE, REFUSED, sentence)]
    codes = {finding.code for finding in findings}
    without_base = [
        Advice(CENTROID, FINE, "Its predictions do not depend on the scale."),
        _directions(novel),
        _linear(novel),
    ]
    if stopped:
        sentence = "Mend the faults first: these base classes cannot be used with the novel ones."
        return [Advice(WITH_BASE + EVALUATE, REFUSED, sentence), *without_base]
    power = choose_power("auto", base.smallest or 0.0)
    borrowing = [
        _normalised(power, spread),
        Advice(WEIGHTED, FINE, "As the other transports, after training a classifier on all base samples."),
        _free_lunch(power, "scale" in codes),
        _published(power, "scale" in codes),
    ]
    if base.n_samples * len(base.names) * base.width > SLOW_CLASSIFIER:
        slow = f"They first train a classifier on all {base.n_samples:,} base samples, which takes minutes."
        borrowing = [_with_trouble(a, slow) if a.methods in (WEIGHTED, PUBLISHED) else a for a in borrowing]
    if len(base.names) < FEW_BASE_CLASSES:
        few = f"{count(len(base.names), 'base class', 'base classes')} can lend little."
        borrowing = [_with_trouble(advice, few) for advice in borrowing]
    with_base = [*borrowing, Advice(CENTRED, FINE, "It takes only the centre from the base classes.")]
    if codes & MISMATCHED:
        trouble = "Base and novel features seem not to be of one kind."
        with_base = [_with_trouble(advice, trouble) for advice in with_base]
    of_novel = {finding.code for finding in findings if finding.role != BASE}
    return [*with_base, *without_base, _evaluation(novel, of_novel)]


def _with_trouble(advice: Advice, trouble: str) -> Advice:
    if advice.verdict == FINE:
        return Advice(advice.methods, CARE, trouble)
    return replace(advice, sentence=f"{trouble} {advice.sentence}")


def _normalised(power: float, spread: CostSpread | None) -> Advice:
    plan = spread.plan if spread is not None else None
    if plan == "uniform":
        sentence = (
            "All base classes lend about the same to all, so little is gained: a smaller epsilon may help."
        )
        return Advice(NORMALISED, CARE, sentence)
    if plan == "hard":
        sentence = "Each base class lends to one novel class only: a larger epsilon may help."
        return Advice(NORMALISED, CARE, sentence)
    sentence = f"Power {power:g}, centring and unit norm make them independent of the scale."
    return Advice(NORMALISED, FINE, sentence)


def _free_lunch(power: float, off_scale: bool) -> Advice:
    if off_scale:
        sentence = (
            "Its published alpha and C do not suit this scale: rescale the features, or pass normalize='centre-l2' "
            "and alpha=0."
        )
        return Advice(FREE_LUNCH, CARE, sentence)
    return Advice(FREE_LUNCH, FINE, f"Power {power:g}; the scale suits its published alpha and C.")


def _published(power: float, off_scale: bool) -> Advice:
    if power == 1:
        also = " and rescale the features" if off_scale else ""
        sentence = f"Their power 0.5 needs features without negative entries: pass power=1{also}."
        return Advice(PUBLISHED, REFUSED, sentence)
    if off_scale:
        return Advice(PUBLISHED, CARE, "Their alpha and C do not suit this scale: rescale the features.")
    return Advice(PUBLISHED, FINE, "Power 0.5 is possible and the scale suits alpha and C.")


def _directions(novel: Measures) -> Advice:
    zero = novel.norms.zero_vectors if novel.norms is not None else 0
    if zero:
        return Advice(DIRECTIONS, CARE, f"They can only guess at {count(zero, 'sample')} without direction.")
    return Advice(DIRECTIONS, FINE, "Only directions count, whatever the scale.")


def _linear(novel: Measures) -> Advice:
    low, high = USUAL_NORMS
    median = novel.norms.median if novel.norms is not None else 1.0
    if low <= median <= high:
        return Advice(LINEAR, FINE, "The scale suits their penalty.")
    effect = "outweighs the samples, so probabilities stay near uniform"
    if median > high:
        effect = "hardly counts, and they may converge slowly"
    sentence = (
        f"At a median norm of {number(median, 2)} the penalty {effect}: scale the features to unit norm."
    )
    return Advice(LINEAR, CARE, sentence)


def _evaluation(novel: Measures, codes: set[str]) -> Advice:
    """Which tasks can be drawn, and whether to believe them."""
    n_classes, smallest = len(novel.names), int(novel.counts.min())
    name = shown(novel.names[int(novel.counts.argmin())])
    if "class-overlap" in codes:
        return Advice(EVALUATE, REFUSED, "It refuses files that have classes in common.")
    if n_classes < 2:
        return Advice(EVALUATE, REFUSED, "It needs two novel classes at least.")
    if smallest < 2:
        sentence = f"Class '{name}' has one sample, where a shot and a query need two: leave it out."
        return Advice(EVALUATE, REFUSED, sentence)
    if smallest <= QUERIES:
        sentence = f"Class '{name}' has {smallest} samples: ask for --queries {smallest - 1} or fewer, or leave it out."
        return Advice(EVALUATE, CARE, sentence)
    tasks = f"Tasks of up to {n_classes} ways, and up to {count(smallest - QUERIES, 'shot')} with {QUERIES} queries"
    if codes & {"row-overlap", "duplicates"}:
        return Advice(EVALUATE, CARE, f"{tasks}; repeated rows make its results too good.")
    if n_classes < 5:
        return Advice(EVALUATE, CARE, f"{tasks}: ask for --ways {n_classes}.")
    return Advice(EVALUATE, FINE, f"{tasks}.")
