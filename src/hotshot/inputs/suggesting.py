"""Suggested inputs: what to label next, with the inputs themselves, as text and as a table to fill in."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.classifiers.suggestions import Suggestions
from hotshot.files.tables import format_of, writing
from hotshot.formatting import shortened
from hotshot.images.decode import EncodedImage
from hotshot.inputs.answers import check_columns
from hotshot.inputs.rows import FEATURES, LABEL, Inputs

# Columns of the table, in addition to those of the input; the names are not those of labels.
PROBABLE, PROBABILITY, REASON = "probable_class", "probability", "reason"
LONGEST_TEXT = 60


def check_free(inputs: Inputs) -> None:
    """Raise if inputs have a column of a name that the table of suggestions needs."""
    check_columns(inputs.columns, (PROBABLE, PROBABILITY, REASON), inputs.name, "rename it")


@dataclass(frozen=True)
class InputSuggestions:
    """Suggestions of inputs, with their ids, texts and columns.

    Attributes
    ----------
    found : Suggestions
        Suggestions with reasons; their indices are rows of the inputs.
    ids, texts : tuples of str
        Ids of the suggested inputs, and their texts, if any.
    columns : dict of str to list
        Columns of the suggested inputs.
    label : str or None
        The column of labels, if there is one.
    content : tuple
        The suggested texts, images or features.
    """

    found: Suggestions
    ids: tuple[str, ...]
    texts: tuple[str, ...]
    columns: dict[str, list[Any]]
    label: str | None
    content: tuple[Any, ...]

    def __str__(self) -> str:
        lines = []
        for i, item in enumerate(self.found):
            named = (
                f'"{shortened(self.texts[i], LONGEST_TEXT)}"' if self.texts else shortened(self.ids[i], LONGEST_TEXT)
            )
            lines.append(f"{i + 1}. {named}: {' or '.join(item.classes())}; {item.reason}.")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The suggestions as dictionaries, lists, strings and numbers, for JSON."""
        plain = self.found.to_dict()
        for i, item in enumerate(plain["suggestions"]):
            item["id"] = self.ids[i]
            if self.texts:
                item["text"] = self.texts[i]
        return plain

    def write(self, path: Path, with_features: bool) -> None:
        """Write the table to fill in; its suffix sets the format.

        Parameters
        ----------
        path : Path
            File that ends in .csv, .tsv, .jsonl or .parquet.
        with_features : bool
            As in ``table``.
        """
        numbers = [PROBABILITY, FEATURES] if with_features else [PROBABILITY]
        with writing(path, format_of(path, None), numbers) as write:
            write(self.table(path.parent, with_features))

    def table(self, folder: Path, with_features: bool) -> dict[str, list[Any]]:
        """Columns of a table to fill in: those of the input, labels, and the reasons.

        Parameters
        ----------
        folder : Path
            Folder of the table; paths of images become relative to it.
        with_features : bool
            Whether the table needs the features, because the model has no encoder.
        """
        columns = {name: self._from(folder, name, values) for name, values in self.columns.items()}
        columns = columns or {"id": list(self.ids)}
        if self.label is None:
            columns[LABEL] = [""] * len(self.ids)
        columns[PROBABLE] = [str(item.label) for item in self.found]
        columns[PROBABILITY] = [round(item.probability, 4) for item in self.found]
        columns[REASON] = [item.reason for item in self.found]
        if with_features:
            # In one column: beside it, no other column is taken for a feature.
            columns[FEATURES] = np.array(self.content, dtype=np.float64).tolist()
        return columns

    def _from(self, folder: Path, name: str, values: list[Any]) -> list[Any]:
        """Values of a column; if they are paths of images, these are relative to a folder."""
        paths = [item.file.path if isinstance(item, EncodedImage) else None for item in self.content]
        named = zip(paths, values, strict=True)
        if not all(path is not None and path.as_posix().endswith(Path(str(value)).as_posix()) for path, value in named):
            return values
        return [Path(os.path.relpath(path, folder)).as_posix() for path in paths if path is not None]
