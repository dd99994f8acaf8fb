"""Table 5 of the appendix: seconds per task."""

from dataclasses import replace

from hotshot.classifiers import FreeLunchClassifier, HOTClassifier
from hotshot.evaluation.tables import Cell, Number, Table
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
# By label and shots.
Milliseconds = dict[str, dict[int, float]]


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
    measured: Milliseconds = {}
    rows: list[tuple[Cell, ...]] = []
    for label, method in methods.items():
        # Names of their own, so that no evaluation is taken over from an experiment that ran on all cores.
        name = f"{label}, timed"
        found = alone.evaluate({name: method}, shots=SHOTS, tasks=min(setting.tasks, MORE if label == HOT else FEW))
        measured[label] = {k: 1000 * found[name, k].seconds_per_task for k in SHOTS}
        in_paper = (_published(features.name, label, k) for k in SHOTS)
        rows.append((label, *map(Number, measured[label].values()), *in_paper))
    heads = [shots_in_words(k) for k in SHOTS]
    table = Table(
        f"Milliseconds per {setting.ways}-way task on one core, {features.name}",
        ("method", *heads, *(f"{head}, in the paper" for head in heads)),
        tuple(rows),
        (
            f"As published: 750 generated features per class; {min(setting.tasks, FEW)} tasks.",
            "The times of the paper are from a 3.7 GHz Pentium PC.",
        ),
    )
    return Findings(
        tuple(_in_words(features.name, measured, k) for k in SHOTS),
        (table,),
        numbers={"milliseconds": {label: {str(k): ms for k, ms in own.items()} for label, own in measured.items()}},
        claims=tuple(_claim(measured, k) for k in SHOTS),
    )


def _claim(measured: Milliseconds, shots: int) -> Claim:
    ratio = measured[HOT_AS_PUBLISHED][shots] / measured[FREE_LUNCH][shots]
    verdict = UNDECIDED if abs(ratio - 1) < TOLERANCE else HOLDS if ratio > 1 else FAILS
    text = f"As published, H-OT takes longer than Free-Lunch at {shots_in_words(shots)}."
    return Claim(text, verdict, f"{ratio:.2f} times as long")


def _published(dataset: str, label: str, shots: int) -> Number | None:
    seconds = published(5, dataset, f"{IN_PAPER.get(label)}, {shots}")
    return None if seconds is None else Number(1000 * seconds.mean, published=True)


def _in_words(dataset: str, measured: Milliseconds, shots: int) -> str:
    own, as_published = measured[HOT][shots], measured[HOT_AS_PUBLISHED][shots]
    sentence = (
        f"At {shots_in_words(shots)}, H-OT takes {_short(own)} ms per task. As published, it takes "
        f"{_short(as_published / own)} times as long on this machine."
    )
    in_paper = _published(dataset, HOT_AS_PUBLISHED, shots)
    if in_paper is not None:
        ratio = _short(in_paper.mean / own)
        sentence += f" The paper prints {in_paper.mean / 1000:g} s for a Pentium PC: {ratio} times as long."
    return sentence


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"
