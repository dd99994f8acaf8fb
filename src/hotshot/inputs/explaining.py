"""Explanations that show the inputs: as text, or as an HTML page with texts and thumbnails."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.classifiers.explanation import Example, Explanation, Reason
from hotshot.files import Samples
from hotshot.formatting import shortened, whole_percentage, with_interval
from hotshot.inputs.samples import names_of
from hotshot.transport.costs import cosine

TEMPLATE = Path(__file__).with_name("explanation.html")
# Examples of each class and lenders on the page.
MOST_ON_PAGE = 5
LONGEST_TITLE = 80


@dataclass(frozen=True)
class InputExplanation:
    """Reasons for the answers to inputs, with the inputs, and the samples of new and old classes that they name."""

    explanation: Explanation
    queries: Samples
    support: Samples
    old: Samples | None

    def __str__(self) -> str:
        return self.in_words()

    def in_words(self, *, numbers: bool = False) -> str:
        """A paragraph for each input; `numbers` adds the parts of the difference between the two logits."""
        return "\n\n".join(reason.in_words(numbers=numbers) for reason in self.explanation.reasons)

    def to_dict(self) -> dict[str, Any]:
        """The explanation as dictionaries, lists, strings and numbers, for JSON."""
        return self.explanation.to_dict()

    def to_html(self, title: str) -> str:
        """The explanation as one self-contained HTML page."""
        from jinja2 import Environment, select_autoescape

        page = Environment(autoescape=select_autoescape(default=True))
        page.filters.update(percent=whole_percentage, with_sign=lambda value: with_interval(value, signed=True))
        cards = [self._card(reason) for reason in self.explanation.reasons]
        return page.from_string(TEMPLATE.read_text("utf-8")).render(title=shortened(title, LONGEST_TITLE), cards=cards)

    def _card(self, reason: Reason) -> dict[str, Any]:
        answers = [self._answer(reason, reason.label, reason.probability)]
        # The only class of a model has no runner-up.
        if reason.rival != reason.label:
            answers.append(self._answer(reason, reason.rival, reason.rival_probability))
        return {
            "reason": reason,
            "input": _shown(self.queries, reason.index),
            "answers": answers,
            "parts": {
                "Examples of both classes": reason.own,
                "Means of base classes": reason.lent,
                "Rest": reason.rest,
            },
            "lenders": sorted((x for x in reason.lenders if x.weight > 0), key=lambda x: -x.weight)[:MOST_ON_PAGE],
        }

    def _answer(self, reason: Reason, label: Any, probability: float) -> dict[str, Any]:
        of_class = [example for example in reason.examples if example.label == label]
        closest = sorted(of_class, key=lambda example: -example.similarity)[:MOST_ON_PAGE]
        examples = [{**self._shown(example.index), "similarity": example.similarity} for example in closest]
        return {"name": str(label), "probability": probability, "examples": examples}

    def _shown(self, index: int) -> dict[str, Any]:
        """An example; the samples of old classes are counted after those of new ones."""
        of_old = index - len(self.support)
        return _shown(self.support, index) if of_old < 0 or self.old is None else _shown(self.old, of_old)


def _shown(samples: Samples, index: int) -> dict[str, Any]:
    """One input for the page: its id, and its text or thumbnail, if any."""
    image = samples.thumbnails[index] if samples.thumbnails else b""
    return {
        "id": samples.ids[index],
        "text": samples.texts[index] if samples.texts else "",
        "image": "data:image/webp;base64," + b64encode(image).decode() if image else "",
    }


def explain_inputs(
    model: Any, queries: Samples, support: Samples, old: Samples | None, reject: float | None
) -> InputExplanation:
    """Explain the answers to the queries, with the closest samples of old classes as examples too."""
    explanation = model.explain(queries.X, names=names_of(support), queries=names_of(queries), reject=reject)
    if old is None:
        return InputExplanation(explanation, queries, support, old)
    names, new = names_of(old), {*model.support_labels_.tolist()}

    def closest(query: int, label: Any) -> list[Example]:
        members = np.flatnonzero(old.y == str(label))
        # The closest of some samples need not be the closest.
        if len(members) != model.outliers_.known.sizes[np.searchsorted(model.classes_, label)]:
            return []
        pair = (model._in_space(X).astype(np.float64) for X in (queries.X[query : query + 1], old.X[members]))
        (similarities,) = 1 - cosine(*pair)
        order = np.argsort(-similarities, kind="stable")[:MOST_ON_PAGE]
        near = zip(members[order].tolist(), similarities[order].tolist(), strict=True)
        return [Example(len(support) + i, names[i], label, similarity, 0.0) for i, similarity in near]

    reasons = []
    for i, reason in enumerate(explanation.reasons):
        both = [label for label in dict.fromkeys((reason.label, reason.rival)) if label not in new]
        examples = [example for label in both for example in closest(i, label)]
        reasons.append(replace(reason, examples=(*reason.examples, *examples)))
    return InputExplanation(replace(explanation, reasons=tuple(reasons)), queries, support, old)
