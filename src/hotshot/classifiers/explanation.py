r"""Explanations of predictions: which support samples and base classes contributed to the difference of two logits.

At the minimum of a head's problem its gradient vanishes. With g_p the derivatives of the loss in the logits of point
p, a calibrated mean or a support sample, and with all covariances replaced by the typical one of the bank, which is
diag(s) in its axes, this gives, axis by axis,

.. math::
    W_{\cdot v} = -\sum_p (I / C + s_v L)^{-1} g_p\, x_{pv}, \qquad
    L = \sum_g \sum_{j \ne y_g} g_{gj} (e_j - e_{y_g})(e_j - e_{y_g})^\top .

L comes from the covariances: exactly for the bound head, approximately for the others. Every point has its own term in
W. That term times z - z_0, with z a query and z_0 the mean of the calibrated means, is the contribution of the point to
the logits of z. The difference of two logits is the sum of these contributions, of the same difference at z_0, and of
the error of the typical covariance.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from html import escape
from math import isfinite
from typing import Any

import numpy as np

from hotshot.classifiers.suggestions import plain
from hotshot.errors import InputError
from hotshot.formatting import count, printable, quoted, whole_percentage, with_interval
from hotshot.transport.costs import cosine

# Largest number of examples and lenders in a sentence.
NAMED_EXAMPLES, NAMED_LENDERS = 2, 3


@dataclass(frozen=True)
class TrainedOn:
    """What one head was trained on: S support samples, G calibrated means, B base classes, N classes, V axes.

    Samples ``support`` (S, V) are in the space of the bank, their ``labels`` (S,) count from 0. ``means`` (G, V) of
    ``mean_labels`` (G,) are one per class, one per support sample in the same order, or none; each is the average of
    the ``own_parts`` (S, V) of its samples plus a lent part, by ``weights`` (G, B) of the ``base_means`` (B, V).
    ``slopes`` (G + S, N) are the derivatives of the loss in the logits of the means and the support samples,
    ``spectrum`` (V,) the variances of the typical covariance, and C the inverse strength of the penalty for one vector
    per class. ``beside`` (N,) are the slopes of the means in the logits of base classes that are predicted too, summed;
    0 if there are none.
    """

    support: np.ndarray
    labels: np.ndarray
    means: np.ndarray
    mean_labels: np.ndarray
    own_parts: np.ndarray
    weights: np.ndarray
    base_means: np.ndarray
    slopes: np.ndarray
    spectrum: np.ndarray
    C: float
    beside: np.ndarray

    def split(self, query: np.ndarray, first: int, second: int) -> tuple[np.ndarray, np.ndarray]:
        """Contributions of support samples (S,) and base classes (B,) to logit ``first`` minus logit ``second``.

        Samples of other classes and loans to other classes count as 0. A class of -1 is a base class, whose logit
        does not depend on them.
        """
        vectors, inverse = self._inverse
        of_first, of_second = (vectors[c] if c >= 0 else np.zeros(len(vectors)) for c in (first, second))
        centre = self.means.mean(axis=0) if len(self.means) else self.support.mean(axis=0)
        # The query as it enters the weights of each class (N, V).
        projected = vectors @ ((of_first - of_second)[:, None] * inverse * (query - centre))
        of_means, of_support = np.split(self.slopes, [len(self.means)])
        samples = _contributions(of_support, self.support @ projected.T)
        if len(self.means):
            samples += _contributions(of_means[self._mean_index] * self._shares, self.own_parts @ projected.T)
        both = np.isin(self.mean_labels, (first, second))
        scales, remainders = self._lent
        contributions = -(self.base_means @ projected.T) @ of_means[both].T * scales[both]
        contributions += _contributions(of_means[both], remainders[both] @ projected.T)
        lenders = np.sum(contributions * self.weights[both].T, axis=1)
        return np.where(np.isin(self.labels, (first, second)), samples, 0.0), lenders

    @cached_property
    def _inverse(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvectors of L (N, N), and 1 / (1 / C + s_v l) for each of its eigenvalues (N, V)."""
        between = np.zeros((self.slopes.shape[1], self.slopes.shape[1]))
        np.add.at(between, self.mean_labels, self.slopes[: len(self.means)])
        between = between + between.T
        np.fill_diagonal(between, 0)
        values, vectors = np.linalg.eigh(np.diag(between.sum(axis=0) + self.beside) - between)
        return vectors, 1 / (1 / self.C + np.maximum(values, 0)[:, None] * self.spectrum)

    @cached_property
    def _mean_index(self) -> np.ndarray:
        """Index of the calibrated mean that each support sample is part of (S,)."""
        one_per_class = len(self.means) == self.slopes.shape[1]
        return np.argsort(self.mean_labels)[self.labels] if one_per_class else np.arange(len(self.labels))

    @property
    def _shares(self) -> np.ndarray:
        """Share of each support sample in its calibrated mean (S, 1)."""
        return 1 / np.bincount(self._mean_index)[self._mean_index, None]

    @cached_property
    def _lent(self) -> tuple[np.ndarray, np.ndarray]:
        """Lent parts of the means as multiples (G,) of the lent means, and the remainders (G, V).

        A rule may use more of some axes than of others: the remainder is divided by transfer weight.
        """
        lent = self.means.copy()
        if len(lent):
            np.add.at(lent, self._mean_index, -self.own_parts * self._shares)
        whole = self.weights @ self.base_means
        lengths = np.sum(whole * whole, axis=1)
        scales = np.sum(lent * whole, axis=1) / np.where(lengths > 0, lengths, 1.0)
        return scales, lent - scales[:, None] * whole


