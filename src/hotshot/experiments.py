"""Public names of `hotshot.paper.experiments`, under the path that README and docs use."""

from hotshot.paper.experiments import *  # noqa: F403
from hotshot.paper.experiments import __all__ as __all__
