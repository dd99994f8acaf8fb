"""Accuracy of H-OT and its rivals on real features, on the same tasks, and their differences on all sets.

Sets are banking77-0 to banking77-4 (five random splits), miniimagenet, omniglot (in 20-way tasks, a quarter as many)
and BASE:NOVEL, two files of features. Slow methods run on the first eighth of the tasks.
"""

from __future__ import annotations

import numpy as np

from benchmarks import shared
from benchmarks.shared import evaluated, load, say, show
from hotshot.classifiers import METHOD_NAMES
from hotshot.classifiers.named import named_method
from hotshot.classifiers.rival import TransductiveClassifier
from hotshot.evaluation.results import Evaluation, verdicts
from hotshot.evaluation.tables import Cell, Entry, Number, Table, choice_table, detail_table, result_table, unsolved

REFERENCE = "hot"
SLOW = ("free-lunch", "free-lunch-tuned")
SLOW_SHARE, OMNIGLOT_SHARE = 8, 4


def main(
    data: shared.DataFolder,
    sets: shared.Sets = f"{shared.SPLITS},miniimagenet,omniglot",
    methods: shared.Methods = "hot,plda,lda,logistic-tuned,centroid-cl2n",
    tasks: shared.Tasks = 2000,
    seed: shared.Seed = 0,
    jobs: shared.Jobs = -1,
    out: shared.Out = None,
) -> None:
    # Those of joint classification have a benchmark of their own.
    alone = [name for name in METHOD_NAMES if not isinstance(named_method(name, None), TransductiveClassifier)]
    names = alone if methods == "all" else methods.split(",")
    quick, slow = [m for m in names if m not in SLOW], [m for m in names if m in SLOW]
    runs: dict[str, list[Evaluation]] = {}
    for name in sets.split(","):
        loaded = load(name, data)
        choice, seconds = shared.timed(named_method(REFERENCE, loaded[0]).choice)
        say(f"{name}: settings chosen in {seconds:.1f} s")
        show(choice_table(choice))
        options = {"ways": shared.ways_of(name), "seed": seed, "n_jobs": jobs}
        n_tasks = tasks // OMNIGLOT_SHARE if name == "omniglot" else tasks
        runs[name] = []
        for share, some in ((1, quick), (SLOW_SHARE, slow)):
            if some:
                place = out and out / f"{name.replace('/', '_')}-{share}"
                found = evaluated(
                    list(dict.fromkeys([REFERENCE, *some])), loaded, n_tasks // share, out=place, **options
                )
                for table in (*(result_table(found, shots) for shots in found.shots), detail_table(found, 0.5)):
                    show(table)
                for sentence in unsolved(found):
                    say(sentence)
                runs[name].append(found)
    for shots in (1, 5):
        show(lead_table(runs, shots))


def lead_table(runs: dict[str, list[Evaluation]], shots: int) -> Table:
    """Accuracy of the reference minus each method on every set, with intervals over classes, and the mean over sets."""
    leads = {name: {m: lead for run in some for m, lead in run.leads(shots).items()} for name, some in runs.items()}
    standing = {name: verdicts(of_set) for name, of_set in leads.items()}
    marks = {"ahead": "", "behind": " (behind)", "undecided": " (level)"}
    rows: list[tuple[Cell, ...]] = []
    for method in dict.fromkeys(method for of_set in leads.values() for method in of_set):
        cells: list[Cell] = []
        for name, of_set in leads.items():
            lead = of_set[method]
            number = Number(100 * lead.mean, 100 * lead.half_width, signed=True)
            cells.append(Entry(f"{number}{marks[standing[name][method]]}", lead.mean))
        mean = float(np.mean([100 * of_set[method].mean for of_set in leads.values()]))
        rows.append((method, *cells, Number(mean, signed=True)))
    title = f"{shots}-shot: difference in points, 95% over classes, Holm over the methods"
    return Table(title, (f"{REFERENCE} minus", *leads, "mean"), tuple(rows))
