"""Parameters of classifiers: their valid values, the documentation that classifiers share, published sets, files."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from sklearn.utils._param_validation import Interval as Interval
from sklearn.utils._param_validation import StrOptions as StrOptions

from hotshot.errors import InputError, ParameterError
from hotshot.files.atomic import write_json
from hotshot.files.objects import read_object
from hotshot.formatting import quoted

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
}


def with_shared(text: str) -> str:
    """A docstring with its lines such as "{power}" replaced by what classifiers share."""
    return re.sub(r"(?m)^( *)\{(\w+)\}$", lambda line: line[1] + SHARED[line[2]], text)


def parameter(default: Any, *valid: Any) -> Any:
    """A dataclass field with scikit-learn's constraints; the bank, which has none, is the one that needs no keyword."""
    return field(default=default, kw_only=bool(valid), metadata={VALID: list(valid) or "no_validation"})


def chosen(candidates: Sequence[Any], *valid: Any) -> Any:
    """A parameter that is "auto" by default: one of the candidates, of which the first is the constant."""
    return field(default="auto", kw_only=True, metadata={VALID: [*valid, AUTO], CANDIDATES: tuple(candidates)})


class NameIn(StrOptions):  # type: ignore[misc]  # scikit-learn has no types.
    """A name in the current content of a table, so that entries added later are valid too."""

    def __init__(self, table: Mapping[str, Any], *more: str) -> None:
        super().__init__({*table, *more})
        self.table, self.more = table, more

    def is_satisfied_by(self, val: Any) -> bool:
        """Whether the value is in the table."""
        return isinstance(val, str) and (val in self.table or val in self.more)

    def __str__(self) -> str:
        return f"a str among {{{', '.join(map(repr, [*self.table, *self.more]))}}}"


_PUBLISHED: dict[str, Any] = {
    "power": 0.5,
    "power_on_base": False,
    "normalize": None,
    "n_components": None,
    "sample_weights": "classifier",
    "temperature": 1.0,
    "cost": "hierarchical",
    "epsilon": 0.01,
    "cost_scale": "published",
    "alpha": 0.21,
    "alpha_rule": "entries",
    "per": "sample",
    "head": "sampled",
    "n_generated": 750,
    "support_weight": 1.0,
    "C": 1.0,
}

PARAMETER_SETS: dict[str, dict[str, Any]] = {
    "paper": {**_PUBLISHED, "mean_rule": "printed"},
    "authors": {**_PUBLISHED, "mean_rule": "mix", "mix": 0.7, "temperature": 0.3, "power_offset": 1e-6},
}


def published(name: str, *valid: Any) -> Any:
    """A parameter whose default is the published value."""
    return parameter(_PUBLISHED[name], *valid)


def parameter_set(name: str, **changes: Any) -> dict[str, Any]:
    """Published parameters of ``HOTClassifier`` by name, with changes.

    "paper" is the method as printed: eq. 10 for the means, temperature 1. "authors" is the authors' program: means
    mixed by 0.7, temperature 0.3, and 1e-6 added before the power. Both leave the base features untransformed, use
    the power of miniImageNet (0.5; the paper uses 1 for tieredImageNet and CUB and 0.8 for CIFAR-FS), and depend on
    the scale of the features through alpha and C: they were chosen on the penultimate ReLU features of a WideResNet,
    and ``fit`` warns if features are far from that scale.

    Parameters
    ----------
    name : {"paper", "authors"}
        Name of the set.
    **changes
        Parameters to replace or to add.

    Returns
    -------
    dict
        Parameters for ``HOTClassifier(base, **parameters)``.

    See Also
    --------
    HOTClassifier : The meaning of each parameter.
    load_parameters : Parameters that ``tune`` found.

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
    """Read parameters of ``HOTClassifier`` from a file that ``tune`` wrote.

    Parameters
    ----------
    path : path
        A ``.json`` file of parameters.

    Returns
    -------
    dict
        Parameters for ``HOTClassifier(base, **parameters)`` or ``InputClassifier(encoder, base, **parameters)``.

    See Also
    --------
    tune : Find parameters on validation classes.

    Examples
    --------
    >>> import os, tempfile
    >>> from hotshot.classifiers.parameters import save_parameters
    >>> path = os.path.join(tempfile.mkdtemp(), "parameters.json")
    >>> save_parameters(path, {"epsilon": 0.02}, about={})
    >>> load_parameters(path)
    {'epsilon': 0.02}
    """
    content = read_object(path) or {}
    parameters = content.get("parameters")
    if content.get("format") != FILE_FORMAT or not isinstance(parameters, dict):
        raise InputError(f"{path} is not a file of parameters: write one with tune.")
    from hotshot.classifiers.hot import HOTClassifier

    names = HOTClassifier().get_params().keys() - {"base", "include_base"}
    if unknown := sorted(parameters.keys() - names):
        raise InputError(f"{path} holds an unknown parameter of HOTClassifier, {quoted(unknown[0])}: remove it.")
    return parameters
