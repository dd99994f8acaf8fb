"""Explanations that show the inputs: as text, or as an HTML page with texts and thumbnails."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.classifiers.explanation import Explanation, Reason
from hotshot.files import Samples
from hotshot.formatting import shortened, whole_percentage, with_interval
from hotshot.transport.costs import cosine

TEMPLATE = Path(__file__).with_name("explanation.html")
# Examples of each class and lenders on the page.
MOST_ON_PAGE = 5
LONGEST_TITLE = 80

# The closest samples of an old class: their indices and their similarities to an input.
Close = dict[Any, list[tuple[int, float]]]


def names_of(samples: Samples) -> list[str]:
    """Names for explanations: texts in quotes, or else ids."""
    if samples.texts:
        return [f'"{text}"' for text in samples.texts]
    return [f"id {one}" if one.isdecimal() else one for one in samples.ids]


@dataclass(frozen=True)
class InputExplanation:
    """Reasons for the answers to inputs, with the inputs and the samples that are close to them.

    `close` has, for each input, the samples of its answer and of its runner-up, if these are old classes, as indices in
    `old`, the closest first.
    """

    explanation: Explanation
    queries: Samples
    support: Samples
    old: Samples
    close: tuple[Close, ...]

    def __str__(self) -> str:
        return self.in_words()

    def in_words(self, *, numbers: bool = False) -> str:
        """A paragraph for each input; `numbers` adds the parts of the difference between the two logits."""
        names, paragraphs = names_of(self.old), []
        for reason, close in zip(self.explanation.reasons, self.close, strict=True):
            stored = {label: [(names[i], similarity) for i, similarity in near] for label, near in close.items()}
            paragraphs.append(reason.in_words(numbers=numbers, stored=stored))
        return "\n\n".join(paragraphs)

    def to_dict(self) -> dict[str, Any]:
        """The explanation as dictionaries, lists, strings and numbers, for JSON."""
        document, names = self.explanation.to_dict(), names_of(self.old)
        for reason, close in zip(document["reasons"], self.close, strict=True):
            reason["old_examples"] = [
                {"name": names[i], "label": str(label), "similarity": similarity}
                for label, near in close.items()
                for i, similarity in near
            ]
        return document

    def to_html(self, title: str) -> str:
        """The explanation as one self-contained HTML page."""
        from jinja2 import Environment, select_autoescape

        page = Environment(autoescape=select_autoescape(default=True))
        page.filters.update(percent=whole_percentage, with_sign=lambda value: with_interval(value, signed=True))
        cards = [self._card(reason, close) for reason, close in zip(self.explanation.reasons, self.close, strict=True)]
        return page.from_string(TEMPLATE.read_text("utf-8")).render(title=shortened(title, LONGEST_TITLE), cards=cards)

    def _card(self, reason: Reason, close: Close) -> dict[str, Any]:
        examples = sorted(reason.examples, key=lambda e: -e.similarity)
        answers = [(reason.label, reason.probability), (reason.rival, reason.rival_probability)]
        return {
            "reason": reason,
            "input": _shown(self.queries, reason.index),
            "answers": [
                {
                    "name": str(name),
                    "probability": probability,
                    "examples": [
                        *(_shown(self.support, e.index, e.similarity) for e in examples if e.label == name),
                        *(_shown(self.old, i, similarity) for i, similarity in close.get(name, [])),
                    ][:MOST_ON_PAGE],
                }
                # The only class of a model has no runner-up.
                for name, probability in answers[: 1 + (reason.rival != reason.label)]
            ],
            "parts": {
                "Examples of both classes": reason.own,
                "Means of base classes": reason.lent,
                "Rest": reason.rest,
            },
            "lenders": sorted((x for x in reason.lenders if x.weight > 0), key=lambda x: -x.weight)[:MOST_ON_PAGE],
        }


def explain_inputs(
    model: Any, queries: Samples, support: Samples, old: Samples | None, reject: float | None
) -> InputExplanation:
    """Explain the answers to the queries, with the closest samples of old classes."""
    explanation = model.explain(queries.X, names=names_of(support), queries=names_of(queries), reject=reject)
    if old is None:
        empty = Samples(queries.X[:0], support.y[:0])
        return InputExplanation(explanation, queries, support, empty, tuple({} for _ in explanation.reasons))
    placed, new = model._in_space(queries.X).astype(np.float64), {*model.support_labels_.tolist()}

    @cache
    def similar(name: Any) -> tuple[np.ndarray, np.ndarray]:
        """Indices in `old` of the samples of a class (n,), and their similarities to the queries (queries, n)."""
        members = np.flatnonzero(old.y == str(name))
        # The closest of some samples need not be the closest.
        if len(members) != model.known_.sizes[np.searchsorted(model.classes_, name)]:
            members = members[:0]
        return members, 1 - cosine(placed, model._in_space(old.X[members]).astype(np.float64))

    def closest(query: int, name: Any) -> list[tuple[int, float]]:
        members, similarities = similar(name)
        order = np.argsort(-similarities[query], kind="stable")[:MOST_ON_PAGE]
        return [(int(members[j]), float(similarities[query, j])) for j in order]

    close = tuple(
        {name: closest(i, name) for name in (reason.label, reason.rival) if name not in new}
        for i, reason in enumerate(explanation.reasons)
    )
    return InputExplanation(explanation, queries, support, old, close)


def _shown(samples: Samples, index: int, similarity: float | None = None) -> dict[str, Any]:
    """One input for the page: its id, its text or thumbnail, if any, and its similarity."""
    image = samples.thumbnails[index] if samples.thumbnails else b""
    return {
        "id": samples.ids[index],
        "similarity": similarity,
        "text": samples.texts[index] if samples.texts else "",
        "image": "data:image/webp;base64," + b64encode(image).decode() if image else "",
    }
