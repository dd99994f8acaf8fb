"""Transductive rivals: classifiers that use all queries of a task together, starting from the means of the support.

`predict` classifies each sample alone, as scikit-learn demands: it is the start of the method. `predict_batch` is the
method. Sizes: Q queries, S support samples, N classes, V features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from hotshot.arrays import unit_vectors
from hotshot.classifiers.baselines import NORMALIZE, POWERS, CentredClassifier, means_by_class
from hotshot.classifiers.fields import AUTO, COUNT, POSITIVE, parameter
from hotshot.method.heads.problem import softmax
from hotshot.transport import solve
from hotshot.transport.costs import squared_euclidean


class TransductiveClassifier(CentredClassifier):
    """Base of classifiers that use all queries together; subclasses define ``_scores`` and ``_assigned``."""

    # Whether the method is told that all classes have as many queries: settings are then chosen on such tasks.
    assumes_balance: ClassVar[bool] = False

    def _fit(self, X: np.ndarray, labels: np.ndarray) -> None:
        self._fit_units(X)
        self._fit_support(self._units(X), labels)

    def _fit_support(self, support: np.ndarray, labels: np.ndarray) -> None:
        """Keep the normalised support samples (S, V), their classes (S,) and the means of these (N, V)."""
        self.support_, self.labels_ = support, labels
        self.prototypes_ = means_by_class(support, labels)

    def _settled(self) -> Mapping[str, Any]:
        """The parameters, with the values for "auto" that the fit chose."""
        chosen = self.choice().settings if self.base is None else self.chosen_
        return {**self.get_params(deep=False), **chosen}

    def _logits(self, X: np.ndarray) -> np.ndarray:
        return self._scores(self._units(X), self.prototypes_)

    def predict_proba_batch(self, X: Any) -> np.ndarray:
        """Probability of each class for samples that are classified jointly.

        Parameters
        ----------
        X : array (samples, V)
            All queries of a task.

        Returns
        -------
        array (samples, classes)
            Probabilities, in the order of ``classes_``. They depend on all rows.
        """
        return self._batch(X)[0]

    def predict_batch(self, X: Any) -> np.ndarray:
        """Predict the classes of samples jointly.

        Parameters
        ----------
        X : array (samples, V)
            All queries of a task.

        Returns
        -------
        array (samples,)
            Labels. They depend on all rows.
        """
        probabilities, scores = self._batch(X)
        # Equal probabilities, such as those of a single query in a balanced plan, are decided by the scores.
        best = probabilities >= probabilities.max(axis=1, keepdims=True) * (1 - 1e-9)
        return np.asarray(self.classes_[np.where(best, scores, -np.inf).argmax(axis=1)])

    def _batch(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities and scores (samples, N) of raw samples."""
        X = self._checked(X)
        self._finite_logits(X)
        return self._assigned(self._units(X))

    def _scores(self, z: np.ndarray, prototypes: np.ndarray) -> np.ndarray:
        """Logits (samples, N) of normalised samples for given prototypes."""
        raise TypeError(f"{type(self).__name__} must define _scores.")

    def _assigned(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities (Q, N) of normalised queries (Q, V), and scores that decide between equal ones."""
        raise TypeError(f"{type(self).__name__} must define _assigned.")


@dataclass(eq=False, repr=False, kw_only=True)
class PTMAPClassifier(TransductiveClassifier):
    r"""PT-MAP: a balanced transport plan between queries and class centres, which move to what they get [1]_.

    .. math::
        T = \arg\min_{T 1 = 1,\; T^\top 1 = Q/N} \sum_{qc} T_{qc} \lVert z_q - m_c \rVert^2
        - \tfrac{1}{\lambda} H(T), \quad
        m_c \leftarrow m_c + \alpha \left(
        \frac{\sum_{s \in c} z_s + \sum_q T_{qc} z_q}{K_c + \sum_q T_{qc}} - m_c \right)

    with the entropy H. The centres start at the means of the support. The method is told that all classes have as many
    queries. The published constants are power 0.5, lambda 10 and alpha 0.2, on features whose mean is subtracted from
    the support and from the queries separately; lambda 5 is better where the numbers of queries differ after all.

    Parameters
    ----------
    base : BaseClasses or None
        Bank on which "auto" is chosen, and whose mean "centre-l2" subtracts.
    power : float or "auto"
        Power of the features; "auto" is chosen on the base classes.
    normalize : {"task", "centre-l2", "auto"}
        "task": scale to unit norm, subtract the mean of the support from the support and that of the queries from the
        queries, and scale again. "centre-l2": subtract the mean of the base samples and scale.
    sharpness : float or "auto"
        The factor lambda.
    alpha : float
        How far the centres move in a step.
    steps : int
        Number of steps.

    Attributes
    ----------
    classes_ : array (N,)
        Labels of the classes, sorted.
    support_, labels_ : arrays (S, V) and (S,)
        Normalised support samples and the indices of their classes.
    prototypes_ : array (N, V)
        Means of the normalised support of each class.
    centre_, task_centre_ : arrays (V,)
        What is subtracted before scaling: the mean of the base samples, and in normalised features the mean of the
        support, in place of which ``predict_batch`` takes the mean of the queries; zero if nothing is.
    power_ : float
        The power in use.

    References
    ----------
    .. [1] Hu, Gripon, Pateux: Leveraging the Feature Distribution in Transfer-Based Few-Shot Learning. ICANN 2021,
       arXiv:2006.03806.
    """

    normalize: str = parameter("auto", StrOptions({"task", "centre-l2", "auto"}))
    sharpness: float | str = parameter("auto", POSITIVE, AUTO)
    alpha: float = parameter(0.2, Interval(Real, 0, 1, closed="right"))
    steps: int = parameter(20, COUNT)

    assumes_balance = True
    _choices: ClassVar[Mapping[str, Sequence[Any]]] = {
        "normalize": ("centre-l2", "task"),
        "sharpness": (5.0, 10.0),
        "power": POWERS,
    }

    def _fit_support(self, support: np.ndarray, labels: np.ndarray) -> None:
        by_task = self._settled()["normalize"] == "task"
        self.task_centre_ = support.mean(axis=0) if by_task else np.zeros(support.shape[1])
        if by_task:
            support = unit_vectors(support - self.task_centre_)
        super()._fit_support(support, labels)

    def _logits(self, X: np.ndarray) -> np.ndarray:
        z = self._units(X)
        if self._settled()["normalize"] == "task":
            z = unit_vectors(z - self.task_centre_)
        return self._scores(z, self.prototypes_)

    def _scores(self, z: np.ndarray, prototypes: np.ndarray) -> np.ndarray:
        return np.asarray(-self._settled()["sharpness"] * squared_euclidean(z, prototypes))

    def _assigned(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        settings = self._settled()
        # The direction of a single query is all that it has.
        if settings["normalize"] == "task" and len(z) > 1:
            z = unit_vectors(z - z.mean(axis=0))
        counts = np.bincount(self.labels_)[:, None]
        sums, centres = counts * self.prototypes_, self.prototypes_
        for _ in range(settings["steps"]):
            plan = balanced_assignment(z, centres, settings["sharpness"])
            centres = centres + settings["alpha"] * (
                (sums + plan.T @ z) / (counts + plan.sum(axis=0)[:, None]) - centres
            )
        return balanced_assignment(z, centres, settings["sharpness"]), self._scores(z, centres)


def balanced_assignment(z: np.ndarray, centres: np.ndarray, sharpness: float) -> np.ndarray:
    r"""Entropic transport of queries z (Q, V) to centres (N, V) at squared distances, of equal class masses.

    Returns
    -------
    array (Q, N)
        Rows sum to 1, columns to Q/N.
    """
    plan = solve(squared_euclidean(z, centres), epsilon=1 / sharpness, tolerance=1e-7).raise_for_status().plan
    return np.asarray(len(z) * plan)


@dataclass(eq=False, repr=False, kw_only=True)
class BDCSPNClassifier(TransductiveClassifier):
    r"""BD-CSPN: means of the classes rectified by pseudo-labelled queries, after a shift of all queries [1]_.

    .. math::
        z_q \leftarrow z_q + \bar z_S - \bar z_Q, \quad
        m'_c = \sum_{x \in S_c \cup Q_c} w_x z_x, \quad
        w_x \propto \exp(\epsilon \cos(z_x, m_c))

    with the queries :math:`Q_c` whose nearest mean :math:`m_c` by cosine is that of class c, and weights that sum to 1
    in each class. The logits are a multiple of :math:`\cos(z, m'_c)`. The published epsilon is 10 and queries are
    shifted; on frozen features a smaller epsilon is better, and the shift only where classes have as many queries each.

    Parameters
    ----------
    base : BaseClasses or None
        Bank whose mean is subtracted and on which "auto" is chosen; with None nothing is subtracted.
    power : float or "auto"
        Power of the features; "auto" is chosen on the base classes.
    normalize : {"centre-l2", "l2", "auto"}
        Subtract the mean of the base samples before scaling to unit norm, or scale alone.
    epsilon : float or "auto"
        Factor of the cosine in the weights.
    shift : bool or "auto"
        Whether to shift the queries.
    scale : float
        Factor of the cosine in the logits.

    Attributes
    ----------
    classes_ : array (N,)
        Labels of the classes, sorted.
    support_, labels_ : arrays (S, V) and (S,)
        Normalised support samples and the indices of their classes.
    prototypes_ : array (N, V)
        Means of the normalised support of each class.
    centre_ : array (V,)
        The mean that is subtracted; zero if none is.
    power_ : float
        The power in use.

    References
    ----------
    .. [1] Liu, Song, Qin: Prototype Rectification for Few-Shot Learning. ECCV 2020, arXiv:1911.10713.
    """

    epsilon: float | str = parameter("auto", POSITIVE, AUTO)
    shift: bool | str = parameter("auto", "boolean", AUTO)
    scale: float = parameter(10.0, POSITIVE)

    _choices: ClassVar[Mapping[str, Sequence[Any]]] = {
        "epsilon": (3.0, 1.0, 10.0),
        "shift": (False, True),
        "normalize": NORMALIZE,
        "power": POWERS,
    }

    def _scores(self, z: np.ndarray, prototypes: np.ndarray) -> np.ndarray:
        return np.asarray(self.scale * unit_vectors(z) @ unit_vectors(prototypes).T)

    def _assigned(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        settings = self._settled()
        z, prototypes = rectified(self.support_, self.labels_, z, settings["epsilon"], bool(settings["shift"]))
        scores = self._scores(z, prototypes)
        return softmax(scores)[0], scores


def rectified(
    support: np.ndarray, labels: np.ndarray, z: np.ndarray, epsilon: float, shift: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Queries (Q, V), shifted to the mean of the support if asked for, and rectified prototypes (N, V)."""
    if shift:
        z = z + support.mean(axis=0) - z.mean(axis=0)
    directions = unit_vectors(means_by_class(support, labels))
    samples = np.concatenate([support, z])
    cosines = unit_vectors(samples) @ directions.T
    members = np.concatenate([labels, cosines[len(support) :].argmax(axis=1)])
    # Every class has its support, so that no sum is zero; cosines are at most 1.
    weights = np.where(members[:, None] == np.arange(len(directions)), np.exp(epsilon * (cosines - 1)), 0)
    return z, (weights / weights.sum(axis=0)).T @ samples
