"""Reasons with the inputs themselves: in words for a terminal, or as one page with texts and thumbnails."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.estimators.explanation import Example, Explanation, Reason
from hotshot.formatting import whole_percentage, with_interval
from hotshot.inputs.classifier import InputClassifier
from hotshot.inputs.rows import Inputs, Support

TEMPLATE = Path(__file__).with_name("explanation.html")
# Examples of each class and lenders on the page.
MOST_SHOWN = 5


@dataclass(frozen=True)
class Explained:
    """Reasons for some inputs, and what these and the support samples are."""

    explanation: Explanation
    queries: Support
    support: Support


def explain_some(model: InputClassifier, inputs: Inputs | None, most: int) -> Explained:
    """Reasons for the first inputs; without inputs, what each new class borrows."""
    if inputs is None:
        return Explained(model.model.explain(names=model.support.names()), Support(), model.support)
    queries, features = Support(), []
    for rows, X in model.batches(inputs):
        some = np.arange(len(rows)) < most - len(queries.ids)
        queries = queries + rows.shown().only(some)
        features.append(X[some])
        if len(queries.ids) == most:
            break
    names = model.support.names()
    found = model.model.explain(np.concatenate(features), names=names, queries=queries.names())
    return Explained(found, queries, model.support)


def in_words(explained: Explained) -> str:
    """A paragraph for each input, or a line for each class where there are no inputs."""
    parts = explained.explanation.reasons or explained.explanation.loans
    return "\n\n".join(part.in_words() for part in parts) if parts else str(explained.explanation)


def as_page(explained: Explained, title: str) -> str:
    """One page that needs no other file."""
    from jinja2 import Environment, select_autoescape

    template = Environment(autoescape=select_autoescape(default=True)).from_string(TEMPLATE.read_text(encoding="utf-8"))
    return template.render(title=title, cards=[_card(explained, reason) for reason in explained.explanation.reasons])


def _card(explained: Explained, reason: Reason) -> dict[str, Any]:
    parts = {"Examples of both classes": reason.own, "Lent means": reason.lent, "Rest": reason.rest}
    longest = max(*map(abs, parts.values()), 1e-9)
    lenders = sorted((x for x in reason.lenders if x.weight > 0), key=lambda x: -x.weight)[:MOST_SHOWN]
    by_class = {
        name: sorted((e for e in reason.examples if e.label == name), key=lambda e: -e.similarity)[:MOST_SHOWN]
        for name in (reason.label, reason.rival)
    }
    return {
        **_shown(explained.queries, reason.index),
        "answers": [
            {
                "name": str(name),
                "probability": whole_percentage(probability),
                "examples": [{**_shown(explained.support, e.index), **_similarity(e)} for e in by_class[name]],
            }
            for name, probability in ((reason.label, reason.probability), (reason.rival, reason.rival_probability))
        ],
        "gap": f"{reason.gap:.2f}",
        "parts": [
            {"name": name, "value": with_interval(value, signed=True), "width": round(50 * abs(value) / longest, 1),
             "side": "against" if value < 0 else "for"}
            for name, value in parts.items()
        ] if reason.is_split else [],
        "lenders": [{"name": str(x.name), "weight": whole_percentage(x.weight)} for x in lenders],
    }  # fmt: skip


def _similarity(example: Example) -> dict[str, str]:
    return {"similarity": f"{example.similarity:.2f}"}


def _shown(support: Support, index: int) -> dict[str, str]:
    """What a page shows of one input: its text or its thumbnail, and its id."""
    found = {"id": support.ids[index]}
    if support.texts:
        found["text"] = support.texts[index]
    if support.thumbnails:
        found["image"] = "data:image/webp;base64," + b64encode(support.thumbnails[index]).decode()
    return found
