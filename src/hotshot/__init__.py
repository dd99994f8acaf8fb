"""Few-shot classification by hierarchical optimal transport, on features from any extractor."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hotshot.version import __version__

# scikit-learn and SciPy take more than a second to import: what needs them is imported at its first use.
if TYPE_CHECKING:
    from hotshot.bank import BaseClasses as BaseClasses
    from hotshot.classifiers import CentroidClassifier as CentroidClassifier
    from hotshot.classifiers import CosineClassifier as CosineClassifier
    from hotshot.classifiers import FreeLunchClassifier as FreeLunchClassifier
    from hotshot.classifiers import HOTClassifier as HOTClassifier
    from hotshot.classifiers import MatchingClassifier as MatchingClassifier
    from hotshot.classifiers import load_parameters as load_parameters
    from hotshot.classifiers import named_method as named_method
    from hotshot.classifiers import parameter_set as parameter_set
    from hotshot.evaluation import evaluate as evaluate
    from hotshot.evaluation import tune as tune
    from hotshot.files import read_features as read_features
    from hotshot.inputs import InputClassifier as InputClassifier

_HOMES = {
    "bank": ("BaseClasses",),
    "classifiers": (
        "CentroidClassifier", "CosineClassifier", "FreeLunchClassifier", "HOTClassifier", "MatchingClassifier",
        "load_parameters", "named_method", "parameter_set",
    ),
    "evaluation": ("evaluate", "tune"),
    "files": ("read_features",),
    "inputs": ("InputClassifier",),
}  # fmt: skip
_MODULES = {name: f"hotshot.{module}" for module, names in _HOMES.items() for name in names}
__all__ = ["__version__", *_MODULES]


def __getattr__(name: str) -> Any:
    """A public name from where it is written, or a module such as ``hotshot.transport``."""
    if name in _MODULES:
        globals()[name] = value = getattr(import_module(_MODULES[name]), name)
        return value
    module = f"hotshot.{name}"
    try:
        if not name.startswith("_"):
            return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
    raise AttributeError(f"module 'hotshot' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
