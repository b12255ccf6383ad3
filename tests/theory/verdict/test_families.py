"""Conditions of families against the truth, point by point, on borders and beside them: none is wrong.

Eight generated families here; 2,000 with -m long.
"""

import random
from fractions import Fraction

import families
import pytest

from farfield import check
from farfield.formula import FormulaError, build, parse
from farfield.theory.verdict.families import at
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


# ---------------------------------------------------------------------------------------------- what people typed
HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)
TYPED = [  # once judged wrong; the truth at some points
    ("-p*log(1+t)**exp(q)", {(2, 0): "converges", (1, 0): "diverges", (1, 1): "converges", (1, -1): "diverges"}),
    ("-p*log(1+t)**(q**2)", {(2, 1): "converges", (2, -1): "converges", (1, 1): "diverges", (1, 2): "converges"}),
    ("-p*log(1+t)**sqrt(q)", {(2, 1): "converges", (1, 1): "diverges", (1, 4): "converges", (2, QUARTER): "diverges"}),
    ("-p*log(1+t)**(a*b)", {(2, 1, 2): "converges", (2, HALF, 2): "converges", (1, 1, 1): "diverges"}),
    ("-p*log(1+t)**(1/q)", {(2, 1): "converges", (1, 1): "diverges", (1, HALF): "converges", (2, 2): "diverges"}),
    ("-sqrt(a*b)*t", {(0, 1): "diverges", (1, 1): "converges", (-1, -1): "converges", (0, 0): "diverges"}),
    ("-log(a*b)*t", {(-2, -2): "converges", (2, 1): "converges", (1, 1): "diverges", (-1, -1): "diverges"}),
    ("-((log(1/2))**a)*log(t+1)", {(-2,): "converges", (2,): "diverges", (1,): "diverges", (-4,): "converges"}),
    ("-sqrt(sqrt(a*a)*floor(b))*t**2 - a*t", {(-2, HALF): "diverges", (2, HALF): "converges"}),
    ("max(-(sqrt(c*b))**(2**(1/2))*t, -b*log(t+1))", {(0, 2): "diverges", (1, 2): "converges", (1, 1): "diverges"}),
    ("weight: exp(-sqrt((b-1)*(b+c))*t) + exp(-sqrt(((-1)**b)**2)*t)", {(2, 0): "converges"}),
    ("-log(a-t)", {(5,): "undefined", (-1,): "undefined", (1000,): "undefined"}),
    ("-sqrt(a-t)", {(5,): "undefined", (-1,): "undefined", (1000,): "undefined"}),
    ("weight: -exp(a)/(t+1)**2", {(0,): "undefined", (2,): "undefined", (-3,): "undefined"}),
    ("-a*log(1+b*t)**p", {(2, 1, 1): "converges", (1, 1, 1): "diverges", (0, 1, 1): "diverges"}),
    ("-a*((1+t)**p-1)/p", {(1, 1): "converges", (1, -1): "diverges", (-1, 1): "diverges", (1, HALF): "converges"}),
    ("weight: (t+1)**(-a) + (t+1)**(-b)", {(2, 2): "converges", (1, 2): "diverges", (3, 2): "converges"}),
    ("weight: a*exp(-b*t) + (1-a)*exp(-c*t)", {(1, 1, -1): "converges", (0, -1, 1): "converges"}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "truth"), TYPED, ids=[text for text, _ in TYPED])
def test_what_was_once_judged_wrong_is_right_or_undecided(text, truth):
    names = parse(text).parameters
    try:
        verdict = check(text)
    except FormulaError:  # refused: it has no value for any parameter
        assert set(truth.values()) == {"undefined"}
        return
    if verdict.condition is None:
        assert verdict.verdict == "undecided"
    else:
        known = {tuple(sorted(zip(names, map(Fraction, values), strict=True))): said for values, said in truth.items()}
        points = [dict(key) for key in known]
        assert wrong_points(verdict.condition, lambda p: known[tuple(sorted(p.items()))], points) == []
    for values, said in truth.items():  # and so are the concrete formulas
        try:
            concrete = check(text, parameters={n: str(v) for n, v in zip(names, values, strict=True)}, start=0)
        except FormulaError:
            assert said == "undefined", values
        else:
            assert concrete.verdict in (said, "undecided"), values


# ---------------------------------------------------------------------------------------------- concrete instances
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


@pytest.mark.parametrize("text", [*ENCODED, *(text for text, _ in TYPED)])
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
