"""Suggestions of samples to label next, with reasons in words, as a table and as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

import numpy as np

from hotshot.formatting import count, shortened, whole_percentage
from hotshot.notebook import html_table

# Smallest probability of a runner-up that is named in a reason.
LEAST_RIVAL = 0.1
# Kinds of reasons.
TYPICAL, INFORMATIVE, GROUP, OUTSIDE = "typical", "informative", "group", "outside"


@dataclass(frozen=True)
class Suggestion:
    """One sample to label, and why.

    Attributes
    ----------
    index : int
        Row of the pool.
    label, probability : object and float
        The most probable class.
    rival, rival_probability : object and float
        The runner-up.
    kind : {"typical", "informative", "group", "outside"}
        Why it is suggested: it is typical of its class; its label says much about other samples; it is one of a group
        of similar samples that fit no class; or, if nothing better is left, none of these.
    stands_for : int
        Number of samples of the pool, itself included, that are closer to it than to any labelled or other suggested
        sample; in a group, the number of its samples.
    """

    index: int
    label: Any
    probability: float
    rival: Any
    rival_probability: float
    kind: str
    stands_for: int

    @property
    def reason(self) -> str:
        """Why the sample is suggested, in words."""
        first, second = (shortened(name) for name in (self.label, self.rival))
        alike = f"{count(self.stands_for, 'sample')} {'is' if self.stands_for == 1 else 'are'} closest to it"
        separates = (
            f" from `{second}`"
            if self.rival != self.label and self.rival_probability >= LEAST_RIVAL
            else " from other classes"
        )
        return {
            TYPICAL: f"typical of `{first}`: {alike}",
            INFORMATIVE: f"separates `{first}`{separates}: {alike}",
            GROUP: f"{count(self.stands_for, 'similar sample')} fit no class: perhaps a new class",
            OUTSIDE: "fits no new class",
        }[self.kind]

    def in_words(self) -> str:
        """One sentence: the row, its two most probable classes and the reason.

        Returns
        -------
        str
            The sentence.
        """
        classes = ", ".join(self.classes())
        return f"Row {self.index}: {classes}; {self.reason}."

    def classes(self) -> list[str]:
        """The two most probable classes with their probabilities.

        Returns
        -------
        list of str
            One text per class; the only class of a model is alone.
        """
        both = {
            self.label: self.probability,
            **({} if self.rival == self.label else {self.rival: self.rival_probability}),
        }
        return [f"{shortened(name)} {whole_percentage(share)}" for name, share in both.items()]


@dataclass(frozen=True, repr=False)
class Suggestions(Sequence[Suggestion]):
    """Samples of a pool to label next, the most useful first; ``print`` shows a table.

    Attributes
    ----------
    items : tuple of Suggestion
        The suggestions.
    pool_size : int
        Number of samples of the pool.
    """

    items: tuple[Suggestion, ...]
    pool_size: int

    @property
    def rows(self) -> np.ndarray:
        """Rows of the pool, the most useful first."""
        return np.array([item.index for item in self.items], dtype=np.int64)

    def __iter__(self) -> Iterator[Suggestion]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, place: Any) -> Any:
        return self.items[place]

    def __repr__(self) -> str:
        head = ["row", "class", "runner-up", "reason"]
        cells = [[str(item.index), *[*item.classes(), ""][:2], item.reason] for item in self.items]
        widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
        lines = [
            "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in [head, *cells]
        ]
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self) -> str:
        cells = [[str(item.index), *map(escape, [*[*item.classes(), ""][:2], item.reason])] for item in self.items]
        return f"<div>{html_table(['row', 'class', 'runner-up', 'reason'], cells)}</div>"

    def to_dict(self) -> dict[str, Any]:
        """The suggestions as dictionaries, lists, strings and numbers, for JSON.

        Returns
        -------
        dict
            The size of the pool and a list of suggestions.
        """
        found = []
        for item in self.items:
            plain = {name: x.item() if isinstance(x, np.generic) else x for name, x in asdict(item).items()}
            found.append({**plain, "reason": item.reason})
        return {"pool_size": self.pool_size, "suggestions": found}
