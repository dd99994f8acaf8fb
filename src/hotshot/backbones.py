"""Public names of `hotshot.images.backbones`, under the path that README and docs use."""

from hotshot.images.backbones import *  # noqa: F403
from hotshot.images.backbones import __all__ as __all__
