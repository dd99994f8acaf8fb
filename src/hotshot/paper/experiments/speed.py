"""Table 5 of the appendix: seconds per task."""

from __future__ import annotations

from dataclasses import replace

from hotshot.estimators import FreeLunchClassifier, HOTClassifier
from hotshot.evaluation.tables import Cell, Number, Table
from hotshot.paper.experiments.as_published import as_published
from hotshot.paper.experiments.claims import FAILS, HOLDS, UNDECIDED, Claim
from hotshot.paper.experiments.comparison import shots_in_words
from hotshot.paper.experiments.experiment import Experiment
from hotshot.paper.experiments.findings import Findings
from hotshot.paper.experiments.published import SHOTS, published_speed
from hotshot.paper.experiments.setting import Setting

DEFAULT, PUBLISHED, FREE_LUNCH = "H-OT", "H-OT, as published", "Free-Lunch, as published"
# Tasks that are timed.
FEW, MORE = 20, 200
# Times closer than this share decide nothing: so much they differ between two runs on a shared machine.
TOLERANCE = 0.2


def run(setting: Setting) -> Findings:
    """Milliseconds of one core per task, drawing it, fitting and predicting, beside the paper's."""
    features = setting.features
    methods = {
        FREE_LUNCH: FreeLunchClassifier(features.base),
        PUBLISHED: as_published(features),
        DEFAULT: HOTClassifier(features.base),
    }
    in_paper = dict(zip(methods, ("free-lunch", "hot", ""), strict=True))
    # One process, so that no other wants the same memory.
    alone = replace(setting, n_jobs=1)
    measured = {}
    for label, method in methods.items():
        # Names of their own, so that no evaluation is taken over from an experiment that ran on all cores.
        name = f"{label}, timed"
        tasks = min(setting.tasks, MORE if label == DEFAULT else FEW)
        found = alone.evaluate({name: method}, shots=SHOTS, tasks=tasks)
        measured[label] = {k: 1000 * found[name, k].seconds_per_task for k in SHOTS}
    rows: list[tuple[Cell, ...]] = [
        (
            label,
            *(Number(measured[label][k]) for k in SHOTS),
            *(_published(features.name, in_paper[label], k) for k in SHOTS),
        )
        for label in methods
    ]
    table = Table(
        f"Milliseconds per {setting.ways}-way task on one core, {features.name}",
        (
            "method",
            *(shots_in_words(k) for k in SHOTS),
            *(f"{shots_in_words(k)}, in the paper" for k in SHOTS),
        ),
        tuple(rows),
        (
            f"As published: 750 generated features a class; {min(setting.tasks, FEW)} tasks.",
            "The paper timed a Pentium PC of 3.7 GHz, another machine.",
        ),
    )
    return Findings(
        tuple(_in_words(features.name, measured, k) for k in SHOTS),
        (table,),
        numbers={
            "milliseconds": {label: {str(k): ms for k, ms in own.items()} for label, own in measured.items()}
        },
        claims=tuple(_claim(measured, k) for k in SHOTS),
    )


def _claim(measured: dict[str, dict[int, float]], shots: int) -> Claim:
    ratio = measured[PUBLISHED][shots] / measured[FREE_LUNCH][shots]
    verdict = UNDECIDED if abs(ratio - 1) < TOLERANCE else HOLDS if ratio > 1 else FAILS
    return Claim(
        f"As published, H-OT takes longer than Free-Lunch at {shots_in_words(shots)}.",
        verdict,
        f"{ratio:.2f} times as long",
    )


def _published(dataset: str, method: str, shots: int) -> Number | None:
    seconds = published_speed(dataset, method, shots)
    return None if seconds is None else Number(1000 * seconds.mean, published=True)


def _in_words(dataset: str, measured: dict[str, dict[int, float]], shots: int) -> str:
    own, published = measured[DEFAULT][shots], measured[PUBLISHED][shots]
    sentence = (
        f"At {shots_in_words(shots)}, H-OT takes {_short(own)} ms a task; as published it takes "
        f"{_short(published / own)} times as long on this machine"
    )
    in_paper = _published(dataset, "hot", shots)
    if in_paper is not None:
        sentence += (
            f"; the {in_paper.mean / 1000:g} s that the paper prints, for a Pentium PC and so another machine, are "
            f"{_short(in_paper.mean / own)} times as long"
        )
    return f"{sentence}."


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


EXPERIMENT = Experiment("speed", "Time per task", "Table 5 (appendix)", run)
