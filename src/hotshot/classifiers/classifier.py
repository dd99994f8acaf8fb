"""Base classes of all classifiers (checks of input, predictions in scikit-learn's shapes) and of those with a bank."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from hotshot.arrays import NO_OVERFLOW_WARNINGS, cast, check_finite
from hotshot.bank import BaseClasses, PreparedBase, Space
from hotshot.bank.feature_space import FeatureSpace, warn_of_features, warn_of_shared_classes
from hotshot.bank.space import LEAST_TO_CHOOSE, FeatureTransform, choose_power
from hotshot.classifiers.batch import JointPredictions, replaced
from hotshot.classifiers.choosing import Choice, choice_on
from hotshot.classifiers.confidence import Confidence, confidence_on
from hotshot.classifiers.explanation import Explanation, explain_model
from hotshot.classifiers.fields import VALID
from hotshot.classifiers.models import load_model, loaded, save_model
from hotshot.classifiers.open_world import OpenWorld, check_base, check_names
from hotshot.classifiers.state import assign, snapshot, unfitted
from hotshot.classifiers.suggesting import Suggesting
from hotshot.errors import InputError, NoSamplesWarning, ParameterError, ScaleWarning
from hotshot.labels import label_array, warn_of_similar
from hotshot.method.calibration import class_targets, own_parts
from hotshot.method.fit import fit_tasks
from hotshot.method.heads import HEADS
from hotshot.method.heads.problem import softmax
from hotshot.method.hierarchy import COSTS
from hotshot.method.parameters import Method
from hotshot.model.two_covariances import OUTLIER_SHRINKAGE, KnownClasses, two_covariances
from hotshot.transport import count_statuses

# Usual standard deviation within base classes, per feature; outside of it the published alpha and C are unsuitable:
# about a factor of ten around the ReLU features they were chosen on.
USUAL_DEVIATION = (0.05, 5.0)


class FewShotClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types.
    """A classifier with one logit per class; subclasses define ``_fit`` and ``_logits``.

    A parameter named in ``_choices`` may be "auto": one of the values listed there, chosen on the base classes, or the
    first if the bank is too small to choose.
    """

    _choices: ClassVar[Mapping[str, Sequence[Any]]] = {}
    # Extractor, norms and directions of the features of the base classes.
    extractor_: str | None = None
    feature_space_: FeatureSpace | None = None

    @property
    def _parameter_constraints(self) -> dict[str, Any]:
        """The valid values of each ``parameter``, for scikit-learn."""
        names = self._get_param_names()
        return {f.name: f.metadata[VALID] for f in fields(self) if f.name in names and VALID in f.metadata}

    def fit(self, X: Any, y: Any) -> FewShotClassifier:
        """Fit the classifier to the support samples of the novel classes.

        Parameters
        ----------
        X : array (samples, V)
            Support samples; the number per class may differ.
        y : array (samples,)
            Their labels, of any sortable type, in any order.

        Returns
        -------
        self
            The fitted classifier.
        """
        try:
            self._validate_params()
        except InvalidParameterError as error:
            raise ParameterError(str(error)) from None
        fitted = unfitted(self)
        fitted._learn(*fitted._validated(X, y, reset=True))
        assign(self, fitted)
        return self

    def _learn(self, X: np.ndarray, y: np.ndarray) -> None:
        """Fit to checked samples."""
        try:
            check_classification_targets(y)
        except ValueError as error:
            raise InputError(f"{_one_line(error)} Pass class labels.") from None
        self.classes_, labels = np.unique(y, return_inverse=True)
        base = loaded(getattr(self, "base", None))
        # One class beside old ones, or one class or none of these.
        one_is_enough = getattr(self, "include_base", False) or isinstance(self, CalibratedClassifier)
        if len(self.classes_) < 2 and not (base is not None and one_is_enough):
            raise InputError(f"y must name at least 2 classes, got 1 class: '{self.classes_[0]}'.")
        check_base(base, X.shape[1])
        if base is not None:
            self.base = base
        if getattr(self, "include_base", False) and base is None:
            raise ParameterError("include_base needs base classes: pass base.")
        self._warn_of_mismatch(X)
        if isinstance(base, BaseClasses):
            self.chosen_ = self.choice().settings
        self._fit(X, labels)
        warn_of_similar(self.classes_)
        self._finite_logits(X)

    def settings(self) -> dict[str, Any]:
        """The parameters, with the chosen value for each "auto".

        Returns
        -------
        dict
            Values by parameter.
        """
        found = {**self.get_params(deep=False), **self.choice().settings}
        if found.get("power") == "auto" and isinstance(found.get("base"), BaseClasses):
            found["power"] = found["base"].power("auto")
        return found

    def choice(self) -> Choice:
        """The values chosen for parameters that are "auto", and the trials behind them; the bank keeps them.

        Returns
        -------
        Choice
            Chosen settings, trials with their gains, and whether the bank states that it was seen in training.
        """
        parameters = self.get_params(deep=False)
        base = parameters.get("base")
        choices = {name: values for name, values in self._choices.items() if parameters[name] == "auto"}
        constants = {name: values[0] for name, values in choices.items()}
        if not isinstance(base, BaseClasses):
            return Choice(constants)
        if choices.get("power") and base.power("auto") != constants["power"]:
            # With negative features no other power is possible.
            choices["power"] = (base.power("auto"),)
            constants["power"] = base.power("auto")
        if choices.get("mean_rule") and len(base.names) < LEAST_TO_CHOOSE:
            # Few classes do not show the directions in which classes differ, nor the centre that the root needs.
            few = {"mean_rule": "mix", **({"power": 1.0} if choices.get("power") and base.samples is not None else {})}
            choices |= {name: (value,) for name, value in few.items()}
            constants |= few
        if not (base.can_hold_out or base.choices) or all(len(values) == 1 for values in choices.values()):
            return Choice(constants)
        return choice_on(base, self, choices)

    def decision_function(self, X: Any) -> np.ndarray:
        """Logits of each sample.

        Parameters
        ----------
        X : array (samples, V)
            Samples to classify.

        Returns
        -------
        array (samples, classes) or (samples,)
            Logits; with two classes, logit of the second minus logit of the first.
        """
        logits = snapshot(self)._checked_logits(X)
        return logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class.

        Parameters
        ----------
        X : array (samples, V)
            Samples to classify.

        Returns
        -------
        array (samples, classes)
            Probabilities, in the order of ``classes_``.
        """
        model = snapshot(self)
        return model._probabilities(model._checked_logits(X))

    def _probabilities(self, logits: np.ndarray) -> np.ndarray:
        tempered = logits.astype(np.float64) / getattr(self, "probability_temperature_", 1.0)
        return np.asarray(softmax(tempered)[0])

    def _validated(self, X: Any, y: Any = "no_validation", *, reset: bool = False) -> Any:
        """Samples, and labels if passed, after scikit-learn's checks and our own for NaN, which names row and column.

        With ``reset`` they are those of a fit; otherwise the model must be fitted.
        """
        if not reset:
            check_is_fitted(self)
        if hasattr(X, "detach"):
            # Tensors become NumPy arrays on the CPU; scikit-learn checks everything else.
            X = X.detach().cpu().numpy()
        if hasattr(X, "dtype") and X.dtype == np.float16:
            X = X.astype(np.float32)
        if y is not None and not isinstance(y, str):
            y = label_array(y)
        try:
            checked = validate_data(self, X, y, reset=reset, dtype=[np.float64, np.float32], ensure_all_finite=False)
        except ValueError as error:
            raise InputError(_one_line(error)) from None
        check_finite(checked if isinstance(checked, np.ndarray) else checked[0], "X")
        return checked

    def predict(self, X: Any) -> np.ndarray:
        """Predict the most probable class of each sample.

        Parameters
        ----------
        X : array (samples, V)
            Samples to classify.

        Returns
        -------
        array (samples,)
            Labels.
        """
        model = snapshot(self)
        best = np.argmax(model._checked_logits(X), axis=1)
        return np.asarray(model.classes_[best])

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the fitted classifier, without its base classes, to a folder of JSON and safetensors files.

        Parameters
        ----------
        path : path
            Folder of the model, such as "birds.model".
        overwrite : bool
            Whether to replace a model of that name.
        """
        check_is_fitted(self)
        save_model(self, path, overwrite)

    @classmethod
    def load(cls, path: str | Path, *, base: BaseClasses | None = None) -> Self:
        """Load a fitted classifier from a folder that ``save`` wrote.

        It predicts and explains without its base classes; to fit it again, they are needed.

        Parameters
        ----------
        path : path
            Folder of the model.
        base : BaseClasses, optional
            The bank that it was fitted with.

        Returns
        -------
        estimator
            The classifier.
        """
        model: Self = load_model(cls, path, base)
        return model

    def _checked_logits(self, X: Any) -> np.ndarray:
        return self._finite_logits(self._checked(X))

    def _checked(self, X: Any) -> np.ndarray:
        """Checked samples, with a warning if they look unlike those of the bank."""
        samples: np.ndarray = self._validated(X)
        if self.feature_space_ is not None:
            warn_of_features(self.feature_space_, samples)
        return samples

    def _warn_of_mismatch(self, X: np.ndarray) -> None:
        """Warn if novel classes have names of base classes, or samples unlike those of the bank."""
        base = getattr(self, "base", None)
        bank = base if isinstance(base, BaseClasses) else None
        self.extractor_, self.feature_space_ = (None, None) if bank is None else (bank.extractor, bank.feature_space)
        # With include_base such names are an error.
        is_beside = getattr(self, "include_base", False)
        if bank is not None and not is_beside and self.classes_.dtype.kind in "UO":
            warn_of_shared_classes(bank, self.classes_)
        if self.feature_space_ is not None:
            warn_of_features(self.feature_space_, X)

    @NO_OVERFLOW_WARNINGS
    def _finite_logits(self, X: np.ndarray) -> np.ndarray:
        """Logits; raise if those of a sample overflow."""
        return _finite(self._logits(X), X)

    def _fit(self, X: np.ndarray, labels: np.ndarray) -> None:
        raise TypeError(f"{type(self).__name__} must define _fit.")

    def _logits(self, X: np.ndarray) -> np.ndarray:
        raise TypeError(f"{type(self).__name__} must define _logits.")


def _finite(logits: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Logits of samples X; raise if those of one overflow."""
    # Half, so that their differences are finite too; NaN is not below it either.
    finite = (np.abs(logits) < np.finfo(logits.dtype).max / 2).all(axis=1)
    if finite.all():
        return logits
    largest = np.where(finite[:, None], 0, np.abs(X))
    row, column = np.unravel_index(largest.argmax(), X.shape)
    raise InputError(
        f"X has no finite logits in row {row}, whose largest entry is {X[row, column]:.3g} in column {column}: "
        "remove such samples, or rescale all features."
    )


