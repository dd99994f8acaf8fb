"""Figures inside the page: SVG parsed and written again from a list of harmless elements, with own ids.

What is not on the lists below does not come through: no script, no style sheet that would reach the page, no address.
"""

import re
from xml.etree import ElementTree

from markupsafe import Markup, escape

from hotshot.errors import InputError
from hotshot.paper.figures.style import COLOURS, GRID, INK, SOFT

TAGS = frozenset(
    ("svg", "g", "defs", "path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "text", "tspan", "use",
     "clipPath", "pattern", "image", "title", "desc", "linearGradient", "radialGradient", "stop")
)  # fmt: skip
ATTRIBUTES = frozenset(
    ("id", "d", "x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "rx", "ry", "dx", "dy", "width", "height", "points",
     "transform", "viewBox", "preserveAspectRatio", "style", "fill", "stroke", "opacity", "offset", "clip-path",
     "patternUnits", "patternTransform", "gradientUnits", "text-anchor", "font-size", "fill-opacity", "fill-rule",
     "stroke-width", "stroke-opacity", "stroke-dasharray", "href")
)  # fmt: skip
# Into the same figure; without brackets in it, a text of many that never end is looked through once.
OWN_ADDRESS = re.compile(r"url\(\s*#([^()\s]*)\s*\)")
# White space matters in these.
TEXTUAL = frozenset(("text", "tspan", "title", "desc"))
# matplotlib says the first two in a style sheet, which would hold for the whole page; what has no fill is black.
ROOT_STYLE = "stroke-linejoin:round;stroke-linecap:butt;fill:currentColor"
# Ink, paper and series follow the page from light to dark; what else is coloured, such as heatmaps, stays as it is.
PAGE_COLOURS = {
    INK: "currentColor",
    SOFT: "var(--soft)",
    GRID: "var(--line)",
    "#cccccc": "var(--line)",
    "#ffffff": "var(--card)",
    **{colour: f"var(--c{i})" for i, colour in enumerate(COLOURS)},
    "#000000": "currentColor",
}
# Pixels for a point: what reads well where there is room, and the least at which 8 points of text can be read; where
# even that is too wide, the container of the figure scrolls.
SCALE, LEAST_SCALE = 1.8, 1.15


def inline_svg(text: str, prefix: str, label: str) -> Markup:
    """The text of an SVG file of `hotshot.paper.figures` as an element of the page, in its colours.

    `prefix` stands before all ids, so that figures of one page do not share them; `label` is read out in place of the
    figure.
    """
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise InputError(f"A figure is not sound SVG ({error}): make it again.") from None
    if _local(root.tag) != "svg":
        raise InputError("A figure is not SVG: make it again.")
    found = re.match(r"([0-9]{1,6}(\.[0-9]*)?)(pt|px)?$", root.get("width", ""))
    width = float(found[1]) if found else None
    wide = "" if width is None else f"width:{SCALE * width:.0f}px;min-width:{LEAST_SCALE * width:.0f}px;"
    root.attrib = {key: value for key, value in root.attrib.items() if key == "viewBox"}
    root.set("style", wide + ROOT_STYLE)
    try:
        drawn = _element(root, prefix).removeprefix("<svg ")
    except RecursionError:
        raise InputError("A figure is nested too deep: make it again.") from None
    return Markup(f'<svg role="img" aria-label="{escape(label)}" {drawn}')


def _element(element: ElementTree.Element, prefix: str) -> str:
    tag = _local(element.tag)
    parts = [tag]
    for key, value in element.attrib.items():
        own = _local(key)
        if own in ATTRIBUTES and (kept := _value(own, value, prefix)) is not None:
            parts.append(f'{own}="{escape(kept)}"')
    inner = [str(escape(element.text or ""))]
    for child in element:
        if isinstance(child.tag, str) and _local(child.tag) in TAGS:
            inner.append(_element(child, prefix))
        inner.append(str(escape(child.tail or "")))
    return f"<{' '.join(parts)}>{''.join(inner) if tag in TEXTUAL else ''.join(inner).strip()}</{tag}>"


def _value(name: str, value: str, prefix: str) -> str | None:
    if name == "id":
        return prefix + value
    if name == "href":
        # Into the same figure, or a picture that comes along.
        if value.startswith("#"):
            return f"#{prefix}{value[1:]}"
        return value if re.match(r"data:image/png;base64,[A-Za-z0-9+/=\s]*$", value) else None
    # A backslash could spell what the next line looks for.
    inside = OWN_ADDRESS.sub("", value)
    if "\\" in value or re.search(r"url|import|expression|image", inside, re.IGNORECASE):
        return None
    value = OWN_ADDRESS.sub(lambda found: f"url(#{prefix}{found[1]})", value)
    if name in ("style", "fill", "stroke"):
        for colour, own in PAGE_COLOURS.items():
            value = re.sub(colour, own, value, flags=re.IGNORECASE)
    return value


def _local(name: str) -> str:
    return name.rpartition("}")[2]
