"""How numbers and names are written: the same number is written the same way wherever it stands."""

from __future__ import annotations

import random

import pytest

from farfield.words import LONGEST, listing, number, percent, plain, short, token_range, tokens, with_error


def test_a_number_of_tokens():
    assert [tokens(n) for n in (None, 0, 999, 1152, 10**15 - 1)] == ["none", "0", "999", "1,152", "999,999,999,999,999"]
    assert [tokens(n) for n in (10**15, 6079 * 10**20, 10**5000)] == ["1e15", "6.07e23", "1e5000"]
    assert (token_range([19]), token_range([1179, 19, 74])) == ("19", "19 to 1,179")


def test_long_numbers_of_tokens_begin_with_their_digits():
    draw = random.Random(5)
    for _ in range(3000):
        count = draw.choice((10, 2)) ** draw.randrange(50, 1000) + draw.randrange(-1, 2)
        digits = str(count)
        if len(digits) > 15:
            assert tokens(count) == f"{float(f'{digits[0]}.{digits[1:3]}'):g}e{len(digits) - 1}", count


@pytest.mark.parametrize(
    ("share", "options", "text"),
    [
        (0.262, {}, "26.2 %"),
        (0.262, {"error": 0.014}, "26.2 ± 1.4 %"),
        (7.324, {"error": 0.58}, "732 ± 58 %"),
        (7.324, {"error": 0.58, "digits": 1}, "732.4 ± 58.0 %"),
        (0.0004, {}, "0.04 %"),
        (0.0004, {"error": 0.0001}, "0.0 ± 0.0 %"),
        (-0.0004, {}, "-0.04 %"),
        (0.0, {}, "0.0 %"),
        (0.1234, {"digits": 2, "sign": "+"}, "+12.34 %"),
        (-0.1234, {"error": 0.001, "digits": 2, "sign": "+"}, "-12.34 ± 0.10 %"),
    ],
)
def test_a_percentage(share, options, text):
    assert percent(share, **options) == text


def test_a_number_with_its_error():
    assert with_error(96.5, 1.0) == "96.50 ± 1.00"
    assert with_error(5.5731, digits=3) == "5.573"
    assert with_error(None, 1.0) == ""


def test_numbers_and_names_in_sentences():
    assert [number(x) for x in (0.01234, 4.2, 99.96, 1234.5, 9.99e9)] == ["0.0123", "4.2", "100", "1,234", "9.99e+09"]
    assert [number(x) for x in (float("inf"), float("nan"))] == ["infinite", "unknown"]
    assert [listing(names) for names in ((), ("a",), ("a", "b"), ("a", "b", "c"))] == ["", "a", "a and b", "a, b and c"]
    assert listing("abcdef", most=4) == "a, b, c and 3 others"


def test_a_users_text_is_one_line_of_a_bounded_length():
    assert plain("a\nb\x00c\x1bd\u202ee") == "a b c d e"
    assert len(short("-t" * 1000)) == LONGEST
    assert short("x" * LONGEST) == "x" * LONGEST
