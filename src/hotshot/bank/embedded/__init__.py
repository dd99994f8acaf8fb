"""Banks that come with hotshot: real features to try it on."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hotshot.bank import BaseClasses
from hotshot.errors import ParameterError
from hotshot.files.tensors import map_tensors
from hotshot.formatting import did_you_mean

_FOLDER = Path(__file__).parent
# Banks whose extractor was trained on their base classes.
TRAINED_ON_BASE = {"omniglot"}
# What ``HOTClassifier`` chooses on both banks; with the settings given, it answers in a second.
SETTINGS = {"mean_rule": "posterior", "epsilon": 0.02, "n_generated": 300, "support_weight": 20.0}
BANK_NAMES = tuple(sorted(path.stem for path in _FOLDER.glob("*.safetensors")))


@dataclass(frozen=True)
class EmbeddedBank:
    """Base classes, labelled samples of novel classes to draw tasks from, their origin, and the usual ways."""

    base: BaseClasses
    X_novel: np.ndarray
    y_novel: np.ndarray
    about: str
    ways: int


def load_bank(name: str) -> EmbeddedBank:
    """An embedded bank by name.

    Examples
    --------
    >>> bank = load_bank("banking77")
    >>> bank.base
    BaseClasses(47 classes, 2820 samples, 384 features)
    >>> len(bank.X_novel)
    1200
    """
    if name not in BANK_NAMES:
        raise ParameterError(
            f"bank must be one of {', '.join(BANK_NAMES)}, got {name!r}.{did_you_mean(str(name), BANK_NAMES)}"
        )
    file = map_tensors(_FOLDER / f"{name}.safetensors")
    names = {part: json.loads(file.metadata[f"{part}_names"]) for part in ("base", "novel")}
    X = {part: file.tensors[part].astype(np.float32) for part in names}
    y = {part: np.repeat(names[part], file.tensors[f"{part}_counts"]) for part in names}
    origin = {"network": {"trained_on": names["base"]}} if name in TRAINED_ON_BASE else {}
    base = BaseClasses.from_samples(X["base"], y["base"], about=origin)
    return EmbeddedBank(base, X["novel"], y["novel"], file.metadata["about"], int(file.metadata["ways"]))
