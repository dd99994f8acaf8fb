"""Published parameters by name, and parameters from a file."""

from pathlib import Path
from typing import Any

from hotshot.errors import InputError, ParameterError
from hotshot.files.atomic import write_json
from hotshot.files.objects import read_object
from hotshot.formatting import quoted

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

    known = HOTClassifier().get_params().keys() - {"base", "include_base"}
    if unknown := sorted(parameters.keys() - known):
        raise InputError(f"{path} holds an unknown parameter of HOTClassifier, {quoted(unknown[0])}: remove it.")
    return parameters
