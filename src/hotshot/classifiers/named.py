"""Methods by the names used in tables, on the command line and in the docs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sklearn.base import ClassifierMixin
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.svm import LinearSVC

from hotshot.bank import BaseClasses
from hotshot.classifiers.calibrated import CalibratedClassifier
from hotshot.classifiers.centroid import (
    CentroidClassifier,
    CosineClassifier,
    MatchingClassifier,
    SoftmaxCalibrationClassifier,
)
from hotshot.classifiers.discriminant import DiscriminantClassifier, TwoCovarianceClassifier
from hotshot.classifiers.free_lunch import FreeLunchClassifier, TunedFreeLunchClassifier
from hotshot.classifiers.hot import HOTClassifier, load_parameters
from hotshot.classifiers.logistic import LogisticClassifier
from hotshot.classifiers.rival import TransductiveClassifier
from hotshot.classifiers.transductive import (
    AlphaTIMClassifier,
    BDCSPNClassifier,
    LaplacianShotClassifier,
    PTMAPClassifier,
)
from hotshot.errors import ParameterError
from hotshot.formatting import did_you_mean
from hotshot.user_code import load_named

METHODS: dict[str, Callable[[BaseClasses | None], ClassifierMixin]] = {
    "hot": lambda base: HOTClassifier(base),
    "free-lunch": lambda base: FreeLunchClassifier(base, random_state=0),
    "ot-cosine": lambda base: HOTClassifier(base, cost="cosine"),
    "ot-euclidean": lambda base: HOTClassifier(base, cost="euclidean"),
    "ot-cosine-weighted": lambda base: HOTClassifier(base, cost="cosine-weighted", sample_weights="classifier"),
    "ot-euclidean-weighted": lambda base: HOTClassifier(base, cost="euclidean-weighted", sample_weights="classifier"),
    "ot-mean-cosine": lambda base: HOTClassifier(base, cost="mean-cosine"),
    "logistic": lambda base: HOTClassifier(None),
    "logistic-raw": lambda base: LogisticRegression(max_iter=1000),
    "centroid": lambda base: CentroidClassifier(normalize=None),
    "centroid-cl2n": lambda base: CentroidClassifier(base),
    "cosine": lambda base: CosineClassifier(),
    "ridge": lambda base: RidgeClassifier(),
    "svm": lambda base: LinearSVC(),
    "matching": lambda base: MatchingClassifier(),
    "logistic-tuned": lambda base: LogisticClassifier(base),
    "lda": lambda base: DiscriminantClassifier(base),
    "plda": lambda base: TwoCovarianceClassifier(base),
    "softmax-calibration": lambda base: SoftmaxCalibrationClassifier(base),
    "free-lunch-tuned": lambda base: TunedFreeLunchClassifier(base),
    "pt-map": lambda base: PTMAPClassifier(base),
    "bd-cspn": lambda base: BDCSPNClassifier(base),
    "laplacian-shot": lambda base: LaplacianShotClassifier(base),
    "alpha-tim": lambda base: AlphaTIMClassifier(base),
}
METHOD_NAMES = tuple(METHODS)
METHODS_WITHOUT_BASE = ("logistic", "logistic-raw", "centroid", "cosine", "ridge", "svm", "matching")


def named_method(name: str, base: BaseClasses | None) -> ClassifierMixin:
    """An unfitted classifier by name, with its default parameters.

    The name is one of ``hotshot.classifiers.METHOD_NAMES``; a ``.json`` file of parameters of ``HOTClassifier``; or a
    method of your own, ``file.py:Name`` or ``package.module:Name``: a scikit-learn classifier, or a class or function
    that returns one and may take ``base``. That code is run.

    Examples
    --------
    >>> named_method("centroid-cl2n", None)
    CentroidClassifier()
    """
    if name.endswith(".json"):
        return HOTClassifier(base, **load_parameters(name))
    if is_user_code(name):
        return load_named(name, "method", lambda x: hasattr(x, "fit") and not isinstance(x, type), base=base)
    if name not in METHODS:
        raise ParameterError(
            f"method must be one of {', '.join(METHOD_NAMES)}, a .json file of parameters, or file.py:Name, "
            f"got {name!r}.{did_you_mean(name, METHODS)}"
        )
    return METHODS[name](base)


def joint_methods(estimators: Mapping[str, Any], batch: bool) -> tuple[str, ...]:
    """Names of the methods that classify the queries of a task jointly: with `batch` all that can, else none."""
    only_jointly = [name for name, method in estimators.items() if isinstance(method, TransductiveClassifier)]
    if not batch and only_jointly:
        raise ParameterError(
            f"Method '{only_jointly[0]}' classifies the queries of a task jointly: pass batch=True (hotshot evaluate "
            "--batch), or leave it out."
        )
    # Calibrated classifiers need base classes for joint predictions.
    plain = [name for name, x in estimators.items() if isinstance(x, CalibratedClassifier) and x.base is None]
    able = [name for name, x in estimators.items() if hasattr(x, "predict_batch") and name not in plain]
    jointly = tuple(able) if batch else ()
    if batch and not jointly:
        raise ParameterError(
            f"No method of {', '.join(estimators)} has predict_batch: leave out batch, or add a method that "
            "classifies queries jointly, such as hot or pt-map."
        )
    return jointly


def with_one_by_one(estimators: Mapping[str, Any], reference: str, jointly: Sequence[str]) -> dict[str, Any]:
    """The methods and, after a reference that classifies queries jointly, the same one by one if it does that too."""
    if reference not in jointly or isinstance(estimators[reference], TransductiveClassifier):
        return dict(estimators)
    alone = f"{reference} one by one"
    if alone in estimators:
        raise ParameterError(f"methods has {alone!r}, which batch=True adds itself: give it another name.")
    both = {reference: estimators[reference], alone: estimators[reference]}
    parts = [both if name == reference else {name: estimator} for name, estimator in estimators.items()]
    return {name: estimator for part in parts for name, estimator in part.items()}


def is_user_code(method: Any) -> bool:
    """Whether a method is the name of user code."""
    return isinstance(method, str) and ":" in method


def table_name(method: Any) -> str:
    """Default name of a method in tables."""
    return method.rpartition(":")[2] if isinstance(method, str) else type(method).__name__


def resolve_methods(methods: Any, base: BaseClasses | None) -> dict[str, Any]:
    """Estimators by their names in tables, from names, estimators, or a dict of either."""
    if isinstance(methods, dict):
        named = [(str(name), method) for name, method in methods.items()]
    else:
        # Names are no lists of letters, and an ensemble, which can be iterated over, is one estimator.
        is_one = isinstance(methods, str) or hasattr(methods, "fit") or not hasattr(methods, "__iter__")
        named = [(table_name(method), method) for method in ([methods] if is_one else methods)]
    if not named:
        raise ParameterError(f"methods is empty: name at least one of {', '.join(METHOD_NAMES)}.")
    names = [name for name, _ in named]
    for name in names:
        if names.count(name) > 1:
            raise ParameterError(f"methods has {name!r} more than once: pass a dict, and give each its own name.")
    return {name: _resolved(name, method, base) for name, method in named}


def _resolved(name: str, method: Any, base: BaseClasses | None) -> Any:
    """The estimator of one method; `name` is that in tables."""
    if isinstance(method, str):
        given, method = method, named_method(method, base)
        if base is None and given not in METHODS_WITHOUT_BASE and not is_user_code(given):
            raise ParameterError(
                f"Method '{name}' needs base classes: pass base, or name methods that need none, such as "
                f"{', '.join(METHODS_WITHOUT_BASE)}."
            )
    if isinstance(method, type):
        raise ParameterError(f"Method '{name}' must be an instance, got the class itself: write {method.__name__}().")
    if not all(hasattr(method, needed) for needed in ("fit", "predict", "get_params")):
        raise ParameterError(
            f"Method '{name}' must be a method's name or a scikit-learn classifier, with fit, predict and "
            f"get_params, got {type(method).__name__}."
        )
    return method
