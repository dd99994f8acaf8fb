"""H-OT as a scikit-learn classifier, with its published parameters, parameters in files, and compact banks for it."""

from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

from sklearn.base import clone

from hotshot.bank import BaseClasses, Space
from hotshot.bank.covariances import COVARIANCE_FORMS, LOW_RANK
from hotshot.classifiers.calibrated import CalibratedClassifier
from hotshot.classifiers.classifier import (
    AUTO,
    CENTRED,
    COUNT,
    NOT_NEGATIVE,
    NUMBER,
    POSITIVE,
    POWERS,
    SHARE,
    Interval,
    StrOptions,
    chosen,
    parameter,
)
from hotshot.classifiers.confidence import CONFIDENCE, confidence_on
from hotshot.classifiers.held_out import description
from hotshot.errors import InputError, ParameterError
from hotshot.files.atomic import write_json
from hotshot.files.objects import read_object
from hotshot.formatting import quoted
from hotshot.method.calibration import ALPHA_RULES, MEAN_RULES
from hotshot.method.heads import HEADS
from hotshot.method.transfer import COST_SCALES, COSTS, NEAREST

_PUBLISHED: dict[str, Any] = {
    "power": 0.5, "power_on_base": False, "normalize": None, "n_components": None, "sample_weights": "classifier",
    "temperature": 1.0, "cost": "hierarchical", "epsilon": 0.01, "cost_scale": "published", "alpha": 0.21,
    "alpha_rule": "entries", "per": "sample", "head": "sampled", "n_generated": 750, "support_weight": 1.0, "C": 1.0,
}  # fmt: skip
PARAMETER_SETS: dict[str, dict[str, Any]] = {
    "paper": {**_PUBLISHED, "mean_rule": "printed"},
    "authors": {**_PUBLISHED, "mean_rule": "mix", "mix": 0.7, "temperature": 0.3, "power_offset": 1e-6},
}
AXES = Interval(Real, 0, 1, closed="neither"), COUNT, None


def published(name: str, *valid: Any) -> Any:
    """A parameter whose default is the published value."""
    return parameter(_PUBLISHED[name], *valid)


