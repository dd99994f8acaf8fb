"""Networks of the few-shot literature, from images to non-negative features, and their training (extra `images`)."""

try:
    import torch  # noqa: F401
except ImportError:
    raise ImportError("hotshot.backbones needs PyTorch: pip install 'hotshot[images]'.") from None

from hotshot.backbones.checkpoints import decoded_size, load_backbone, load_weights
from hotshot.backbones.networks import BACKBONES, as_input, create, feature_width, options_for, require_device

__all__ = [
    "BACKBONES", "as_input", "create", "decoded_size", "feature_width", "load_backbone", "load_weights", "options_for",
    "require_device",
]  # fmt: skip
