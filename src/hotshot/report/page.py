"""The page as one file: template, style and script of this package, and data that can be nothing but data."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from hotshot.version import __version__

GENERATOR = "hotshot report"


def render(title: str, lead: str, parts: Sequence[Any]) -> str:
    """The HTML of a report. Whatever is text stays text: the template escapes it, and a policy in its head lets the
    browser run this package's script and load nothing at all.
    """
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(as_data=as_data, broken=broken, typeset=typeset)
    script = _file("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    text = environment.from_string(_file("report.html")).render(
        title=title,
        lead=lead,
        parts=parts,
        generator=f"{GENERATOR} {__version__}",
        policy=f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'",
        style=Markup(_file("report.css")),
        script=Markup(script),
    )
    # File names of other encodings come as text that has no UTF-8 of its own.
    return text.lstrip().encode("utf-8", "replace").decode("utf-8")


def as_data(value: Any) -> Markup:
    """JSON that may stand in a script element: no character in it can end the element or begin another."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def typeset(text: str) -> str:
    """Numbers as a printer sets them: a true minus before digits, and no line broken at ±."""
    text = re.sub(r"(?<![^\s(])-(?=\d)", "\N{MINUS SIGN}", text)
    return text.replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")


def broken(text: str) -> Markup:
    """A name that may be broken where people read a gap, as in `names_of_classes`, and anywhere once it is long."""
    pieces = re.findall(r"[^\s_/-]{1,20}[_/-]*\s*|[_/-]+\s*|\s+", text)
    # After a space it breaks by itself.
    return Markup(re.sub(r"(?<=\s)<wbr>", "", Markup("<wbr>").join(pieces)))


def _file(name: str) -> str:
    return (files("hotshot.report") / "assets" / name).read_text(encoding="utf-8")
