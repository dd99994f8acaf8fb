"""The base class of classifiers with calibrated Gaussians: their fit, predictions and explanations."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hotshot.arrays import NO_OVERFLOW_WARNINGS, cast
from hotshot.bank import BaseClasses, PreparedBase, Space
from hotshot.bank.space import LEAST_TO_CHOOSE
from hotshot.classifiers.batch import JointPredictions, replaced
from hotshot.classifiers.classifier import FewShotClassifier, finite, snapshot
from hotshot.classifiers.confidence import Confidence, confidence_on
from hotshot.classifiers.explanation import Explanation, explain_model
from hotshot.classifiers.logistic import fit_logistic
from hotshot.classifiers.open_world import OpenWorld
from hotshot.classifiers.rival import plain_transform
from hotshot.classifiers.suggesting import Suggesting
from hotshot.errors import NoSamplesWarning, ParameterError, ScaleWarning
from hotshot.method.calibration import class_targets, own_parts
from hotshot.method.fit import fit_tasks
from hotshot.method.heads import HEADS
from hotshot.method.hierarchy import COSTS
from hotshot.method.parameters import Method
from hotshot.model.two_covariances import OUTLIER_SHRINKAGE, KnownClasses, two_covariances
from hotshot.transport import count_statuses

# Usual standard deviation within base classes, per feature; outside of it the published alpha and C are unsuitable:
# about a factor of ten around the ReLU features they were chosen on.
USUAL_DEVIATION = (0.05, 5.0)


class CalibratedClassifier(OpenWorld, JointPredictions, Suggesting, FewShotClassifier):
    """Base of classifiers with calibrated Gaussians; subclasses turn parameters into a ``Space`` and a ``Method``."""

    base: BaseClasses | None
    random_state: Any
    calibrate_probabilities: bool = False
    power_offset: float = 0.0
    _may_have_one_class = True

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        # That of scikit-learn, which also prints nested estimators; with a comment it stays valid Python.
        written = super().__repr__(N_CHAR_MAX)
        return written if self.base is not None else f"{written}  # no base classes: plain logistic regression"

    def _space(self, settings: Mapping[str, Any]) -> Space:
        raise TypeError(f"{type(self).__name__} must define _space.")

    def _method(self, settings: Mapping[str, Any]) -> Method:
        raise TypeError(f"{type(self).__name__} must define _method.")

    def parts(self) -> tuple[PreparedBase, Method]:
        """The prepared bank and the parameters of the method.

        Returns
        -------
        base : PreparedBase
            The bank in the space of this classifier.
        method : Method
            Parameters for ``hotshot.method.fit.fit_tasks``.
        """
        if not isinstance(self.base, BaseClasses):
            raise ParameterError(f"{type(self).__name__} has no calibrated Gaussians without base classes: pass base.")
        return self._parts(self.base, self.settings())

    def _parts(self, bank: BaseClasses, settings: Mapping[str, Any]) -> tuple[PreparedBase, Method]:
        base, method = bank.prepare(self._space(settings)), self._method(settings)
        if not base.buckets and method.cost in COSTS and COSTS[method.cost].needs_samples:
            proxy = COSTS[method.cost].proxy
            warnings.warn(
                f"The base classes keep no samples, which cost='{method.cost}' needs: cost='{proxy}' is used instead.",
                NoSamplesWarning,
                stacklevel=2,
            )
            method = replace(method, cost=proxy)
        return base, method

    def _candidates(self, bank: BaseClasses | None) -> dict[str, Sequence[Any]]:
        candidates = super()._candidates(bank)
        if bank is not None and "mean_rule" in candidates and len(bank.names) < LEAST_TO_CHOOSE:
            # Few classes do not show the directions in which classes differ, nor the centre that the root needs.
            candidates["mean_rule"] = ("mix",)
            if "power" in candidates and bank.samples is not None:
                candidates["power"] = (1.0,)
        return candidates

    def _fit(self, X: np.ndarray, labels: np.ndarray, settings: Mapping[str, Any]) -> None:
        if self.base is None:
            self._fit_without_base(X, labels, settings["power"])
            return
        X = cast(X, self.base.dtype)
        base, method = self._parts(self.base, settings)
        if not base.transform.unit:
            _warn_of_scale(base, type(self).__name__)
        self.alarm_scores_, self.probability_temperature_, self.seen_in_training_ = None, 1.0, False
        names, support = self.classes_, base.transform(X)[None]
        if self.include_base:
            fitted = self._fit_with_base(self.base, base, method, support, labels)
        else:
            seed = head_seed(self.random_state)
            fitted = fit_tasks(base, support, labels[None], method, n_classes=len(names), seeds=[seed])
        transfer, gaussians = fitted.transfer, fitted.gaussians
        self._set_converged(bool(fitted.converged[0]))
        self.power_ = base.transform.power
        self.transform_ = base.transform
        self.coef_, self.intercept_ = fitted.theta[0, :, :-1], fitted.theta[0, :, -1]
        self.transfer_weights_ = transfer.weights[0].T
        self.target_labels_ = names[gaussians.labels[0]]
        self.calibrated_means_ = gaussians.means[0]
        self.learned_cost_ = transfer.cost[0]
        self.plan_ = None if transfer.plan is None else transfer.plan[0]
        statuses = [s for s in (transfer.low_status, transfer.high_status) if s is not None]
        self.status_counts_ = count_statuses(np.concatenate([np.ravel(s) for s in statuses])) if statuses else {}
        self.own_share_ = gaussians.own_share[0]
        self.base_means_, self.base_names_ = base.means, base.names
        self.support_, self.support_labels_ = X.copy(), names[labels]
        shots = np.bincount(labels)[labels].astype(support.dtype)[None]
        lent = transfer.weights[..., labels] if method.per == "class" else transfer.weights
        self.own_parts_ = own_parts(base, support, shots, lent, method)[0]
        self.slopes_ = None if fitted.slopes is None else fitted.slopes[0]
        self.spectrum_ = gaussians.typical_spectrum(base)[0]
        self._describe_classes(self.base, base, support, labels)
        if len(names) < len(self.classes_) or self.base.can_hold_out or self.base.choices:
            self._learn_confidence(self.base, base, method)

    def _describe_classes(self, bank: BaseClasses, base: PreparedBase, support: np.ndarray, labels: np.ndarray) -> None:
        """Set the means and sizes of all classes, for outlier scores."""
        means, sizes = (x[0] for x in class_targets(support, labels[None], int(labels.max()) + 1))
        if self.include_base:
            places = np.argsort(np.argsort(self.new_classes, kind="stable"))
            means = np.concatenate([base.means, means])[places]
            sizes = np.concatenate([bank.counts, sizes])[places]
        two, centre = two_covariances(base, *OUTLIER_SHRINKAGE), base.means.mean(axis=0)
        self.known_ = KnownClasses(two, centre, means.astype(np.float64), sizes.astype(np.float64))

    def predict(self, X: Any, *, reject: float | None = None, unknown: Any = None) -> np.ndarray:
        """Predict the most probable class of each sample.

        Parameters
        ----------
        X : array (samples, V)
            Samples to classify.
        reject : float, optional
            Return ``unknown`` for samples that fit no class. The threshold, learned on held-out base classes, rejects
            about this share of the samples that do belong to a class, such as 0.05.
        unknown : object
            Prediction for rejected samples.

        Returns
        -------
        array (samples,)
            Labels.
        """
        model = snapshot(self)
        answers = super(CalibratedClassifier, model).predict(X)
        if reject is None:
            return answers
        scores, limits = model._outliers(model._in_space(model._validated(X)), reject)
        return replaced(answers, scores > limits, unknown)

    @NO_OVERFLOW_WARNINGS
    def answers(
        self, X: Any, reject: float | None = None, *, batch: bool = False
    ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        """Probabilities, outlier scores and rejections in one pass.

        Parameters
        ----------
        X : array (samples, V)
            Samples to classify.
        reject : float, optional
            As in ``predict``.
        batch : bool
            Whether to classify the samples jointly.

        Returns
        -------
        probabilities : array (samples, classes)
            As from ``predict_proba``, or from ``predict_proba_batch``.
        scores : array (samples,) or None
            As from ``outlier_score``; None without base classes.
        rejected : array (samples,)
            Whether each sample is rejected.
        """
        model = snapshot(self)
        X = model._checked(X)
        placed = model._in_space(X)
        if batch:
            probabilities = np.asarray(model._solved(X).probabilities[0])
        else:
            probabilities = model._probabilities(finite(placed @ model.coef_.T + model.intercept_, X))
        if model.base is None and reject is None:
            return probabilities, None, np.zeros(len(X), dtype=bool)
        scores, limits = model._outliers(placed, reject)
        return probabilities, scores, scores > limits

    def _in_space(self, X: np.ndarray) -> np.ndarray:
        """Samples in the space of the model (samples, axes)."""
        return np.asarray(self.transform_(cast(X, self.coef_.dtype)))

    def confidence(self) -> Confidence | None:
        """Temperatures and outlier scores learned on held-out base classes.

        Returns
        -------
        Confidence or None
            None if probabilities are not calibrated.
        """
        return self._confidence(self.parts()[1]) if self.calibrate_probabilities else None

    def _confidence(self, method: Method) -> Confidence | None:
        bank = self.base
        # The sampled head takes too long.
        if bank is None or not HEADS[method.head].in_batches or not (bank.can_hold_out or bank.choices):
            return None
        return confidence_on(bank, self)

    def _fit_without_base(self, X: np.ndarray, labels: np.ndarray, power: float) -> None:
        """Plain logistic regression on power-transformed features."""
        self.power_ = power
        self.transform_ = replace(plain_transform(power, unit=False), offset=self.power_offset)
        theta, converged = fit_logistic(self.transform_(X), labels, C=self.C)
        self._set_converged(converged)
        self.coef_, self.intercept_ = theta[:, :-1], theta[:, -1]
        self.support_, self.support_labels_ = X.copy(), self.classes_[labels]
        self.slopes_ = softmax(self._logits(X), axis=1) - np.eye(len(self.classes_), dtype=X.dtype)[labels]
        self.calibrated_means_ = self.base_means_ = self.own_parts_ = self.coef_[:0]
        self.spectrum_ = np.zeros_like(self.coef_[0])
        self.transfer_weights_ = np.empty((0, 0))
        self.target_labels_ = self.classes_[:0]
        self.base_names_ = np.empty(0)
        self.learned_cost_ = self.plan_ = None
        self.status_counts_ = {}

    def _set_converged(self, converged: bool) -> None:
        self.converged_ = converged
        if not converged:
            warnings.warn(
                f"The head of {type(self).__name__} stopped before its minimum: lower C, or pass float64 features.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _logits(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self._in_space(X) @ self.coef_.T + self.intercept_)

    def explain(
        self,
        X: Any = None,
        names: Sequence[str] | None = None,
        queries: Sequence[str] | None = None,
        *,
        reject: float | None = None,
    ) -> Explanation:
        """Explain which base classes lend to the novel classes and, for queries, why each is predicted as it is.

        Parameters
        ----------
        X : array (queries, V), optional
            Queries to explain.
        names : list of str, optional
            Names of the support samples, in the order of fit; by default "sample 0", "sample 1" and so on.
        queries : list of str, optional
            Names of the queries; by default "Query 0", "Query 1" and so on.
        reject : float, optional
            As in ``predict``; each reason then has the limit of its outlier score.

        Returns
        -------
        Explanation
            ``loans``, one per calibrated Gaussian, and ``reasons``, one per query: the contributions of support samples
            and base classes to the gap between the logits of the two most probable classes. It can be printed, and
            converted with ``to_dict()``; ``in_words(numbers=True)`` adds the contributions.
        """
        check_is_fitted(self)
        model = snapshot(self)
        if X is not None:
            X = cast(model._validated(X), model.coef_.dtype)
            model._finite_logits(X)
        outliers = None
        if X is not None and (reject is not None or model.base is not None):
            outliers = model._outliers(model._in_space(X), reject)
        return explain_model(model, X, names, queries=queries, outliers=outliers)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def head_seed(random_state: Any) -> int:
    """The seed of the sampled head for a ``random_state``."""
    return int(check_random_state(random_state).randint(2**31 - 1))


def _warn_of_scale(base: PreparedBase, name: str) -> None:
    deviation = float(np.sqrt(base.spectrum.mean()))
    low, high = USUAL_DEVIATION
    if not low <= deviation <= high:
        warnings.warn(
            f"{name} without normalisation depends on the scale of the features through alpha and C, and the standard "
            f"deviation within base classes is {deviation:.2g} (usually {low:g} to {high:g}): rescale the features, or "
            "use the default normalize='centre-l2' with alpha=0.",
            ScaleWarning,
            stacklevel=4,
        )
