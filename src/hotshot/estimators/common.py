"""What all estimators share: checks where data enter, and answers in scikit-learn's shapes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from hotshot.base import BaseClasses
from hotshot.checks import check_finite
from hotshot.errors import InputError, ParameterError
from hotshot.estimators.models import BaseLeftBehind, load_model, save_model
from hotshot.method.heads.objective import softmax


class FewShotClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that answers by one logit per class; subclasses give `_fit` and `_logits`."""

    def fit(self, X: Any, y: Any) -> FewShotClassifier:
        """Learn the novel classes from support samples X (samples, V) and their labels y (samples,).

        Labels may be of any sortable type, in any order, with unequal numbers of samples per class.
        """
        try:
            self._validate_params()
        except InvalidParameterError as error:
            raise ParameterError(str(error)) from None
        X, y = validated(self, X, y, reset=True)
        try:
            check_classification_targets(y)
        except ValueError as error:
            raise InputError(f"{_one_line(error)} Pass class labels.") from None
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(
                f"y must name at least 2 classes to tell apart, got 1 class: '{self.classes_[0]}'."
            )
        _check_base(getattr(self, "base", None), X.shape[1])
        self._fit(X, labels)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Logits (samples, classes); with two classes the logit of the second against the first (samples,)."""
        logits = self._checked_logits(X)
        return logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class (samples, classes), in the order of `classes_`."""
        return softmax(self._checked_logits(X).astype(np.float64))[0]

    def predict(self, X: Any) -> np.ndarray:
        """The likeliest class of each sample (samples,)."""
        best = np.argmax(self._checked_logits(X), axis=1)
        return self.classes_[best]

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the fitted classifier to a folder of JSON and safetensors; its base classes are not part of it.

        Parameters
        ----------
        path : path
            Of the folder, such as "birds.model".
        overwrite : bool
            Whether a model of that name may be replaced.
        """
        check_is_fitted(self)
        save_model(self, path, overwrite)

    @classmethod
    def load(cls, path: str | Path, *, base: BaseClasses | None = None) -> Self:
        """A fitted classifier from a folder that `save` wrote.

        It predicts and explains without its base classes. To fit it again, pass those it was fitted with.
        """
        return load_model(cls, path, base)

    def _checked_logits(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return self._logits(validated(self, X, reset=False))

    def _fit(self, X: np.ndarray, labels: np.ndarray) -> None:
        raise TypeError(f"{type(self).__name__} must define _fit.")

    def _logits(self, X: np.ndarray) -> np.ndarray:
        raise TypeError(f"{type(self).__name__} must define _logits.")


def validated(estimator: BaseEstimator, X: Any, y: Any = "no_validation", *, reset: bool) -> Any:
    """scikit-learn's own checks, then ours for NaN and infinity, which name the place."""
    X = _from_other_library(X)
    if hasattr(X, "dtype") and X.dtype == np.float16:
        X = X.astype(np.float32)
    try:
        checked = validate_data(
            estimator, X, y, reset=reset, dtype=[np.float64, np.float32], ensure_all_finite=False
        )
    except ValueError as error:
        raise InputError(_one_line(error)) from None
    check_finite(checked if isinstance(checked, np.ndarray) else checked[0], "X")
    return checked


def _from_other_library(X: Any) -> Any:
    """Tensors come to the CPU and become NumPy arrays; all else is scikit-learn's to judge."""
    return X.detach().cpu().numpy() if hasattr(X, "detach") else X


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _check_base(base: Any, width: int) -> None:
    """Raise unless `base` is None or a bank of features of this width."""
    if base is None:
        return
    if isinstance(base, BaseLeftBehind):
        raise ParameterError(
            "This classifier was loaded without its base classes and cannot be fitted: pass base to load."
        )
    if not isinstance(base, BaseClasses):
        raise ParameterError(
            f"base must be a BaseClasses or None, got {type(base).__name__}: "
            "make one with BaseClasses.from_samples(X_base, y_base)."
        )
    if base.n_features != width:
        raise InputError(
            f"X has {width} features where the base classes have {base.n_features}: "
            "extract both with the same model."
        )
