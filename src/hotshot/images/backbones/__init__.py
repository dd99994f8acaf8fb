"""Networks of the few-shot literature, from images to non-negative features (extra `images`).

conv4 and conv6 flatten their last map, so that the width of their features grows with the image: 1600 at 84x84. The
others average over it: 512 features of resnet10 and resnet18, 640 of resnet12 and wrn28_10.
"""

from collections.abc import Callable
from typing import Any

from hotshot.errors import ParameterError

try:
    import torch
except ImportError:
    raise ImportError("hotshot.backbones needs PyTorch: pip install 'hotshot[images]'.") from None

from hotshot.images.backbones.networks import Convolutional, Residual, Residual12, WideResidual

_NETWORKS: dict[str, Callable[..., torch.nn.Module]] = {
    "conv4": lambda **options: Convolutional(depth=4, **options),  # Vinyals et al. 2016
    "conv6": lambda **options: Convolutional(depth=6, **options),  # Chen et al. 2019
    "resnet10": lambda **options: Residual(blocks=(1, 1, 1, 1), **options),  # Chen et al. 2019
    "resnet12": Residual12,  # Lee et al. 2019
    "resnet18": lambda **options: Residual(blocks=(2, 2, 2, 2), **options),  # He et al. 2016
    "wrn28_10": lambda **options: WideResidual(depth=28, widening=10, **options),  # Zagoruyko and Komodakis 2016
}
BACKBONES = tuple(_NETWORKS)
# Side up to which a stem that divides the map by four would leave too little of it.
SMALL_IMAGES = 48


def create(name: str, **options: Any) -> torch.nn.Module:
    """A network by name: a module whose call takes images (batch, 3, size, size) to features (batch, V).

    Parameters
    ----------
    name : {"conv4", "conv6", "resnet10", "resnet12", "resnet18", "wrn28_10"}
    options
        Options of the network, such as `small=True` for images of 32x32, or `filters` for a narrower network.

    Examples
    --------
    >>> import torch
    >>> create("conv4")(torch.zeros(2, 3, 84, 84)).shape
    torch.Size([2, 1600])
    """
    if name not in _NETWORKS:
        raise ParameterError(f"backbone must be one of {', '.join(BACKBONES)}, got {name!r}.")
    try:
        return _NETWORKS[name](**options)
    except ParameterError:
        raise
    except (TypeError, ValueError, RuntimeError) as error:
        reason = str(error).split(") ")[-1].splitlines()[0].rstrip(".")
        raise ParameterError(f"{name} has no such option, or not with this value ({reason}): change it.") from None


def options_for(name: str, size: int) -> dict[str, Any]:
    """The usual options for images of this size: ResNet10 and ResNet18 get a stem for small images."""
    return {"small": True} if name in ("resnet10", "resnet18") and size <= SMALL_IMAGES else {}


def feature_width(network: torch.nn.Module, size: int) -> int:
    """Width V of the features of images of this size."""
    was_training = network.training
    channels = next(p for p in network.parameters() if p.ndim == 4).shape[1]
    try:
        with torch.no_grad():
            return int(network.eval()(torch.zeros(1, channels, size, size)).shape[1])
    except RuntimeError:
        raise ParameterError(f"size is too small for this network, got {size}: use larger images.") from None
    finally:
        network.train(was_training)


def require_device(device: str) -> None:
    """Refuse a device that PyTorch does not have."""
    try:
        torch.zeros(1, device=device).cpu()
    except (RuntimeError, AssertionError):  # The latter where PyTorch is built without CUDA.
        raise ParameterError(f"device must be available in PyTorch, such as cpu, got {device!r}.") from None


__all__ = [
    "BACKBONES", "Convolutional", "Residual", "Residual12", "WideResidual", "create", "feature_width",
    "options_for", "require_device",
]  # fmt: skip
