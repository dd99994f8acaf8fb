"""From folders to a page: what each folder is, the part it has in the page, and the file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from hotshot.errors import InputError, ParameterError
from hotshot.evaluation.stored import is_run, load_run
from hotshot.files.atomic import write_text
from hotshot.report.page import GENERATOR, render
from hotshot.report.reproduction import about_reproduction, is_reproduction, reproduction_part
from hotshot.report.run import Part, run_part
from hotshot.report.sources import Reader, Source, source_of


def make_report(
    folders: Sequence[str | Path],
    read: Reader,
    *,
    data: Source | None = None,
    reference: str | None = None,
    threshold: float = 0.5,
    tasks: int = 24,
    title: str | None = None,
    tell: Callable[[str], None] | None = None,
) -> str:
    """The HTML of a report on runs of `hotshot evaluate` and folders of `hotshot reproduce`.

    Parameters
    ----------
    folders : sequence of paths
    read : function of a Source
        Gives base classes, features and labels of the novel classes.
    data : Source, optional
        Where the data are now, if not where the folders say.
    reference : str, optional
        The method that others are compared to; as in the run by default.
    threshold : float
        Tasks with an accuracy below this are counted.
    tasks : int
        How many tasks of each number of shots the explorer has; 0 leaves it out.
    title : str, optional
    tell : function of a sentence, optional
        Called where a part has to do without its task explorer, with why.
    """
    if not folders:
        raise ParameterError("Name at least one run folder.")
    if not 0 <= threshold <= 1:
        raise ParameterError(f"threshold must be between 0 and 1, got {threshold}.")
    if tasks < 0:
        raise ParameterError(f"tasks must be 0 or more, got {tasks}.")
    parts: list[Part] = []
    for number, folder in enumerate(map(Path, folders), 1):
        part_id = f"part-{number}"
        if is_reproduction(folder):
            source = _moved(source_of(about_reproduction(folder)), data)
            parts.append(reproduction_part(folder, part_id, source, read, tasks))
        elif is_run(folder):
            run = load_run(folder)
            source = _moved(source_of(run.about), data)
            parts.append(run_part(run, part_id, source, read, tasks, reference, threshold))
        else:
            raise InputError(
                f"{folder} is neither a run of hotshot evaluate nor a folder of hotshot reproduce: name one of these."
            )
    for part in parts:
        if tasks and tell is not None and part.explorer is None:
            tell(f"{part.heading}: the task explorer is left out. {part.why_not}")
    alone = parts[0] if len(parts) == 1 else None
    heading = alone.heading if alone else f"{len(parts)} runs"
    lead = alone.lead if alone else ", ".join(part.heading for part in parts)
    return render(title or heading, lead, parts)


def write_report(path: str | Path, text: str) -> None:
    """Write the page; only a report is ever overwritten."""
    path = Path(path)
    try:
        if path.exists():
            with path.open(encoding="utf-8", errors="replace") as file:
                if GENERATOR not in file.read(2000):
                    raise InputError(f"{path} is there already and no report: choose another name.")
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"The report cannot be written to {path}: {error.strerror or error}.") from None
    write_text(path, text)


def _moved(source: Source, data: Source | None) -> Source:
    """The source with what is said to be elsewhere now."""
    if data is None:
        return source
    if data.bank is not None:
        return replace(source, base=data.base, novel=data.novel, bank=data.bank)
    named = {key: path for key in ("base", "novel") if (path := getattr(data, key)) is not None}
    return replace(source, bank=None, **named) if named else source
