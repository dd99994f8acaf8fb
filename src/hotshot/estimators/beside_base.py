"""What simple classifiers know beyond a closed set of new classes: base classes beside them, and what fits none."""

from __future__ import annotations

from typing import Any

import numpy as np

from hotshot.base import BaseClasses
from hotshot.estimators.classifier import FewShotClassifier
from hotshot.estimators.open_world import check_names, needed_samples


class BesideBase(FewShotClassifier):
    """A classifier that answers base classes too where `include_base` says so, and has a score for outliers.

    Subclasses call `_join_base` in `_fit`. `is_new_` (classes,) then says which of the `classes_` are new.
    """

    base: BaseClasses | None
    include_base: bool

    def outlier_score(self, X: Any) -> np.ndarray:
        """Minus the largest logit of each sample (samples,): the larger, the likelier it is of no class."""
        return np.asarray(-self._checked_logits(X).max(axis=1))

    def _join_base(self) -> np.ndarray:
        """Make `classes_` the sorted union of base and new classes.

        Returns
        -------
        order : integer array (classes,)
            Where each class is among the base classes followed by the new ones.
        """
        assert self.base is not None
        check_names(self.base, self.classes_)
        everyone = np.concatenate([self.base.names, self.classes_])
        order = np.argsort(everyone, kind="stable")
        self.classes_, self.is_new_ = everyone[order], order >= len(self.base.names)
        return order

    def _base_samples(self, most: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Samples of the base classes (n, V), of each the first `most` of a random order, and their classes (n,)."""
        assert self.base is not None
        samples, labels = needed_samples(self.base), self.base.labels
        if most is None or self.base.counts.max() <= most:
            return samples, labels
        order = np.random.default_rng(0).permutation(len(labels))
        order = order[np.argsort(labels[order], kind="stable")]
        starts = np.cumsum(self.base.counts) - self.base.counts
        kept = np.sort(order[np.arange(len(labels)) - starts[labels] < most])
        return samples[kept], labels[kept]
