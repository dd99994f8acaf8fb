"""Public names of `hotshot.paper.figures`, under the path that README and docs use."""

from hotshot.paper.figures import *  # noqa: F403
from hotshot.paper.figures import __all__ as __all__
