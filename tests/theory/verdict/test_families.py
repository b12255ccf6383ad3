"""Conditions of families against the truth, point by point, on borders and beside them: none is wrong.

Eight generated families here; 2,000 with -m long.
"""

import os
import random
import subprocess
import sys
from fractions import Fraction

import families
import pytest

from farfield import check
from farfield.formula import FormulaError, build, parse
from farfield.theory.verdict.confirmation import at
from farfield.zoo import ENCODINGS

NAMES = {True: "converges", False: "diverges", None: "undefined"}


def says(condition, point):
    """What a condition says at a point: a set of verdicts, empty where the formula is undefined; None if not known."""
    said = at(condition, {name: build.fraction(value) for name, value in point.items()})
    return None if said is None or "undecided" in said else said - {"undefined"}


def wrong_points(condition, truth, points):
    """Points at which a condition says something else than the truth."""
    out = []
    for point in points:
        said, true = says(condition, point), truth(point)
        if said is not None and true is not None and said != ({true} - {"undefined"}):
            out.append((point, said, true))
    return out


def assert_right(seed):
    family = families.family(seed)
    verdict = check(family.text, start=family.start)
    if verdict.condition is not None:
        truth = lambda point: NAMES[family.converges(point)]  # noqa: E731
        assert wrong_points(verdict.condition, truth, family.points()) == [], (family.text, verdict.condition)


@pytest.mark.parametrize("seed", range(4, 12))
def test_the_condition_of_a_generated_family_is_never_wrong(seed):
    assert_right(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", [*range(4), *range(12, 2000)])
def test_the_conditions_of_two_thousand_generated_families_are_never_wrong(seed):
    assert_right(seed)


# ---------------------------------------------------------------------------------------------- concrete instances
TYPED = """-p*log(1+t)**exp(q)|-p*log(1+t)**(q**2)|-p*log(1+t)**sqrt(q)|-p*log(1+t)**(a*b)|-p*log(1+t)**(1/q)
-sqrt(a*b)*t
-log(a*b)*t|-((log(1/2))**a)*log(t+1)|-sqrt(sqrt(a*a)*floor(b))*t**2 - a*t|weight: (t+1)**(-a) + (t+1)**(-b)
max(-(sqrt(c*b))**(2**(1/2))*t, -b*log(t+1))|weight: exp(-sqrt((b-1)*(b+c))*t) + exp(-sqrt(((-1)**b)**2)*t)
-a*log(1+b*t)**p|-a*((1+t)**p-1)/p|weight: a*exp(-b*t) + (1-a)*exp(-c*t)|-a*t**2 - b*t - c*log(t+1)
min(-a*t, -b*log(t+1))|-(b*t)**p|-b**p*t|-a**b*log(t)|-(2+(-1)**floor(a))*log(t+1)"""
ENCODED = [e.name for e in ENCODINGS.values() if e.formula is not None and e.formula.parameters]
VALUES = [Fraction(n, 12) for n in (-24, -12, -7, 0, 1, 3, 6, 11, 12, 13, 18, 24, 25, 36, 60)]


def instance(text, point):
    """The verdict on one member of a family; None where it is refused or undecided."""
    for start in (3, 1000):  # a condition is about large distances
        try:
            said = check(text, parameters={n: str(v) for n, v in point.items()}, start=start).verdict
        except FormulaError:
            continue
        return None if said == "undecided" else said
    return "undefined"


@pytest.mark.parametrize("text", [*ENCODED, *TYPED.replace("\n", "|").split("|")])
def test_a_condition_agrees_with_random_instances(text):
    dice = random.Random(text)
    try:
        condition = check(text, start=3).condition
    except FormulaError:
        return
    names = sorted({name for cases in condition.cases.values() for case in cases for r in case for name in r.free()}
                   if condition is not None else ())  # fmt: skip
    if not names:
        return
    formula = ENCODINGS[text].formula if text in ENCODINGS else parse(text)
    values = VALUES if text not in ENCODINGS else [Fraction(n, 2) for n in (4, 5, 6, 10)]  # the zoo has domains
    points = [{n: dice.choice(values) for n in formula.parameters} for _ in range(4)]
    assert wrong_points(condition, lambda point: instance(text, point), points) == []


def test_the_same_is_said_in_every_process():
    code = "import farfield; v = farfield.check('-abs(a*a - b)*log(t+1) - a*b'); print(v.json())"
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("-(a*a+b*b)*t", "a**2 + b**2 > 0"),  # once "for every a, b"
        ("-(a*a+b*b)*log(t+1)", "a**2 + b**2 > 1"),
        ("-(abs(a)+abs(b))*t", "a != 0, or b != 0"),
        ("-sqrt(a*b)*t", "a*b > 0 (it is undefined if a*b < 0)"),
    ],
)
def test_a_sum_of_squares_may_be_0(text, condition):
    assert check(text).condition == f"converges if and only if {condition}"


def test_a_positive_fraction_is_positive_for_every_parameter():
    assert check("-(1/(1+a*a))*sqrt(t)").condition == "converges for every a"
