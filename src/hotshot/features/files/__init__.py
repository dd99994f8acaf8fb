"""Feature files: features and labels, read without running anything that is in them."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from hotshot.errors import InputError
from hotshot.features.checks import check_features, check_labels


def read_features(path: str | Path) -> tuple[np.ndarray, np.ndarray]:
    """Features X (samples, V) and labels y (samples,) from an `.npz` file with arrays of these names."""
    path = Path(path)
    try:
        with np.load(path, allow_pickle=False) as file:
            if not isinstance(file, np.lib.npyio.NpzFile) or not {"X", "y"} <= set(file.files):
                raise InputError(
                    f"{path} must hold two arrays, X and y: write it with numpy.savez(path, X=X, y=y)."
                )
            X, y = file["X"], file["y"]
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    except (ValueError, zipfile.BadZipFile, EOFError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        reason = " ".join(str(error).split()).rstrip(".")
        raise InputError(f"{path} is not an .npz file of numbers and labels: {reason}.") from None
    X = check_features(X, f"X of {path}")
    names, labels = check_labels(y, len(X), f"y of {path}")
    return X, names[labels]
