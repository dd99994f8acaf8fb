"""`tune`: parameters of H-OT by grid or random search on validation classes, weak candidates stopped early.

All candidates see the same tasks. Successive halving: everyone starts on a few tasks, the better part goes on to
more, and only the last few see them all. The default parameters are always among the last, so that the gain over
them is known, paired and with its interval.
"""

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils._param_validation import InvalidParameterError

from hotshot.arrays import LIMITS, check_number, check_numbers
from hotshot.bank import BaseClasses
from hotshot.classifiers import HOTClassifier
from hotshot.classifiers.hot import save_parameters
from hotshot.errors import ParameterError
from hotshot.evaluation.results import AHEAD, numbers, paired_difference, verdicts
from hotshot.evaluation.runner import Watcher, evaluate
from hotshot.evaluation.tables import Entry, Table, percent
from hotshot.evaluation.tasks import CHUNK_TASKS, QUERIES
from hotshot.formatting import did_you_mean
from hotshot.intervals import Estimate, mean_interval
from hotshot.version import __version__

DEFAULT_GRID: dict[str, list[Any]] = {
    "epsilon": [0.01, 0.02, 0.05],
    "mix": ["auto", 0.5, 0.7],
    "n_generated": [100, 300],
    "support_weight": [5.0, 20.0],
}
DEFAULT = "defaults"
SEARCHES = ("grid", "random")
# Parameters that are no settings.
FIXED = ("base", "random_state")


@dataclass(frozen=True)
class Candidate:
    """One choice of parameters: its accuracies (tasks,), means over the numbers of shots, and its paired gain.

    The gain is over the default parameters on those tasks, with its interval over tasks.
    """

    name: str
    parameters: dict[str, Any]
    accuracies: np.ndarray
    gain: Estimate

    @property
    def accuracy(self) -> Estimate:
        """Mean accuracy with its 95% interval over tasks."""
        return mean_interval(self.accuracies)


@dataclass(frozen=True)
class Tuning:
    """Candidates, the best first: by number of tasks seen, then by accuracy."""

    candidates: tuple[Candidate, ...]
    request: dict[str, Any]

    @property
    def best(self) -> Candidate:
        """The candidate that won the last round."""
        return self.candidates[0]

    @property
    def is_significant(self) -> bool:
        """Whether the best is better than the defaults, by Holm's procedure over those that saw as many tasks."""
        last = {c.name: c.gain for c in self.candidates if c.accuracy.n == self.best.accuracy.n and c.name != DEFAULT}
        return verdicts(last).get(self.best.name) == AHEAD

    def rows(self) -> list[dict[str, Any]]:
        """All candidates, for JSON; accuracies are shares, and a single task has no interval."""
        return [
            {
                "parameters": candidate.parameters,
                "tasks": candidate.accuracy.n,
                **numbers("accuracy", candidate.accuracy),
                **numbers("minus_defaults", candidate.gain),
            }
            for candidate in self.candidates
        ]

    def table(self, most: int = 15) -> Table:
        """The best candidates, with their numbers of tasks and paired gains over the defaults."""
        best = self.candidates[:most]
        rows = tuple(
            (c.name, Entry(str(c.accuracy.n), c.accuracy.n), percent(c.accuracy), percent(c.gain, signed=True))
            for c in best
        )
        notes = ["gain: points over the defaults, paired. Intervals: 95%, over tasks."]
        if self.best.name != DEFAULT and not self.is_significant:
            notes.append("No significant difference from the default.")
        columns = ("parameters", "tasks", "accuracy %", "gain")
        return Table(f"best {len(best)} of {len(self.candidates)} candidates", columns, rows, tuple(notes))

    def save(self, path: str | Path) -> None:
        """Write the best parameters as a file for `evaluate` and `load_parameters`; accuracies in it are shares."""
        about = {
            "hotshot": __version__,
            **numbers("validation_accuracy", self.best.accuracy),
            **numbers("gain_over_defaults", self.best.gain),
            "tasks": self.best.accuracy.n,
            "candidates": len(self.candidates),
            "request": self.request,
        }
        save_parameters(path, self.best.parameters, about)


