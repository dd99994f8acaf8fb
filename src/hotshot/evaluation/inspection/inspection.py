"""One or more feature files looked at, alone and against each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hotshot.base.space import choose_power
from hotshot.evaluation.inspection.advice import Advice, advise
from hotshot.evaluation.inspection.costs import CostSpread, cost_spread
from hotshot.evaluation.inspection.findings import (
    BASE,
    BOTH,
    FAULT,
    NOVEL,
    SEVERITIES,
    WARNING,
    Finding,
    cost_findings,
    feature_findings,
)
from hotshot.evaluation.inspection.labels import label_findings
from hotshot.evaluation.inspection.measures import Measures, Watch, measure
from hotshot.evaluation.inspection.pairs import pair_findings
from hotshot.evaluation.inspection.words import count, shown_end
from hotshot.files import FeatureSource


@dataclass(frozen=True)
class InspectedFile:
    """A file with the name it is called by, its role ("base", "novel" or None), and its costs.

    `costs` are those of small tasks: of its own classes where it is alone, of its classes against the base classes
    where it is novel, None where it is the base file of others or where nothing can be transported.
    """

    name: str
    role: str | None
    measures: Measures
    costs: CostSpread | None


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
        *others, last = (shown_end(file.name, 60) for file in self.files)
        names = f"{', '.join(others)} and {last}" if others else last
        several = len(self.files) > 1
        verb = "have" if several else "has"
        faults, warnings = (
            sum(finding.severity == severity for finding in self.findings) for severity in (FAULT, WARNING)
        )
        if faults:
            also = f", and {count(warnings, 'warning')}" if warnings else ""
            return f"{names} {verb} {count(faults, 'fault')} to mend before use{also}."
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
    measures = [measure(source, watch(name) if watch else None) for name, source in sources]
    base = measures[0]
    files, findings = [], []
    for (name, _), role, found in zip(sources, roles, measures, strict=True):
        costs = _costs(base, found, role)
        files.append(InspectedFile(name, role, found, costs))
        own = [*feature_findings(found, role), *label_findings(found, role)]
        findings += [Finding(*row, name, role) for row in own]
        both = [*pair_findings(base, found)] if role == NOVEL else []
        findings += [Finding(*row, name, BOTH if role else None) for row in [*both, *cost_findings(costs)]]
    findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    last = files[-1]
    advice = advise(base, last.measures, last.costs, findings)
    return Inspection(tuple(files), tuple(findings), tuple(advice))


def _costs(base: Measures, found: Measures, role: str | None) -> CostSpread | None:
    if role == BASE or found.width != base.width:
        return None
    power = choose_power("auto", base.smallest or 0.0)
    return cost_spread(base.sample, found.sample if role else None, power)
