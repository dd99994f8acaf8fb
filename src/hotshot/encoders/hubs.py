"""Models of other libraries, loaded from the disk or the cache of a model hub, never downloaded.

Files in the cache are looked up here, and libraries get their paths: with a name they may use the network, even where
told not to. Nothing is changed for the rest of the process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hotshot.errors import HotshotError, InputError, RunError
from hotshot.formatting import reason

# Of huggingface_hub, and of this module.
_MISSING = ("LocalEntryNotFoundError", "OfflineModeIsEnabled", "_NotCachedError")


class _NotCachedError(OSError):
    """No cache has a file."""


@contextmanager
def loading(name: str, install: str, remedy: str) -> Iterator[None]:
    """Load a model of another library inside this: errors become one sentence."""
    try:
        yield
    except HotshotError:
        raise
    except ImportError as error:
        raise RunError(f"{name} needs a package that is missing ({reason(error)}): pip install {install}.") from None
    except (Exception, SystemExit) as error:
        why = "it is not on this computer" if _is_missing(error) else reason(error)
        raise InputError(f"{name} cannot be loaded ({why}): {remedy}.") from None


def _is_missing(error: BaseException | None) -> bool:
    """Whether an error means that the cache of a hub does not contain the model."""
    while error is not None:
        if type(error).__name__ in _MISSING:
            return True
        error = error.__cause__ or error.__context__
    return False


def cached_file(repository: str, *names: str) -> str:
    """The first of these files of a repository, NAME[@REVISION], that the cache of the hub has."""
    from huggingface_hub import try_to_load_from_cache

    place, _, revision = repository.partition("@")
    paths = [try_to_load_from_cache(place, name, revision=revision or None) for name in names]
    # What the hub is known not to have is an object of its own.
    path = next((path for path in paths if isinstance(path, str)), None)
    if path is None:
        raise _NotCachedError(f"{names[-1]} of {repository} is not in the cache")
    return path


def model_folder(place: str, *files: str) -> str:
    """The folder of a model: itself, or for a name on a hub the folder in the cache with one of these files."""
    return place if os.path.isdir(place) else os.path.dirname(cached_file(place, *files))


def cached_weights(repository: str | None, file: str, url: str | None, folder: str | Path) -> str:
    """A file of weights in the cache of the hub, as safetensors if there is such a copy, or downloaded from a URL."""
    if repository:
        return cached_file(repository, file.replace("pytorch_model.bin", "model.safetensors"), file)
    path = Path(folder, os.path.basename(url or "none"))
    if not path.is_file():
        raise _NotCachedError(f"{path} does not exist")
    return str(path)


def absolute(place: str) -> str:
    """The absolute path of a file; names on a hub are returned unchanged."""
    return str(Path(place).resolve()) if os.path.exists(place) else place