@dataclass(eq=False, repr=False, kw_only=True)
class HOTClassifier(CalibratedClassifier):
    r"""Few-shot classification by distribution calibration with hierarchical optimal transport.

    Each novel class borrows a mean and a covariance from the base classes. The transfer weights come from a transport
    plan between base classes and support samples, whose cost comes from a second transport between the samples of each
    base class and the support samples [1]_. A linear classifier (head) is trained on the resulting Gaussians and the
    support samples.

    The defaults go beyond the paper: features are centred on the base samples and scaled to unit norm, so that no
    parameter depends on their scale, and nothing is sampled. ``parameter_set`` returns the published settings.
    Parameters that are "auto" are chosen on held-out base classes, once per bank and within seconds, if the bank has at
    least 20 classes of at least 10 samples.

    Without base classes, ``HOTClassifier()`` is plain logistic regression on power-transformed features. If a transform
    comes before it in a pipeline, apply it to the bank too, with ``BaseClasses.transform``.

    Parameters
    ----------
    base : BaseClasses or None
        Bank to borrow from. With None, plain logistic regression on power-transformed features.
    power : float or "auto"
        Power of the features (Tukey's ladder), log at 0. "auto" chooses 0.5 or 1 if no base feature is negative, and is
        1 otherwise and for a bank of fewer than 20 classes.
    power_offset : float
        Number added to the features before the power.
    power_on_base : bool
        Whether to transform base features too, or only support and queries, as published.
    normalize : {"centre-l2", None}
        Subtract the mean of the base samples, then scale to unit norm. With None, alpha and C depend on the scale
        of the features.
    n_components : float, int or None
        Principal axes of the base samples to keep: a share of the variance (float), a number of axes (int), or all.
        A share keeps all axes of a bank of few classes with fewer samples than features.
    sample_weights : {"uniform", "classifier"}
        Weights of the samples within a base class: equal, or from the probabilities of a classifier of base classes.
    temperature : float
        Temperature of the softmax over those probabilities.
    covariance : {"auto", "dense", "factored", "low-rank", "diagonal", "pooled"}
        Form of the base covariances. "auto" is exact and depends on the size of the bank: dense matrices, or the
        samples themselves ("factored") in banks of many classes with few samples. The others are approximations:
        leading axes of each class, variances of each class along the axes of the pooled covariance, or the pooled
        covariance for all classes.
    cost : {"hierarchical", "mean-cosine", "cosine", "cosine-weighted", "euclidean", "euclidean-weighted", "nearest"}
        Cost of the high-level transport. "nearest" uses equal weights on the ``n_retrieved`` nearest means instead of
        a transport (2 by default), as in Free-Lunch. On a bank without samples "hierarchical" is replaced by
        "mean-cosine", with a ``NoSamplesWarning``.
    epsilon : float or "auto"
        Strength of the entropy in both transports; "auto" chooses 0.02, 0.005 or 0.05.
    cost_scale : {"published", "over-targets"}
        Which costs are divided by the number of targets: "hierarchical" and "mean-cosine" only, or all.
    n_retrieved : int, "auto" or None
        Number of nearest base classes that may lend to one target; None is all. "auto" is all in banks of up to 512
        classes, and 100 in larger ones.
    mean_rule : {"auto", "posterior", "posterior-whole", "mix", "printed", "free-lunch"}
        How lent and own means are combined, see the module ``hotshot.method.calibration``. "auto" chooses "posterior",
        "mix" or "posterior-whole", and is "mix" for a bank of fewer than 20 classes.
    mix : float or "auto"
        Share of the base classes in the "mix" rule, which also is a quarter of "posterior". "auto" is
        0.7 q / (0.7 q + 0.3 K) at K shots, with q near 1 for many base classes and 0 for up to three.
    alpha : float
        Number added to the calibrated covariances.
    alpha_rule : {"entries", "diagonal"}
        Whether alpha is added to all entries, as published, or to the diagonal.
    per : {"class", "sample"}
        One Gaussian per novel class, from the mean of its support samples, or one per support sample, as published.
    head : {"bound", "sampled"}
        Training loss of the head: closed-form bound of the expected loss, or loss on generated features.
    n_generated : int or "auto"
        Generated features per class (virtual ones, unless the head is "sampled"); "auto" chooses 300 or 50.
    support_weight : float or "auto"
        Number of generated features that a support sample counts as; "auto" chooses 20, 5 or 50.
    C : float
        Inverse strength of the penalty, as in scikit-learn's ``LogisticRegression``.
    include_base : bool
        Whether to predict base classes too. Their weights do not depend on the new classes.
    base_loss : float or None
        With ``include_base``: largest share of held-out samples of base classes that may be predicted as new classes;
        None for no limit.
    calibrate_probabilities : bool
        Whether to calibrate probabilities with a temperature learned on held-out base classes.
    random_state : int, RandomState or None
        Seed of the sampled head; the other heads are deterministic.

    Attributes
    ----------
    {classes_}
    {chosen_}
    coef_, intercept_ : arrays (N, axes) and (N,)
        The head, for features after ``transform_``.
    transform_, power_ : FeatureTransform and float
        Transform of raw features to the space of the bank, and its power.
    support_, support_labels_ : arrays (samples, V) and (samples,)
        Support samples and their labels.
    is_new_, balance_ : array (N,) and float
        With ``include_base``: which classes are new, and the shift of their intercepts for ``base_loss``.
    probability_temperature_ : float
        Divisor of the logits for probabilities.
    transfer_weights_, target_labels_ : arrays (targets, B) and (targets,)
        How much each base class lends to each target, in rows that sum to 1, and the class of the target.
    calibrated_means_, base_names_, base_means_ : arrays (targets, axes), (B,) and (B, axes)
        Means of the calibrated Gaussians; names and means of the base classes.
    learned_cost_, plan_, status_counts_ : arrays (B, targets) and dict of Status to int
        Cost and plan of the high-level transport, and the number of transport problems of the fit by status.
    outliers_, trained_on_ : OutlierDetector and TrainedOn, or None
        What tells samples of no class, and what explanations need.
    converged_ : bool
        Whether the head reached its minimum; if not, there was a ``ConvergenceWarning``.
    extractor_, feature_space_ : str or None, FeatureSpace or None
        Extractor, usual norms and directions of the base samples; a ``FeatureSpaceWarning`` reports others.
    n_features_in_, feature_names_in_
        As in scikit-learn.

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

    base: BaseClasses | None = parameter(None)
    # Candidates are tried in this order: the rule for the means first.
    mean_rule: str = chosen(("posterior", "mix", "posterior-whole"), MEAN_RULES)
    power: float | str = chosen(POWERS, NUMBER)
    # The defaults of a space are in `Space`, because banks are saved in it too.
    power_offset: float = parameter(Space.power_offset, NOT_NEGATIVE)
    power_on_base: bool = parameter(Space.power_on_base, "boolean")
    normalize: str | None = parameter(Space.normalize, CENTRED, None)
    n_components: float | int | None = parameter(Space.n_components, *AXES)
    sample_weights: str = parameter(Space.sample_weights, StrOptions({"uniform", "classifier"}))
    temperature: float = parameter(Space.temperature, POSITIVE)
    covariance: str = parameter(Space.covariance, COVARIANCE_FORMS)
    cost: str = parameter("hierarchical", COSTS, StrOptions({NEAREST}))
    epsilon: float | str = chosen((0.02, 0.005, 0.05), POSITIVE)
    cost_scale: str = parameter("published", StrOptions({*COST_SCALES}))
    n_retrieved: int | str | None = parameter("auto", COUNT, AUTO, None)
    mix: float | str = parameter("auto", SHARE, AUTO)
    alpha: float = parameter(0.0, NOT_NEGATIVE)
    alpha_rule: str = parameter("entries", StrOptions({*ALPHA_RULES}))
    per: str = parameter("class", StrOptions({"class", "sample"}))
    head: str = parameter("bound", HEADS)
    n_generated: int | str = chosen((300, 50), COUNT)
    support_weight: float | str = chosen((20.0, 5.0, 50.0), NOT_NEGATIVE)
    C: float = parameter(1.0, POSITIVE)
    include_base: bool = parameter(False, "boolean")
    base_loss: float | None = parameter(0.03, Interval(Real, 0, 1, closed="left"), None)
    calibrate_probabilities: bool = parameter(True, "boolean")
    random_state: Any = parameter(None, "random_state")


def parameter_set(name: str, **changes: Any) -> dict[str, Any]:
    """Published parameters of ``HOTClassifier`` by name, with ``changes``.

    "paper" is the method as printed: eq. 10 for the means, temperature 1. "authors" is the authors' program: means
    mixed by 0.7, temperature 0.3, and 1e-6 added before the power. Both leave the base features untransformed, use
    the power of miniImageNet (0.5; the paper uses 1 for tieredImageNet and CUB and 0.8 for CIFAR-FS), and depend on
    the scale of the features through alpha and C: they were chosen on the penultimate ReLU features of a WideResNet,
    and ``fit`` warns if features are far from that scale.

    Examples
    --------
    >>> parameter_set("authors", power=1.0)["mix"]
    0.7
    """
    if name not in PARAMETER_SETS:
        raise ParameterError(f"name must be one of {', '.join(map(repr, PARAMETER_SETS))}, got {name!r}.")
    return {**PARAMETER_SETS[name], **changes}


FILE_FORMAT = "hotshot parameters 1"


def save_parameters(path: str | Path, parameters: dict[str, Any], about: dict[str, Any]) -> None:
    """Write parameters of ``HOTClassifier``, and their origin, to a JSON file."""
    write_json(path, {"format": FILE_FORMAT, "parameters": parameters, "about": about})


def load_parameters(path: str | Path) -> dict[str, Any]:
    """Read parameters of ``HOTClassifier`` or ``InputClassifier`` from a ``.json`` file that ``tune`` wrote.

    Examples
    --------
    >>> import os, tempfile
    >>> from hotshot.classifiers.hot import save_parameters
    >>> path = os.path.join(tempfile.mkdtemp(), "parameters.json")
    >>> save_parameters(path, {"epsilon": 0.02}, about={})
    >>> load_parameters(path)
    {'epsilon': 0.02}
    """
    content = read_object(path) or {}
    parameters = content.get("parameters")
    if content.get("format") != FILE_FORMAT or not isinstance(parameters, dict):
        raise InputError(f"{path} is not a file of parameters: write one with tune.")
    names = HOTClassifier().get_params().keys() - {"base", "include_base"}
    if unknown := sorted(parameters.keys() - names):
        raise InputError(f"{path} holds an unknown parameter of HOTClassifier, {quoted(unknown[0])}: remove it.")
    return parameters


def save_compact(base: BaseClasses, path: str | Path, *, overwrite: bool = False) -> None:
    """Write means and low-rank covariances of a bank in the space that ``HOTClassifier`` chooses on it.

    Settings, temperatures and outlier scores are learned first, while there are samples. They also apply to the cost
    that replaces the hierarchical one without samples.
    """
    if base.samples is None:
        raise InputError("This bank is compact already: copy its folder.")
    model = HOTClassifier(base)
    settings = model.settings()
    confidence_on(base, model, settings)
    proxy = clone(model).set_params(cost=COSTS[model.cost].proxy)
    for prefix in ("", CONFIDENCE):
        if prefix + description(model) in base.choices:
            base.choices[prefix + description(proxy)] = base.choices[prefix + description(model)]
    base.save(path, samples=False, covariance=LOW_RANK, spaces=[model._space(settings)], overwrite=overwrite)
