"""What the page shows of samples: ids, texts and thumbnails, each once, and within what a page can hold."""

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

from hotshot.files import Samples

# Bytes of texts and thumbnails on one page.
MOST_BYTES = 2_000_000
# Characters; of an id the last ones stay, which tell paths apart.
LONGEST_TEXT, LONGEST_ID = 1000, 100
# What browsers draw, by its first bytes. Nothing else is embedded: SVG, for one, is a document.
IMAGES = {
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
}
# Control characters and halves of a character; all others are shown as they are, whatever the script.
UNSEEN = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff]")


class PageInputs:
    """Texts and data URIs of thumbnails on a page, in `values`, until MOST_BYTES are used up; all parts share them."""

    def __init__(self) -> None:
        self.values: list[str] = []
        self._places: dict[str, int] = {}
        self._room = MOST_BYTES

    def add(self, kept: Samples, settings: list[dict[str, Any]]) -> dict[str, Any]:
        """What the page says of the samples in the tasks of an explorer, as JSON.

        `rows` has, for each row of which more is known than its number, the id, or None, and the places in `values` of
        text and thumbnail, or None. `left_out` is how many samples lack one of these for want of room.
        """
        rows, left_out = {}, 0
        for row in dict.fromkeys(_rows(settings)):
            found = [_text(kept, row), _thumbnail(kept, row)]
            places = [None if value is None else self._place(value) for value in found]
            left_out += any(place is None for value, place in zip(found, places, strict=True) if value is not None)
            name = None if "id" not in kept.columns else _shown(kept.ids[row], LONGEST_ID, end=True)
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


def _rows(settings: list[dict[str, Any]]) -> Iterator[int]:
    """Rows of all tasks, those that explain most first: the support, then mistakes, then the other queries."""
    tasks = [task for setting in settings for task in setting["tasks"]]
    for task in tasks:
        yield from (row for *_, row in task["support"])
    for task in tasks:
        yield from (row for *_, truth, chosen, row in task["queries"] if truth != chosen)
    for task in tasks:
        yield from (row for *_, row in task["queries"])


def _text(kept: Samples, row: int) -> str | None:
    return _shown(kept.texts[row], LONGEST_TEXT) or None if kept.texts is not None else None


def _thumbnail(kept: Samples, row: int) -> str | None:
    content = b"" if kept.thumbnails is None else kept.thumbnails[row]
    kind = next((kind for kind, start in IMAGES.items() if start.match(content)), None)
    return None if kind is None else f"data:{kind};base64,{b64encode(content).decode()}"


def _shown(text: str, longest: int, end: bool = False) -> str:
    """A text on one line of at most so many characters, its start or its end."""
    line = " ".join((text[-2 * longest :] if end else text[: 2 * longest]).split())
    if len(line) > longest or len(text) > 2 * longest:
        line = f"…{line[1 - longest :]}" if end else f"{line[: longest - 1]}…"
    return UNSEEN.sub("\N{REPLACEMENT CHARACTER}", line)
