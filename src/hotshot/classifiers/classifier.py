"""The base class of all classifiers: parameters, checks of input, predictions as in scikit-learn, a whole new state."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import Field, field, fields
from numbers import Integral, Real
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils._param_validation import Interval as Interval
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils._param_validation import StrOptions as StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from hotshot.arrays import NO_OVERFLOW_WARNINGS, check_finite, joined_labels, label_array, warn_of_similar
from hotshot.bank import BaseClasses
from hotshot.bank.space import FeatureSpace, FeatureTransform, choose_power
from hotshot.classifiers.held_out import Choice, Fold, Task, choice_on, unequal_queries
from hotshot.classifiers.saving import UnloadedBase, load_model, save_model
from hotshot.errors import InputError, ParameterError

# --- parameters

NUMBER = Interval(Real, None, None, closed="neither")
POSITIVE = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
SHARE = Interval(Real, 0, 1, closed="both")
COUNT = Interval(Integral, 1, None, closed="left")
AUTO = StrOptions({"auto"})
CENTRED = StrOptions({"centre-l2"})
VALID, CANDIDATES = "valid", "candidates"
# Powers to choose from if no feature is negative; otherwise the power is 1.
POWERS = (0.5, 1.0)

# What stands for a line such as "{power}" in the docstring of a classifier.
SHARED = {
    "base": """base : BaseClasses or None
        Bank on which "auto" is chosen, and whose mean is subtracted; with None nothing is.""",
    "power": """power : float or "auto"
        Power of the features; "auto" is chosen on the base classes, and without them 0.5 if no feature is negative,
        else 1.""",
    "normalize": """normalize : {"centre-l2", "l2", "auto"}
        Subtract the mean of the base samples before scaling to unit norm, or scale alone.""",
    "include_base": """include_base : bool
        Whether to predict base classes too.""",
    "scale": """scale : float
        Factor of the cosine similarity in the logits.""",
    "classes_": """classes_ : array (N,)
        Labels of the classes, sorted.""",
    "chosen_": """chosen_ : dict
        The value chosen for each "auto".""",
}


def with_shared(text: str) -> str:
    """A docstring with its lines such as "{power}" replaced by what classifiers share."""
    return re.sub(r"(?m)^( *)\{(\w+)\}$", lambda line: line[1] + SHARED[line[2]], text)


def parameter(default: Any, *valid: Any) -> Any:
    """A dataclass field with scikit-learn's constraints; the bank, which has none, is the one that needs no keyword."""
    return field(default=default, kw_only=bool(valid), metadata={VALID: valid} if valid else {})


def chosen(candidates: Sequence[Any], *valid: Any) -> Any:
    """A parameter that is "auto" by default: one of the candidates, of which the first is the constant."""
    return field(default="auto", kw_only=True, metadata={VALID: (*valid, AUTO), CANDIDATES: tuple(candidates)})


def _names_of(table: dict[str, Any]) -> StrOptions:
    """The names in the current content of a table, in its order, so that entries added later are valid too."""
    names = StrOptions({*table})
    names.options = table
    return names


# --- the state of a fit

Model = TypeVar("Model")
# What scikit-learn has recorded of the features of the first fit, which later samples must match.
FEATURES = ("n_features_in_", "feature_names_in_")


def unfitted(model: Model, *, same_features: bool = False) -> Model:
    """A classifier with the parameters of `model` and nothing of its fit, but the names of its features if asked."""
    stays = FEATURES if same_features else ()
    return _with_state(model, {k: v for k, v in vars(model).items() if not k.endswith("_") or k in stays})


def assign(model: object, fitted: object) -> None:
    """Give `model` the state of `fitted`; threads that read `model` meanwhile see all of the old state or all of it."""
    model.__dict__ = vars(fitted)


def snapshot(model: Model) -> Model:
    """The classifier as it is now: a later `assign` gives `model` another state and leaves this one alone."""
    return _with_state(model, vars(model))


def _with_state(model: Model, state: dict[str, object]) -> Model:
    copy: Model = object.__new__(type(model))
    copy.__dict__ = state
    return copy


class FewShotClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types.
    """A classifier with one logit per class; subclasses define ``_fit`` and ``_logits``.

    A parameter that is "auto" is one of its candidates, chosen on the base classes: its own parameters first, in their
    order. If the bank is too small to choose, it is the first candidate. A fit resolves all parameters once and passes
    them to ``_fit``. A line such as "{power}" in the docstring of a subclass stands for documentation that is shared.
    """

    _choices: ClassVar[Mapping[str, Sequence[Any]]] = {}
    # Records that a saved state may hold.
    _state_types: ClassVar[tuple[type, ...]] = (FeatureTransform, FeatureSpace)
    # Whether the queries of a task are classified jointly, and if so whether as many of each class are expected.
    jointly: ClassVar[bool] = False
    assumes_balance: ClassVar[bool] = False
    # Whether one new class is enough if there is a bank.
    _may_have_one_class: ClassVar[bool] = False
    # Parameters that only some subclasses have.
    base: Any = None
    include_base: Any = False
    # Extractor, norms and directions of the features of the base classes.
    extractor_: str | None = None
    feature_space_: FeatureSpace | None = None
    # With include_base: which classes are new.
    is_new_: np.ndarray | None = None
    probability_temperature_: float = 1.0
    transform_: FeatureTransform

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "_choices" not in vars(cls):
            metadata = {name: f.metadata for name, f in vars(cls).items() if isinstance(f, Field)}
            choices = {name: x[CANDIDATES] for name, x in metadata.items() if CANDIDATES in x}
            # Parameters of the class itself come first.
            cls._choices = {**choices, **cls._choices, **choices}
        if cls.__doc__:
            cls.__doc__ = with_shared(cls.__doc__)

    @property
    def _parameter_constraints(self) -> dict[str, Any]:
        """The valid values of each ``parameter``, for scikit-learn."""
        names = self._get_param_names()
        valid = {f.name: f.metadata[VALID] for f in fields(self) if f.name in names and VALID in f.metadata}
        return {name: [_names_of(x) if isinstance(x, dict) else x for x in kinds] for name, kinds in valid.items()}

    def fit(self, X: Any, y: Any) -> FewShotClassifier:
        """Fit the classifier to support samples (samples, V) of novel classes with labels (samples,), in any order."""
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
        base = self._loaded_base()
        one_is_enough = base is not None and (self._may_have_one_class or self.include_base)
        if len(self.classes_) < 2 and not one_is_enough:
            raise InputError(f"y must name at least 2 classes, got 1 class: '{self.classes_[0]}'.")
        check_base(base, X.shape[1])
        if base is not None:
            self.base = base
        elif self.include_base:
            raise ParameterError("include_base needs base classes: pass base.")
        self._warn_of_mismatch(X)
        if self.include_base:
            # Before settings are chosen, which takes long.
            check_names(base.names, self.classes_)
        choice = self.choice()
        settings = self._resolved(choice, X.min())
        self.chosen_ = {name: settings[name] for name in choice.settings}
        self._fit(X, labels, settings)
        warn_of_similar(self.classes_)
        self._finite_logits(X)

    def _loaded_base(self) -> Any:
        """The base classes, which are loaded now if the model was loaded without them."""
        return self.base.load() if isinstance(self.base, UnloadedBase) else self.base

    def settings(self) -> dict[str, Any]:
        """The parameters, with the chosen value for each "auto"."""
        return dict(self._resolved(self.choice()))

    def fitted_settings(self) -> dict[str, Any]:
        """The parameters, with the value that the fit used for each "auto"."""
        return {**self.get_params(deep=False), **self.chosen_}

    def _resolved(self, choice: Choice, smallest: float | None = None) -> Mapping[str, Any]:
        """All parameters; the power follows the smallest feature of the bank or, without one, of the support."""
        values = {**self.get_params(deep=False), **choice.settings}
        if isinstance(self.base, BaseClasses):
            if values.get("power") == "auto":
                values["power"] = self.base.power("auto")
        elif smallest is not None and "power" in values:
            values["power"] = choose_power(self.power, smallest)
        return MappingProxyType(values)

    def choice(self) -> Choice:
        """The values chosen for parameters that are "auto", and the trials behind them; the bank keeps them."""
        bank = self.base if isinstance(self.base, BaseClasses) else None
        candidates = self._candidates(bank)
        if bank is None or all(len(values) == 1 for values in candidates.values()):
            return Choice({name: values[0] for name, values in candidates.items()})
        return choice_on(bank, self, candidates)

    def _candidates(self, bank: BaseClasses | None) -> dict[str, Sequence[Any]]:
        """The values of each parameter that is "auto", the constant first."""
        parameters = self.get_params(deep=False)
        candidates = {name: values for name, values in self._choices.items() if parameters[name] == "auto"}
        if bank is not None and "power" in candidates and bank.power("auto") != candidates["power"][0]:
            # With negative features no other power is possible.
            candidates["power"] = (bank.power("auto"),)
        return candidates

    def accuracies(self, fold: Fold, tasks: Sequence[Task]) -> np.ndarray:
        """Accuracy of each held-out task (tasks,)."""
        found = []
        for task in tasks:
            model = clone(self).fit(fold.samples[task.support], task.support_labels)
            rows = unequal_queries(task) if self.jointly and not self.assumes_balance else slice(None)
            predict = model.predict_batch if self.jointly else model.predict
            found.append(np.mean(predict(fold.samples[task.query[rows]]) == task.query_labels[rows]))
        return np.array(found)

    def decision_function(self, X: Any) -> np.ndarray:
        """Logits (samples, classes); with two classes, the logit of the second minus that of the first (samples,)."""
        logits = snapshot(self)._checked_logits(X)
        return logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities (samples, classes), in the order of ``classes_``."""
        model = snapshot(self)
        return model._probabilities(model._checked_logits(X))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each sample (samples,)."""
        model = snapshot(self)
        best = np.argmax(model._checked_logits(X), axis=1)
        return np.asarray(model.classes_[best])

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the fitted classifier, without its base classes, to a folder of JSON and safetensors files.

        A model of that name is replaced only with ``overwrite``.
        """
        check_is_fitted(self)
        save_model(self, path, overwrite)

    @classmethod
    def load(cls, path: str | Path, *, base: BaseClasses | None = None) -> Self:
        """Load a fitted classifier from a folder that ``save`` wrote.

        It predicts and explains without its base classes; to fit it again, pass the bank it had as ``base``.
        """
        model: Self = load_model(cls, path, base)
        return model

    @property
    def power_(self) -> float:
        """The power of the features."""
        return float(self.transform_.power)

    @property
    def new_classes(self) -> np.ndarray:
        """Whether each class is new (N,): all are, unless base classes are predicted too."""
        return np.ones(len(self.classes_), dtype=bool) if self.is_new_ is None else self.is_new_

    def _probabilities(self, logits: np.ndarray) -> np.ndarray:
        return np.asarray(softmax(logits.astype(np.float64) / self.probability_temperature_, axis=1))

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

    def _checked(self, X: Any) -> np.ndarray:
        """Checked samples, with a warning if they look unlike those of the bank."""
        samples: np.ndarray = self._validated(X)
        if self.feature_space_ is not None:
            self.feature_space_.warn_of(samples)
        return samples

    def _checked_logits(self, X: Any) -> np.ndarray:
        return self._finite_logits(self._checked(X))

    def _warn_of_mismatch(self, X: np.ndarray) -> None:
        """Warn if novel classes have names of base classes, or samples unlike those of the bank."""
        bank = self.base if isinstance(self.base, BaseClasses) else None
        self.extractor_, self.feature_space_ = (None, None) if bank is None else (bank.extractor, bank.feature_space)
        # With include_base such names are an error.
        if bank is not None and not self.include_base and self.classes_.dtype.kind in "UO":
            bank.warn_of_shared_names(self.classes_)
        if self.feature_space_ is not None:
            self.feature_space_.warn_of(X)

    @NO_OVERFLOW_WARNINGS
    def _finite_logits(self, X: np.ndarray) -> np.ndarray:
        """Logits; raise if those of a sample overflow."""
        return finite(self._logits(X), X)

    def _check_state(self, width: int) -> None:
        """Raise ValueError unless the parts of a loaded classifier, for features of this width, match each other."""

    def _fit(self, X: np.ndarray, labels: np.ndarray, settings: Mapping[str, Any]) -> None:
        raise TypeError(f"{type(self).__name__} must define _fit.")

    def _logits(self, X: np.ndarray) -> np.ndarray:
        raise TypeError(f"{type(self).__name__} must define _logits.")


def finite(logits: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Logits of samples X; raise if those of one overflow."""
    # Half, so that their differences are finite too; NaN is not below it either.
    sound = (np.abs(logits) < np.finfo(logits.dtype).max / 2).all(axis=1)
    if sound.all():
        return logits
    largest = np.where(sound[:, None], 0, np.abs(X))
    row, column = np.unravel_index(largest.argmax(), X.shape)
    raise InputError(
        f"X has no finite logits in row {row}, whose largest entry is {X[row, column]:.3g} in column {column}: "
        "remove such samples, or rescale all features."
    )


def check_base(base: Any, width: int) -> None:
    """Raise unless ``base`` is None or a bank of features of this width."""
    if base is None:
        return
    if not isinstance(base, BaseClasses):
        raise ParameterError(
            f"base must be a BaseClasses or None, got {type(base).__name__}: "
            "make one with BaseClasses.from_samples(X_base, y_base)."
        )
    if base.n_features != width:
        raise InputError(
            f"X has {width} features and the base classes have {base.n_features}: extract both with the same model."
        )


def joined_classes(base_names: np.ndarray, names: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All names, sorted (B + N,); which are new; and the place of each in the base and then the new names."""
    both = np.concatenate([base_names, names])
    order = np.argsort(both, kind="stable")
    return both[order], order >= len(base_names), order


def check_names(base_names: np.ndarray, names: np.ndarray) -> None:
    """Raise unless base and new classes (N,) have names of one type, without a name in common."""
    joined_labels(base_names, names)
    both = np.intersect1d(base_names, names)
    if len(both):
        raise InputError(
            f"'{both[0]}' is a base class and a new class: give the new one another name, or leave out one of them."
        )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
