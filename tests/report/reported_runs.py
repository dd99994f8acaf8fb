"""Small runs and reproductions to report on, with class names that nobody should trust."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from hotshot.arrays import array_hash
from hotshot.bank import BaseClasses
from hotshot.evaluation import evaluate
from hotshot.evaluation.tables import Number, Table
from hotshot.evaluation.tasks import labels_hash
from hotshot.files import read_features
from hotshot.paper import Findings, save_findings
from hotshot.paper.findings import Claim
from hotshot.report import Source

IMAGE = '<img src=x onerror="document.title=String.fromCharCode(82,65,78)">'
SCRIPT = "</script><script>document.title='RAN'</script>"
NOVEL = (
    IMAGE,
    SCRIPT,
    "plain",
    "a_rather_long_name_" * 9,
    "\u202egnorw yaw eht\u2028 & 'quoted' \"twice\"",
    "小さな猫",
)
BASE = (f"base {IMAGE}", f"base {SCRIPT}", "base {{ 7 * 7 }}", *(f"base_{i}" for i in range(5)))
WAYS, QUERIES, TASKS, SHOTS = 4, 6, 40, (1, 3)


def write_features(folder: Path, seed: int = 0) -> None:
    """`base.npz` and `novel.npz`: Gaussian classes near enough to each other for mistakes."""
    rng = np.random.default_rng(seed)
    for file, names in (("base", BASE), ("novel", NOVEL)):
        y = np.repeat(names, 15)
        X = np.repeat(rng.normal(size=(len(names), 6)), 15, axis=0) + 1.1 * rng.normal(size=(len(y), 6))
        np.savez(folder / f"{file}.npz", X=X, y=y)


def read(source: Source) -> tuple[BaseClasses, np.ndarray, np.ndarray]:
    """What `hotshot report` reads."""
    return (BaseClasses.from_samples(*read_features(source.base)), *read_features(source.novel))


def source(folder: Path) -> dict[str, str]:
    return {
        "base": str(folder / "base.npz"),
        "novel": str(folder / "novel.npz"),
        "command": f"hotshot evaluate --novel '{IMAGE}'",
    }


def make_run(folder: Path, methods=("hot", "logistic", "centroid-cl2n"), out="run", **changes) -> Path:
    """A finished run on the features in a folder."""
    base, X, y = read(Source(base=folder / "base.npz", novel=folder / "novel.npz"))
    options = {"ways": WAYS, "queries": QUERIES, "tasks": TASKS, "shots": SHOTS, "about": {"source": source(folder)}}
    evaluate(methods, X, y, n_jobs=1, out=folder / out, **{"base": base, **options, **changes})
    return folder / out


FIGURE = """<?xml version="1.0"?>
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 200 100"
 onload="document.title='RAN'"><script>document.title='RAN'</script><image xlink:href="https://example.org/x.png"/>
<text x="5" y="20" style="background: url(https://example.org/z.png)">two  words</text></svg>
"""


def make_reproduction(folder: Path, **about) -> Path:
    """A folder as `hotshot reproduce` leaves it, with two experiments."""
    out = folder / "paper"
    numbers = Number(68.57, 0.55), Number(70.25, published=True)
    rows = ((IMAGE, Number(-1.5, 0.25, signed=True), None), ("H-OT", *numbers))
    claims = (
        Claim(f"{SCRIPT} is ahead.", "holds", "H-OT +1.50 ± 0.25"),
        Claim("It is not.", "does not hold", "H-OT -1.50 ± 0.25; cross-domain"),
    )
    for name, title, figures in (("costs", "Costs", []), ("plan", f"Plan of {IMAGE}", ["plan", "plan-2"])):
        table = Table(f"Table of {name}", ("method", "accuracy", "in the paper"), rows, ("A note.",))
        found = Findings((f"{name} found {SCRIPT}.",), (table,), claims=claims if name == "costs" else ())
        entries = {"experiment": name, "title": title, "paper": "Table 3", "tasks": TASKS}
        document = {**save_findings(out / name, found, entries), "figures": figures}
        (out / name / "findings.json").write_text(json.dumps(document))
        for stem in figures:
            (out / name / f"{stem}.svg").write_text(FIGURE)
    base, X, y = read(Source(base=folder / "base.npz", novel=folder / "novel.npz"))
    request = {"features": [base.fingerprint, array_hash(X), labels_hash(y)]}
    run = {"source": source(folder), "ways": WAYS, "queries": QUERIES, "seed": 0, "request": request, **about}
    (out / "run.json").write_text(json.dumps(run))
    return out
