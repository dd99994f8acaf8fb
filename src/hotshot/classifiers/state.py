"""The fitted state of a classifier: built apart and assigned in one step, so that nobody sees half of it."""

from __future__ import annotations

from typing import TypeVar

Model = TypeVar("Model")
# What scikit-learn has recorded of the features of the first fit, which later samples must match.
FEATURES = ("n_features_in_", "feature_names_in_")


def unfitted(model: Model, *, same_features: bool = False) -> Model:
    """A classifier with the parameters of `model` and nothing of its fit, but the names of its features if asked."""
    kept = FEATURES if same_features else ()
    return _with_state(model, {k: v for k, v in vars(model).items() if not k.endswith("_") or k in kept})


def assign(model: object, fitted: object) -> None:
    """Give `model` the state of `fitted`; threads that read `model` meanwhile see all of the old state or all of it."""
    model.__dict__ = vars(fitted)


def snapshot(model: Model) -> Model:
    """The classifier as it is now: a later `assign` gives `model` another state and leaves this one alone."""
    return _with_state(model, vars(model))


def _with_state(model: Model, state: dict[str, object]) -> Model:
    found: Model = object.__new__(type(model))
    found.__dict__ = state
    return found
