"""Looking at feature files before they are used: what is in them, what is wrong, what follows for each method."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hotshot.evaluation.inspection.advice import Advice, advise
from hotshot.evaluation.inspection.measure import InspectedFile, Watch, measure
from hotshot.evaluation.inspection.printed import facts
from hotshot.evaluation.inspection.problems import BASE, FAULT, NOVEL, SEVERITIES, WARNING, Finding, find_problems
from hotshot.evaluation.inspection.spread import transport_costs
from hotshot.files import FeatureSource
from hotshot.formatting import count, listed, shortened

__all__ = ["InspectedFile", "Inspection", "document", "facts", "inspect_sources"]
FORMAT = "hotshot inspection 1"


@dataclass(frozen=True)
class Inspection:
    """All files, all findings with the worst first, and what follows for the methods."""

    files: tuple[InspectedFile, ...]
    findings: tuple[Finding, ...]
    advice: tuple[Advice, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing was found that stops or spoils a method."""
        return not any(finding.severity == FAULT for finding in self.findings)

    @property
    def verdict(self) -> str:
        """One sentence that says whether the files can be used."""
        names = listed([shortened(file.name, 60, keep="end") for file in self.files])
        several = len(self.files) > 1
        severities = [finding.severity for finding in self.findings]
        faults, warnings = severities.count(FAULT), severities.count(WARNING)
        if faults:
            also = f", and {count(warnings, 'warning')}" if warnings else ""
            return f"{names} {'have' if several else 'has'} {count(faults, 'fault')} to fix before use{also}."
        if warnings:
            return f"{names} can be used, with {count(warnings, 'warning')}."
        return f"{names} are fine and fit each other." if several else f"{names} is fine."


def inspect_sources(
    sources: Sequence[tuple[str, FeatureSource]], watch: Callable[[str], Watch] | None = None
) -> Inspection:
    """Look at feature files, given with the names to call them by: one alone, or base classes and then novel ones.

    `watch(name)` gives, for the file of that name, a function that is called with the rows read and their total.
    """
    roles = [None] if len(sources) == 1 else [BASE, *[NOVEL] * (len(sources) - 1)]
    files = [
        measure(source, name, role, watch(name) if watch is not None else None)
        for (name, source), role in zip(sources, roles, strict=True)
    ]
    base, last = files[0], files[-1]
    for file in files:
        if file.role != BASE and file.values["features"] == base.values["features"]:
            smallest = min(base.smallest, file.smallest)
            file.values["costs"] = transport_costs(base.sample, file.sample if file.role else None, smallest)
    found = [finding for file in files for finding in find_problems(file, base)]
    found.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    return Inspection(tuple(files), tuple(found), tuple(advise(base, last, found)))


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
      `norms` {`smallest`, `median`, `largest`, `zero_vectors`, `zero_vector` (row of the first), `unit`},
      `deviation_within_classes`,
      `ranks` {`looked_at`, `smallest`, `median`, `largest`, `possible` [least, most], `singular`, `deficient`},
      `power` {`auto`, `half`, `log` (booleans: possible without an offset)},
      `costs` {`epsilon`, `median`, `deviation`, `quartile_range`, `ways`, `base_classes`, `lenders` (effective
      number), `fewest`, `most`, `epsilon_over_deviation`, `plan` ("hard", "selective" or "uniform")};
    - `findings`: a list, the worst first, each with `severity` ("fault", "warning" or "note"), `code`, `sentence`,
      `file` and `role` ("base", "novel", "both" or null);
    - `methods`: a list, each with `methods`, `verdict` ("fine", "with care" or "refused") and `sentence`.
    """
    return {
        "format": FORMAT,
        "ok": found.ok,
        "verdict": found.verdict,
        "files": [file.values for file in found.files],
        "findings": [asdict(finding) for finding in found.findings],
        "methods": [{**asdict(advice), "methods": list(advice.methods)} for advice in found.advice],
    }
