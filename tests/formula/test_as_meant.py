"""What people write elsewhere is read as what was meant, and said."""

from __future__ import annotations

import pytest

from farfield.formula import FormulaError, parse
from farfield.formula.grammar import as_meant
from farfield.zoo import find


@pytest.mark.parametrize(
    ("typed", "meant", "said"),
    [
        ("-t^2", "-t**2", "'^' as '**'"),
        ("-2*ln(t + 1)", "-2*log(t + 1)", "'ln' as 'log'"),
        ("-t²/9", "-t**2/9", "'²' as '**2'"),
        ("-t¹⁰", "-t**10", "'¹⁰' as '**10'"),
        ("-λ·t", "-lam*t", "'λ' as 'lam', '·' as '*'"),
        ("−k×t", "-k*t", "'−' as '-', '×' as '*'"),
        ("-√(t)", "-sqrt(t)", "'√' as 'sqrt'"),
        ("-π*t", "-pi*t", "'π' as 'pi'"),
        ("-lambda*t", "-lam*t", "'lambda' as 'lam'"),
        ("-(1 + t)^1.5", "-(1 + t)**1.5", "'^' as '**'"),
        ("weight: 2^(−t)", "weight: 2**(-t)", "'^' as '**', '−' as '-'"),
        ("-\u00a0t", "- t", "an unusual space as a space"),
    ],
)
def test_it_is_read_as_what_was_meant(typed: str, meant: str, said: str) -> None:
    result = find(typed)
    assert result.formula is not None
    assert result.formula.node == parse(meant).node
    assert result.asked == f"read {said}"


@pytest.mark.parametrize("text", ["-2*log(t + 1)", "-k*t", "alibi", "-lam*t", "-mu*t"])
def test_a_formula_is_left_as_it_is(text: str) -> None:
    assert as_meant(text) == ("", "")
    assert find(text).asked == ""


@pytest.mark.parametrize("text", ["t^", "²", "e^t", "ln", "-t^²", "log²(t)", "√t", "-t^2 = 1"])
def test_what_is_no_formula_after_all_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(FormulaError):
        find(text)