def _contributions(slopes: np.ndarray, projected: np.ndarray) -> np.ndarray:
    return np.asarray(-np.sum(slopes * projected, axis=1))


@dataclass(frozen=True)
class Loan:
    """The parts of one calibrated Gaussian, of a class or, with an index and a name, of one of its samples.

    ``own_share`` of its mean comes from the support; the rest is lent by the ``lenders``, base classes with their
    transfer weights, the largest first.
    """

    label: Any
    sample: int | None
    name: str | None
    own_share: float
    lenders: tuple[tuple[Any, float], ...]

    def in_words(self, n: int = 5) -> str:
        """One sentence with the n largest lenders."""
        who = f"`{self.label}`" + ("" if self.name is None else f" ({self.name})")
        rest = len(self.lenders) - n
        more = f" and {rest} more" if rest > 0 else ""
        lent = f"{who} borrows from {_named_lenders(self.lenders[:n])}{more}"
        return f"{lent}; {whole_percentage(self.own_share)} of its mean comes from its own samples."


@dataclass(frozen=True)
class Example:
    """A support sample of the predicted class or of the runner-up: its index in the order of fit, name and class.

    ``similarity`` is its cosine to the query in the space of the model, ``contribution`` what it adds to the gap, by
    itself and through the calibrated mean of its class.
    """

    index: int
    name: str
    label: Any
    similarity: float
    contribution: float


@dataclass(frozen=True)
class Lender:
    """A base class with its transfer weights to the predicted class and to the runner-up.

    ``contribution`` is what it adds to the gap, through the lent means.
    """

    name: Any
    weight: float
    rival_weight: float
    contribution: float


