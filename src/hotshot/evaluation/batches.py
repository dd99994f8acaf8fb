"""Which methods classify the queries of a task jointly, and what these are compared with."""

from collections.abc import Mapping, Sequence
from typing import Any

from hotshot.errors import ParameterError
from hotshot.estimators.transductive import TransductiveClassifier
from hotshot.evaluation.tasks import GENERALISED, Setting

ONE_BY_ONE = "{} one by one"


def check_batch(estimators: Mapping[str, Any], batch: bool, setting: Setting) -> tuple[str, ...]:
    """Names of the methods that classify the queries of a task jointly: none without `batch`.

    Raises
    ------
    ParameterError
        If a method of the literature on joint classification is not asked to do so, if no method can, or in a setting
        without joint classification.
    """
    if not batch:
        for name, own in estimators.items():
            if isinstance(own, TransductiveClassifier):
                raise ParameterError(
                    f"Method '{name}' classifies the queries of a task jointly: pass batch=True, or --batch on the "
                    "command line, or leave it out."
                )
        return ()
    if setting is GENERALISED:
        raise ParameterError(
            "batch=True is for the closed and the open setting, got setting='generalised': leave out one of the two."
        )
    jointly = tuple(name for name, own in estimators.items() if hasattr(own, "predict_batch"))
    if not jointly:
        raise ParameterError(
            f"No method of {', '.join(estimators)} has predict_batch: leave out batch, or add a method that "
            "classifies queries jointly, such as hot or pt-map."
        )
    return jointly


def with_one_by_one(estimators: Mapping[str, Any], reference: str, jointly: Sequence[str]) -> dict[str, Any]:
    """The methods and, after a reference that classifies queries jointly, the same one by one if it can do that."""
    found = dict(estimators)
    if reference in jointly and not isinstance(estimators[reference], TransductiveClassifier):
        alone = ONE_BY_ONE.format(reference)
        if alone in found:
            raise ParameterError(f"methods has {alone!r}, which batch=True adds itself: give it another name.")
        found = {}
        for name, own in estimators.items():
            found[name] = own
            if name == reference:
                found[alone] = own
    return found


def batch_note(jointly: Sequence[str], methods: Sequence[str]) -> str:
    """A sentence on who classified the queries of a task jointly; "" if nobody did.

    Examples
    --------
    >>> batch_note(["hot"], ["hot", "hot one by one", "lda"])
    'hot classified the queries of a task jointly, the other methods one by one.'
    """
    if not jointly:
        return ""
    others = ", the other methods one by one" if set(methods) - set(jointly) else ""
    who = "All methods" if len(jointly) > 1 and not others else ", ".join(jointly)
    return f"{who} classified the queries of a task jointly{others}."
