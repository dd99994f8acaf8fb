"""What classifiers trained on calibrated Gaussians share: fit from a bank, predict, explain."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from hotshot.base import BaseClasses, PreparedBase, Space
from hotshot.base.space import FeatureTransform, choose_power
from hotshot.errors import ParameterError, ScaleWarning
from hotshot.estimators.common import FewShotClassifier, validated
from hotshot.estimators.explanation import Explanation, Lender, Loan, Reason
from hotshot.method import calibration
from hotshot.method.fit import Method, fit_tasks
from hotshot.method.heads.objective import softmax
from hotshot.transport.costs import cosine
from hotshot.transport.solution import count_statuses

POSITIVE = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
COUNT = Interval(Integral, 1, None, closed="left")

# Standard deviation within base classes, per feature, outside of which alpha and C as published make little
# sense: about a factor of ten around the ReLU features they were chosen on.
USUAL_DEVIATION = (0.05, 5.0)


class CalibratedClassifier(FewShotClassifier):
    """Fit, predict and explain from a `Space` and a `Method`, which subclasses derive from their parameters."""

    base: BaseClasses | None
    power: float | str
    random_state: Any

    def _space(self, power: float) -> Space:
        raise TypeError(f"{type(self).__name__} must define _space.")

    def _method(self) -> Method:
        raise TypeError(f"{type(self).__name__} must define _method.")

    def parts(self, X: np.ndarray) -> tuple[PreparedBase, Method]:
        """The bank in this classifier's space and the parameters for `fit_tasks`, for novel features like X."""
        if not isinstance(self.base, BaseClasses):
            raise ParameterError(
                f"{type(self).__name__} without base classes has no calibrated parts: pass base."
            )
        return self.base.prepare(self._space(self.base.power(self.power, X))), self._method()

    def _fit(self, X: np.ndarray, labels: np.ndarray) -> None:
        if self.base is None:
            self._fit_without_base(X, labels)
            return
        X = X.astype(self.base.dtype, copy=False)
        base, method = self.parts(X)
        if not base.transform.unit:
            _warn_of_scale(base, type(self).__name__)
        seed = head_seed(self.random_state)
        fitted = fit_tasks(
            base,
            base.transform(X)[None],
            labels[None],
            method,
            n_classes=len(self.classes_),
            seeds=[seed],
        )
        self.converged_ = bool(fitted.converged[0])
        if not self.converged_:
            warnings.warn(
                f"The head of {type(self).__name__} stopped before its minimum: lower C, or pass float64 features.",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.power_ = base.transform.power
        self.transform_ = base.transform
        self.coef_, self.intercept_ = fitted.theta[0, :, :-1], fitted.theta[0, :, -1]
        transfer = fitted.transfer
        self.transfer_weights_ = transfer.weights[0].T
        self.target_labels_ = self.classes_[fitted.gaussians.labels[0]]
        self.calibrated_means_ = fitted.gaussians.means[0]
        self.learned_cost_ = transfer.cost[0]
        self.plan_ = None if transfer.plan is None else transfer.plan[0]
        statuses = [s for s in (transfer.low_status, transfer.high_status) if s is not None]
        self.status_counts_ = (
            count_statuses(np.concatenate([np.ravel(s) for s in statuses])) if statuses else {}
        )
        self.own_share_ = _own_share(method, labels, fitted.gaussians.labels[0], len(base.names))
        self.base_means_, self.base_names_ = base.means, base.names

    def _fit_without_base(self, X: np.ndarray, labels: np.ndarray) -> None:
        """Plain logistic regression on power-transformed features."""
        self.power_ = choose_power(self.power, X.min())
        offset = getattr(self, "power_offset", 0.0)
        self.transform_ = FeatureTransform(self.power_, offset, 1.0, None, None, unit=False)
        model = LogisticRegression(C=self.C, max_iter=1000).fit(self.transform_(X), labels)
        theta = np.concatenate([model.coef_, model.intercept_[:, None]], axis=1)
        if len(self.classes_) == 2:
            theta = np.concatenate([-theta, theta]) / 2
        self.coef_, self.intercept_ = theta[:, :-1], theta[:, -1]
        self.transfer_weights_ = np.empty((0, 0))
        self.target_labels_ = self.classes_[:0]
        self.base_names_ = np.empty(0)
        self.learned_cost_ = self.plan_ = None
        self.status_counts_ = {}

    def _logits(self, X: np.ndarray) -> np.ndarray:
        X = X.astype(self.coef_.dtype, copy=False)
        return self.transform_(X) @ self.coef_.T + self.intercept_

    def explain(self, X: Any = None) -> Explanation:
        """Which base classes lend to the novel classes and, for queries X, why each is predicted as it is.

        Returns
        -------
        Explanation
            `loans`, one per calibrated Gaussian, and `reasons`, one per query; `print` it to read it.
        """
        check_is_fitted(self)
        names = self.base_names_
        orders = np.argsort(-self.transfer_weights_, axis=1, kind="stable")
        several = len(self.target_labels_) > len(self.classes_)
        loans = tuple(
            Loan(
                label=self.target_labels_[i],
                sample=i if several else None,
                own_share=float(self.own_share_[i]),
                lenders=tuple((names[b], float(row[b])) for b in orders[i] if row[b] > 0),
            )
            for i, row in enumerate(self.transfer_weights_)
        )
        return Explanation(loans, () if X is None else self._reasons(X, names))

    def _reasons(self, X: Any, names: np.ndarray) -> tuple[Reason, ...]:
        X = validated(self, X, reset=False).astype(self.coef_.dtype, copy=False)
        probabilities = softmax(self._logits(X).astype(np.float64))[0]
        ranks = np.argsort(-probabilities, axis=1, kind="stable")
        similarity = weights = None
        if len(names):
            similarity = 1 - cosine(self.transform_(X), self.base_means_)
            weights = np.stack(
                [self.transfer_weights_[self.target_labels_ == c].mean(axis=0) for c in self.classes_]
            )
        reasons = []
        for i, (first, second) in enumerate(ranks[:, :2]):
            lenders: list[Lender] = []
            if similarity is not None and weights is not None:
                evidence = (weights[first] - weights[second]) * similarity[i]
                lenders = [
                    Lender(
                        names[b],
                        float(weights[first, b]),
                        float(weights[second, b]),
                        float(similarity[i, b]),
                        float(evidence[b]),
                    )
                    for b in np.argsort(-evidence, kind="stable")
                ]
            reasons.append(
                Reason(
                    i,
                    self.classes_[first],
                    float(probabilities[i, first]),
                    self.classes_[second],
                    float(probabilities[i, second]),
                    tuple(lenders),
                )
            )
        return tuple(reasons)


def head_seed(random_state: Any) -> int:
    """The seed of the sampled head that a `random_state` stands for."""
    return int(check_random_state(random_state).randint(2**31 - 1))


def _own_share(method: Method, labels: np.ndarray, targets: np.ndarray, n_base: int) -> np.ndarray:
    """Share of each calibrated mean that is the support's own."""
    if method.mean_rule == calibration.PRINTED:
        return np.full(len(targets), 0.5)
    if method.mean_rule == calibration.FREE_LUNCH:
        return np.full(len(targets), 1 / (1 + method.neighbours(n_base)))
    if method.mix == "auto":
        return 1 - calibration.automatic_mix(np.bincount(labels)[targets])
    return np.full(len(targets), 1 - float(method.mix))


def _warn_of_scale(base: PreparedBase, name: str) -> None:
    deviation = float(np.sqrt(base.spectrum.mean()))
    low, high = USUAL_DEVIATION
    if not low <= deviation <= high:
        warnings.warn(
            f"{name} without normalisation depends on the scale of the features through alpha and C, and these "
            f"features deviate by {deviation:.2g} within base classes where {low:g} to {high:g} is usual: "
            "rescale them, or use the default normalize='centre-l2' with alpha=0.",
            ScaleWarning,
            stacklevel=4,
        )
