"""What the rivals share: one transform of features, class means, outlier scores, base classes in the predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hotshot.arrays import cast
from hotshot.bank import BaseClasses, PreparedBase, Space, class_means
from hotshot.bank.space import FeatureTransform
from hotshot.classifiers.classifier import (
    NUMBER,
    POWERS,
    FewShotClassifier,
    StrOptions,
    chosen,
    joined_classes,
    parameter,
)
from hotshot.errors import ParameterError
from hotshot.files.objects import need

# What a classifier of unit vectors may do before it scales.
NORMALIZE = ("centre-l2", "l2")


def means_by_class(X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Mean of the samples (samples, V) of each class, counted from 0: (N, V)."""
    order = np.argsort(labels, kind="stable")
    return class_means(X[order], np.bincount(labels))


def require_samples(bank: BaseClasses) -> np.ndarray:
    """The samples of a bank (samples, V); raise if it has none."""
    if bank.samples is None:
        raise ParameterError("include_base needs a bank with samples: save it with samples=True.")
    return bank.samples


class Rival(FewShotClassifier):
    """Base of classifiers of transformed features z (samples, V); subclasses define ``_learn_z`` and ``_score``."""

    # Of the support, its labels from 0 and the settings; and logits of queries.
    _learn_z: ClassVar[Callable[..., None]]
    _score: ClassVar[Callable[..., np.ndarray]]

    def _fit(self, X: np.ndarray, labels: np.ndarray, settings: Mapping[str, Any]) -> None:
        self.transform_ = self._transform(X, settings)
        self._learn_z(self._placed(X), labels, settings)

    def _transform(self, X: np.ndarray, settings: Mapping[str, Any]) -> FeatureTransform:
        """Power, centre and unit norm; "centre-l2" subtracts the mean of the base samples, all else nothing."""
        power, centre = float(settings["power"]), np.zeros(X.shape[1])
        if self.base is not None and settings.get("normalize") == "centre-l2":
            centre = np.asarray(self.base.centre(power), dtype=np.float64)
        return FeatureTransform(power, 0.0, 1.0, centre, None, unit=True)

    def _placed(self, X: np.ndarray) -> np.ndarray:
        """Samples in the space of the classifier."""
        return np.asarray(self.transform_(cast(X, np.asarray(self.transform_.centre).dtype)), dtype=np.float64)

    def _logits(self, X: np.ndarray) -> np.ndarray:
        return self._score(self._placed(X))

    def _check_state(self, width: int) -> None:
        need(self.transform_.centre is not None, "transform_ has no centre")


@dataclass(eq=False, repr=False, kw_only=True)
class BankRival(Rival):
    """A rival with a bank."""

    base: BaseClasses | None = parameter(None)
    power: float | str = chosen(POWERS, NUMBER)

    def outlier_score(self, X: Any) -> np.ndarray:
        """Outlier score of each sample (samples,): the larger, the less likely it belongs to any class.

        It is minus the largest logit; of ``CentroidClassifier`` minus the largest cosine similarity to a centroid, and
        of ``LogisticClassifier`` minus the largest probability.
        """
        return np.asarray(-self._evidence(self._checked(X)).max(axis=1))

    def _evidence(self, X: np.ndarray) -> np.ndarray:
        """What speaks for each class (samples, classes)."""
        return self._finite_logits(X)


@dataclass(eq=False, repr=False, kw_only=True)
class MeansRival(BankRival):
    """Base of classifiers by class means; subclasses define ``_learn_means`` and ``_base_means``."""

    include_base: bool = parameter(False, "boolean")

    # Of means (N, V) and numbers of samples (N,) of all classes and the settings; and means of base classes (B, V).
    _learn_means: ClassVar[Callable[..., None]]
    _base_means: ClassVar[Callable[..., np.ndarray]]

    def _learn_z(self, z: np.ndarray, labels: np.ndarray, settings: Mapping[str, Any]) -> None:
        means, shots = means_by_class(z, labels), np.bincount(labels)
        if self.include_base and self.base is not None:
            self.classes_, self.is_new_, order = joined_classes(self.base.names, self.classes_)
            means = np.concatenate([self._base_means(), means])[order]
            shots = np.concatenate([self.base.counts, shots])[order]
        self._learn_means(means, shots, settings)


class SpaceRival(MeansRival):
    """Base of classifiers by class means in the space of ``HOTClassifier``."""

    def _transform(self, X: np.ndarray, settings: Mapping[str, Any]) -> FeatureTransform:
        if self.base is None:
            return super()._transform(X, settings)
        return self.base.prepare(Space(power=float(settings["power"]))).transform

    def _check_state(self, width: int) -> None:
        super()._check_state(width)
        need((self.transform_.axes is None) is (self.base is None), "transform_ does not match base")

    def _prepared(self) -> PreparedBase:
        """The bank in that space."""
        assert self.base is not None
        return self.base.prepare(Space(power=self.power_))

    def _base_means(self) -> np.ndarray:
        return self._prepared().means.astype(np.float64)


@dataclass(eq=False, repr=False, kw_only=True)
class TransductiveClassifier(BankRival):
    """Base of classifiers that use all queries of a task together; subclasses define ``_scores`` and ``_assigned``.

    ``predict`` classifies each sample alone, as scikit-learn demands: it is the start of the method, from the means of
    the support. ``predict_batch`` is the method. Sizes: Q queries, S support samples, N classes, V features.
    """

    normalize: str = chosen(NORMALIZE, StrOptions({*NORMALIZE}))

    # Logits (samples, N) of transformed samples, prototypes and settings; and, of transformed queries (Q, V) and the
    # settings, probabilities (Q, N) and scores that decide between equal ones.
    _scores: ClassVar[Callable[..., np.ndarray]]
    _assigned: ClassVar[Callable[..., tuple[np.ndarray, np.ndarray]]]
    jointly = True

    def _learn_z(self, z: np.ndarray, labels: np.ndarray, settings: Mapping[str, Any]) -> None:
        self.support_, self.labels_, self.prototypes_ = z, labels, means_by_class(z, labels)

    def _score(self, z: np.ndarray) -> np.ndarray:
        return self._scores(z, self.prototypes_, self.fitted_settings())

    def predict_proba_batch(self, X: Any) -> np.ndarray:
        """Probability of each class (samples, N) for all queries of a task, jointly; they depend on all rows."""
        return self._batch(X)[0]

    def predict_batch(self, X: Any) -> np.ndarray:
        """Predict the classes of all queries of a task jointly; they depend on all rows."""
        probabilities, scores = self._batch(X)
        # Equal probabilities, such as those of a single query in a balanced plan, are decided by the scores.
        best = probabilities >= probabilities.max(axis=1, keepdims=True) * (1 - 1e-9)
        return np.asarray(self.classes_[np.where(best, scores, -np.inf).argmax(axis=1)])

    def _batch(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities and scores (samples, N) of raw samples."""
        X = self._checked(X)
        self._finite_logits(X)
        return self._assigned(self._placed(X), self.fitted_settings())
