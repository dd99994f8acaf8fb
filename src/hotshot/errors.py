"""All errors and warnings of hotshot: one sentence with what was wrong, what it got and what to do."""

import sys
import warnings

from hotshot.formatting import printable


class HotshotError(Exception):
    """Base of all errors raised by hotshot; control characters in their messages are escaped."""

    def __init__(self, message: str = "") -> None:
        super().__init__(printable(message))


class InputError(HotshotError, ValueError):
    """The data cannot be used as they are."""


class ParameterError(HotshotError, ValueError):
    """A parameter has an invalid value."""


class NamespaceError(HotshotError, TypeError):
    """Arrays of different libraries, dtypes or devices were mixed in one call."""


class TransportError(HotshotError, RuntimeError):
    """A transport problem was not solved and its plan must not be used."""


class RunError(HotshotError, RuntimeError):
    """A run cannot be started, resumed or saved."""


class InterruptedRunError(RunError):
    """The user stopped a run; finished work is saved."""


class HotshotWarning(UserWarning):
    """Base of all warnings that data or parameters do not suit each other."""


class SharedClassWarning(HotshotWarning):
    """Novel classes have the names of base classes."""


class SimilarClassWarning(HotshotWarning):
    """Classes have names that differ only in case or blanks."""


class FeatureSpaceWarning(HotshotWarning):
    """Novel samples differ from those of the base classes, as if scaled, normalised or extracted differently."""


class ScaleWarning(HotshotWarning):
    """The features do not have the scale that a scale-dependent parameter set was made for."""


class OpenWorldWarning(HotshotWarning):
    """Samples of new classes may be rejected more often than requested."""


class NoSamplesWarning(HotshotWarning):
    """A bank without samples cannot do what was requested, and the closest alternative was used."""


class LeftOutWarning(HotshotWarning):
    """Some inputs cannot be read and are left out."""


def warn_user(message: str, kind: type[Warning]) -> None:
    """Warn at the line that called hotshot."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("hotshot."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, kind, stacklevel=level)
