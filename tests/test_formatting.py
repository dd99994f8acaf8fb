"""Numbers and names as a person reads them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotshot.formatting import (
    bounded_percentage,
    count,
    in_words,
    listed,
    milliseconds,
    percentage,
    printable,
    setting_in_words,
    shortened,
    shots_in_words,
    significant,
    whole_percentage,
    with_interval,
)


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (with_interval(90.412, 0.6), "90.41 ± 0.60"),
        (with_interval(-0.4, math.inf, signed=True), "-0.40"),
        (with_interval(-0.001, 0.002), "-0.001 ± 0.002"),
        (with_interval(-0.001, 0.02), "0.00 ± 0.02"),
        (with_interval(99.9987, 0.0026), "99.999 ± 0.003"),
        (with_interval(-0.001, signed=True), "+0.00"),
        (percentage(0.1234), "12.3%"),
        (whole_percentage(0), "0%"),
        (whole_percentage(0.004), "<1%"),
        (whole_percentage(0.9951), ">99%"),
        (whole_percentage(1), "100%"),
        (bounded_percentage(1e-6), "under 0.1%"),
        (bounded_percentage(0.001), "0.1%"),
        (bounded_percentage(0.99999), "over 99.9%"),
        (bounded_percentage(1), "100%"),
        (significant(1234.5), "1230"),
        (significant(0.000012345), "1.23e-05"),
        (significant(1234567.0), "1.23e+06"),
        (milliseconds(0.1488), "149"),
        (count(1, "sample"), "1 sample"),
        (count(2000, "class", "classes"), "2,000 classes"),
        (shots_in_words(1), "1 shot"),
        (shots_in_words("1-10"), "1 to 10 shots"),
        (setting_in_words(5, 1), "5-way-1-shot"),
        (setting_in_words(5, "1-10"), "5-way, 1 to 10 shots"),
        (setting_in_words("5-20", 1), "5 to 20 ways, 1 shot"),
        (in_words(2), "two"),
        (listed([]), ""),
        (shortened("abcdefghij", 5), "abcd…"),
        (shortened("abcdefghij", 5, "end"), "…ghij"),
        (shortened("abcdefghij", 6, "ends"), "abc…ij"),
        (printable("a\nb\x1b[31m\u202ec"), r"a\nb\x1b[31m\u202ec"),
        (listed(["a", "b", "c"]), "a, b and c"),
    ],
)
def test_numbers_read_as_people_write_them(shown, text):
    assert shown == text


@given(
    st.text(st.characters(exclude_characters="…"), max_size=80),
    st.integers(1, 50),
    st.sampled_from(["start", "ends", "end"]),
)
def test_names_are_never_longer_than_asked_for(name, longest, keep):
    text = shortened(name, longest, keep)
    assert text.isprintable()
    assert len(text) <= longest
    whole = printable(name)
    if len(whole) <= longest:
        assert text == whole
    else:
        head, tail = text.split("…")
        assert whole.startswith(head)
        assert whole.endswith(tail)
