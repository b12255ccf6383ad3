"""Conditions of families against the truth, point by point, on borders and beside them: none is wrong.

Eight generated families here; 2,000 with -m long.
"""

import itertools
import os
import random
import re
import subprocess
import sys
from fractions import Fraction

import families
import pytest
from flint import ctx, fmpq

from farfield import check
from farfield.formula import FormulaError, parse
from farfield.zoo import ENCODINGS

NAMES = {True: "converges", False: "diverges", None: "undefined"}


def wrong_points(condition, truth, points):
    """Points at which a condition says something else than the truth."""
    out = []
    for point in points:
        answer, true = condition.at(point), truth(point)
        if answer not in (None, "undecided") and true is not None and answer != true:
            out.append((point, answer, true))
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
        except FormulaError as error:
            if "must lie between" in str(error) or "is beyond" in str(error):  # a limit of the language
                return None
            continue
        return None if said == "undecided" else said
    return "undefined"


# a parameter in a base, an exponent, a scale, inside a logarithm and in a condition
PLACES = [
    "-({})*t", "-({})*log(t+1)", "-({})*log(log(t+3))-log(t+1)", "-t**({})", "-log(1+({})*t)*{n}", "t*log({})",
    "-((t+1)**({})-1)", "weight: ({})**t", "weight: (t+1)**({})", "where(t < {n}*9, 0, -({})*t)", "-({})**2*sqrt(t)",
    "where({n} < {m}, -({})*t, -2*log(t+1))", "weight: ({})**t + (t+2)**(-{n})", "-log(t+1)*max({}, {n})",
    "-(abs(t-{m})/({}))**2", "-log(log(t+3)**({})+t)",
]  # fmt: skip
INNER = [
    "2**(-8*{n}/{m})-1/2", "1-2**(-5-{n})", "{n}**{m}", "{n}/{m}", "{n}-{m}", "2**{n}-{m}", "log({n})", "1/2**{n}",
    "{n}*{m}", "(1/3)**(-{n})-{m}", "exp({n})-{m}", "{n}**(-{m})", "1+{n}/{m}", "{n}**2-{m}", "-{n}",
    "({n}+1)/({m}+2)", "2*{n}-3*{m}", "sqrt({n})", "3**({n}-{m})", "{n}+1",
]  # fmt: skip
POINTS = [Fraction(n) for n in ("-3", "-1", "-1/2", "0", "1/8", "1/3", "1/2", "1", "2", "7", "16", "100")]


def placed(seed):
    """A family with a parameter at one of these places, and points of unequal ratios, zeros and both signs."""
    dice = random.Random(seed)
    inner = dice.choice(INNER)
    text = dice.choice(PLACES).replace("{}", inner).replace("{n}", "n").replace("{m}", "m")
    return text, [{name: dice.choice(POINTS) for name in parse(text).parameters} for _ in range(6)]


def assert_places_agree(seed):
    text, points = placed(seed)
    try:
        condition = check(text, start=3).condition
    except FormulaError:
        return
    if condition is not None:
        assert wrong_points(condition, lambda point: instance(text, point), points) == [], (text, condition)


@pytest.mark.parametrize("seed", range(12))
def test_a_parameter_at_any_place_is_judged_as_its_members(seed):
    assert_places_agree(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(12, 1000))
def test_a_parameter_at_any_place_is_judged_as_its_members_at_length(seed):
    assert_places_agree(seed)


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


def test_a_power_in_a_condition_says_that_its_base_is_positive():
    """Where a = 0 the first bias is 0; a**b has a value there, and its logarithm, by which it was judged, has none."""
    text = "max(-a**3*t**2, -abs(a*b)*log(t+1) - exp(a)*b*log(t+1) - abs(a)**b*log(t+1))"
    condition = check(text, start=3).condition
    assert condition.at({"a": 0, "b": 2}) == "diverges"
    assert condition.at({"a": 1, "b": 2}) == "converges"


CLAIMED = [
    "weight: a**t + b**t", "weight: a**t + (t+1)**(-b)", "max(-a*t, -b*log(t+1))", "min(-a*t, -b*log(t+1))",
    "-(t+1)**a + (t+1)**b", "-a*log(t+1) - b*log(log(t+3))", "weight: exp(-b*t) + exp(-a*t)",
]  # fmt: skip


def value(text, point, t=1):
    """An enclosure of a formula at one distance."""
    with ctx.workprec(256):
        return parse(text).ball(t, {n: fmpq(v.numerator, v.denominator) for n, v in point.items()})


def holds(relation, point):
    """Whether a relation holds at a point, as far as 256 bits tell."""
    left, sign, right = relation.partition(re.search("[<>!]?=|[<>]", relation)[0])
    gap = value(f"{left} - ({right})", point)
    if not gap.is_finite():
        return False
    side = 0 if gap.contains(0) else 1 if gap > 0 else -1
    return side in {">": (1,), ">=": (0, 1), "=": (0,), "!=": (-1, 1), "<=": (-1, 0), "<": (-1,)}[sign]


@pytest.mark.parametrize("text", CLAIMED)
def test_what_is_claimed_of_each_case_holds_at_large_distances(text):
    """Of every case a few points: each inequality, of the weight or of the part that it names, holds from `from` on."""
    formula, tried = parse(text), 0
    grid = [{"a": a, "b": b} for a in VALUES for b in VALUES]
    for case in [case for case in check(text, start=3).cases.json()["parts"] if "claim" in case]:
        for point in itertools.islice((p for p in grid if all(holds(one, p) for one in case["if"])), 3):
            for t in (10**5, 10**9, 10**30):
                weight = value(text, point, t).exp()
                for claim in case.get("parts", [case]):
                    if any(not value(one, point, t) <= 1 / 1024 for one in case.get("from", ())):
                        continue
                    claimed = value(claim["of"], point, t) if "of" in claim else weight
                    bound = value(claim["bound"], point, t) if "bound" in claim else 0
                    assert not (claimed < bound if claim["claim"] == "lower" else claimed > bound), (claim, point, t)
                    if case["verdict"] == "diverges" or formula.node.op == "min":
                        assert not (weight < claimed if case["verdict"] == "diverges" else weight > claimed), claim
                    tried += 1
    assert tried > 20