def tune(
    base: BaseClasses,
    X_val: Any,
    y_val: Any,
    *,
    grid: Mapping[str, Sequence[Any]] | None = None,
    search: str = "grid",
    n_candidates: int | None = None,
    ways: int | str = 5,
    shots: int | str | Sequence[int | str] = (1, 5),
    queries: int | str = QUERIES,
    tasks: int = 1000,
    seed: int = 0,
    factor: int = 3,
    n_jobs: int = -1,
    scheduler: str | None = None,
    out: str | Path | None = None,
    watch: Watcher | None = None,
) -> Tuning:
    """Choose parameters of ``HOTClassifier`` on validation classes, by successive halving: all candidates, best first.

    Parameters
    ----------
    base : BaseClasses
        The bank.
    X_val, y_val : arrays (samples, V) and (samples,)
        Samples of validation classes, which are neither base classes nor the classes of the final evaluation.
    grid : dict of str to list, optional
        Values to try by parameter; a small grid by default. The default parameters are tried too.
    search : {"grid", "random"}
        Try all combinations, or ``n_candidates`` random ones.
    n_candidates : int, optional
        Number of combinations of a random search.
    ways, shots, queries : int or str
        As in ``evaluate``; accuracy is averaged over the numbers of shots.
    tasks : int
        Number of tasks of the last candidates, for each number of shots.
    seed : int
        Seed of the tasks.
    factor : int
        Each round keeps one in ``factor`` candidates, and multiplies the number of tasks by it.
    n_jobs, scheduler, watch
        As in ``evaluate``.
    out : path, optional
        Folder of a run folder for each round. After an interruption, repeat the call to resume.

    See Also
    --------
    load_parameters : Read the parameters that ``save`` of the result writes.

    Examples
    --------
    >>> import numpy as np
    >>> from hotshot import BaseClasses, tune
    >>> y = np.repeat(list("abcdef"), 20)
    >>> X = np.random.default_rng(0).normal(size=(120, 4)) + np.repeat(np.eye(6, 4), 20, axis=0)
    >>> base = BaseClasses.from_samples(X[:60], y[:60])
    >>> tuning = tune(base, X[60:], y[60:], grid={"mix": [0.5]}, ways=2, shots=1, tasks=20, n_jobs=1)
    >>> [candidate.name for candidate in tuning.candidates if candidate.parameters["mix"] == 0.5]
    ['mix=0.5']
    """
    grid = dict(DEFAULT_GRID if grid is None else grid)
    check_numbers(factor=factor, seed=seed, tasks=tasks)
    candidates = _candidates(grid, search, n_candidates, seed)
    sizes: dict[str, Any] = {"ways": ways, "shots": shots, "queries": queries, "seed": seed}
    accuracies: dict[str, np.ndarray] = {name: np.empty(0) for name in candidates}
    alive, seen = list(candidates), 0
    for number, budget in enumerate(round_budgets(len(alive), tasks, factor), start=1):
        if seen:
            best = sorted(alive, key=lambda name: -accuracies[name].mean())[: math.ceil(len(alive) / factor)]
            alive = list(dict.fromkeys([DEFAULT, *best]))
        found = evaluate(
            {name: HOTClassifier(base, **candidates[name]) for name in alive},
            X_val,
            y_val,
            base=base,
            tasks=budget - seen,
            first=seen,
            n_jobs=n_jobs,
            scheduler=scheduler,
            out=None if out is None else Path(out) / f"round-{number}",
            watch=watch,
            **sizes,
        )
        seen = budget
        for name in alive:
            new = np.mean([found[name, k].accuracies for k in found.shots], axis=0)
            accuracies[name] = np.concatenate([accuracies[name], new])
    order = sorted(candidates, key=lambda name: (-len(accuracies[name]), -accuracies[name].mean()))
    gains = {name: paired_difference(accuracies[name], accuracies[DEFAULT][: len(accuracies[name])]) for name in order}
    search_of = {"grid": {k: list(v) for k, v in grid.items()}, "search": search, "factor": factor}
    request = {**sizes, "shots": found.shots, "tasks": tasks, "n_candidates": n_candidates, "tune": search_of}
    return Tuning(tuple(Candidate(name, candidates[name], accuracies[name], gains[name]) for name in order), request)


def round_budgets(candidates: int, tasks: int, factor: int) -> list[int]:
    """Tasks seen by the end of each round, whole chunks, growing by `factor` up to all of them."""
    rounds = max(1, math.ceil(math.log(candidates, factor)))
    budgets = [CHUNK_TASKS * math.ceil(tasks / factor**r / CHUNK_TASKS) for r in range(rounds - 1, 0, -1)]
    return sorted({*(b for b in budgets if b < tasks), tasks})


def _candidates(
    grid: Mapping[str, Sequence[Any]], search: str, n_candidates: int | None, seed: int
) -> dict[str, dict[str, Any]]:
    """Parameters by candidate name, the default ones first."""
    defaults = {name: value for name, value in HOTClassifier().get_params().items() if name not in FIXED}
    for name, values in grid.items():
        if name not in defaults:
            close = did_you_mean(str(name), defaults)
            raise ParameterError(f"{name!r} cannot be tuned: the parameters are {', '.join(defaults)}.{close}")
        if isinstance(values, str) or not len(values):
            raise ParameterError(f"The grid of {name!r} must be a list of values, got {values!r}.")
    if search not in SEARCHES:
        raise ParameterError(f"search must be one of {', '.join(SEARCHES)}, got {search!r}.")
    combinations = math.prod(map(len, grid.values()))
    if combinations > LIMITS["candidates"][1]:
        raise ParameterError(f"The grid has {combinations:,} combinations: leave values out.")
    choices = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    if search == "random":
        check_number("n_candidates of a random search", n_candidates, *LIMITS["candidates"])
        order = np.random.default_rng(seed).permutation(len(choices))[:n_candidates]
        choices = [choices[i] for i in sorted(order)]
    elif n_candidates is not None:
        raise ParameterError("n_candidates is for search='random'; a grid tries all combinations.")
    defaults = {name: defaults[name] for name in grid}
    named = {_name(choice): choice for choice in choices if choice != defaults}
    for choice in named.values():
        # Before the defaults choose their settings, which takes seconds.
        try:
            HOTClassifier(**choice)._validate_params()
        except InvalidParameterError as error:
            raise ParameterError(str(error)) from None
    return {DEFAULT: defaults, **named}


def _name(choice: dict[str, Any]) -> str:
    return " ".join(f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in choice.items())
