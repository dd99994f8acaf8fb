"""Parameters of classifiers as dataclass fields: the default, and the values that are valid."""

from dataclasses import field
from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

NUMBER = Interval(Real, None, None, closed="neither")
POSITIVE = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
SHARE = Interval(Real, 0, 1, closed="both")
COUNT = Interval(Integral, 1, None, closed="left")
AUTO = StrOptions({"auto"})
CENTRED = StrOptions({"centre-l2"})
VALID = "valid"


def parameter(default: Any, *valid: Any) -> Any:
    """A parameter with scikit-learn's constraints; the bank, which has none, is the one that needs no keyword."""
    return field(default=default, kw_only=bool(valid), metadata={VALID: list(valid) or "no_validation"})
