"""Suggested inputs: what to label next, with the inputs themselves, as text and as a table to fill in."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.classifiers.suggestions import Suggestions
from hotshot.files import Samples
from hotshot.files.samples import ID
from hotshot.files.tables import format_of, writing
from hotshot.formatting import shortened
from hotshot.inputs.answers import check_columns
from hotshot.inputs.inputs import FEATURES, IMAGES, LABEL, TEXTS, Inputs

# Columns of the table, in addition to those of the input; the names are not those of labels.
PROBABLE, PROBABILITY, REASON = "probable_class", "probability", "reason"
LONGEST_TEXT = 60


@dataclass(frozen=True)
class InputSuggestions:
    """Suggestions of inputs, and these inputs.

    Attributes
    ----------
    suggestions : Suggestions
        Suggestions with reasons; their indices are rows of the inputs.
    inputs : Inputs
        Where the inputs come from.
    samples : Samples
        The suggested inputs, with their columns.
    """

    suggestions: Suggestions
    inputs: Inputs
    samples: Samples

    @property
    def ids(self) -> list[str]:
        """Ids of the suggested inputs."""
        return [str(one) for one in self.samples.columns[self.inputs.id]]

    @property
    def texts(self) -> list[str]:
        """Texts of the suggested inputs, if they have any."""
        if self.inputs.kind == TEXTS:
            return list(self.samples.X)
        return list(self.samples.texts or ()) if self.inputs.kind == FEATURES else []

    def __str__(self) -> str:
        named = [f'"{shortened(text, LONGEST_TEXT)}"' for text in self.texts]
        named = named or [shortened(one, LONGEST_TEXT) for one in self.ids]
        pairs = enumerate(zip(named, self.suggestions, strict=True), 1)
        return "\n".join(f"{i}. {name}: {' or '.join(item.classes())}; {item.reason}." for i, (name, item) in pairs)

    def to_dict(self) -> dict[str, Any]:
        """The suggestions as dictionaries, lists, strings and numbers, for JSON."""
        document = self.suggestions.to_dict()
        for name, values in (("id", self.ids), ("text", self.texts)):
            for item, value in zip(document["suggestions"], values, strict=False):
                item[name] = value
        return document

    def table(self, folder: Path, with_features: bool) -> dict[str, list[Any]]:
        """Columns of a table to fill in: those of the input, labels, and the reasons.

        Paths of images become relative to the folder of the table; a model without an encoder needs the features.
        """
        names = self.inputs.columns
        columns = {name: self._relative(folder, list(self.samples.columns[name])) for name in names}
        columns = columns or {ID: self.ids}
        if self.inputs.label is None:
            columns[LABEL] = [""] * len(self.samples)
        columns[PROBABLE] = [str(item.label) for item in self.suggestions]
        columns[PROBABILITY] = [round(item.probability, 4) for item in self.suggestions]
        columns[REASON] = [item.reason for item in self.suggestions]
        if with_features:
            # In one column: beside it, no other column is taken for a feature.
            columns[FEATURES] = np.array(self.samples.X, dtype=np.float64).tolist()
        return columns

    def write(self, path: Path, with_features: bool) -> None:
        """Write the table to fill in; the suffix of the file sets its format."""
        with writing(path, format_of(path, None), [PROBABILITY, FEATURES] if with_features else [PROBABILITY]) as write:
            write(self.table(path.parent, with_features))

    def _relative(self, folder: Path, values: list[Any]) -> list[Any]:
        """Values of a column; if they are paths of images, these are relative to a folder."""
        if self.inputs.kind != IMAGES:
            return values
        paths = [image.file.path for image in self.samples.X]
        named = zip(paths, values, strict=True)
        if not all(path is not None and path.as_posix().endswith(Path(str(value)).as_posix()) for path, value in named):
            return values
        return [Path(os.path.relpath(path, folder)).as_posix() for path in paths]


def check_free(inputs: Inputs) -> None:
    """Raise if inputs have a column of a name that the table of suggestions needs."""
    check_columns(inputs.columns, (PROBABLE, PROBABILITY, REASON), inputs.name, "rename it")
