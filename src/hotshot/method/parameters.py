"""The parameters of the method on a prepared bank; their defaults are in ``HOTClassifier`` alone."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Method:
    """Parameters of ``fit_tasks``; see ``HOTClassifier`` for what each means."""

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
