"""The parameters of the method once the bank is prepared; `HOTClassifier` has their defaults, and nothing else has."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Method:
    """Parameters of `fit_tasks`; see `HOTClassifier` for what each means."""

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
