"""Why a model predicts what it predicts: which base classes lent to which novel class, in words."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hotshot.formatting import whole_percentage
from hotshot.method.heads.problem import softmax
from hotshot.transport.costs import cosine


@dataclass(frozen=True)
class Loan:
    """What one calibrated Gaussian is made of.

    Attributes
    ----------
    label : the novel class
    sample : int or None
        Index of the support sample; None where the class has one Gaussian.
    own_share : float
        How much of the mean is the support's own.
    lenders : tuple of (base class, transfer weight)
        Largest first.
    """

    label: Any
    sample: int | None
    own_share: float
    lenders: tuple[tuple[Any, float], ...]

    def in_words(self, n: int = 5) -> str:
        """One sentence that names the `n` largest lenders."""
        who = f"`{self.label}`" + ("" if self.sample is None else f" (support sample {self.sample})")
        named = ", ".join(f"`{name}` {whole_percentage(weight)}" for name, weight in self.lenders[:n])
        rest = len(self.lenders) - n
        more = f" and {rest} more" if rest > 0 else ""
        return f"{who} borrows from {named}{more}; {whole_percentage(self.own_share)} of its mean is its own."


@dataclass(frozen=True)
class Lender:
    """What one base class says about one query.

    `weight` and `rival_weight` are its transfer weights to the class predicted and to the runner-up,
    `similarity` the cosine between the query and its mean, and `evidence` the difference of the two weights
    times the similarity: positive where it speaks for the class predicted.
    """

    name: Any
    weight: float
    rival_weight: float
    similarity: float
    evidence: float


@dataclass(frozen=True)
class Reason:
    """One prediction, its runner-up, and the base classes that speak for and against it, strongest first."""

    index: int
    label: Any
    probability: float
    rival: Any
    rival_probability: float
    lenders: tuple[Lender, ...]

    def in_words(self, n: int = 3) -> str:
        """One or two sentences that name the `n` lenders that speak for the prediction most."""
        text = (
            f"Query {self.index} is `{self.label}` with probability {whole_percentage(self.probability)}, "
            f"before `{self.rival}` with {whole_percentage(self.rival_probability)}."
        )
        speakers = [lender for lender in self.lenders[:n] if lender.evidence > 0]
        if speakers:
            named = ", ".join(
                f"`{s.name}` (lends {whole_percentage(s.weight)} to `{self.label}`, "
                f"{whole_percentage(s.rival_weight)} to `{self.rival}`; similarity {s.similarity:.2f})"
                for s in speakers
            )
            text += f" Evidence against the runner-up: {named}."
        return text


@dataclass(frozen=True)
class Explanation:
    """Loans of a fitted model and, for queries given, the reasons of its predictions; prints as text."""

    loans: tuple[Loan, ...]
    reasons: tuple[Reason, ...] = ()

    def __str__(self) -> str:
        if not self.loans and not self.reasons:
            return "No base classes were given, so nothing is borrowed."
        lines = [loan.in_words() for loan in self.loans] + [reason.in_words() for reason in self.reasons]
        return "\n".join(lines)


def explain_model(model: Any, X: np.ndarray | None) -> Explanation:
    """Loans of a fitted classifier with a bank and, for checked queries X (queries, V), reasons of its predictions."""
    weights = model.transfer_weights_
    orders = np.argsort(-weights, axis=1, kind="stable")
    several = len(model.target_labels_) > len(model.classes_)
    loans = tuple(
        Loan(
            label=model.target_labels_[i],
            sample=i if several else None,
            own_share=float(model.own_share_[i]),
            lenders=tuple((model.base_names_[b], float(row[b])) for b in orders[i] if row[b] > 0),
        )
        for i, row in enumerate(weights)
    )
    return Explanation(loans, () if X is None else _reasons(model, X))


def _reasons(model: Any, X: np.ndarray) -> tuple[Reason, ...]:
    names, classes = model.base_names_, model.classes_
    probabilities = softmax(model._logits(X).astype(np.float64))[0]
    ranks = np.argsort(-probabilities, axis=1, kind="stable")
    similarity = weights = None
    if len(names):
        similarity = 1 - cosine(model.transform_(X), model.base_means_)
        weights = np.stack([model.transfer_weights_[model.target_labels_ == c].mean(axis=0) for c in classes])
    reasons = []
    for i, (first, second) in enumerate(ranks[:, :2]):
        lenders: list[Lender] = []
        if similarity is not None and weights is not None:
            evidence = (weights[first] - weights[second]) * similarity[i]
            columns = np.stack([weights[first], weights[second], similarity[i], evidence], axis=1, dtype=np.float64)
            lenders = [Lender(names[b], *columns[b].tolist()) for b in np.argsort(-evidence, kind="stable")]
        own, others = probabilities[i, [first, second]].tolist()
        reasons.append(Reason(i, classes[first], own, classes[second], others, tuple(lenders)))
    return tuple(reasons)
