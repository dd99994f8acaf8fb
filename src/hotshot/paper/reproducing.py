"""Experiments one after another, in one folder that says what was run and from which one resumes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from hotshot.arrays import array_hash
from hotshot.evaluation import tune
from hotshot.evaluation.journal import REQUEST, check_request
from hotshot.evaluation.runner import Watcher, versions
from hotshot.evaluation.tasks import labels_hash
from hotshot.files.atomic import locked, write_json
from hotshot.paper.findings import Experiment, Findings, save_findings
from hotshot.paper.setting import Setting
from hotshot.version import __version__

TUNING_TASKS = 500


def reproduce(
    experiments: Sequence[Experiment],
    setting: Setting,
    out: str | Path,
    *,
    during: Callable[[str], AbstractContextManager[Watcher | None]] = lambda _: nullcontext(),
    validation: tuple[Any, Any] | None = None,
    source: dict[str, Any] | None = None,
) -> Iterator[tuple[Experiment, Findings, dict[str, Any]]]:
    """Run experiments and write their findings to a folder; yields each with its findings, and these as JSON.

    `during(name)` is the context of an experiment, such as a progress bar that watches it, and of "tuning" on the
    features and labels `validation`. `source` is where the data are, which the folder records. A folder of another
    request is refused; the same one resumes, and further experiments join those that are there.
    """
    features = setting.features
    size = {name: getattr(setting, name) for name in ("ways", "queries", "tasks", "seed")}
    about = {"data": features.name, "backbone": features.backbone, **size}
    hashes = [features.base.fingerprint, array_hash(features.X), labels_hash(features.y)]
    request = {**about, "features": hashes, "hotshot": __version__}
    out = Path(out)
    setting = replace(setting, out=out)
    with locked(out):
        check_request(out, request)
        write_json(out / REQUEST, {"source": source, **about, "request": request, **versions()})
        if validation is not None:
            with during("tuning") as watch:
                tuning = tune(
                    features.base, *validation, **{**size, "tasks": min(setting.tasks, TUNING_TASKS)}, shots=(1, 5),
                    n_jobs=setting.n_jobs, out=out / "tuning", watch=watch,
                )  # fmt: skip
            setting = replace(setting, tuned=tuning.best.parameters)
        for experiment in experiments:
            with during(experiment.name) as watch:
                findings = experiment.run(replace(setting, watch=watch))
            which = {"experiment": experiment.name, "title": experiment.title, "paper": experiment.paper}
            yield experiment, findings, save_findings(out / experiment.name, findings, {**which, "about": about})
