"""Looking at feature files before they are used: what is in them, what is wrong, what follows for each method."""

from hotshot.evaluation.inspection.inspection import InspectedFile, Inspection, document, inspect_sources
from hotshot.evaluation.inspection.printed import facts

__all__ = ["InspectedFile", "Inspection", "document", "facts", "inspect_sources"]
