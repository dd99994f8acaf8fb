"""Every error and warning of hotshot: what was wrong, what it got and what to do, in one sentence."""

from hotshot.formatting import printable


class HotshotError(Exception):
    """Base of all errors raised by hotshot; names from files stand in their sentences without escape codes."""

    def __init__(self, message: str = "") -> None:
        super().__init__(printable(message))


class InputError(HotshotError, ValueError):
    """The data cannot be used as they are."""


class ParameterError(HotshotError, ValueError):
    """A parameter is not one of the values it may take."""


class NamespaceError(HotshotError, TypeError):
    """Arrays of different libraries, dtypes or devices were mixed in one call."""


class TransportError(HotshotError, RuntimeError):
    """A transport problem was not solved and its plan must not be used."""


class RunError(HotshotError, RuntimeError):
    """A run cannot be started, continued or kept."""


class InterruptedRunError(RunError):
    """The user stopped a run; what was finished is kept."""


class HotshotWarning(UserWarning):
    """Base of all warnings that data or parameters hardly belong together."""


class SharedClassWarning(HotshotWarning):
    """Novel classes have the names of base classes."""


class FeatureSpaceWarning(HotshotWarning):
    """Novel samples look unlike those of the base classes, as if scaled, normalised or extracted in another way."""


class ScaleWarning(HotshotWarning):
    """The features are far from the scale a scale-dependent parameter set was made for."""


class OpenWorldWarning(HotshotWarning):
    """Samples of new classes may be rejected more often than was asked for."""


class NoSamplesWarning(HotshotWarning):
    """A bank without samples cannot do what was asked for, and what it can do was done instead."""