@dataclass(frozen=True)
class Reason:
    """One prediction, its runner-up (rival), and the contributions to the gap between their logits.

    ``gap`` is the sum of ``own``, ``lent`` and ``rest``: the contributions of the examples of both classes, of the
    means that base classes lend to both, and the rest (examples and loans of other classes, covariances, intercepts);
    see the top of this module. If both are base classes of a model with ``include_base``, or a head
    of your own returns no slopes, the whole gap is in the rest and ``is_split`` is False.

    Examples and lenders are in the order of their contributions. Above its ``limit`` an outlier score means that the
    query is rejected; both are None without base classes, or without a rate.
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
    outlier_score: float | None = None
    limit: float | None = None

    @property
    def rejected(self) -> bool:
        """Whether the query fits no class."""
        return self.limit is not None and self.outlier_score is not None and self.outlier_score > self.limit

    @property
    def own(self) -> float:
        """Contribution of the support samples of both classes to the gap."""
        return sum(example.contribution for example in self.examples)

    @property
    def lent(self) -> float:
        """Contribution of the lent means to the gap."""
        return sum(lender.contribution for lender in self.lenders)

    def in_words(self, *, numbers: bool = False) -> str:
        """A few sentences: the answer, the examples that it resembles, the runner-up, and the lenders.

        ``numbers`` adds the parts of the gap.
        """
        query = f"Query {self.index}" if self.name is None else self.name
        likeliest = f"`{self.label}` (probability {whole_percentage(self.probability)})"
        sentences = [f"{query}: {'none of these' if self.rejected else likeliest}.", self.outliers_in_words()]
        if self.rejected:
            sentences.append(f"Among the known classes the likeliest is {likeliest}.")
        examples, of_rival = (self._closest(label) for label in (self.label, self.rival))
        named = " and ".join(f"{e.name} (similarity {e.similarity:.2f})" for e in examples[:NAMED_EXAMPLES])
        missing = f"`{self.label}` is a base class, whose samples are not at hand."
        sentences.append(f"Closest examples of `{self.label}`: {named}." if examples else missing)
        second = f"Runner-up: `{self.rival}` ({whole_percentage(self.rival_probability)})"
        if self.rival == self.label:
            second = "There is no other class"
        elif examples and of_rival:
            best = of_rival[0]
            is_less = best.similarity < examples[0].similarity
            less = "less similar" if is_less else "no less similar, but all examples count"
            second = f"{second}, whose closest example, {best.name} (similarity {best.similarity:.2f}), is {less}"
        sentences.append(f"{second}.")
        lenders = sorted((x for x in self.lenders if x.weight > 0), key=lambda x: -x.weight)[:NAMED_LENDERS]
        if lenders:
            named = _named_lenders((x.name, x.weight) for x in lenders)
            sentences.append(f"`{self.label}` borrows most from {named}.")
        if numbers and self.is_split:
            parts = {"the examples of both classes": self.own, "the lent means": self.lent, "the rest": self.rest}
            if not self.lenders:
                del parts["the lent means"]
            named = ", ".join(f"{with_interval(value, signed=True)} from {part}" for part, value in parts.items())
            sentences.append(f"The two logits differ by {self.gap:.2f}: {named}.")
        return " ".join(filter(None, sentences))

    def outliers_in_words(self) -> str:
        """Outlier score and limit in a sentence; empty without a limit."""
        if self.limit is None:
            return ""
        fits = "above the limit of {:.2f}: it fits no class" if self.rejected else "within the limit of {:.2f}"
        return f"The outlier score of {self.outlier_score:.2f} is {fits.format(self.limit)}."

    def _closest(self, label: Any) -> list[Example]:
        """The examples of a class, the closest first."""
        return sorted((e for e in self.examples if e.label == label), key=lambda e: -e.similarity)


@dataclass(frozen=True, repr=False)
class Explanation:
    """Loans of a fitted model and, for queries, reasons of its predictions; ``print`` shows it as text.

    There is one loan per calibrated Gaussian (none without base classes) and one reason per query.
    """

    classes: tuple[Any, ...]
    loans: tuple[Loan, ...]
    reasons: tuple[Reason, ...] = ()

    def __repr__(self) -> str:
        classes, queries = count(len(self.classes), "class", "classes"), count(len(self.reasons), "query", "queries")
        return f"Explanation({classes}, {queries})"

    def __str__(self) -> str:
        return self.in_words()

    def in_words(self, *, numbers: bool = False) -> str:
        """One line per loan and reason; ``numbers`` adds the parts of each gap."""
        if not self.loans and not self.reasons:
            return "The model has no base classes, so nothing is borrowed."
        return "\n".join([loan.in_words() for loan in self.loans] + [r.in_words(numbers=numbers) for r in self.reasons])

    def _repr_html_(self) -> str:
        return "".join(f"<p>{escape(printable(line))}</p>" for line in self.in_words().splitlines())

    def to_dict(self) -> dict[str, Any]:
        """The explanation as dictionaries, lists, strings and numbers, for JSON."""
        content: dict[str, Any] = plain(asdict(self))
        for item, reason in zip(content["reasons"], self.reasons, strict=True):
            item.update(own=reason.own, lent=reason.lent, rejected=reason.rejected)
        return content


def _named_lenders(lenders: Iterable[tuple[Any, float]]) -> str:
    """Names and percentages, such as "``a`` 31%, ``b`` 12%"."""
    return ", ".join(f"`{name}` {whole_percentage(weight)}" for name, weight in lenders)


def explain_model(
    model: Any,
    X: np.ndarray | None,
    names: Sequence[str] | None = None,
    rivals: np.ndarray | None = None,
    queries: Sequence[str] | None = None,
    outliers: tuple[np.ndarray, np.ndarray] | None = None,
) -> Explanation:
    """Loans of a fitted classifier and, for checked queries X (queries, V), reasons of its predictions.

    ``names`` and ``queries`` name support samples and queries. ``rivals`` (queries,) are indices in ``classes_`` of the
    classes to compare with, by default the runner-up of each; ``outliers`` are scores and limits of the queries.
    """
    names = _checked_names(names, len(model.support_labels_), "names", "support sample")
    per_sample = len(model.target_labels_) > len(np.unique(model.target_labels_))
    loans = []
    for i, (label, weights) in enumerate(zip(model.target_labels_, model.transfer_weights_, strict=True)):
        order = [b for b in np.argsort(-weights, kind="stable") if weights[b] > 0]
        lenders = tuple((model.base_names_[b], float(weights[b])) for b in order)
        sample, name = (i, names[i]) if per_sample else (None, None)
        loans.append(Loan(label, sample, name, float(model.own_share_[i]), lenders))
    reasons: tuple[Reason, ...] = ()
    if X is not None:
        called = [None] * len(X) if queries is None else _checked_names(queries, len(X), "queries", "query")
        reasons = _reasons(model, X, names, rivals, called, outliers)
    return Explanation(tuple(model.classes_), tuple(loans), reasons)


def _checked_names(names: Sequence[str] | None, n_samples: int, parameter: str, what: str) -> list[str]:
    if names is None:
        return [f"sample {i}" for i in range(n_samples)]
    given = None if isinstance(names, str) or not isinstance(names, Iterable) else list(names)
    if given is None or not all(isinstance(name, str) for name in given):
        raise InputError(f"{parameter} must be a list of strings, got {quoted(names)}: pass one string per {what}.")
    if len(given) != n_samples:
        raise InputError(f"{parameter} must hold {n_samples} strings, got {len(given)}: pass one per {what}.")
    return given


def _reasons(
    model: Any,
    X: np.ndarray,
    names: list[str],
    rivals: np.ndarray | None,
    called: Sequence[str | None],
    outliers: tuple[np.ndarray, np.ndarray] | None,
) -> tuple[Reason, ...]:
    classes, base_names, labels = model.classes_, model.base_names_, model.support_labels_
    logits = model._logits(X).astype(np.float64)
    probabilities = model._probabilities(logits)
    queries, support = (model.transform_(x).astype(np.float64) for x in (X, model.support_))
    similarity, trained = 1 - cosine(queries, support), model.trained_on_
    if trained is not None:
        # In one memory order, so that a loaded model computes the same bits.
        arrays = {name: x for name, x in vars(trained).items() if isinstance(x, np.ndarray) and x.dtype.kind == "f"}
        trained = replace(trained, **{name: np.array(x, dtype=np.float64, order="C") for name, x in arrays.items()})
    # The place of each class among the new ones.
    places = np.where(model.new_classes, np.cumsum(model.new_classes) - 1, -1)
    # (N, B): the mean over the support samples where each has its own transfer weights.
    weights = np.zeros((len(classes), len(base_names)))
    for name in np.unique(model.target_labels_):
        weights[classes == name] = model.transfer_weights_[model.target_labels_ == name].mean(axis=0)

    reasons = []
    for i, ranks in enumerate(np.argsort(-probabilities, axis=1, kind="stable")):
        # The only class has no runner-up but itself.
        first, second = ranks[0], ranks[:2][-1] if rivals is None else rivals[i]
        own, lent = np.zeros(len(labels)), np.zeros(len(base_names))
        if trained is not None:
            own, lent = trained.split(queries[i], places[first], places[second])
        examples = tuple(
            Example(int(j), names[j], labels[j], float(similarity[i, j]), float(own[j]))
            for j in np.argsort(-own, kind="stable")
            if labels[j] in classes[[first, second]]
        )
        lenders = tuple(
            Lender(base_names[b], float(weights[first, b]), float(weights[second, b]), float(lent[b]))
            for b in np.argsort(-lent, kind="stable")
            if weights[first, b] > 0 or weights[second, b] > 0
        )
        gap = float(logits[i, first] - logits[i, second])
        score, limit = (None, None) if outliers is None else (float(values[i]) for values in outliers)
        reason = Reason(
            index=i,
            name=called[i],
            label=classes[first],
            probability=float(probabilities[i, first]),
            rival=classes[second],
            rival_probability=float(probabilities[i, second]),
            gap=gap,
            rest=gap - sum(e.contribution for e in examples) - sum(x.contribution for x in lenders),
            examples=examples,
            lenders=lenders,
            is_split=trained is not None and max(places[first], places[second]) >= 0,
            outlier_score=score,
            limit=limit if limit is not None and isfinite(limit) else None,
        )
        reasons.append(reason)
    return tuple(reasons)
