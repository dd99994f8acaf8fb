"""Figures of others in the page: what they draw stays, what they could do does not."""

from __future__ import annotations

import pytest
from reported_runs import FIGURE

from bounded import within
from hotshot.errors import InputError
from hotshot.report.svg import inline_svg


def svg(inside, attributes=""):
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10" {attributes}>{inside}</svg>'


def test_shapes_and_text_stay_and_ids_get_a_prefix():
    drawn = inline_svg(FIGURE, "p-", "A label")
    assert drawn.startswith('<svg role="img" aria-label="A label" viewBox="0 0 200 100" ')
    assert 'id="p-line"' in drawn
    assert 'href="#p-line"' in drawn
    assert 'clip-path="url(#p-clip)"' in drawn
    assert 'd="M 0 0 L 200 100"' in drawn
    assert "two  words &lt;b&gt;" in drawn


def test_nothing_else_comes_through():
    drawn = inline_svg(FIGURE, "p-", "A label")
    for absent in ("script", "RAN", "onload", "style>", "example.org", "foreignObject", "<img", "http"):
        assert absent not in drawn, absent


@pytest.mark.parametrize(
    "inside",
    [
        '<rect onclick="f()"/>',
        '<a href="javascript:f()"><rect/></a>',
        '<image href="data:image/svg+xml;base64,AAAA"/>',
        '<image href=" https://example.org/a.png"/>',
        '<rect style="fill: URL(https://example.org/f)"/>',
        '<rect style="fill: u\\72l(https://example.org/f)"/>',
        '<rect style="fill: url(#a), url(//example.org/f)"/>',
        "<rect style=\"background: image-set('//example.org/f')\"/>",
        '<animate attributeName="href" values="https://example.org"/>',
        '<set attributeName="onclick" to="f()"/>',
        "<iframe/>",
    ],
)
def test_ways_around_the_lists_lead_nowhere(inside):
    drawn = inline_svg(svg(inside), "p-", "")
    for absent in ("f()", "example.org", "data:", "animate", "iframe", "<set"):
        assert absent not in drawn


def test_labels_are_escaped():
    assert 'aria-label="&#34;&gt;&lt;b&gt;"' in inline_svg(svg("<rect/>"), "p-", '"><b>')


def test_ink_and_paper_follow_the_page():
    drawn = inline_svg(svg('<rect style="fill: #FFFFFF; stroke: #222222"/><rect fill="#0072b2"/>'), "p-", "")
    assert "fill: var(--card); stroke: currentColor" in drawn
    assert 'fill="var(--c0)"' in drawn


@pytest.mark.parametrize("text", ["", "no figure", "<html/>", svg("<rect>"), "<svg"])
def test_what_is_no_figure_is_refused(text):
    with pytest.raises(InputError, match="make it again"):
        inline_svg(text, "p-", "")


@pytest.mark.parametrize(
    "inside",
    [
        f'<path style="{"url(#" * 100_000}"/>',
        f'<path style="{"url( #a " * 50_000}"/>',
        f'<path style="url({" " * 300_000}"/>',
        f'<path fill="{"url(#a" * 50_000}"/>',
    ],
    ids=["url", "url and spaces", "spaces", "fill"],
)
def test_addresses_that_never_end_are_looked_through_once(inside):
    with within(60):
        assert "url" not in inline_svg(svg(inside), "p-", "")


@pytest.mark.parametrize("width", ["1.2.3pt", "." * 50, "9" * 400, "1e5", "-3", "٣"])
def test_a_width_that_is_none_is_left_out(width):
    assert "width:" not in inline_svg(svg("<rect/>", f'width="{width}"'), "p-", "").partition("stroke")[0]
    assert "width:180px" in inline_svg(svg("<rect/>", 'width="100.0pt"'), "p-", "")


def test_figures_nested_without_end_are_one_sentence():
    with pytest.raises(InputError, match="nested too deep"):
        inline_svg(svg("<g>" * 50_000 + "</g>" * 50_000), "p-", "")
    entities = "".join(f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 10}">' for i in range(9))
    bomb = f'<!DOCTYPE svg [<!ENTITY a "{"a" * 1000}">{entities}]><svg>&j;</svg>'
    with pytest.raises(InputError, match="not sound SVG"):
        inline_svg(bomb, "p-", "")
