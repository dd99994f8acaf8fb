"""Why a model predicts what it predicts: which samples and which base classes made the difference, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.errors import InputError
from hotshot.estimators import explanation_views as views
from hotshot.formatting import count, quoted, whole_percentage, with_interval
from hotshot.method.attribution import TrainedOn
from hotshot.method.heads.problem import symmetric_penalty
from hotshot.transport.costs import cosine

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# How many examples and lenders a sentence names.
NAMED_EXAMPLES, NAMED_LENDERS = 2, 3


@dataclass(frozen=True)
class Loan:
    """What one calibrated Gaussian is made of.

    Attributes
    ----------
    label : the novel class
    sample : int or None
        Index of the support sample; None where the class has one Gaussian.
    name : str or None
        Of that sample.
    own_share : float
        How much of the mean is the support's own.
    lenders : tuple of (base class, transfer weight)
        Largest first.
    """

    label: Any
    sample: int | None
    name: str | None
    own_share: float
    lenders: tuple[tuple[Any, float], ...]

    def in_words(self, n: int = 5) -> str:
        """One sentence that names the `n` largest lenders."""
        who = f"`{self.label}`" + ("" if self.name is None else f" ({self.name})")
        rest = len(self.lenders) - n
        more = f" and {rest} more" if rest > 0 else ""
        share = whole_percentage(self.own_share)
        return f"{who} borrows from {views.named_lenders(self.lenders[:n])}{more}; {share} of its mean is its own."


@dataclass(frozen=True)
class Example:
    """A support sample of the class predicted or of the runner-up.

    `index` counts in the order of fit, `similarity` is its cosine to the query in the space of the model, and
    `contribution` is what it gives to the gap: its own vote, and its share in the mean of its class.
    """

    index: int
    name: str
    label: Any
    similarity: float
    contribution: float


@dataclass(frozen=True)
class Lender:
    """A base class: its transfer weights to the class predicted and to the runner-up, and what it gives to the gap."""

    name: Any
    weight: float
    rival_weight: float
    contribution: float


@dataclass(frozen=True)
class Reason:
    """One prediction, its runner-up, and what the gap between their logits is made of.

    `gap` is the sum of `own`, `lent` and `rest`: the contributions of the examples of both classes, those of the base
    classes by the means that they lend to both, and the rest (examples and loans of other classes, covariances,
    intercepts). The head is linear and minimises a loss, so that every point it was trained on has its own term in the
    logits; `hotshot.method.attribution` says how. This holds for all heads of hotshot and, with nothing lent, for plain
    logistic regression without base classes. A head added to `HEADS` that does not give its slopes leaves all in the
    rest, and so do two base classes of a model with `include_base`; `is_split` is False then.

    Attributes
    ----------
    index, name
        Of the query; the name is None where it has none.
    label, probability, rival, rival_probability
        The class predicted and the runner-up.
    gap : float
        Logit of the class predicted minus that of the runner-up.
    rest : float
    examples : tuple of Example
        Of both classes, the largest contribution first.
    lenders : tuple of Lender
        That lend to one of them, the largest contribution first.
    is_split : bool
    """

    index: int
    name: str | None
    label: Any
    probability: float
    rival: Any
    rival_probability: float
    gap: float
    rest: float
    examples: tuple[Example, ...]
    lenders: tuple[Lender, ...]
    is_split: bool

    @property
    def own(self) -> float:
        """What the support samples of both classes give to the gap."""
        return sum(example.contribution for example in self.examples)

    @property
    def lent(self) -> float:
        """What the lent means give to the gap."""
        return sum(lender.contribution for lender in self.lenders)

    def in_words(self) -> str:
        """A few sentences: the prediction, the examples and lenders behind it, and what makes the gap."""
        query = f"Query {self.index}" if self.name is None else self.name
        sentences = [
            f"{query} is `{self.label}` with probability {whole_percentage(self.probability)}, "
            f"before `{self.rival}` with {whole_percentage(self.rival_probability)}."
        ]
        own = sorted((e for e in self.examples if e.label == self.label), key=lambda e: -e.similarity)
        named = ", ".join(f"{e.name} (similarity {e.similarity:.2f})" for e in own[:NAMED_EXAMPLES])
        sentences.append(f"Closest of its own examples: {named}." if own else "It is one of the base classes.")
        lenders = sorted((x for x in self.lenders if x.weight > 0), key=lambda x: -x.weight)[:NAMED_LENDERS]
        if lenders:
            sentences.append(f"Borrowed from {views.named_lenders((x.name, x.weight) for x in lenders)}.")
        if self.is_split:
            parts = [f"the examples of both classes make {with_interval(self.own, signed=True)}"]
            parts += [f"the lent means {with_interval(self.lent, signed=True)}"] if self.lenders else []
            parts += [f"the rest {with_interval(self.rest, signed=True)}"]
            sentences.append(f"Of the gap of {self.gap:.2f} between the two logits, {', '.join(parts)}.")
        return " ".join(sentences)


@dataclass(frozen=True, repr=False)
class Explanation:
    """Loans of a fitted model and, for queries given, the reasons of its predictions; prints as text.

    Attributes
    ----------
    classes : tuple
        The novel classes.
    loans : tuple of Loan
        One per calibrated Gaussian; none without base classes.
    reasons : tuple of Reason
        One per query.
    """

    classes: tuple[Any, ...]
    loans: tuple[Loan, ...]
    reasons: tuple[Reason, ...] = ()

    def __repr__(self) -> str:
        classes, queries = count(len(self.classes), "class", "classes"), count(len(self.reasons), "query", "queries")
        return f"Explanation({classes}, {queries})"

    def __str__(self) -> str:
        if not self.loans and not self.reasons:
            return "No base classes were given, so nothing is borrowed."
        lines = [loan.in_words() for loan in self.loans] + [reason.in_words() for reason in self.reasons]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return views.as_html(self)

    def to_dict(self) -> dict[str, Any]:
        """All of it as dictionaries, lists, strings and numbers, for JSON."""
        return views.as_dict(self)

    def plot(self, n: int = 20) -> Figure:
        """A figure: what the gaps of the first `n` queries are made of."""
        return views.as_figure(self, n)


def explain_model(
    model: Any,
    X: np.ndarray | None,
    names: Sequence[str] | None = None,
    rivals: np.ndarray | None = None,
    queries: Sequence[str] | None = None,
) -> Explanation:
    """Loans of a fitted classifier and, for checked queries X (queries, V), reasons of its predictions.

    Parameters
    ----------
    names : sequence of str, or None
        Of the support samples, in the order of fit.
    rivals : integer array (queries,) or None
        Classes, as numbers in `classes_`, that predictions are compared with; None for the runner-up of each.
    queries : sequence of str, or None
        Names of the queries.
    """
    names = _checked_names(names, len(model.support_labels_), "names", "support sample")
    if X is not None and queries is not None:
        queries = _checked_names(queries, len(X), "queries", "query")
    weights = model.transfer_weights_
    orders = np.argsort(-weights, axis=1, kind="stable")
    several = len(model.target_labels_) > len(np.unique(model.target_labels_))
    loans = tuple(
        Loan(
            label=model.target_labels_[i],
            sample=i if several else None,
            name=names[i] if several else None,
            own_share=float(model.own_share_[i]),
            lenders=tuple((model.base_names_[b], float(row[b])) for b in orders[i] if row[b] > 0),
        )
        for i, row in enumerate(weights)
    )
    return Explanation(tuple(model.classes_), loans, () if X is None else _reasons(model, X, names, rivals, queries))


def _checked_names(names: Sequence[str] | None, n_samples: int, parameter: str, what: str) -> list[str]:
    if names is None:
        return [f"sample {i}" for i in range(n_samples)]
    given = None if isinstance(names, str) or not isinstance(names, Iterable) else list(names)
    if given is None or not all(isinstance(name, str) for name in given):
        raise InputError(f"{parameter} must be a list of strings, got {quoted(names)}: pass one string per {what}.")
    if len(given) != n_samples:
        raise InputError(f"{parameter} has {len(given)} strings where {n_samples} are needed: pass one per {what}.")
    return given


def _reasons(
    model: Any, X: np.ndarray, names: list[str], rivals: np.ndarray | None, called: Sequence[str] | None
) -> tuple[Reason, ...]:
    classes, labels = model.classes_, np.searchsorted(model.classes_, model.support_labels_)
    logits = model._logits(X).astype(np.float64)
    probabilities = model._probabilities(logits)
    ranks = np.argsort(-probabilities, axis=1, kind="stable")
    queries, support = (model.transform_(x).astype(np.float64) for x in (X, model.support_))
    similarity = 1 - cosine(queries, support)
    is_new = getattr(model, "is_new_", np.ones(len(classes), dtype=bool))
    # Places of the classes among the new ones.
    places = np.where(is_new, np.cumsum(is_new) - 1, -1)
    trained = _trained_on(model, support, places)
    # (N, B): the mean over the support samples where each has its own transfer weights.
    lent = [model.transfer_weights_[model.target_labels_ == c] for c in classes]
    weights = np.stack([w.mean(axis=0) if len(w) else np.zeros(w.shape[1]) for w in lent])

    reasons = []
    for i, first in enumerate(ranks[:, 0]):
        second = ranks[i, 1] if rivals is None else rivals[i]
        samples, lenders = np.zeros(len(labels)), np.zeros(weights.shape[1])
        if trained is not None:
            samples, lenders = trained.split(queries[i], places[first], places[second])
        gap = float(logits[i, first] - logits[i, second])
        examples = [
            Example(int(j), names[j], classes[labels[j]], float(similarity[i, j]), float(samples[j]))
            for j in np.argsort(-samples, kind="stable")
            if labels[j] in (first, second)
        ]
        lending = [
            Lender(model.base_names_[b], *map(float, (weights[first, b], weights[second, b], lenders[b])))
            for b in np.argsort(-lenders, kind="stable")
            if weights[first, b] > 0 or weights[second, b] > 0
        ]
        reasons.append(
            Reason(
                index=i,
                name=None if called is None else called[i],
                label=classes[first],
                probability=float(probabilities[i, first]),
                rival=classes[second],
                rival_probability=float(probabilities[i, second]),
                gap=gap,
                rest=gap - sum(e.contribution for e in examples) - sum(x.contribution for x in lending),
                examples=tuple(examples),
                lenders=tuple(lending),
                is_split=trained is not None and max(places[first], places[second]) >= 0,
            )
        )
    return tuple(reasons)


def _trained_on(model: Any, support: np.ndarray, places: np.ndarray) -> TrainedOn | None:
    """What the head was trained on; None where it does not tell its slopes."""
    if model.slopes_ is None:
        return None
    names = ("calibrated_means_", "own_parts_", "transfer_weights_", "base_means_", "slopes_", "spectrum_")
    # In one order in memory, so that a loaded model gives the same bits.
    means, own_parts, weights, base_means, slopes, spectrum = (
        np.array(getattr(model, name), dtype=np.float64, order="C") for name in names
    )
    labels, mean_labels = (
        places[np.searchsorted(model.classes_, own)] for own in (model.support_labels_, model.target_labels_)
    )
    beside = getattr(model, "beside_", np.zeros(slopes.shape[1]))
    C = symmetric_penalty(model.C, len(model.classes_))
    return TrainedOn(support, labels, means, mean_labels, own_parts, weights, base_means, slopes, spectrum, C, beside)
