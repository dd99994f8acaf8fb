"""What each part of the method is worth: H-OT against itself with one part replaced, paired over the same tasks.

Every variant keeps the settings that the default chose on the bank, so that nothing but the named part differs. Sets
are those of the benchmark `accuracy`.
"""

from __future__ import annotations

from typing import Any

from benchmarks.shared import DataFolder, Jobs, Seed, Sets, Tasks, evaluated, load, show
from hotshot import HOTClassifier
from hotshot.evaluation.tables import Cell, Table, percent

SLOW = "750 generated features instead of the closed form"
PARTS: dict[str, dict[str, Any]] = {
    "mean cosine distance instead of the low-level transport": {"cost": "mean-cosine"},
    "cosine distance to the class mean, at the same sharpness": {"cost": "cosine", "cost_scale": "over-targets"},
    "all base classes lend alike (epsilon 1000)": {"epsilon": 1000.0},
    "the two nearest base classes lend": {"cost": "nearest", "n_retrieved": 2},
    "same shrinkage in all directions (mean_rule='mix')": {"mean_rule": "mix"},
    "no lent mean (mix=0)": {"mean_rule": "mix", "mix": 0.0},
    "a Gaussian per sample instead of per class": {"per": "sample"},
    SLOW: {"head": "sampled", "n_generated": 750},
    "one vote per support sample": {"support_weight": 1.0},
    "all principal axes": {"n_components": None},
    "no centring and scaling": {"normalize": None},
}


def main(
    data: DataFolder, sets: Sets = "banking77-0,miniimagenet", tasks: Tasks = 1000, seed: Seed = 0, jobs: Jobs = -1
) -> None:
    for name in sets.split(","):
        loaded = load(name, data)
        settings = HOTClassifier(loaded[0]).settings()
        variants = {part: HOTClassifier(**{**settings, **change}) for part, change in PARTS.items()}
        slow = {SLOW: variants.pop(SLOW)}
        rows: list[tuple[Cell, ...]] = []
        for some, n_tasks in ((variants, tasks), (slow, tasks // 4)):
            found = evaluated({"hot": HOTClassifier(loaded[0]), **some}, loaded, n_tasks, seed=seed, n_jobs=jobs)
            for part in some:
                leads = (percent(found.difference(part, shots), signed=True) for shots in (1, 5))
                rows.append((part, *leads, str(n_tasks)))
        columns = ("default minus", "1 shot", "5 shots", "tasks")
        show(Table(f"{name}: points, paired, 95% over tasks", columns, tuple(rows)))
