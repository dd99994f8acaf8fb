"""The paper on your own features: experiments, published numbers, claims, figures."""

from hotshot.paper.experiments import *  # noqa: F403
from hotshot.paper.experiments import __all__ as __all__
