"""A bank as an object that estimators share."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from typing import Any

import numpy as np

from hotshot.arrays import array_hash
from hotshot.base.prepared import PreparedBase, Space, prepare
from hotshot.base.statistics import class_covariances, class_means, classifier_weights
from hotshot.errors import ParameterError
from hotshot.features import check_features, check_labels, choose_power, power_transform

# Spaces that a bank keeps prepared; of more, the one unused for longest is let go.
MOST_SPACES = 8


class BaseClasses:
    """Classes with many labelled samples, to borrow means and covariances from.

    Use `BaseClasses.from_samples`. A bank does not change once made, so that estimators share it freely.

    Attributes
    ----------
    names : array (B,)
        Class labels, sorted.
    counts : array (B,)
        Samples per class.
    samples : array (sum(counts), V)
        Features, class by class in the order of `names`.
    """

    def __init__(self, samples: np.ndarray, counts: np.ndarray, names: np.ndarray) -> None:
        self.samples = samples
        self.counts = counts
        self.names = names
        self._prepared: dict[tuple[Space, type], PreparedBase] = {}
        self._centres: dict[float, np.ndarray] = {}

    @classmethod
    def from_samples(cls, X: Any, y: Any, *, max_samples: int | None = None, seed: int = 0) -> BaseClasses:
        """A bank from features (samples, V) and their labels.

        Parameters
        ----------
        X : array (samples, V)
            Finite features of any real dtype; float64 stays, float16 is computed with in float32.
        y : array (samples,)
            Labels of any sortable type, in any order.
        max_samples : int, optional
            Cap of samples per class; larger classes are thinned at random.
        seed : int
            Of that choice.

        Examples
        --------
        >>> import numpy as np
        >>> base = BaseClasses.from_samples(np.random.rand(20, 4), ["cat", "dog"] * 10)
        >>> base
        BaseClasses(2 classes, 20 samples, 4 features)
        """
        X = check_features(X, "X_base")
        names, labels = check_labels(y, len(X), "y_base")
        if max_samples is not None and (not isinstance(max_samples, int) or max_samples < 1):
            raise ParameterError(f"max_samples must be a positive integer or None, got {max_samples!r}.")
        order = np.argsort(labels, kind="stable")
        if max_samples is not None:
            rng = np.random.default_rng(seed)
            groups = np.split(order, np.cumsum(np.bincount(labels))[:-1])
            order = np.concatenate([np.sort(rng.permutation(group)[:max_samples]) for group in groups])
        counts = np.bincount(labels[order], minlength=len(names))
        if not X.flags.writeable and len(order) == len(X) and (np.diff(order) == 1).all():
            # Sorted samples that nobody can change, such as a memory-mapped file, need no copy.
            return cls(X, counts, names)
        return cls(X[order], counts, names)

    def __repr__(self) -> str:
        n, width = self.samples.shape
        return f"BaseClasses({len(self.names)} classes, {n} samples, {width} features)"

    def __sklearn_clone__(self) -> BaseClasses:
        return self

    def __getstate__(self) -> dict[str, Any]:
        # What is large and quickly made again stays behind.
        kept = ("samples", "counts", "names", "_centres", "_smallest")
        return {"_prepared": {}, **{name: x for name, x in self.__dict__.items() if name in kept}}

    @property
    def n_features(self) -> int:
        """Width of the features, V."""
        return int(self.samples.shape[1])

    @cached_property
    def labels(self) -> np.ndarray:
        """Index of the class of each sample (samples,)."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of samples, counts and names: two banks with the same one give the same results."""
        names = json.dumps([str(name) for name in self.names])
        parts = (array_hash(self.samples), array_hash(self.counts), names)
        return hashlib.sha256("".join(parts).encode()).hexdigest()

    @cached_property
    def _smallest(self) -> float:
        return float(self.samples.min())

    @cached_property
    def means(self) -> np.ndarray:
        """Mean of each class (B, V), eq. 2."""
        return class_means(self.samples, self.counts)

    @cached_property
    def covariances(self) -> np.ndarray:
        """Covariance of each class (B, V, V), eq. 2; a one-sample class has the pooled one."""
        return class_covariances(self.samples, self.counts)

    def sample_weights(self, temperature: float = 1.0) -> np.ndarray:
        """Sample weights from a base classifier on the raw features, 1 in total for each class (samples,)."""
        return classifier_weights(self.samples, self.labels, temperature)

    def weighted_means(self, temperature: float = 1.0) -> np.ndarray:
        """Mean of each class by sample weight (B, V)."""
        return class_means(self.samples, self.counts, self.sample_weights(temperature))

    def power(self, power: float | str, support: np.ndarray) -> float:
        """The power that "auto" stands for with this bank and these support features."""
        return choose_power(power, self._smallest, support.min())

    def centre(self, power: float) -> np.ndarray:
        """Mean of all power-transformed samples (V,); computed on the first call and kept."""
        if power not in self._centres:
            powers = power_transform(self.samples, power, name="X_base")
            self._centres[power] = powers.mean(axis=0, dtype=np.float64)
        return self._centres[power]

    def prepare(self, space: Space) -> PreparedBase:
        """The bank in `space`; computed on the first call and kept."""
        # One axis and all of the variance, 1 and 1.0, are equal as keys.
        key = (space, type(space.n_components))
        prepared = self._prepared.pop(key, None) or prepare(self.samples, self.counts, self.names, space)
        self._prepared[key] = prepared
        if len(self._prepared) > MOST_SPACES:
            del self._prepared[next(iter(self._prepared))]
        return prepared
