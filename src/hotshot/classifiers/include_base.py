"""Bases of simple classifiers: with outlier scores, and with the option ``include_base``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hotshot.bank import BaseClasses
from hotshot.classifiers.classifier import FewShotClassifier
from hotshot.classifiers.fields import parameter
from hotshot.classifiers.open_world import check_names, require_samples


class ScoredClassifier(FewShotClassifier):
    """A classifier with outlier scores."""

    def outlier_score(self, X: Any) -> np.ndarray:
        """Outlier score of each sample: the larger, the less likely it belongs to any class.

        It is minus the largest logit; of ``CentroidClassifier`` minus the largest cosine similarity to a centroid, and
        of ``LogisticClassifier`` minus the largest probability.

        Parameters
        ----------
        X : array (samples, V)
            Samples to score.

        Returns
        -------
        array (samples,)
            Scores.
        """
        return np.asarray(-self._evidence(X).max(axis=1))

    def _evidence(self, X: Any) -> np.ndarray:
        """What speaks for each class (samples, classes)."""
        return self._checked_logits(X)


@dataclass(eq=False, repr=False, kw_only=True)
class IncludeBaseClassifier(ScoredClassifier):
    """A classifier that can predict base classes too (``include_base``).

    Subclasses call ``_join_base`` in ``_fit``, which sets ``is_new_`` (classes,): which of the ``classes_`` are new.
    """

    base: BaseClasses | None = parameter(None)
    include_base: bool = parameter(False, "boolean")

    def _join_base(self) -> np.ndarray:
        """Make ``classes_`` the sorted union of base and new classes.

        Returns
        -------
        order : integer array (classes,)
            Index of each class in the base classes followed by the new classes.
        """
        assert self.base is not None
        check_names(self.base.names, self.classes_)
        all_names = np.concatenate([self.base.names, self.classes_])
        order = np.argsort(all_names, kind="stable")
        self.classes_, self.is_new_ = all_names[order], order >= len(self.base.names)
        return order

    def _base_samples(self, most: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Samples of the base classes (n, V), at most ``most`` random ones of each, and their classes (n,)."""
        assert self.base is not None
        samples, labels = require_samples(self.base), self.base.labels
        if most is None or self.base.counts.max() <= most:
            return samples, labels
        order = np.random.default_rng(0).permutation(len(labels))
        order = order[np.argsort(labels[order], kind="stable")]
        starts = np.cumsum(self.base.counts) - self.base.counts
        kept = np.sort(order[np.arange(len(labels)) - starts[labels] < most])
        return samples[kept], labels[kept]
