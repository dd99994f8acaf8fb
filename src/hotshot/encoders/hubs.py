"""Models of other libraries, loaded from the disk or the cache of a model hub, never downloaded."""

from __future__ import annotations

import logging
import os
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hotshot.errors import HotshotError, InputError, RunError
from hotshot.formatting import reason

# Of huggingface_hub.
_MISSING = ("LocalEntryNotFoundError", "OfflineModeIsEnabled")


@contextmanager
def loading(name: str, install: str, remedy: str) -> Iterator[None]:
    """Load a model of another library inside this: errors become one sentence, and nothing is downloaded."""
    disabled = logging.root.manager.disable
    try:
        with _offline(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            logging.disable()
            yield
    except HotshotError:
        raise
    except ImportError as error:
        raise RunError(f"{name} needs a package that is missing ({reason(error)}): pip install {install}.") from None
    except (Exception, SystemExit) as error:
        why = "it is not on this computer" if _is_missing(error) else reason(error)
        raise InputError(f"{name} cannot be loaded ({why}): {remedy}.") from None
    finally:
        logging.disable(disabled)


class _NotDownloadedError(OSError):
    """A library tried to use the network."""


def _is_missing(error: BaseException | None) -> bool:
    """Whether an error means that the cache of a hub does not contain the model."""
    while error is not None:
        if isinstance(error, _NotDownloadedError) or type(error).__name__ in _MISSING:
            return True
        error = error.__cause__ or error.__context__
    return False


@contextmanager
def _offline() -> Iterator[None]:
    """Keep libraries off the network: without a connection they would wait for minutes before they fail."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise _NotDownloadedError("encoders are not downloaded")

    hub: Any = SimpleNamespace(HF_HUB_OFFLINE=None)
    with suppress(ImportError):
        hub = import_module("huggingface_hub.constants")
    with _replaced(hub, "HF_HUB_OFFLINE", True), _replaced(socket, "getaddrinfo", refuse):
        yield


@contextmanager
def _replaced(owner: Any, attribute: str, value: Any) -> Iterator[None]:
    before = getattr(owner, attribute)
    setattr(owner, attribute, value)
    try:
        yield
    finally:
        setattr(owner, attribute, before)


def absolute(place: str) -> str:
    """The absolute path of a file; names on a hub are returned unchanged."""
    return str(Path(place).resolve()) if os.path.exists(place) else place
