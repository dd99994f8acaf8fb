"""What the findings mean for each method: fine as it is, to be used with care, or refused."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hotshot.bank.space import choose_power
from hotshot.evaluation.inspection.measure import InspectedFile
from hotshot.evaluation.inspection.printed import filled
from hotshot.evaluation.inspection.problems import BASE, BOTH, FEW_BASE_CLASSES, QUERIES, STOPPING, Finding
from hotshot.formatting import count

FINE, CARE, REFUSED = "fine", "with care", "refused"
NORMALISED = ("hot", "ot-cosine", "ot-euclidean", "ot-mean-cosine")
WEIGHTED = ("ot-cosine-weighted", "ot-euclidean-weighted")
FREE_LUNCH, CENTRED = ("free-lunch",), ("centroid-cl2n",)
PUBLISHED = ("parameter_set('paper')", "parameter_set('authors')")
RIVALS = (
    "logistic-tuned", "lda", "plda", "softmax-calibration", "free-lunch-tuned", "pt-map", "bd-cspn", "laplacian-shot",
    "alpha-tim",
)  # fmt: skip
WITH_BASE = NORMALISED + WEIGHTED + FREE_LUNCH + PUBLISHED + CENTRED + RIVALS
CENTROID, DIRECTIONS = ("centroid",), ("cosine", "matching")
LINEAR = ("logistic", "logistic-raw", "ridge", "svm")
WITHOUT_BASE = CENTROID + DIRECTIONS + LINEAR
EVALUATE = ("hotshot evaluate",)

# Findings after which two files hardly belong together.
MISMATCHED = {"scale-mismatch", "power-mismatch", "transform-mismatch"}
# Base samples times classes times features that the base classifier takes about a minute for.
SLOW_CLASSIFIER = 8e9
# Median norms between which a penalty of C = 1 is neither too strong nor too weak.
USUAL_NORMS = (0.1, 1000.0)

# For each group of methods the verdict and the sentence that follow from the first code that applies; "" always does.
# The codes are those of findings and of conditions below; sentences are filled from the JSON document.
SMALLEST = "Class '{classes[smallest][name]:name}' has {classes[smallest][samples]:sample}"
PENALTY = "The penalty is too {} at a median norm of {{norms[median]:2}}: scale the features to unit norm."
TASKS = "Tasks of up to {classes[count]} ways, and up to {shots:shot} with {queries} queries"
SIGNED = {
    "signed-novel": (
        REFUSED,
        "Power 'auto' is 0.5 by the base file, but the novel file has negative entries: pass power=1.",
    )
}
RULES = {
    NORMALISED: {
        **SIGNED,
        "uniform-plan": (CARE, "All base classes lend about equally to all classes: a smaller epsilon may help."),
        "hard-plan": (CARE, "Each base class lends to one novel class only: a larger epsilon may help."),
        "": (FINE, "Power {chosen_power}, centring and unit norm make them independent of the scale."),
    },
    WEIGHTED: {**SIGNED, "": (FINE, "Like the other transports, after a classifier is trained on all base samples.")},
    FREE_LUNCH: {
        **SIGNED,
        "scale": (CARE, "Rescale for its alpha and C, or pass normalize='centre-l2' and alpha=0."),
        "": (FINE, "Power {chosen_power}; the scale suits its published alpha and C."),
    },
    PUBLISHED: {
        "no-power-and-scale": (REFUSED, "Power 0.5 needs non-negative features: pass power=1 and rescale."),
        "no-power": (REFUSED, "Power 0.5 needs features without negative entries: pass power=1."),
        "scale": (CARE, "The scale does not suit their alpha and C: rescale the features."),
        "": (FINE, "Power 0.5 is possible and the scale suits alpha and C."),
    },
    CENTRED: {**SIGNED, "": (FINE, "It takes only the centre from the base classes.")},
    RIVALS: {**SIGNED, "": (FINE, "They normalise the features; settings left open are chosen on the base classes.")},
    CENTROID: {"": (FINE, "Its predictions do not depend on the scale.")},
    DIRECTIONS: {
        "zero-vectors": (CARE, "They can only guess for {norms[zero_vectors]:zero vector}."),
        "": (FINE, "Only directions matter, not the scale."),
    },
    LINEAR: {
        "norms-small": (CARE, PENALTY.format("strong")),
        "norms-large": (CARE, PENALTY.format("weak")),
        "": (FINE, "The scale suits their penalty."),
    },
    EVALUATE: {
        "class-overlap": (REFUSED, "It refuses files that have classes in common."),
        "one-class": (REFUSED, "It needs at least two novel classes."),
        "no-query": (REFUSED, SMALLEST + ", but a shot and a query need two: leave it out."),
        "few-samples": (CARE, SMALLEST + ": ask for --queries {most_queries} or fewer, or leave it out."),
        "repeated-rows": (CARE, TASKS + "; repeated rows make its results too good."),
        "few-classes": (CARE, TASKS + ": ask for --ways {classes[count]}."),
        "": (FINE, TASKS + "."),
    },
}


@dataclass(frozen=True)
class Advice:
    """What follows for some methods: their names, a verdict and a sentence."""

    methods: tuple[str, ...]
    verdict: str
    sentence: str


def advise(base: InspectedFile, novel: InspectedFile, findings: Sequence[Finding]) -> list[Advice]:
    """Advice for every method on these files; the same file twice where there is one that may become either."""
    stopped = {finding.role for finding in findings if finding.code in STOPPING}
    if stopped - {BASE, BOTH}:
        sentence = "Fix the faults first: no method takes these features as they are."
        return [Advice(WITH_BASE + WITHOUT_BASE + EVALUATE, REFUSED, sentence)]
    power = choose_power("auto", base.smallest)
    least_entry = min(base.smallest, novel.smallest)
    codes = {finding.code for finding in findings if finding.role != BASE or finding.code == "scale"}
    least, n_classes = novel.values["classes"]["smallest"]["samples"], novel.values["classes"]["count"]
    median, plan = novel.values["norms"]["median"], (novel.values["costs"] or {}).get("plan")
    conditions = {
        "": True,
        "signed-novel": power != 1 and least_entry < 0,
        "no-power": least_entry < 0,
        "no-power-and-scale": least_entry < 0 and "scale" in codes,
        "norms-small": median < USUAL_NORMS[0],
        "norms-large": median > USUAL_NORMS[1],
        "no-query": least < 2,
        "few-samples": least <= QUERIES,
        "repeated-rows": not codes.isdisjoint({"row-overlap", "duplicates"}),
        "few-classes": n_classes < 5,
        "uniform-plan": plan == "uniform",
        "hard-plan": plan == "hard",
    }
    codes |= {code for code, holds in conditions.items() if holds}
    extra = {"chosen_power": power, "shots": least - QUERIES, "most_queries": least - 1, "queries": QUERIES}
    advice = {}
    for methods, rules in RULES.items():
        verdict, sentence = next(rule for code, rule in rules.items() if code in codes)
        for trouble in _troubles(base, codes, methods):
            verdict, sentence = (CARE, trouble) if verdict == FINE else (verdict, f"{trouble} {sentence}")
        advice[methods] = Advice(methods, verdict, filled(sentence, {**novel.values, **extra}))
    if stopped:
        sentence = "Fix the faults first: these base classes cannot be used with the novel ones."
        without_base = [advice[methods] for methods in (CENTROID, DIRECTIONS, LINEAR)]
        return [Advice(WITH_BASE + EVALUATE, REFUSED, sentence), *without_base]
    return list(advice.values())


def _troubles(base: InspectedFile, codes: set[str], methods: tuple[str, ...]) -> Iterator[str]:
    """What speaks against methods that use base classes, whatever else follows for them."""
    n_samples, n_classes = base.values["samples"], base.values["classes"]["count"]
    if methods in (WEIGHTED, PUBLISHED) and n_samples * n_classes * base.values["features"] > SLOW_CLASSIFIER:
        yield f"They first train a classifier on all {n_samples:,} base samples, which takes minutes."
    if methods in (NORMALISED, WEIGHTED, FREE_LUNCH, PUBLISHED) and n_classes < FEW_BASE_CLASSES:
        yield f"{count(n_classes, 'base class', 'base classes')} can lend little."
    if set(methods) <= set(WITH_BASE) and codes & MISMATCHED:
        yield "Base and novel features seem to be of different kinds."
