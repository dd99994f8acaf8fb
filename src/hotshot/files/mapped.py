"""The bytes of a file without reading them."""

from __future__ import annotations

import mmap
from pathlib import Path

from hotshot.errors import InputError


def map_bytes(path: Path) -> mmap.mmap:
    """All bytes of a file, read-only; they stay readable for as long as something refers to them."""
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    except ValueError:
        # Nothing of an empty file can be mapped.
        raise InputError(f"{path} is empty: copy or download it again.") from None
