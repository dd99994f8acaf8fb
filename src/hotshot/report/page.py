"""The page as one file: from folders to its parts, rendered by a template that escapes all text."""

import hashlib
import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from hotshot.arrays import check_number, check_numbers
from hotshot.errors import HotshotError, InputError, ParameterError
from hotshot.evaluation.stored import is_run, load_run
from hotshot.files.atomic import check_writable, write_text
from hotshot.files.objects import refuse_damage
from hotshot.files.opening import opened
from hotshot.report.explorer import Options, Reader, Source, read_source
from hotshot.report.reproduction import is_reproduction, reproduction_part
from hotshot.report.run import Part, run_part
from hotshot.version import __version__

if TYPE_CHECKING:
    from markupsafe import Markup

# Tasks for each number of shots; each takes some kilobytes of the page.
MOST_EXPLORED = 10_000
GENERATOR = "hotshot report"
ASSETS = Path(__file__).parent / "assets"


def make_report(
    folders: Sequence[str | Path],
    read: Reader | None = None,
    *,
    data: Source | None = None,
    reference: str | None = None,
    threshold: float = 0.5,
    tasks: int = 24,
    title: str | None = None,
    tell: Callable[[str], None] | None = None,
) -> str:
    """Make the HTML of a report on runs of ``hotshot evaluate`` and folders of ``hotshot reproduce``.

    Parameters
    ----------
    folders : sequence of paths
        Run folders and folders of reproductions.
    read : callable, optional
        Called with a ``Source``, returns base classes and the samples of the novel classes: ``Samples``, or features,
        labels and, if known, columns such as "id" and "text". By default they are read from where the run says.
    data : Source, optional
        Where the data are now, if they have moved since the run.
    reference : str, optional
        The method that others are compared to; by default that of the run.
    threshold : float
        Tasks with a lower accuracy are counted.
    tasks : int
        Tasks in the task explorer, for each number of shots; 0 leaves it out.
    title : str, optional
        Title of the page; without one, it opens with what was found.
    tell : callable, optional
        Called with a sentence if a part has no task explorer.

    See Also
    --------
    write_report : Write it to a file.

    Examples
    --------
    The figures of a page take a second, so that this is not run:

    >>> evaluation = evaluate(methods, X, y, base=base, out="run")  # doctest: +SKIP
    >>> page = make_report(["run"], lambda source: (base, X, y))  # doctest: +SKIP
    >>> write_report("report.html", page)  # doctest: +SKIP
    """
    if not folders:
        raise ParameterError("A report needs at least one run folder.")
    check_numbers(threshold=threshold)
    check_number("tasks", tasks, 0, MOST_EXPLORED)
    # Folders that follow each other often have the same data.
    options = Options(lru_cache(1)(read or read_source), tasks, reference, threshold, data)
    parts = [_part(Path(folder), f"part-{number}", options) for number, folder in enumerate(folders, 1)]
    for part in parts:
        if tasks and tell is not None and isinstance(part.explorer, str):
            tell(f"{part.heading}: the task explorer is left out. {part.explorer}")
    return render(title, parts)


def _part(folder: Path, part_id: str, options: Options) -> Part:
    # Its `run.json` may hold anything.
    with refuse_damage(folder, "run", HotshotError):
        if is_reproduction(folder):
            return reproduction_part(folder, part_id, options)
        if is_run(folder):
            return run_part(load_run(folder), part_id, options)
        raise InputError(
            f"{folder} is neither a run of hotshot evaluate nor a folder of hotshot reproduce: name one of these."
        )


def write_report(path: str | Path, text: str) -> None:
    """Write the page of ``make_report`` to a file; an existing file is replaced only if it is a report."""
    check_report(path)
    write_text(path, text)


def check_report(path: str | Path) -> None:
    """Raise unless a page can be written there, before the work and not after it."""
    path = Path(path)
    try:
        if path.exists():
            with opened(path) as file:
                if GENERATOR.encode() not in file.read(2000):
                    raise InputError(f"{path} exists and is not a report: choose another name.")
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"The report cannot be written to {path}: {error.strerror or error}.") from None
    check_writable(path)


def render(title: str | None, parts: Sequence[Part]) -> str:
    """The HTML of a report; without a title, the page opens with what was found.

    All text stays text: the template escapes it, in data too, and a policy in its head lets the browser run the script
    of this package and load nothing.
    """
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    template, style, script = ((ASSETS / f"report.{kind}").read_text("utf-8") for kind in ("html", "css", "js"))
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(breakable=breakable, typeset=typeset)
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    text = environment.from_string(template).render(
        title=title,
        name=title or (parts[0].heading if len(parts) == 1 else f"{len(parts)} runs"),
        parts=parts,
        generator=f"{GENERATOR} {__version__}",
        policy=f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'",
        style=Markup(style),
        script=Markup(script),
    )
    # File names of other encodings come as text that has no UTF-8 of its own.
    return text.lstrip().encode("utf-8", "replace").decode("utf-8")


def typeset(text: str) -> str:
    """Numbers as a printer sets them: a true minus before digits, and no line broken at ±."""
    text = re.sub(r"(?<![^\s(])-(?=\d)", "\N{MINUS SIGN}", text)
    return text.replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")


def breakable(text: str) -> "Markup":
    """A name that may be broken where people read a gap, as in `names_of_classes`."""
    from markupsafe import Markup

    return Markup("<wbr>").join(re.split(r"(?<=[_/-])(?![_/-])", text))
