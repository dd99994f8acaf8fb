"""Names of classes that fit: short, fitted, wrapped."""

from __future__ import annotations

import unicodedata

import figure_examples as examples
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotshot.paper.figures import short
from hotshot.paper.figures.style import settings as drawing_settings
from hotshot.paper.figures.text import clean, fitted, text_width, wrapped


def columns(text):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text if not unicodedata.combining(c))


@pytest.mark.parametrize(
    ("name", "most", "shown"),
    [
        ("wolf", 4, "wolf"),
        ("wolves", 4, "wo…s"),
        ("card_payment_wrong_exchange_rate", 11, "card_…_rate"),
        ("汉字类别名称", 12, "汉字类别名称"),
        ("汉字类别名称", 7, "汉…称"),
        ("a\n b\t c", 10, "a b c"),
        ("a\x00b\u202e\ud800", 10, "a\ufffdb\ufffd"),
        (17, 5, "17"),
        ("", 5, ""),
        ("abc", 1, "…"),
    ],
)
def test_known_answers(name, most, shown):
    assert short(name, most) == shown


@given(st.text(max_size=80), st.integers(1, 60))
def test_short_names_are_as_short_as_asked(name, most):
    got = short(name, most)
    assert columns(got) <= most
    assert got.isprintable()
    got.encode()


@given(st.text(max_size=40))
def test_short_names_are_shortened_no_further(name):
    assert short(short(name, 20), 20) == short(name, 20)
    assert short(name, 2 * len(name) + 1) == clean(name)


@settings(max_examples=15)
@given(st.text(st.characters(categories=["L", "N", "P", "Zs"]), max_size=40), st.floats(0.3, 2))
def test_fitted_names_are_as_narrow_as_asked(name, inches):
    with drawing_settings():
        (got,) = fitted([name], inches, 7)
        assert text_width(got, 7) <= 72 * inches


def test_names_that_fit_are_left_alone():
    with drawing_settings():
        assert fitted(["wolf", "$x_1$"], 1.0, 7) == ["wolf", "$x_1$"]


@pytest.mark.parametrize("name", [*examples.HOSTILE, "a b " * 30, "many_words_" * 12])
def test_wrapped_sentences_fit_in_width_and_height(name):
    with drawing_settings():
        lines = wrapped(name, 1.2, 8, 3).split("\n")
        assert len(lines) <= 3
        assert all(text_width(line, 8) <= 72 * 1.2 for line in lines)


def test_sentences_break_at_spaces_first():
    with drawing_settings():
        assert wrapped("Nearest classes of card_payment", 1.2, 8) == "Nearest classes of\ncard_payment"
        assert wrapped("wrong_exchange_rate_for_cash", 1.2, 8) == "wrong_exchange_\nrate_for_cash"
