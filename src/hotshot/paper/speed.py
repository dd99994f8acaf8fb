"""Table 5 of the appendix: seconds per task."""

from dataclasses import replace

from hotshot.classifiers import FreeLunchClassifier, HOTClassifier
from hotshot.evaluation.tables import Number, Table
from hotshot.formatting import shots_in_words
from hotshot.paper.findings import FAILS, HOLDS, UNDECIDED, Claim, Findings
from hotshot.paper.published import SHOTS, published
from hotshot.paper.setting import Setting, hot_as_published

FREE_LUNCH, HOT_AS_PUBLISHED, HOT = "Free-Lunch, as published", "H-OT, as published", "H-OT"
# Their names in the paper's table.
IN_PAPER = {FREE_LUNCH: "free-lunch", HOT_AS_PUBLISHED: "hot"}
# Tasks that are timed.
FEW, MORE = 20, 200
# Times closer than this share decide nothing: so much they differ between two runs on a shared machine.
TOLERANCE = 0.2


def run(setting: Setting) -> Findings:
    """Milliseconds of one core per task, drawing it, fitting and predicting, beside the paper's."""
    features = setting.features
    methods = {
        FREE_LUNCH: FreeLunchClassifier(features.base),
        HOT_AS_PUBLISHED: hot_as_published(features),
        HOT: HOTClassifier(features.base),
    }
    # One process, so that no other wants the same memory.
    alone = replace(setting, n_jobs=1)
    measured, in_paper = {}, {}
    for label, method in methods.items():
        # Names of their own, so that no evaluation is taken over from an experiment that ran on all cores.
        name = f"{label}, timed"
        results = alone.evaluate({name: method}, shots=SHOTS, tasks=min(setting.tasks, MORE if label == HOT else FEW))
        measured[label] = {k: 1000 * results[name, k].seconds_per_task for k in SHOTS}
        seconds = [published(5, features.name, f"{IN_PAPER.get(label)}, {k}") for k in SHOTS]
        in_paper[label] = [own and Number(1000 * own.mean, published=True) for own in seconds]
    heads = [shots_in_words(k) for k in SHOTS]
    table = Table(
        f"Milliseconds per {setting.ways}-way task on one core, {features.name}",
        ("method", *heads, *(f"{head}, in the paper" for head in heads)),
        tuple((label, *map(Number, measured[label].values()), *in_paper[label]) for label in methods),
        (
            f"As published: 750 generated features per class; {min(setting.tasks, FEW)} tasks.",
            "The times of the paper are from a 3.7 GHz Pentium PC.",
        ),
    )
    sentences, claims = [], []
    for k, head, printed in zip(SHOTS, heads, in_paper[HOT_AS_PUBLISHED], strict=True):
        free_lunch, as_published, own = (measured[label][k] for label in methods)
        sentence = (
            f"At {head}, H-OT takes {_short(own)} ms per task. As published, it takes "
            f"{_short(as_published / own)} times as long on this machine."
        )
        if printed is not None:
            times = f"{_short(printed.mean / own)} times as long"
            sentence += f" The paper prints {printed.mean / 1000:g} s for a Pentium PC: {times}."
        sentences.append(sentence)
        ratio = as_published / free_lunch
        verdict = UNDECIDED if abs(ratio - 1) < TOLERANCE else HOLDS if ratio > 1 else FAILS
        text = f"As published, H-OT takes longer than Free-Lunch at {head}."
        claims.append(Claim(text, verdict, f"{ratio:.2f} times as long"))
    milliseconds = {label: {str(k): ms for k, ms in own.items()} for label, own in measured.items()}
    return Findings(sentences, [table], numbers={"milliseconds": milliseconds}, claims=claims)


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"
