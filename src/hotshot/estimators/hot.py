"""H-OT as a scikit-learn classifier."""

from collections.abc import Mapping
from dataclasses import fields
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from hotshot.base import BaseClasses, Space
from hotshot.base.covariances import COVARIANCE_FORMS
from hotshot.estimators.classifier import CalibratedClassifier
from hotshot.method.calibration import ALPHA_RULES, MEAN_RULES
from hotshot.method.heads import HEADS
from hotshot.method.hierarchy import COST_SCALES, COSTS, NEAREST
from hotshot.method.parameters import Method

POSITIVE = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
COUNT = Interval(Integral, 1, None, closed="left")
AUTO = StrOptions({"auto"})


class NameIn(StrOptions):  # type: ignore[misc]  # scikit-learn has no types.
    """A name in a table as the table is now, so that entries added by others count."""

    def __init__(self, table: Mapping[str, Any], *more: str) -> None:
        super().__init__({*table, *more})
        self.table, self.more = table, more

    def is_satisfied_by(self, val: Any) -> bool:
        """Whether the table has it."""
        return isinstance(val, str) and (val in self.table or val in self.more)

    def __str__(self) -> str:
        return f"a str among {{{', '.join(map(repr, [*self.table, *self.more]))}}}"


class HOTClassifier(CalibratedClassifier):
    r"""Few-shot classification by distribution calibration with hierarchical optimal transport.

    Each novel class borrows mean and covariance from the base classes, by transfer weights from a transport
    plan between base classes and support, whose cost comes from a second transport between the samples of each
    base class and the support [1]_. A linear head is trained on the resulting Gaussians and the support.

    The defaults go beyond the paper: features are centred on the base samples and scaled to unit norm, so that no
    parameter depends on their scale, and nothing is sampled. `parameter_set` has the published settings. Parameters
    that are "auto" below are chosen on held-out base classes, once per bank and in seconds, where the bank has samples
    of at least 20 classes; `hotshot.estimators.choosing` says how.

    Without base classes, `HOTClassifier()`, it is plain logistic regression on power-transformed features. A transform
    before it in a pipeline must be applied to the bank too, see `BaseClasses.transform`.

    Parameters
    ----------
    base : BaseClasses or None
        The bank to borrow from. None gives plain logistic regression on power-transformed features.
    power : float or "auto"
        Of Tukey's ladder, log at 0. "auto" chooses 0.5 or 1 where no base feature is negative and is 1 elsewhere.
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
    covariance : {"auto", "dense", "factored", "low-rank", "diagonal", "pooled"}
        How base covariances are kept. "auto" is exact and chooses by the size of the bank: dense matrices, or
        ("factored") the samples themselves in banks of many classes with few samples. The others are approximations:
        leading axes of each class, its variances along the axes of the pooled covariance, or that one for all classes.
    cost : str
        Of the high-level transport: "hierarchical", "mean-cosine", "cosine", "cosine-weighted", "euclidean",
        "euclidean-weighted"; "nearest" takes equal weights on the `n_retrieved` nearest means instead (2 by
        default), as Free-Lunch does. On a bank without samples "mean-cosine" takes the place of "hierarchical", with a
        NoSamplesWarning.
    epsilon : float or "auto"
        Strength of the entropy in both transports; "auto" chooses among 0.02, 0.005 and 0.05.
    cost_scale : {"published", "over-targets", "free"}
        Whether the cost is divided by the number of targets: for "hierarchical" and "mean-cosine" only, for
        all, or for none.
    n_retrieved : int, "auto" or None
        How many base classes, the nearest, may lend to one target; None is all, and so is any larger number. "auto"
        is all in banks of up to 512 classes, 100 in larger ones.
    mean_rule : {"auto", "posterior", "mix", "printed", "free-lunch"}
        How borrowed and own means are joined, see `hotshot.method.calibration`; "auto" chooses between "posterior"
        and "mix".
    mix : float or "auto"
        Share of the base classes in the "mix" rule, which is a quarter of "posterior"; "auto" is 0.7 / (0.7 + 0.3 K)
        at K shots.
    alpha : float
        Added to the calibrated covariances.
    alpha_rule : {"entries", "diagonal"}
        Where it is added.
    per : {"class", "sample"}
        One Gaussian per novel class, around the mean of its support, or one per support sample as published.
    head : {"bound", "expected", "sampled"}
        Trained on the closed-form bound of the expected loss, on the expected loss, or on generated features.
    n_generated : int or "auto"
        Generated features per class, drawn or virtual; "auto" chooses 300 or 50.
    support_weight : float or "auto"
        How many features a support sample counts as; "auto" chooses 20, 5 or 50.
    C : float
        Inverse strength of the penalty, as in scikit-learn's LogisticRegression.
    include_base : bool
        Whether base classes are answered too, beside the new ones. They keep the weights that they have without new
        classes; see `hotshot.method.joint`.
    base_loss : float or None
        Which share of the samples of base classes new classes may take from them at most, as judged by held-out
        samples; None sets no limit. For `include_base`.
    calibrate_probabilities : bool
        Whether probabilities are tempered as held-out base classes ask for.
    random_state : int, RandomState or None
        Of the sampled head; the others are deterministic.

    Attributes
    ----------
    classes_ : array (N,)
    chosen_ : dict
        What each "auto" stood for; without base classes there is none.
    coef_, intercept_ : arrays (N, axes) and (N,)
        The head, on features taken through `transform_`.
    transform_ : FeatureTransform
    power_ : float
        The power that was used.
    support_, support_labels_ : arrays (samples, V) and (samples,)
        What the model was fitted to, so that it can grow.
    is_new_, balance_ : array (N,) and float
        With `include_base`: which classes are new, and what was added to their intercepts for `base_loss`.
    probability_temperature_ : float
        What logits are divided by for probabilities.
    transfer_weights_ : array (targets, B)
        How much each base class lends to each target, a distribution in each row.
    target_labels_ : array (targets,)
        The class of each target.
    calibrated_means_ : array (targets, axes)
    base_names_, base_means_ : arrays (B,) and (B, axes)
        The base classes, as far as `explain` needs them.
    support_, support_labels_ : arrays (samples, features) and (samples,)
        What it was fitted to.
    own_parts_, slopes_, spectrum_ : arrays (samples, axes), (targets + samples, N) and (axes,)
        What else `explain` needs, see `hotshot.method.attribution`: the part of a calibrated mean that is each sample's
        own, derivatives of the loss in the logits of calibrated means and samples, and typical variances.
    learned_cost_, plan_ : arrays (B, targets)
        Cost and plan of the high-level transport.
    status_counts_ : dict of Status to int
        How the transport problems of the fit ended.
    converged_ : bool
        Whether the head reached its minimum; a ConvergenceWarning says so where not.
    extractor_ : str or None
        What the features of the base classes come from, as far as the bank was told.
    feature_space_ : FeatureSpace or None
        Where the base samples lie; a FeatureSpaceWarning says where support or queries are elsewhere.
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
        "power": [Interval(Real, None, None, closed="neither"), AUTO],
        "power_offset": [NOT_NEGATIVE],
        "power_on_base": ["boolean"],
        "normalize": [StrOptions({"centre-l2"}), None],
        "n_components": [Interval(Real, 0, 1, closed="neither"), COUNT, None],
        "sample_weights": [StrOptions({"uniform", "classifier"})],
        "temperature": [POSITIVE],
        "covariance": [NameIn(COVARIANCE_FORMS)],
        "cost": [NameIn(COSTS, NEAREST)],
        "epsilon": [POSITIVE, AUTO],
        "cost_scale": [StrOptions(set(COST_SCALES))],
        "n_retrieved": [COUNT, AUTO, None],
        "mean_rule": [NameIn(MEAN_RULES, "auto")],
        "mix": [Interval(Real, 0, 1, closed="both"), AUTO],
        "alpha": [NOT_NEGATIVE],
        "alpha_rule": [NameIn(ALPHA_RULES)],
        "per": [StrOptions({"class", "sample"})],
        "head": [NameIn(HEADS)],
        "n_generated": [COUNT, AUTO],
        "support_weight": [NOT_NEGATIVE, AUTO],
        "C": [POSITIVE],
        "include_base": ["boolean"],
        "base_loss": [Interval(Real, 0, 1, closed="left"), None],
        "calibrate_probabilities": ["boolean"],
        "random_state": ["random_state"],
    }

    _choices: ClassVar[dict[str, tuple[Any, ...]]] = {
        "mean_rule": ("posterior", "mix"),
        "power": (0.5, 1.0),
        "epsilon": (0.02, 0.005, 0.05),
        "n_generated": (300, 50),
        "support_weight": (20.0, 5.0, 50.0),
    }

    def __init__(
        self,
        base: BaseClasses | None = None,
        *,
        power: float | str = "auto",
        # The defaults of a space are those of `Space`: a bank is saved in it, whoever uses it later.
        power_offset: float = Space.power_offset,
        power_on_base: bool = Space.power_on_base,
        normalize: str | None = Space.normalize,
        n_components: float | int | None = Space.n_components,
        sample_weights: str = Space.sample_weights,
        temperature: float = Space.temperature,
        covariance: str = Space.covariance,
        cost: str = "hierarchical",
        epsilon: float | str = "auto",
        cost_scale: str = "published",
        n_retrieved: int | str | None = "auto",
        mean_rule: str = "auto",
        mix: float | str = "auto",
        alpha: float = 0.0,
        alpha_rule: str = "entries",
        per: str = "class",
        head: str = "bound",
        n_generated: int | str = "auto",
        support_weight: float | str = "auto",
        C: float = 1.0,
        include_base: bool = False,
        base_loss: float | None = 0.03,
        calibrate_probabilities: bool = True,
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
        self.covariance = covariance
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
        self.include_base = include_base
        self.base_loss = base_loss
        self.calibrate_probabilities = calibrate_probabilities
        self.random_state = random_state

    def _space(self, settings: Mapping[str, Any]) -> Space:
        return Space(**{f.name: settings[f.name] for f in fields(Space)})

    def _method(self, settings: Mapping[str, Any]) -> Method:
        return Method(**{f.name: settings[f.name] for f in fields(Method)})
