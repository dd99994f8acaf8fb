"""Public names of `hotshot.images.extraction`, under the path that README and docs use."""

from hotshot.images.extraction import *  # noqa: F403
from hotshot.images.extraction import __all__ as __all__
