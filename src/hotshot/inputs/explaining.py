"""Explanations that show the inputs: as text, or as an HTML page with texts and thumbnails."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.classifiers.explanation import Explanation, Reason
from hotshot.formatting import shortened, whole_percentage, with_interval
from hotshot.inputs.rows import Previews
from hotshot.transport.costs import cosine

TEMPLATE = Path(__file__).with_name("explanation.html")
# Examples of each class and lenders on the page.
MOST_ON_PAGE = 5
LONGEST_TITLE = 80


@dataclass(frozen=True)
class Examples:
    """Samples (n, V) with labels (n,) and previews."""

    X: np.ndarray
    y: np.ndarray
    shown: Previews

    def __add__(self, other: Examples) -> Examples:
        X, y = (np.concatenate(pair) for pair in ((self.X, other.X), (self.y, other.y)))
        return Examples(X, y, self.shown + other.shown)


@dataclass(frozen=True)
class InputExplanation:
    """Reasons for the answers to inputs, with previews of the inputs and of the samples that are close to them.

    `close` has, for each input, the samples of its answer and of its runner-up, if these are old classes: pairs of the
    index in `old` and the similarity to the input, the closest first.
    """

    explanation: Explanation
    queries: Previews
    support: Previews
    old: Previews
    close: tuple[dict[Any, list[tuple[int, float]]], ...]

    def __str__(self) -> str:
        return self.in_words()

    def in_words(self, *, numbers: bool = False) -> str:
        """A paragraph for each input; `numbers` adds the parts of the difference between the two logits."""
        names, found = self.old.names(), []
        for reason, close in zip(self.explanation.reasons, self.close, strict=True):
            stored = {label: [(names[i], similarity) for i, similarity in own] for label, own in close.items()}
            found.append(reason.in_words(numbers=numbers, stored=stored))
        return "\n\n".join(found)

    def to_dict(self) -> dict[str, Any]:
        """The explanation as dictionaries, lists, strings and numbers, for JSON."""
        found, names = self.explanation.to_dict(), self.old.names()
        for reason, close in zip(found["reasons"], self.close, strict=True):
            reason["old_examples"] = [
                {"name": names[i], "label": str(label), "similarity": similarity}
                for label, own in close.items()
                for i, similarity in own
            ]
        return found

    def to_html(self, title: str) -> str:
        """The explanation as one self-contained HTML page."""
        from jinja2 import Environment, select_autoescape

        environment = Environment(autoescape=select_autoescape(default=True))
        pairs = zip(self.explanation.reasons, self.close, strict=True)
        cards = [self._card(reason, close) for reason, close in pairs]
        template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
        return template.render(title=shortened(title, LONGEST_TITLE), cards=cards)

    def _card(self, reason: Reason, close: dict[Any, list[tuple[int, float]]]) -> dict[str, Any]:
        parts = {"Examples of both classes": reason.own, "Means of base classes": reason.lent, "Rest": reason.rest}
        longest = max(*map(abs, parts.values()), 1e-9)
        lenders = sorted((x for x in reason.lenders if x.weight > 0), key=lambda x: -x.weight)[:MOST_ON_PAGE]
        own = sorted(reason.examples, key=lambda e: -e.similarity)
        both = {reason.rival: reason.rival_probability, reason.label: reason.probability}
        return {
            **_shown(self.queries, reason.index),
            "answers": [
                {
                    "name": str(name),
                    "probability": whole_percentage(probability),
                    "examples": [
                        *(_shown(self.support, e.index, e.similarity) for e in own if e.label == name),
                        *(_shown(self.old, i, similarity) for i, similarity in close.get(name, [])),
                    ][:MOST_ON_PAGE],
                }
                for name, probability in reversed(both.items())
            ],
            "verdict": "none of these" if reason.rejected else str(reason.label),
            "outliers": reason.outliers_in_words(),
            "gap": f"{reason.gap:.2f}",
            "parts": [
                {
                    "name": name,
                    "value": with_interval(value, signed=True),
                    "width": round(50 * abs(value) / longest, 1),
                    "side": "against" if value < 0 else "for",
                }
                for name, value in (parts.items() if reason.is_split else ())
            ],
            "lenders": [{"name": str(x.name), "weight": whole_percentage(x.weight)} for x in lenders],
        }


def explain_inputs(
    model: Any, X: np.ndarray, queries: Previews, support: Previews, old: Examples | None, reject: float | None
) -> InputExplanation:
    """Explain the answers to features X (queries, V), with the closest samples of old classes."""
    found = model.explain(X, names=support.names(), queries=queries.names(), reject=reject)
    if old is None:
        return InputExplanation(found, queries, support, Previews(), tuple({} for _ in found.reasons))
    placed, new = model._in_space(X).astype(np.float64), set(model.support_labels_.tolist())

    @cache
    def similar(name: Any) -> tuple[np.ndarray, np.ndarray]:
        """Indices in `old` of the samples of a class (n,), and their similarities to the inputs (queries, n)."""
        own = np.flatnonzero(old.y == str(name))
        # The closest of some samples need not be the closest.
        own = own if len(own) == model.known_.sizes[np.searchsorted(model.classes_, name)] else own[:0]
        return own, 1 - cosine(placed, model._in_space(old.X[own]).astype(np.float64))

    close = []
    for i, reason in enumerate(found.reasons):
        closest = {}
        for name in (reason.label, reason.rival):
            if name not in new:
                own, all_similar = similar(name)
                order = np.argsort(-all_similar[i], kind="stable")[:MOST_ON_PAGE]
                closest[name] = [(int(own[j]), float(all_similar[i, j])) for j in order]
        close.append(closest)
    return InputExplanation(found, queries, support, old.shown, tuple(close))


def _shown(shown: Previews, index: int, similarity: float | None = None) -> dict[str, str]:
    """One input for the page: its id, its text or thumbnail, and its similarity."""
    found = {"id": shown.ids[index]}
    if similarity is not None:
        found["similarity"] = f"{similarity:.2f}"
    if shown.texts:
        found["text"] = shown.texts[index]
    if shown.thumbnails and shown.thumbnails[index]:
        found["image"] = "data:image/webp;base64," + b64encode(shown.thumbnails[index]).decode()
    return found