class CalibratedClassifier(OpenWorld, JointPredictions, Suggesting, FewShotClassifier):
    """Base of classifiers with calibrated Gaussians; subclasses turn parameters into a ``Space`` and a ``Method``."""

    base: BaseClasses | None
    power: float | str
    random_state: Any

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
        settings = self.settings()
        base, method = self.base.prepare(self._space(settings)), self._method(settings)
        if not base.buckets and method.cost in COSTS and COSTS[method.cost].needs_samples:
            proxy = COSTS[method.cost].proxy
            warnings.warn(
                f"The base classes keep no samples, which cost='{method.cost}' needs: cost='{proxy}' is used instead.",
                NoSamplesWarning,
                stacklevel=2,
            )
            method = replace(method, cost=proxy)
        return base, method

    def _fit(self, X: np.ndarray, labels: np.ndarray) -> None:
        if self.base is None:
            self._fit_without_base(X, labels)
            return
        if getattr(self, "include_base", False):
            # Before settings are chosen, which takes long.
            check_names(self.base.names, self.classes_)
        X = cast(X, self.base.dtype)
        base, method = self.parts()
        if not base.transform.unit:
            _warn_of_scale(base, type(self).__name__)
        self.alarm_scores_, self.probability_temperature_, self.seen_in_training_ = None, 1.0, False
        names, support = self.classes_, base.transform(X)[None]
        if getattr(self, "include_base", False):
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
        if getattr(self, "include_base", False):
            places = np.argsort(np.argsort(self.is_new_, kind="stable"))
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
            probabilities = model._probabilities(_finite(placed @ model.coef_.T + model.intercept_, X))
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
        return self._confidence(self.parts()[1]) if getattr(self, "calibrate_probabilities", False) else None

    def _confidence(self, method: Method) -> Confidence | None:
        bank = self.base
        # The sampled head takes too long.
        if bank is None or not HEADS[method.head].in_batches or not (bank.can_hold_out or bank.choices):
            return None
        return confidence_on(bank, self)

    def _fit_without_base(self, X: np.ndarray, labels: np.ndarray) -> None:
        """Plain logistic regression on power-transformed features."""
        self.power_ = choose_power(self.power, X.min())
        offset = getattr(self, "power_offset", 0.0)
        self.transform_ = FeatureTransform(self.power_, offset, 1.0, None, None, unit=False)
        model = LogisticRegression(C=self.C, max_iter=1000)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(self.transform_(X), labels)
        self._set_converged(not any(issubclass(w.category, ConvergenceWarning) for w in caught))
        theta = np.concatenate([model.coef_, model.intercept_[:, None]], axis=1)
        if len(self.classes_) == 2:
            theta = np.concatenate([-theta, theta]) / 2
        self.coef_, self.intercept_ = theta[:, :-1], theta[:, -1]
        self.support_, self.support_labels_ = X.copy(), self.classes_[labels]
        self.slopes_ = softmax(self._logits(X))[0] - np.eye(len(self.classes_), dtype=X.dtype)[labels]
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
