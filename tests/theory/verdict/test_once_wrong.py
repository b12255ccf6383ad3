"""Verdicts that were once wrong, each with a printed proof: every one of them is right now, or undecided."""

from functools import cache

import pytest

import farfield
from farfield.formula import parse
from farfield.theory.verdict.conditions import relation_holds

check = cache(farfield.check)
CONCRETE = [
    ("-sqrt((1-sqrt(2))**(-2))*log(t+1)", 0, "converges"),
    ("-((1-sqrt(2))**(-2))**(1/2)*t", 0, "converges"),
    ("-log(t) - 2*log(log(t)) + (sin(t) - 1 + 3*log(log(t))/log(t))*log(t)", 3, "diverges"),
    ("-2*log(t+1)**(1/(sqrt(2)-1) - sqrt(2))", 0, "converges"),
    ("t**(1/(sqrt(2)-1)) - t**(sqrt(2)+1) - 2*log(t+1)", 0, "converges"),
    ("-exp(sqrt(5+2*sqrt(6))*t) + exp((sqrt(2)+sqrt(3))*t)", 0, "diverges"),
    ("-max(sin(t), 1 + log(t)**(-1/2))*log(t)", 2, "converges"),
    ("-(2+sin(t))*log(t+1)", 0, "diverges"),
    ("-(2+sin(t))*log(t+1) - log(log(t+16))", 0, "converges"),
    ("-(sin(1)**2+cos(1)**2)*log(t+1)", 0, "diverges"),
    ("-2*(cos(pi/7) - cos(2*pi/7) + cos(3*pi/7))*log(t+1)", 0, "diverges"),
]


@pytest.mark.parametrize(("text", "start", "true"), CONCRETE)
def test_a_series_that_was_judged_wrong(text, start, true):
    result = check(text, start=start)
    assert result.verdict in (true, "undecided")
    assert (result.certificate is None) == (result.verdict == "undecided")


FAMILIES = [  # points with their true verdict; None where the formula has no value
    ("-p*log(1+t)**exp(q)", {"p": 2, "q": 0}, "converges"),
    ("-p*log(1+t)**exp(q)", {"p": 1, "q": 0}, "diverges"),
    ("-p*log(1+t)**exp(q)", {"p": "1/9", "q": "1/9"}, "converges"),
    ("-p*log(1+t)**(q**2)", {"p": 2, "q": -1}, "converges"),
    ("-p*log(1+t)**(q**2)", {"p": 1, "q": 1}, "diverges"),
    ("-p*log(1+t)**sqrt(q)", {"p": 2, "q": 1}, "converges"),
    ("-p*log(1+t)**sqrt(q)", {"p": 2, "q": -1}, None),
    ("-p*log(1+t)**(a*b)", {"p": 2, "a": 2, "b": "1/2"}, "converges"),
    ("-p*log(1+t)**(1/q)", {"p": 2, "q": 1}, "converges"),
    ("-p*log(1+t)**(1/q)", {"p": 2, "q": -1}, "diverges"),
    ("-log(a-t)", {"a": 5}, None),
    ("-sqrt(a-t)", {"a": 5}, None),
    ("weight: -exp(a)/(t+1)**2", {"a": 1}, None),
    ("-sqrt(a*b)*t", {"a": 0, "b": 3}, "diverges"),
    ("-sqrt(a*b)*t", {"a": -1, "b": -3}, "converges"),
    ("-sqrt(a*b)*t", {"a": -1, "b": 3}, None),
    ("-log(a*b)*t", {"a": -2, "b": -2}, "converges"),
    ("-log(a*b)*t", {"a": 2, "b": "1/2"}, "diverges"),
    ("-((log(1/2))**a)*log(t+1)", {"a": -2}, "converges"),
    ("-sqrt(sqrt(a*a)*floor(b))*t**2 - a*t", {"a": -2, "b": "1/2"}, "diverges"),
    ("-sqrt(sqrt(a*a)*floor(b))*t**2 - a*t", {"a": 2, "b": "1/2"}, "converges"),
    ("max(-(sqrt(c*b))**(2**(1/2))*t, -b*log(t+1))", {"b": 2, "c": 0}, "diverges"),
    ("max(-(sqrt(c*b))**(2**(1/2))*t, -b*log(t+1))", {"b": 2, "c": 1}, "converges"),
    ("weight: exp(-sqrt((b-1)*(b+c))*t) + exp(-sqrt(((-1)**b)**2)*t)", {"b": 2, "c": 0}, "converges"),
    ("-a*log(1+b*t)**p", {"a": 2, "b": 3, "p": 1}, "converges"),
    ("-a*log(1+b*t)**p", {"a": 1, "b": 3, "p": 1}, "diverges"),
    ("-a*((1+t)**p-1)/p", {"a": 1, "p": -1}, "diverges"),
    ("-a*((1+t)**p-1)/p", {"a": "1/9", "p": "1/9"}, "converges"),
    ("weight: (t+1)**(-a) + (t+1)**(-b)", {"a": 2, "b": 1}, "diverges"),
    ("weight: (t+1)**(-a) + (t+1)**(-b)", {"a": 2, "b": "9/8"}, "converges"),
]


def said_at(condition, values):
    """The verdicts of the cases that hold at a point."""
    point = {name: parse(str(value)).node for name, value in values.items()}
    return {
        verdict
        for verdict, cases in condition.cases.items()
        for case in cases
        if all(relation_holds(relation, point) for relation in case)
    }


@pytest.mark.parametrize(("text", "point", "true"), FAMILIES)
def test_a_family_that_was_judged_wrong(text, point, true):
    result = check(text)
    if result.condition is None:
        assert result.verdict == "undecided"
        return
    assert said_at(result.condition, point) <= {true or "undefined", "undecided"}


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("-p*log(1+t)**exp(q)", "converges if and only if q > 0 and p > 0, or q = 0 and p > 1"),
        ("-a*((1+t)**p-1)/p", "converges if and only if p > 0 and a > 0 (it is undefined if p = 0)"),
        ("-log(a*b)*t", "converges if and only if a*b > 1 (it is undefined if a*b <= 0)"),
        ("-(abs(a)-a)*t", "converges if and only if a < 0"),
        ("-(a-b)*t - c*log(t+1)", "converges if and only if a > b, or a = b and c > 1"),
        (
            "weight: a*exp(-b*t) + (1-a)*exp(-c*t)",
            "converges if and only if a > 0 and b > 0 and b <= c, or b > 0 and a = 1, "
            "or a > 0 and b > 0 and a < 1 and c > 0, or a = 0 and c > 0, or a < 0 and c > 0 and b >= c "
            "(it is undefined if a > 1 and b > c, or a < 0 and b < c)",
        ),
    ],
)
def test_conditions_are_short(text, condition):
    assert check(text).condition == condition
