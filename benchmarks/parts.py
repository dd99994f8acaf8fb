"""What each part of the method is worth: H-OT against itself with one part replaced, paired over the same tasks.

    python -m benchmarks.parts DATA [--sets banking77-0,miniimagenet] [--tasks 1000]

DATA and the sets are those of `benchmarks.accuracy`. Every variant keeps the settings that the default chose on the
bank, so that nothing but the named part differs.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.accuracy import sets_of
from hotshot import HOTClassifier, evaluate
from hotshot.cli.terminal import Watching
from hotshot.errors import HotshotWarning
from hotshot.evaluation.tables import Cell, Number, Table

PARTS: dict[str, dict[str, Any]] = {
    "mean cosine distance instead of the low-level transport": {"cost": "mean-cosine"},
    "cosine distance to the class mean, at the same sharpness": {"cost": "cosine", "cost_scale": "over-targets"},
    "all base classes lend alike (epsilon 1000)": {"epsilon": 1000.0},
    "the two nearest base classes lend": {"cost": "nearest", "n_retrieved": 2},
    "same shrinkage in all directions (mean_rule='mix')": {"mean_rule": "mix"},
    "no lent mean (mix=0)": {"mean_rule": "mix", "mix": 0.0},
    "a Gaussian per sample instead of per class": {"per": "sample"},
    "750 generated features instead of the closed form": {"head": "sampled", "n_generated": 750},
    "one vote per support sample": {"support_weight": 1.0},
    "all principal axes": {"n_components": None},
    "no centring and scaling": {"normalize": None},
}
SLOW = "750 generated features instead of the closed form"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path, metavar="DATA")
    parser.add_argument("--sets", default="banking77-0,miniimagenet")
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=-1)
    options = parser.parse_args()
    console = Console(width=160)
    for name, load in sets_of(options).items():
        base, X, y = load()
        settings = HOTClassifier(base).settings()
        variants = {part: HOTClassifier(**{**settings, **change}) for part, change in PARTS.items()}
        slow = {SLOW: variants.pop(SLOW)}
        rows: list[tuple[Cell, ...]] = []
        for own, tasks in ((variants, options.tasks), (slow, options.tasks // 4)):
            methods = {"hot": HOTClassifier(base), **own}
            with Watching(console, 2 * tasks * len(methods)) as watching, warnings.catch_warnings():
                warnings.simplefilter("ignore", HotshotWarning)
                found = evaluate(methods, X, y, tasks=tasks, n_jobs=options.jobs, watch=watching)
            for part in own:
                leads = [found.difference(part, shots) for shots in (1, 5)]
                numbers = [Number(100 * lead.mean, 100 * lead.half_width, signed=True) for lead in leads]
                rows.append((part, *numbers, str(tasks)))
        columns = ("default minus", "1 shot", "5 shots", "tasks")
        print(f"{name}: points, paired, 95% over tasks")
        print(Table(name, columns, tuple(rows)).to_markdown())


if __name__ == "__main__":
    main()
