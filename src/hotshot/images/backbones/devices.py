"""Where networks run."""

from __future__ import annotations

import torch

from hotshot.errors import ParameterError


def require_device(device: str) -> None:
    """Refuse a device that PyTorch does not have."""
    try:
        torch.zeros(1, device=device).cpu()
    except (RuntimeError, AssertionError):  # The latter where PyTorch is built without CUDA.
        raise ParameterError(
            f"device must be one that PyTorch has here, such as cpu, got {device!r}."
        ) from None
