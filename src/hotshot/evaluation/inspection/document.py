"""An inspection as one JSON document with keys that stay."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np

from hotshot.base.space import choose_power
from hotshot.evaluation.inspection.costs import CostSpread
from hotshot.evaluation.inspection.counting import BadEntries
from hotshot.evaluation.inspection.inspection import InspectedFile, Inspection
from hotshot.evaluation.inspection.measures import Measures

FORMAT = "hotshot inspection 1"


def document(found: Inspection) -> dict[str, Any]:
    """All of an inspection as JSON values; rows and columns are counted from 0, and what is unknown is null.

    - `format`, `ok` (no faults), `verdict` (one sentence);
    - `files`: a list, each with `file`, `role`, `samples`, `features`, `dtype`, `about`,
      `classes` {`count`, `labels`, `missing_labels`, `smallest` {`name`, `samples`}, `median_samples`,
      `largest` {`name`, `samples`}, `with_one_sample`},
      `entries` {`zero_share`, `negative_share`, `smallest`, `largest`, and `nan` and `infinite`, null or
      {`count`, `samples`, `features`, and `row`, `column`, `class` of the first}},
      `duplicates` {`repeats`, `repeat` [rows], `conflicts`, `conflict` [rows]},
      `constant_features` {`count`, `all_zero`, `columns` (the first ten)},
      `norms` {`smallest`, `median`, `largest`, `zero_vectors`, `unit`}, `deviation_within_classes`,
      `ranks` {`looked_at`, `smallest`, `median`, `largest`, `possible` [least, most], `singular`, `deficient`},
      `power` {`auto`, `half`, `log` (booleans: possible without an offset)},
      `costs` {`epsilon`, `median`, `deviation`, `quartile_range`, `ways`, `base_classes`, `lenders`, `fewest`,
      `most`, `epsilon_over_deviation`, `plan` ("hard", "selective" or "uniform")};
    - `findings`: a list, the worst first, each with `severity` ("fault", "warning" or "note"), `code`, `sentence`,
      `file` and `role` ("base", "novel", "both" or null);
    - `methods`: a list, each with `methods`, `verdict` ("fine", "with care" or "refused") and `sentence`.
    """
    return {
        "format": FORMAT,
        "ok": found.ok,
        "verdict": found.verdict,
        "files": [_file(file) for file in found.files],
        "findings": [asdict(finding) for finding in found.findings],
        "methods": [{**asdict(advice), "methods": list(advice.methods)} for advice in found.advice],
    }


def _file(file: InspectedFile) -> dict[str, Any]:
    found = file.measures
    return {
        "file": file.name,
        "role": file.role,
        "samples": found.n_samples,
        "features": found.width,
        "dtype": str(found.dtype),
        # Headers of strangers may hold NaN, which JSON has no word for.
        "about": json.loads(json.dumps(found.about, default=str), parse_constant=str),
        "classes": _classes(found),
        "entries": {
            "zero_share": found.zeros,
            "negative_share": found.negatives,
            "smallest": found.smallest,
            "largest": found.largest,
            "nan": _bad(found, found.nan),
            "infinite": _bad(found, found.infinite),
        },
        "duplicates": asdict(found.duplicates),
        "constant_features": {
            "count": len(found.constant),
            "all_zero": len(found.all_zero),
            "columns": found.constant[:10].tolist(),
        },
        "norms": None if found.norms is None else asdict(found.norms),
        "deviation_within_classes": found.deviation,
        "ranks": None if found.ranks is None else asdict(found.ranks),
        "power": None
        if found.smallest is None
        else {
            "auto": choose_power("auto", found.smallest),
            "half": found.smallest >= 0,
            "log": found.smallest > 0,
        },
        "costs": None if file.costs is None else _costs(file.costs),
    }


def _costs(costs: CostSpread) -> dict[str, Any]:
    ratio = costs.epsilon / costs.deviation if costs.deviation else None
    return {**asdict(costs), "epsilon_over_deviation": ratio, "plan": costs.plan}


def _bad(found: Measures, bad: BadEntries | None) -> dict[str, Any] | None:
    return None if bad is None else {**asdict(bad), "class": found.label_of(bad.row)}


def _classes(found: Measures) -> dict[str, Any]:
    def described(place: int) -> dict[str, Any]:
        return {"name": found.names[place], "samples": int(found.counts[place])}

    some = bool(len(found.names))
    return {
        "count": len(found.names),
        "labels": found.label_kind,
        "missing_labels": found.missing_labels,
        "smallest": described(int(found.counts.argmin())) if some else None,
        "median_samples": float(np.median(found.counts)) if some else None,
        "largest": described(int(found.counts.argmax())) if some else None,
        "with_one_sample": int(np.sum(found.counts == 1)),
    }
