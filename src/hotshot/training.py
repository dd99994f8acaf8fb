"""Public names of `hotshot.images.training`, under the path that README and docs use."""

from hotshot.images.training import *  # noqa: F403
from hotshot.images.training import __all__ as __all__
