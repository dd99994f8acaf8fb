"""Looking at feature files before they are used: what is in them, what is wrong, what follows for each method."""

from hotshot.inspection.document import document
from hotshot.inspection.facts import facts
from hotshot.inspection.inspection import InspectedFile, Inspection, inspect_sources

__all__ = ["InspectedFile", "Inspection", "document", "facts", "inspect_sources"]
