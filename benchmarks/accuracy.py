"""Accuracy of H-OT and its rivals on real features, on the same tasks, and their differences on all sets.

    python -m benchmarks.accuracy DATA [--sets miniimagenet] [--tasks 2000] [--methods all] [--out FOLDER]

DATA is a folder with `banking77/features.npz` (sentence embeddings `X` and labels `y`; five random splits, with seeds 0
to 4, into 47 base and 30 novel classes) and `miniimagenet/features.npz` (arrays `base` and `val` of shape (classes,
samples, V); a feature is (stored value * `scale`)**2; the network was trained on the base classes, the validation
classes are novel). The set `omniglot` is the bank that comes with hotshot, in 20-way tasks, a quarter as many. The set
`features` consists of the files `--base FILE --novel FILE`. Slow methods run on the first eighth of the tasks.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console

from hotshot import BaseClasses, evaluate, read_features
from hotshot.base.embedded import load_bank
from hotshot.cli.inputs import load_base
from hotshot.cli.terminal import Watching, to_rich
from hotshot.errors import ScaleWarning
from hotshot.estimators import METHOD_NAMES
from hotshot.estimators.named import named_method
from hotshot.estimators.transductive import TransductiveClassifier
from hotshot.evaluation.results import Evaluation, verdicts
from hotshot.evaluation.tables import Cell, Entry, Number, Table, accuracy_table, choice_table, detail_table, unsolved

REFERENCE = "hot"
SLOW = ("free-lunch", "free-lunch-tuned")
SLOW_SHARE, OMNIGLOT_SHARE = 8, 4
Data = tuple[BaseClasses, np.ndarray, np.ndarray]


def banking77(folder: Path, seed: int = 0) -> Data:
    with np.load(folder / "banking77" / "features.npz", allow_pickle=False) as file:
        X, y = file["X"], file["y"]
    intents = np.random.default_rng(seed).permutation(np.unique(y))
    is_base = np.isin(y, intents[:47])
    return BaseClasses.from_samples(X[is_base], y[is_base]), X[~is_base], y[~is_base]


def miniimagenet(folder: Path) -> Data:
    with np.load(folder / "miniimagenet" / "features.npz", allow_pickle=False) as file:
        parts = [(file[part].astype(np.float32) * file["scale"]) ** 2 for part in ("base", "val")]
        names = [file["base_names"], file["val_names"]]
    (X_base, y_base), (X, y) = (
        (part.reshape(-1, part.shape[2]), np.repeat(name, part.shape[1]))
        for part, name in zip(parts, names, strict=True)
    )
    return BaseClasses.from_samples(X_base, y_base, seen_in_training=True), X, y


def omniglot() -> Data:
    bank = load_bank("omniglot")
    return bank.base, bank.X_novel, bank.y_novel


def sets_of(options: argparse.Namespace) -> dict[str, Callable[[], Data]]:
    known: dict[str, Callable[[], Data]] = {
        **{f"banking77-{seed}": lambda seed=seed: banking77(options.data, seed) for seed in range(5)},
        "miniimagenet": lambda: miniimagenet(options.data),
        "omniglot": omniglot,
        "features": lambda: (load_base(options.base), *read_features(options.novel)),
    }
    if options.sets == "all":
        return {name: load for name, load in known.items() if name != "features"}
    return {name: known[name] for name in options.sets.split(",")}


def add_data_options(parser: argparse.ArgumentParser, tasks: int, seed: int) -> None:
    parser.add_argument("data", type=Path, help="folder with the features of banking77 and miniImageNet")
    parser.add_argument("--sets", default="all", help="sets, separated by commas (default: all but features)")
    parser.add_argument("--base", type=Path, help="base classes of the set features")
    parser.add_argument("--novel", type=Path, help="novel classes of the set features")
    parser.add_argument("--tasks", type=int, default=tasks, help=f"tasks per number of shots (default: {tasks})")
    parser.add_argument("--seed", type=int, default=seed, help=f"seed of the tasks (default: {seed})")
    parser.add_argument("--jobs", type=int, default=-1, help="processes (default: one per core)")


def run(name: str, data: Data, methods: list[str], options: argparse.Namespace, console: Console) -> list[Evaluation]:
    """Evaluate the quick methods on all tasks and the slow methods on the first eighth, each with the reference."""
    base, X, y = data
    ways, tasks = (20, options.tasks // OMNIGLOT_SHARE) if name == "omniglot" else (5, options.tasks)
    found = []
    for share, own in ((1, [m for m in methods if m not in SLOW]), (SLOW_SHARE, [m for m in methods if m in SLOW])):
        if not own:
            continue
        own = list(dict.fromkeys([REFERENCE, *own]))
        with Watching(console, 2 * (tasks // share) * len(own)) as watching, warnings.catch_warnings():
            warnings.simplefilter("ignore", ScaleWarning)
            found.append(
                evaluate(
                    own,
                    X,
                    y,
                    base=base,
                    ways=ways,
                    tasks=tasks // share,
                    seed=options.seed,
                    n_jobs=options.jobs,
                    out=options.out and options.out / f"{name}-{share}",
                    watch=watching,
                )
            )
    return found


def lead_table(runs: dict[str, list[Evaluation]], shots: int) -> Table:
    """Accuracy of the reference minus each method on every set, with intervals over classes, and the mean over sets."""
    leads = {name: {m: lead for found in own for m, lead in found.leads(shots).items()} for name, own in runs.items()}
    standing = {name: verdicts(own) for name, own in leads.items()}
    methods = list(dict.fromkeys(method for own in leads.values() for method in own))
    rows: list[tuple[Cell, ...]] = []
    for method in methods:
        cells: list[Cell] = []
        for name, own in leads.items():
            lead, which = own[method], standing[name][method]
            mark = {"ahead": "", "behind": " (behind)", "undecided": " (level)"}[which]
            cells.append(Entry(f"{Number(100 * lead.mean, 100 * lead.half_width, signed=True)}{mark}", lead.mean))
        mean = float(np.mean([100 * own[method].mean for own in leads.values()]))
        rows.append((method, *cells, Number(mean, signed=True)))
    columns = (f"{REFERENCE} minus", *leads, "mean")
    return Table(f"{shots}-shot: difference in points, 95% over classes, Holm over the methods", columns, tuple(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_data_options(parser, tasks=2000, seed=0)
    parser.add_argument("--methods", default="hot,plda,lda,logistic-tuned,centroid-cl2n", help="methods, or all")
    parser.add_argument("--out", type=Path, help="folder to save the runs in, to resume them later")
    options = parser.parse_args()
    # Those of joint classification have a benchmark of their own.
    alone = [name for name in METHOD_NAMES if not isinstance(named_method(name, None), TransductiveClassifier)]
    methods = alone if options.methods == "all" else options.methods.split(",")
    console = Console(width=150)
    runs: dict[str, list[Evaluation]] = {}
    for name, load in sets_of(options).items():
        data = load()
        begin = time.perf_counter()
        choice = named_method(REFERENCE, data[0]).choice()
        console.print(f"{name}, seed {options.seed}", style="bold")
        console.print(to_rich(choice_table(choice)))
        console.print(*choice_table(choice).notes, f"{time.perf_counter() - begin:.1f} s.", markup=False)
        runs[name] = run(name, data, methods, options, console)
        for found in runs[name]:
            for table in [*(accuracy_table(found, k) for k in found.shots), detail_table(found, threshold=0.5)]:
                console.print(to_rich(table))
            for line in unsolved(found):
                console.print(line, markup=False)
    for shots in (1, 5):
        table = lead_table(runs, shots)
        console.print(table.title, style="bold")
        console.print(table.to_markdown(), markup=False, soft_wrap=True)


if __name__ == "__main__":
    main()
