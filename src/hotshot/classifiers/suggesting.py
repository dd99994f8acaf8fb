"""Suggestions of a fitted classifier with a bank: which samples of a pool to label next."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from hotshot.arrays import LIMITS, cast, check_number, slices
from hotshot.classifiers.classifier import snapshot
from hotshot.classifiers.confidence import LEVELS
from hotshot.classifiers.suggestions import GROUP, INFORMATIVE, OUTSIDE, TYPICAL, Suggestion, Suggestions
from hotshot.errors import ParameterError
from hotshot.model.suggestion import Labelled, Pool, choose, similar_groups
from hotshot.model.two_covariances import ROWS_AT_ONCE, KnownClasses

# Rate of false alarms among outliers of the pool.
FALSE_ALARMS = 0.02
# Outliers that are compared with one another.
MOST_OUTLIERS = 2**11
# Smallest group of outliers, and by how many standard deviations it must exceed the false alarms.
SMALLEST_GROUP, DEVIATIONS = 3, 3.0


class Suggesting(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types.
    """Mixin of classifiers with a bank that suggest which samples to label next."""

    classes_: np.ndarray
    known_: KnownClasses
    new_classes: Any

    def suggest(self, X: Any, n: int = 5) -> Suggestions:
        """Suggest which unlabelled samples to label next: those whose labels say most about all the others.

        Samples are chosen one after the other. The first ones are typical of their classes; once these are known,
        those between classes follow (see the module ``hotshot.model.suggestion``). Copies of labelled samples and of
        other suggestions are left out. A group of similar samples that fit no class is suggested once, as perhaps a new
        class, if the bank has at least 20 classes of 10 samples.

        Parameters
        ----------
        X : array (samples, V)
            The pool: unlabelled samples.
        n : int
            Number of suggestions; fewer if the pool has fewer different samples.

        Returns
        -------
        Suggestions
            Rows of the pool with reasons, the most useful first; ``rows`` is an array of the row numbers.

        Examples
        --------
        >>> import numpy as np
        >>> from hotshot import BaseClasses, HOTClassifier
        >>> rng = np.random.default_rng(0)
        >>> centres = rng.normal(size=(12, 8))
        >>> labels = np.repeat(np.arange(12), 50)
        >>> X = centres[labels] + 0.3 * rng.normal(size=(600, 8))
        >>> base = BaseClasses.from_samples(X[:500], labels[:500])
        >>> model = HOTClassifier(base).fit(X[[500, 550]], ["new", "newer"])
        >>> suggestions = model.suggest(X[500:], n=2)
        >>> sorted(suggestion.label for suggestion in suggestions)
        [np.str_('new'), np.str_('newer')]
        """
        self = snapshot(self)
        X = cast(self._checked(X), self.support_.dtype)
        check_number("n", n, *LIMITS["number"])
        if getattr(self, "known_", None) is None:
            raise ParameterError(
                f"{type(self).__name__} without base classes makes no suggestions: pass base (in the shell --base)."
            )
        probabilities = self.answers(X)[0]
        rotated = self._rotated(X)
        outlying = self._fits_no_class(X)
        labelled, is_new = self._labelled_samples(), self.new_classes
        of_new = probabilities[:, is_new]
        weights = np.where(outlying, 0, of_new.sum(axis=1))
        # With no probability for any new class, all are equally probable.
        of_new = of_new + np.finfo(np.float64).tiny
        of_new = of_new / of_new.sum(axis=1, keepdims=True)
        candidates = _first_copies(self.support_, X)
        groups = _groups(labelled, rotated, np.intersect1d(candidates, np.flatnonzero(outlying)), len(X))[: n // 2]
        centres = np.array([centre for centre, _ in groups], dtype=np.int64)
        grouped = np.concatenate([centres[:0], *(members for _, members in groups)])
        rest = np.setdiff1d(candidates, grouped)
        picks = choose(labelled, Pool(rotated, of_new, weights, rest), min(n - len(groups), len(rest)))
        kinds = np.where(picks.typical >= picks.informative, TYPICAL, INFORMATIVE)
        kinds[picks.typical + picks.informative <= 0] = OUTSIDE
        counted = np.setdiff1d(np.flatnonzero(weights > 0.5), grouped)
        closest = _closest_counts(rotated, np.concatenate([labelled.support, rotated[picks.rows]]), counted)
        stands_for = [len(members) for _, members in groups] + closest[len(labelled.support) :].tolist()
        rows = np.concatenate([centres, picks.rows])
        # The only class is its own runner-up.
        best = np.argsort(-probabilities[rows], axis=1, kind="stable")[:, [0, min(1, len(self.classes_) - 1)]]
        return Suggestions(
            tuple(
                Suggestion(
                    index=int(row),
                    label=self.classes_[first],
                    probability=float(probabilities[row, first]),
                    rival=self.classes_[second],
                    rival_probability=float(probabilities[row, second]),
                    kind=str(kind),
                    stands_for=max(int(number), 1),
                )
                for row, (first, second), kind, number in zip(
                    rows, best, [*[GROUP] * len(groups), *kinds], stands_for, strict=True
                )
            ),
            len(X),
        )

    def _rotated(self, X: np.ndarray) -> np.ndarray:
        """Samples in the axes of the two-covariance model."""
        return np.asarray(self.known_.two.rotated(self._in_space(X).astype(np.float64)))

    def _labelled_samples(self) -> Labelled:
        labels = np.unique(self.support_labels_, return_inverse=True)[1]
        centre = np.asarray(self.known_.two.rotated(self.known_.centre.astype(np.float64)))
        return Labelled(self.known_.two.ratios, centre, self._rotated(self.support_), labels)

    def _fits_no_class(self, X: np.ndarray) -> np.ndarray:
        """Whether samples fit no class, at a small rate of false alarms; none does if the bank is small."""
        scores = getattr(self, "alarm_scores_", None)
        if scores is None:
            return np.zeros(len(X), dtype=bool)
        best, fit = self.known_.best(self._in_space(X))
        limits = np.array([np.interp(FALSE_ALARMS, LEVELS, own) for own in scores])
        return np.asarray(fit < np.minimum(limits[best], 0))


def _first_copies(support: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Rows of X that are copies neither of support samples nor of rows before them."""
    both = np.concatenate([support, X])
    first = np.unique(both, axis=0, return_index=True)[1]
    return np.sort(first[first >= len(support)]) - len(support)


def _groups(
    labelled: Labelled, rotated: np.ndarray, outliers: np.ndarray, pool_size: int
) -> list[tuple[int, np.ndarray]]:
    """Groups among outliers that are larger than false alarms would be: row of the centre, and rows."""
    alarms = FALSE_ALARMS * pool_size
    least = max(SMALLEST_GROUP, int(np.ceil(alarms + DEVIATIONS * np.sqrt(alarms))))
    some = outliers[np.linspace(0, len(outliers) - 1, min(len(outliers), MOST_OUTLIERS)).astype(int)]
    found = similar_groups(labelled, rotated[some], least)
    return [(int(some[centre]), some[members]) for centre, members in found]


def _closest_counts(rotated: np.ndarray, examples: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """How many of these rows are closest to each example (examples, V)."""
    counts = np.zeros(len(examples), dtype=np.int64)
    for some in slices(len(rows), ROWS_AT_ONCE):
        distances = np.sum(examples * examples, axis=1) - 2 * rotated[rows[some]] @ examples.T
        counts += np.bincount(distances.argmin(axis=1), minlength=len(examples))
    return counts
