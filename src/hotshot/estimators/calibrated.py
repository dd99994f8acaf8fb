"""Classifiers trained on calibrated Gaussians: `HOTClassifier` and `FreeLunchClassifier`."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from hotshot import calibration, heads, hierarchy
from hotshot.base import BaseClasses, PreparedBase, Space
from hotshot.errors import ScaleWarning
from hotshot.estimators.common import FewShotClassifier, validated
from hotshot.estimators.explanation import Explanation, Lender, Loan, Reason
from hotshot.features import FeatureTransform, choose_power
from hotshot.heads.objective import softmax
from hotshot.method import Method, fit_tasks
from hotshot.transport.costs import cosine
from hotshot.transport.solution import count_statuses

_POSITIVE = Interval(Real, 0, None, closed="neither")
_NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
_COUNT = Interval(Integral, 1, None, closed="left")

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

    def _fit(self, X: np.ndarray, labels: np.ndarray) -> None:
        if self.base is None:
            self._fit_without_base(X, labels)
            return
        X = X.astype(self.base.samples.dtype, copy=False)
        space = self._space(self.base.power(self.power, X))
        base = self.base.prepare(space)
        if space.normalize is None:
            _warn_of_scale(base, type(self).__name__)
        method = self._method()
        seed = check_random_state(self.random_state).randint(2**31 - 1)
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
        self.power_ = space.power
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
        self.base_means_ = base.means

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
        names = np.empty(0) if self.base is None else self.base.names
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


def _own_share(method: Method, labels: np.ndarray, targets: np.ndarray, n_base: int) -> np.ndarray:
    """Share of each calibrated mean that is the support's own."""
    if method.mean_rule == calibration.PRINTED:
        return np.full(len(targets), 0.5)
    if method.mean_rule == calibration.FREE_LUNCH:
        return np.full(len(targets), 1 / (1 + min(method.n_retrieved or 2, n_base)))
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


