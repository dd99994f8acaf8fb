"""The base class of classifiers with calibrated Gaussians: their fit, predictions and explanations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Self

import numpy as np
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hotshot.arrays import NO_OVERFLOW_WARNINGS, cast, joined_labels, slices
from hotshot.bank import BaseClasses, PreparedBase, Space
from hotshot.bank.space import LEAST_TO_CHOOSE, FeatureTransform
from hotshot.classifiers.classifier import FewShotClassifier, assign, finite, snapshot, unfitted
from hotshot.classifiers.confidence import Confidence, confidence_on
from hotshot.classifiers.explanation import Explanation, TrainedOn, explain_model
from hotshot.classifiers.held_out import Fold, Task, stacked
from hotshot.classifiers.open_world import OutlierDetector, fit_with_base, scores_of_base
from hotshot.classifiers.saving import check_calibrated
from hotshot.classifiers.suggestions import Suggestions, suggest
from hotshot.errors import InputError, NoSamplesWarning, ParameterError, ScaleWarning, warn_user
from hotshot.method import Method
from hotshot.method.calibration import class_targets, own_parts, own_shares
from hotshot.method.heads import HEADS
from hotshot.method.heads.bound import symmetric_penalty
from hotshot.method.heads.joint import OldClasses
from hotshot.method.heads.sampled import fit_logistic
from hotshot.method.hot import fit_tasks
from hotshot.method.transfer import COSTS
from hotshot.model.batch import BatchSolution, joint_inference
from hotshot.model.two_covariances import OUTLIER_SHRINKAGE, KnownClasses, TwoCovariances, two_covariances
from hotshot.transport import count_statuses

# Usual standard deviation within base classes, per feature; outside of it the published alpha and C are unsuitable:
# about a factor of ten around the ReLU features they were chosen on.
USUAL_DEVIATION = (0.05, 5.0)
# Held-out tasks that are fitted together.
TASKS_AT_ONCE = 20


class CalibratedClassifier(FewShotClassifier):
    """Base of classifiers with calibrated Gaussians; their parameters are those of ``HOTClassifier`` or like them."""

    base: BaseClasses | None
    head: str
    C: float
    random_state: Any
    # Parameters that only H-OT has.
    calibrate_probabilities: bool = False
    power_offset: float = 0.0
    power_on_base: bool = True
    base_loss: float | None = None
    _may_have_one_class = True
    _state_types = (*FewShotClassifier._state_types, KnownClasses, OutlierDetector, TrainedOn, TwoCovariances)

    outliers_: OutlierDetector | None = None
    balance_: float = 0.0
    base_head_: np.ndarray | None = None
    trained_on_: TrainedOn | None = None
    # While classes are added: the model before.
    _before: CalibratedClassifier | None = None

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        # That of scikit-learn, which also prints nested estimators; with a comment it stays valid Python.
        written = super().__repr__(N_CHAR_MAX)
        return written if self.base is not None else f"{written}  # no base classes: plain logistic regression"

    # --- settings

    def _as_hot(self, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        """The parameters of ``HOTClassifier`` that do the same."""
        return settings

    def _space(self, settings: Mapping[str, Any]) -> Space:
        return Space(**{f.name: self._as_hot(settings)[f.name] for f in fields(Space)})

    def parts(self) -> tuple[PreparedBase, Method]:
        """The bank in the space of this classifier, and the parameters of the method for ``hotshot.method``."""
        if not isinstance(self.base, BaseClasses):
            raise ParameterError(f"{type(self).__name__} has no calibrated Gaussians without base classes: pass base.")
        return self._parts(self.base, self.settings())

    def _parts(self, bank: BaseClasses, settings: Mapping[str, Any]) -> tuple[PreparedBase, Method]:
        base = bank.prepare(self._space(settings))
        method = Method(**{f.name: self._as_hot(settings)[f.name] for f in fields(Method)})
        proxy = COSTS[method.cost].proxy if method.cost in COSTS else None
        if not base.buckets and proxy is not None:
            warn_user(
                f"The base classes keep no samples, which cost='{method.cost}' needs: cost='{proxy}' is used instead.",
                NoSamplesWarning,
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

    def held_out_logits(self, fold: Fold, tasks: Sequence[Task]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Logits (tasks, Q, N) of the queries of held-out tasks, and labels (tasks, Q); some tasks at a time."""
        base, method = self.parts()
        samples = base.transform(fold.samples)
        for rows in slices(len(tasks), TASKS_AT_ONCE):
            support, labels, query, query_labels = stacked(tasks[rows])
            ways = int(labels.max()) + 1
            fitted = fit_tasks(base, samples[support], labels, method, n_classes=ways, seeds=range(len(labels)))
            yield fitted.decision(samples[query]), query_labels

    def accuracies(self, fold: Fold, tasks: Sequence[Task]) -> np.ndarray:
        """Accuracy of each held-out task (tasks,)."""
        batches = self.held_out_logits(fold, tasks)
        return np.concatenate([np.mean(logits.argmax(axis=2) == labels, axis=1) for logits, labels in batches])

    def confidence(self) -> Confidence | None:
        """Temperatures and outlier scores from held-out base classes; None if probabilities are not calibrated."""
        return self._confidence(self.base, self.settings()) if self.calibrate_probabilities else None

    def _confidence(self, bank: BaseClasses | None, settings: Mapping[str, Any]) -> Confidence | None:
        # The sampled head takes too long.
        return None if bank is None or not HEADS[self.head].in_batches else confidence_on(bank, self, settings)

    # --- fit

    def _fit(self, X: np.ndarray, labels: np.ndarray, settings: Mapping[str, Any]) -> None:
        if self.base is None:
            self._fit_without_base(X, labels, settings["power"])
            return
        bank, names, X = self.base, self.classes_, cast(X, self.base.dtype)
        base, method = self._parts(bank, settings)
        if not base.transform.unit:
            _warn_of_scale(base, type(self).__name__)
        support, old, beside = base.transform(X)[None], None, None
        if self.include_base:
            fitted, old, beside = fit_with_base(self, bank, base, method, support, labels)
        else:
            seeds = [head_seed(self.random_state)]
            fitted = fit_tasks(base, support, labels[None], method, n_classes=len(names), seeds=seeds)
        transfer, gaussians = fitted.transfer, fitted.gaussians
        self._keep_head(fitted.theta[0], bool(fitted.converged[0]))
        self.transform_, self.base_means_, self.base_names_ = base.transform, base.means, base.names
        self.support_, self.support_labels_ = X.copy(), names[labels]
        self.transfer_weights_, self.target_labels_ = transfer.weights[0].T, names[gaussians.labels[0]]
        self.learned_cost_, self.plan_ = transfer.cost[0], None if transfer.plan is None else transfer.plan[0]
        self.status_counts_, self.calibrated_means_ = count_statuses(transfer.statuses), gaussians.means[0]
        means, sizes = class_targets(support, labels[None], len(names))
        shots = sizes[:, labels]
        targets = (means, sizes) if method.per == "class" else (support, shots)
        self.own_share_ = own_shares(base, *targets, transfer.weights, method)[0]
        parts, C = own_parts(base, support, shots, method)[0], symmetric_penalty(method.C, len(self.classes_))
        if fitted.slopes is not None:
            beside = np.zeros(len(names)) if beside is None else beside
            self.trained_on_ = TrainedOn(
                support[0], labels, self.calibrated_means_, gaussians.labels[0], parts, self.transfer_weights_,
                base.means, fitted.slopes[0], gaussians.spectrum(base), C, beside,
            )  # fmt: skip
        known = self._known(bank, base, means[0], sizes[0])
        self._learn_outliers(self._confidence(bank, settings), known, bank, base, support, labels, old)

    def _known(self, bank: BaseClasses, base: PreparedBase, means: np.ndarray, sizes: np.ndarray) -> KnownClasses:
        """Means and sizes of all classes, from those of the new ones."""
        if self.include_base:
            places = np.argsort(np.argsort(self.new_classes, kind="stable"))
            means, sizes = np.concatenate([base.means, means])[places], np.concatenate([bank.counts, sizes])[places]
        two, centre = two_covariances(base, *OUTLIER_SHRINKAGE), base.means.mean(axis=0)
        return KnownClasses(two, centre, means.astype(np.float64), sizes.astype(np.float64))

    def _learn_outliers(
        self,
        confidence: Confidence | None,
        known: KnownClasses,
        bank: BaseClasses,
        base: PreparedBase,
        support: np.ndarray,
        labels: np.ndarray,
        old: OldClasses | None,
    ) -> None:
        """Set the detector of outliers and the temperature of the probabilities."""
        is_new = self.new_classes
        shots, deviation, thresholds = known.sizes[is_new], 0.0, None
        if confidence is not None:
            of_base = None if old is None else scores_of_base(old, known, is_new)
            (deviation,) = confidence.support_deviations(base, support, labels[None])
            thresholds = confidence.thresholds(shots, deviation, is_new, of_base)
            if old is None:
                self.probability_temperature_ = confidence.temperature(len(shots), float(shots.mean()), deviation)
        if not self.calibrate_probabilities:
            self.probability_temperature_ = 1.0
        # The classes that the header names matter at one shot only: with several, the thresholds follow the support.
        seen = bank.seen_in_training is True or (bank.trained_on and bool(shots.min() == 1))
        self.outliers_ = OutlierDetector(known, thresholds, deviation, seen)

    def _fit_without_base(self, X: np.ndarray, labels: np.ndarray, power: float) -> None:
        """Plain logistic regression on power-transformed features."""
        self.transform_ = FeatureTransform(power, self.power_offset, 1.0, None, None, unit=False)
        self._keep_head(*fit_logistic(self.transform_(X), labels, C=self.C))
        self.support_, self.support_labels_ = X.copy(), self.classes_[labels]
        self.calibrated_means_ = self.base_means_ = self.coef_[:0]
        self.transfer_weights_, self.own_share_ = np.empty((0, 0)), np.empty(0)
        self.learned_cost_ = self.plan_ = None
        self.target_labels_, self.base_names_, self.status_counts_ = self.classes_[:0], np.empty(0), {}
        slopes = softmax(self._logits(X), axis=1) - np.eye(len(self.classes_), dtype=X.dtype)[labels]
        nothing, C = self.coef_[:0], symmetric_penalty(self.C, len(self.classes_))
        self.trained_on_ = TrainedOn(
            self._in_space(X), labels, nothing, labels[:0], nothing, self.transfer_weights_, nothing, slopes,
            np.zeros_like(self.coef_[0]), C, np.zeros(len(self.classes_)),
        )  # fmt: skip

    def _keep_head(self, theta: np.ndarray, converged: bool) -> None:
        self.coef_, self.intercept_, self.converged_ = theta[:, :-1], theta[:, -1], converged
        if not converged:
            warn_user(
                f"The head of {type(self).__name__} stopped before its minimum: lower C, or pass float64 features.",
                ConvergenceWarning,
            )

    # --- predictions

    def predict(self, X: Any, *, reject: float | None = None, unknown: Any = None) -> np.ndarray:
        """Predict the most probable class of each sample: labels (samples,).

        Parameters
        ----------
        X : array (samples, V)
            Samples to classify.
        reject : float, optional
            Return ``unknown`` for samples that fit no class. The threshold, learned on held-out base classes, rejects
            about this share of the samples that do belong to a class, such as 0.05.
        unknown : object
            Prediction for rejected samples.
        """
        return snapshot(self)._predicted(X, reject, unknown, batch=False)

    def predict_batch(self, X: Any, *, reject: float | None = None, unknown: Any = None) -> np.ndarray:
        """As ``predict``, for a batch of samples jointly; see ``predict_proba_batch``."""
        return snapshot(self)._predicted(X, reject, unknown, batch=True)

    def predict_proba_batch(self, X: Any) -> np.ndarray:
        """Probabilities (samples, classes) for a batch of samples jointly.

        A folder of images or a night of recordings shows more than its samples one by one: where the classes lie, and
        how frequent each is. Nothing is assumed about the proportions; they are estimated. Samples that fit no class
        have little or no influence on the others. The probabilities of a sample depend on the whole batch; those of a
        batch of one are those of ``predict_proba``.
        """
        model = snapshot(self)
        return np.asarray(model._solved(*model._placed_and_logits(model._checked(X))).probabilities[0])

    def answers(
        self, X: Any, reject: float | None = None, *, batch: bool = False
    ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        """Probabilities (samples, classes), outlier scores and whether each sample is rejected, in one pass.

        The parameters are those of ``predict``; with ``batch`` the samples are classified jointly. The scores are None
        without base classes.
        """
        model = snapshot(self)
        placed, logits = model._placed_and_logits(model._checked(X))
        probabilities = model._solved(placed, logits).probabilities[0] if batch else model._probabilities(logits)
        if model.base is None and reject is None:
            return probabilities, None, np.zeros(len(placed), dtype=bool)
        scores, limits = model._scores_and_limits(placed, reject)
        return probabilities, scores, scores > limits

    def outlier_score(self, X: Any) -> np.ndarray:
        """Outlier score of each sample (samples,): the larger, the less likely it belongs to any class.

        It is the log-likelihood of an unknown class minus that of the best class; at 0 both explain the sample equally
        well.
        """
        model = snapshot(self)
        return model._scores_and_limits(model._in_space(model._validated(X)), None)[0]

    def suggest(self, X: Any, n: int = 5) -> Suggestions:
        """Suggest which n samples of an unlabelled pool (samples, V) to label next, the most useful first, and why.

        The first ones are typical of their classes; once these are known, those between classes follow (see the module
        ``hotshot.model.suggestion``). Copies of labelled samples and of other suggestions are left out. A group of
        similar samples that fit no class is suggested once, as perhaps a new class, if the bank has at least 20 classes
        of 10 samples.
        """
        return suggest(snapshot(self), X, n)

    def explain(
        self,
        X: Any = None,
        names: Sequence[str] | None = None,
        queries: Sequence[str] | None = None,
        *,
        reject: float | None = None,
    ) -> Explanation:
        """Explain which base classes lend to the novel classes and, for queries, why each is predicted as it is.

        The result can be printed. It has ``loans``, one per calibrated Gaussian, and ``reasons``, one per query: the
        contributions of support samples and base classes to the gap between the logits of the two likeliest classes.

        Parameters
        ----------
        X : array (queries, V), optional
            Queries to explain.
        names, queries : list of str, optional
            Names of the support samples, in the order of fit, and of the queries.
        reject : float, optional
            As in ``predict``.
        """
        check_is_fitted(self)
        model, outliers = snapshot(self), None
        if X is not None:
            X = cast(model._validated(X), model.coef_.dtype)
            placed, _ = model._placed_and_logits(X)
            if reject is not None or model.base is not None:
                outliers = model._scores_and_limits(placed, reject)
        return explain_model(model, X, names, queries=queries, outliers=outliers)

    def _in_space(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.transform_(cast(X, self.coef_.dtype)))

    def _logits(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self._in_space(X) @ self.coef_.T + self.intercept_)

    @NO_OVERFLOW_WARNINGS
    def _placed_and_logits(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Samples in the space of the model (samples, axes), and their logits, which are finite."""
        placed = self._in_space(X)
        return placed, finite(placed @ self.coef_.T + self.intercept_, X)

    def _predicted(self, X: Any, reject: float | None, unknown: Any, *, batch: bool) -> np.ndarray:
        """The likeliest class of each sample, alone or jointly; ``unknown`` for those rejected."""
        placed, evidence = self._placed_and_logits(self._checked(X))
        if batch:
            evidence = self._solved(placed, evidence).probabilities[0]
        labels = np.asarray(self.classes_[evidence.argmax(axis=1)])
        if reject is None:
            return labels
        scores, limits = self._scores_and_limits(placed, reject)
        labels = labels.astype(object)
        for row in np.flatnonzero(scores > limits):
            labels[row] = unknown
        return labels

    def detector(self, what: str) -> OutlierDetector:
        """The outlier detector of the model; raise that it has or does not do ``what`` without base classes."""
        if self.outliers_ is None:
            raise ParameterError(f"{type(self).__name__} without base classes {what}.")
        return self.outliers_

    def _scores_and_limits(self, placed: np.ndarray, reject: float | None) -> tuple[np.ndarray, np.ndarray]:
        detector = self.detector("has no outlier scores: pass base (in the shell --base)")
        return detector.scores_and_limits(placed, reject)

    def _solved(self, placed: np.ndarray, logits: np.ndarray) -> BatchSolution:
        """Joint inference over samples in the space of the model; a batch of one task."""
        detector = self.detector(
            "cannot predict a batch jointly: pass base (in the shell --base), or predict one by one"
        )
        known, placed = detector.known, placed.astype(np.float64)
        logits, means = logits.astype(np.float64) / self.probability_temperature_, known.means.copy()
        # One Gaussian or several for each new class, none for base classes.
        places = np.searchsorted(self.classes_, self.target_labels_)
        for place in np.unique(places):
            means[place] = self.calibrated_means_[places == place].mean(axis=0)
        arrays = (logits, placed, means, known.sizes, detector.weights(placed))
        groups = [np.flatnonzero(group) for group in (~self.new_classes, self.new_classes) if group.any()]
        return joint_inference(*(x[None] for x in arrays), ratio=float(known.two.ratios.mean()), groups=groups)

    def _check_state(self, width: int) -> None:
        check_calibrated(self, width)

    # --- classes that come and go

    def add_classes(self, X: Any, y: Any) -> Self:
        """Add new classes, none of which the model has; it is then that of a fit to all support samples at once.

        The transport is solved again for all new classes, because it couples them. With ``include_base`` the rows of
        base classes are kept.
        """
        X, y = self._validated(X, y)
        present = np.intersect1d(y, self.classes_)
        if len(present):
            raise InputError(f"'{present[0]}' is a class of this model already: use add_samples, or another name.")
        return self.add(X, y)

    def add_samples(self, X: Any, y: Any) -> Self:
        """Add samples of classes of the model, new or old; it is then that of a fit to all samples at once.

        Samples of old classes, with ``include_base``, go into the bank: ``base`` becomes a bank that holds them too.
        """
        X, y = self._validated(X, y)
        absent = np.setdiff1d(y, self.classes_)
        if len(absent):
            raise InputError(f"'{absent[0]}' is not a class of this model: use add_classes to add it.")
        return self.add(X, y)

    def add(self, X: Any, y: Any) -> Self:
        """Add samples of any classes, of the model or not, as ``add_classes`` and ``add_samples`` do."""
        X, y = self._validated(X, y)
        joined_labels(self.classes_, y)
        is_old = np.isin(y, self.classes_[~self.new_classes])
        base = self._loaded_base()
        if is_old.any():
            base = base.with_samples(X[is_old], y[is_old])
        labels = np.concatenate([self.support_labels_, y[~is_old]])
        return self.learn_again(np.concatenate([self.support_, X[~is_old]]), labels, base)

    def remove_classes(self, names: Any) -> Self:
        """Remove one or several new classes; the model is then that of a fit without them."""
        check_is_fitted(self)
        names = np.atleast_1d(names)
        absent = np.setdiff1d(names, self.support_labels_)
        if len(absent):
            raise InputError(f"'{absent[0]}' is not a new class of this model: base classes cannot be removed.")
        stays = ~np.isin(self.support_labels_, names)
        if not stays.any():
            raise InputError("No new class would be left: remove fewer classes.")
        return self.learn_again(self.support_[stays], self.support_labels_[stays], self.base)

    def learn_again(self, X: np.ndarray, y: np.ndarray, base: Any) -> Self:
        """Fit to other support samples, or another bank; a fit that fails changes nothing."""
        grown = unfitted(self, same_features=True)
        grown.base, grown._before = base, snapshot(self)
        grown._learn(X, y)
        del grown._before
        assign(self, grown)
        return self


def head_seed(random_state: Any) -> int:
    """The seed of the sampled head for a ``random_state``."""
    return int(check_random_state(random_state).randint(2**31 - 1))


def _warn_of_scale(base: PreparedBase, name: str) -> None:
    deviation = float(np.sqrt(base.spectrum.mean()))
    low, high = USUAL_DEVIATION
    if not low <= deviation <= high:
        warn_user(
            f"{name} without normalisation depends on the scale of the features through alpha and C, and the standard "
            f"deviation within base classes is {deviation:.2g} (usually {low:g} to {high:g}): rescale the features, or "
            "use the default normalize='centre-l2' with alpha=0.",
            ScaleWarning,
        )
