"""The paper, a file for each step; ``hotshot.method.hot`` runs them in the order of Algorithm 1."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Method:
    """Parameters of ``fit_tasks``; ``HOTClassifier`` documents them and has their defaults."""

    cost: str
    epsilon: float
    cost_scale: str
    n_retrieved: int | str | None
    mean_rule: str
    mix: float | str
    alpha: float
    alpha_rule: str
    per: str
    head: str
    n_generated: int
    support_weight: float
    C: float