class HOTClassifier(CalibratedClassifier):
    r"""Few-shot classification by distribution calibration with hierarchical optimal transport.

    Each novel class borrows mean and covariance from the base classes, by transfer weights from a transport
    plan between base classes and support, whose cost comes from a second transport between the samples of each
    base class and the support [1]_. A linear head is trained on the resulting Gaussians and the support.

    The defaults go beyond the paper: features are centred on the base samples and scaled to unit norm, so that no
    parameter depends on their scale, and nothing is sampled. `parameter_set` has the published settings.

    Parameters
    ----------
    base : BaseClasses or None
        The bank to borrow from. None gives plain logistic regression on power-transformed features.
    power : float or "auto"
        Of Tukey's ladder, log at 0. "auto" is 0.5 where no base or support feature is negative and 1 elsewhere.
    power_offset : float
        Added before the power.
    power_on_base : bool
        Whether base features are transformed too, or only support and queries as published.
    normalize : {"centre-l2", None}
        Subtract the mean of the base samples, then scale to unit norm. With None, alpha and C depend on the scale
        of the features.
    n_components : float, int or None
        Principal axes of the base samples to keep: as many as hold this share of the variance, so many, or all.
    sample_weights : {"uniform", "classifier"}
        Weights of the samples within a base class, the same for all or by a base classifier's probability.
    temperature : float
        Of the softmax over those probabilities.
    cost : str
        Of the high-level transport: "hierarchical", "mean-cosine", "cosine", "cosine-weighted", "euclidean",
        "euclidean-weighted"; "nearest" takes equal weights on the `n_retrieved` nearest means instead (2 by
        default), as Free-Lunch does.
    epsilon : float
        Strength of the entropy in both transports.
    cost_scale : {"published", "over-targets", "free"}
        Whether the cost is divided by the number of targets: for "hierarchical" and "mean-cosine" only, for
        all, or for none.
    n_retrieved : int or None
        How many base classes, the nearest, may lend to one target; None is all, and so is any larger number.
    mean_rule : {"mix", "printed", "free-lunch"}
        How borrowed and own means are joined, see `hotshot.calibration.calibrate`.
    mix : float or "auto"
        Share of the base classes in the "mix" rule; "auto" is 0.7 / (0.7 + 0.3 K) at K shots.
    alpha : float
        Added to the calibrated covariances.
    alpha_rule : {"entries", "diagonal"}
        Where it is added.
    per : {"class", "sample"}
        One Gaussian per novel class, around the mean of its support, or one per support sample as published.
    head : {"bound", "expected", "sampled"}
        Trained on the closed-form bound of the expected loss, on the expected loss, or on generated features.
    n_generated : int
        Generated features per class, drawn or virtual.
    support_weight : float
        How many features a support sample counts as.
    C : float
        Inverse strength of the penalty, as in scikit-learn's LogisticRegression.
    random_state : int, RandomState or None
        Of the sampled head; the others are deterministic.

    Attributes
    ----------
    classes_ : array (N,)
    coef_, intercept_ : arrays (N, axes) and (N,)
        The head, on features taken through `transform_`.
    transform_ : FeatureTransform
    power_ : float
        The power that was used.
    transfer_weights_ : array (targets, B)
        How much each base class lends to each target, a distribution in each row.
    target_labels_ : array (targets,)
        The class of each target.
    calibrated_means_ : array (targets, axes)
    learned_cost_, plan_ : arrays (B, targets)
        Cost and plan of the high-level transport.
    status_counts_ : dict of Status to int
        How the transport problems of the fit ended.
    converged_ : bool
        Whether the head reached its minimum; a ConvergenceWarning says so where not.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    FreeLunchClassifier : two nearest base classes with equal weights.
    parameter_set : the published settings.

    References
    ----------
    .. [1] Guo, Tian, Zhao, Zhou, Zha: Adaptive Distribution Calibration for Few-Shot Learning with
       Hierarchical Optimal Transport. NeurIPS 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from hotshot import BaseClasses, HOTClassifier
    >>> rng = np.random.default_rng(0)
    >>> centres = rng.normal(size=(12, 8))
    >>> y_base = np.repeat(np.arange(10), 50)
    >>> X_base = centres[y_base] + 0.3 * rng.normal(size=(500, 8))
    >>> base = BaseClasses.from_samples(X_base, y_base)
    >>> model = HOTClassifier(base).fit(centres[10:], ["new", "newer"])
    >>> model.predict(centres[10:] + 0.1)
    array(['new', 'newer'], dtype='<U5')
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "base": "no_validation",
        "power": [Interval(Real, None, None, closed="neither"), StrOptions({"auto"})],
        "power_offset": [_NOT_NEGATIVE],
        "power_on_base": ["boolean"],
        "normalize": [StrOptions({"centre-l2"}), None],
        "n_components": [Interval(Real, 0, 1, closed="neither"), _COUNT, None],
        "sample_weights": [StrOptions({"uniform", "classifier"})],
        "temperature": [_POSITIVE],
        "cost": [StrOptions({*hierarchy.COSTS, hierarchy.NEAREST})],
        "epsilon": [_POSITIVE],
        "cost_scale": [StrOptions(set(hierarchy.COST_SCALES))],
        "n_retrieved": [_COUNT, None],
        "mean_rule": [StrOptions(set(calibration.MEAN_RULES))],
        "mix": [Interval(Real, 0, 1, closed="both"), StrOptions({"auto"})],
        "alpha": [_NOT_NEGATIVE],
        "alpha_rule": [StrOptions(set(calibration.ALPHA_RULES))],
        "per": [StrOptions({"class", "sample"})],
        "head": [StrOptions(set(heads.HEADS))],
        "n_generated": [_COUNT],
        "support_weight": [_NOT_NEGATIVE],
        "C": [_POSITIVE],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        base: BaseClasses | None = None,
        *,
        power: float | str = "auto",
        power_offset: float = 0.0,
        power_on_base: bool = True,
        normalize: str | None = "centre-l2",
        n_components: float | int | None = 0.98,
        sample_weights: str = "uniform",
        temperature: float = 1.0,
        cost: str = "hierarchical",
        epsilon: float = 0.02,
        cost_scale: str = "published",
        n_retrieved: int | None = None,
        mean_rule: str = "mix",
        mix: float | str = "auto",
        alpha: float = 0.0,
        alpha_rule: str = "entries",
        per: str = "class",
        head: str = "bound",
        n_generated: int = 300,
        support_weight: float = 20.0,
        C: float = 1.0,
        random_state: Any = None,
    ) -> None:
        self.base = base
        self.power = power
        self.power_offset = power_offset
        self.power_on_base = power_on_base
        self.normalize = normalize
        self.n_components = n_components
        self.sample_weights = sample_weights
        self.temperature = temperature
        self.cost = cost
        self.epsilon = epsilon
        self.cost_scale = cost_scale
        self.n_retrieved = n_retrieved
        self.mean_rule = mean_rule
        self.mix = mix
        self.alpha = alpha
        self.alpha_rule = alpha_rule
        self.per = per
        self.head = head
        self.n_generated = n_generated
        self.support_weight = support_weight
        self.C = C
        self.random_state = random_state

    def _space(self, power: float) -> Space:
        return Space(
            power=power,
            power_offset=self.power_offset,
            power_on_base=self.power_on_base,
            normalize=self.normalize,
            n_components=self.n_components,
            sample_weights=self.sample_weights,
            temperature=self.temperature,
        )

    def _method(self) -> Method:
        return Method(
            cost=self.cost,
            epsilon=self.epsilon,
            cost_scale=self.cost_scale,
            n_retrieved=self.n_retrieved,
            mean_rule=self.mean_rule,
            mix=self.mix,
            alpha=self.alpha,
            alpha_rule=self.alpha_rule,
            per=self.per,
            head=self.head,
            n_generated=self.n_generated,
            support_weight=self.support_weight,
            C=self.C,
        )


class FreeLunchClassifier(CalibratedClassifier):
    r"""Distribution calibration from the two nearest base classes with equal weights, as published in [1]_.

    Each support sample borrows :math:`\mu' = (\sum_{i} \mu_i + x) / (k + 1)` and
    :math:`\Sigma' = \sum_i \Sigma_i / k + \alpha` from the k base classes with the nearest means (eq. 3 of the H-OT
    paper), and logistic regression is fitted to features drawn from these Gaussians. alpha and C depend on the
    scale of the features; `normalize="centre-l2"` with `alpha=0` does not.

    Parameters
    ----------
    base : BaseClasses or None
        The bank to borrow from. None gives plain logistic regression on power-transformed features.
    k : int
        Number of base classes that lend to a support sample.
    power, normalize, n_components, alpha, alpha_rule, head, n_generated, support_weight, C, random_state
        As in `HOTClassifier`, with the published values as defaults. Base features are transformed only where
        features are normalised.

    Attributes
    ----------
    classes_, coef_, intercept_, transform_, power_, transfer_weights_, target_labels_, calibrated_means_
        As in `HOTClassifier`.
    learned_cost_ : array (B, targets)
        Squared distances to the means.

    References
    ----------
    .. [1] Yang, Liu, Xu: Free Lunch for Few-shot Learning: Distribution Calibration. ICLR 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from hotshot import BaseClasses, FreeLunchClassifier
    >>> rng = np.random.default_rng(0)
    >>> centres = rng.normal(size=(12, 8))
    >>> y_base = np.repeat(np.arange(10), 50)
    >>> base = BaseClasses.from_samples(centres[y_base] + 0.3 * rng.normal(size=(500, 8)), y_base)
    >>> model = FreeLunchClassifier(base, random_state=0).fit(centres[10:], ["new", "newer"])
    >>> model.predict(centres[10:] + 0.1)
    array(['new', 'newer'], dtype='<U5')
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "k": [_COUNT],
        **{
            name: HOTClassifier._parameter_constraints[name]
            for name in (
                "base",
                "power",
                "normalize",
                "n_components",
                "alpha",
                "alpha_rule",
                "head",
                "n_generated",
                "support_weight",
                "C",
                "random_state",
            )
        },
    }

    def __init__(
        self,
        base: BaseClasses | None = None,
        *,
        k: int = 2,
        power: float | str = "auto",
        normalize: str | None = None,
        n_components: float | int | None = None,
        alpha: float = 0.21,
        alpha_rule: str = "entries",
        head: str = "sampled",
        n_generated: int = 750,
        support_weight: float = 1.0,
        C: float = 1.0,
        random_state: Any = None,
    ) -> None:
        self.base = base
        self.k = k
        self.power = power
        self.normalize = normalize
        self.n_components = n_components
        self.alpha = alpha
        self.alpha_rule = alpha_rule
        self.head = head
        self.n_generated = n_generated
        self.support_weight = support_weight
        self.C = C
        self.random_state = random_state

    def _space(self, power: float) -> Space:
        return Space(
            power=power,
            power_on_base=self.normalize is not None,
            normalize=self.normalize,
            n_components=self.n_components,
        )

    def _method(self) -> Method:
        return Method(
            cost=hierarchy.NEAREST,
            n_retrieved=self.k,
            mean_rule=calibration.FREE_LUNCH,
            alpha=self.alpha,
            alpha_rule=self.alpha_rule,
            per="sample",
            head=self.head,
            n_generated=self.n_generated,
            support_weight=self.support_weight,
            C=self.C,
        )
