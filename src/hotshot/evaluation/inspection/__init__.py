"""Looking at feature files before they are used: what is in them, what is wrong, what follows for each method."""

from hotshot.evaluation.inspection.document import document
from hotshot.evaluation.inspection.facts import facts
from hotshot.evaluation.inspection.inspection import InspectedFile, Inspection, inspect_sources

__all__ = ["InspectedFile", "Inspection", "document", "facts", "inspect_sources"]
