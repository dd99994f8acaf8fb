"""Where the data of a run are and how they are read, and what a page shows of samples: ids, texts and thumbnails."""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.arrays import check_features
from hotshot.bank import BaseClasses
from hotshot.errors import InputError
from hotshot.evaluation.data import load_data
from hotshot.files.samples import ID, Samples

# Bytes of texts and thumbnails on one page; characters of a text, and of an id, whose last ones tell paths apart.
MOST_BYTES, LONGEST_TEXT, LONGEST_ID = 2_000_000, 1000, 100
# What browsers draw, by its first bytes. Nothing else is embedded: SVG, for one, is a document.
IMAGES = {
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
}
# Control characters and halves of a character; all others are shown as they are, whatever the script.
UNSEEN = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True)
class Source:
    """Where the data of a run come from: two feature files or an embedded bank; and the command that was run."""

    base: Path | None = None
    novel: Path | None = None
    bank: str | None = None
    command: str | None = None

    @property
    def name(self) -> str:
        """What people call the data: the bank, or the file of the novel classes."""
        return self.bank or (self.novel.name if self.novel is not None else "unnamed features")


# Base classes and `Samples` of the novel classes, or in their place features, labels and, if known, other columns.
Reader = Callable[[Source], Sequence[Any]]


def read_source(source: Source) -> tuple[BaseClasses, Samples]:
    """The data of a run, from where its folder says that they are."""
    if source.bank is None and (source.base is None or source.novel is None):
        raise InputError("The folder does not record where the data are: pass them with --base and --novel.")
    try:
        return load_data(source.base, source.novel, source.bank)
    except InputError as error:
        raise InputError(f"{error} Pass the files of the run with --base and --novel.") from None


class PageInputs:
    """Texts and data URIs of thumbnails on a page, in `values`, until MOST_BYTES are used up; all parts share them."""

    def __init__(self) -> None:
        self.values: list[str] = []
        self._places: dict[str, int] = {}
        self._room = MOST_BYTES

    def add(self, samples: Samples, settings: list[dict[str, Any]]) -> dict[str, Any]:
        """What the page says of the samples in the tasks of an explorer, as JSON.

        `rows` has, for each row of which more is known than its number, the id, or None, and the places in `values` of
        text and thumbnail, or None. `left_out` is how many samples lack one of these for want of room.
        """
        tasks = [task for setting in settings for task in setting["tasks"]]
        # Those that explain most come first: the support, then mistakes, then the other queries.
        support = [row for task in tasks for *_, row in task["support"]]
        queries = [(truth == chosen, row) for task in tasks for *_, truth, chosen, row in task["queries"]]
        rows, left_out = {}, 0
        for row in dict.fromkeys([*support, *(row for _, row in sorted(queries, key=lambda query: query[0]))]):
            text = None if samples.texts is None else _shown(samples.texts[row], LONGEST_TEXT)
            image = b"" if samples.thumbnails is None else samples.thumbnails[row]
            kind = next((kind for kind, start in IMAGES.items() if start.match(image)), None)
            given = [text or None, kind and f"data:{kind};base64,{b64encode(image).decode()}"]
            places = [None if value is None else self._place(value) for value in given]
            left_out += any(place is None is not value for value, place in zip(given, places, strict=True))
            name = _shown(samples.ids[row], LONGEST_ID, end=True) if ID in samples.columns else None
            if (name, *places) != (None, None, None):
                rows[row] = [name, *places]
        return {"rows": rows, "left_out": left_out}

    def _place(self, value: str) -> int | None:
        """Where a value is in `values`; None where there is no room for it."""
        if value not in self._places:
            # With its comma, and as the page writes it: `<`, `>` and `&` take six characters.
            size = len(json.dumps(value)) + 1 + 5 * sum(map(value.count, "<>&"))
            if size > self._room:
                return None
            self._room -= size
            self._places[value] = len(self.values)
            self.values.append(value)
        return self._places[value]


def _shown(text: str, longest: int, end: bool = False) -> str:
    """A text on one line of at most so many characters, its start or its end."""
    line = " ".join((text[-2 * longest :] if end else text[: 2 * longest]).split())
    if len(line) > longest or len(text) > 2 * longest:
        line = f"…{line[1 - longest :]}" if end else f"{line[: longest - 1]}…"
    return UNSEEN.sub("\N{REPLACEMENT CHARACTER}", line)


@dataclass(frozen=True)
class Options:
    """How a whole page is made; the arguments of `make_report`, and the texts and thumbnails that its parts share."""

    read: Reader = read_source
    tasks: int = 24
    reference: str | None = None
    threshold: float = 0.5
    data: Source | None = None
    inputs: PageInputs = field(default_factory=PageInputs)

    def source(self, about: Mapping[str, Any]) -> Source:
        """The source that a `run.json` names, with the data where they are now; an empty one where it names none."""
        recorded = about.get("source")
        recorded = recorded if isinstance(recorded, dict) else {}
        texts = {key: value for key, value in recorded.items() if isinstance(value, str) and value}
        base, novel = (Path(texts[key]) if key in texts else None for key in ("base", "novel"))
        source = Source(base, novel, texts.get("bank"), texts.get("command"))
        if self.data is None or self.data == Source():
            return source
        if self.data.bank is not None:
            return replace(self.data, command=source.command)
        return Source(self.data.base or base, self.data.novel or novel, None, source.command)

    def load(self, source: Source) -> tuple[BaseClasses, Samples]:
        """The data of a run, checked."""
        base, *given = self.read(source)
        samples = given[0] if isinstance(given[0], Samples) else Samples(*given)
        for name, values in samples.columns.items():
            if len(values) != len(samples):
                raise InputError(
                    f"`read` returned {len(samples)} novel samples and {len(values)} {name}s: it must return one "
                    f"{name} per sample."
                )
        return base, replace(samples, X=check_features(samples.X, "X_novel"), y=np.asarray(samples.y))
