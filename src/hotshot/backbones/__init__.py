"""Networks of the few-shot literature, from images to non-negative features, and their training (extra `images`)."""

try:
    import torch  # noqa: F401
except ImportError:
    raise ImportError("hotshot.backbones needs PyTorch: pip install 'hotshot[images]'.") from None

from hotshot.backbones.networks import BACKBONES, create, feature_width, options_for, require_device

__all__ = ["BACKBONES", "create", "feature_width", "options_for", "require_device"]
