"""What was measured, as a person reads it: numbers, names, sentences, and one line per measure."""

from string import Formatter
from typing import Any

from hotshot.evaluation.inspection.measure import InspectedFile
from hotshot.formatting import bounded_percentage, count, shortened, significant

# Lines of a table, filled from the JSON document.
FACTS = {
    "samples": "{samples}",
    "classes": "{classes[count]}, labels are {classes[labels]}",
    "samples per class": "{classes[smallest][samples]} ({classes[smallest][name]:name}) to {classes[largest][samples]} "
    "({classes[largest][name]:name}), median {classes[median_samples]:6}",
    "features": "{features}, {dtype}",
    "entries": "{entries[smallest]} to {entries[largest]}, {entries[zero_share]:%} zero, "
    "{entries[negative_share]:%} negative",
    "NaN": "{entries[nan][count]:entry|entries} in {entries[nan][samples]:sample}",
    "infinity": "{entries[infinite][count]:entry|entries} in {entries[infinite][samples]:sample}",
    "duplicate rows": "{duplicates[repeats]} within a class, {duplicates[conflicts]:vector} in several classes",
    "constant features": "{constant_features[count]}, {constant_features[all_zero]} of them always 0",
    "norms": "{norms[smallest]} to {norms[largest]}, median {norms[median]}, {norms[zero_vectors]:zero vector}",
    "deviation within classes": "{deviation_within_classes:2} per feature",
    "rank of covariance": "{ranks[smallest]} to {ranks[largest]}, median {ranks[median]:6}; less than {features} in "
    "{ranks[singular]} of {ranks[looked_at]:class|classes} measured, which does no harm",
    "power transform": "'auto' is {power[auto]}; possible without an offset: 0.5 {power[half]}, log {power[log]}",
    "cosine costs": "{costs[median]:2}, deviation {costs[deviation]:2}, where epsilon is {costs[epsilon]}",
    "effective number of lenders": "{costs[lenders]:.0f} of {costs[base_classes]:base class|base classes} (between "
    "{costs[fewest]:.0f} and {costs[most]:.0f}, by epsilon)",
}


class _Words(Formatter):
    """Fills sentences: {n:2} two digits, {n:%} a share, {n:sample} with a noun, {n:name} a name."""

    def format_field(self, value: Any, spec: str) -> str:
        if value is None:
            raise TypeError("nothing was measured")
        if isinstance(value, bool):
            return "yes" if value else "no"
        if spec == "%":
            return bounded_percentage(value)
        if spec == "name":
            return shortened(value)
        if spec.isdigit() or (isinstance(value, float) and not spec):
            return significant(value, int(spec) if spec else 3)
        if spec[:1].isalpha():
            return count(value, *spec.split("|"))
        return super().format_field(value, "," if isinstance(value, int) and not spec else spec)


def filled(sentence: str, values: dict[str, Any]) -> str:
    """A sentence with its values, by the rules of `_Words`."""
    return _Words().vformat(sentence, (), values)


def facts(file: InspectedFile) -> dict[str, str]:
    """Lines of a table: what is measured, and the value in words; a dash where there is nothing to measure."""
    lines = {}
    for name, sentence in FACTS.items():
        try:
            lines[name] = filled(sentence, file.values)
        except TypeError:
            # A part of the document that is null.
            lines[name] = "–"
    classes, norms = file.values["classes"], file.values["norms"]
    if classes["count"] and classes["smallest"]["samples"] == classes["largest"]["samples"]:
        lines["samples per class"] = f"{classes['largest']['samples']:,} in every class"
    if norms is not None and norms["unit"]:
        lines["norms"] = f"1 (unit vectors), {count(norms['zero_vectors'], 'zero vector')}"
    return lines
