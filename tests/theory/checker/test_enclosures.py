"""The checker's arithmetic holds what it says it holds: constants, intervals, expansions, against mpmath and balls."""

import random

import mpmath
import pytest
from flint import arb, ctx

from farfield.formula import Formula, FormulaError, parse
from farfield.theory.checker.evaluation import Evaluator
from farfield.theory.checker.expansions import Calculus, interval
from farfield.theory.checker.monomials import Domain, exponentials
from farfield.theory.errors import UnknownError
from farfield.theory.exact import constants
from farfield.theory.exact.constants import ball, sign
from farfield.theory.exact.intervals import INFINITY, Interval, range_of

HALF_LINE = [3, 5, 20, 1000, 10**6]


def random_text(dice, depth, leaves):
    """A formula over these leaves, drawn at random."""
    if depth == 0 or dice.random() < 0.15:
        return dice.choice(leaves)
    inner = lambda: random_text(dice, depth - 1, leaves)  # noqa: E731
    return dice.choice(
        [
            lambda: f"({inner()} + {inner()})",
            lambda: f"({inner()} - {inner()})",
            lambda: f"({inner()})*({inner()})",
            lambda: f"({inner()})/({inner()})",
            lambda: f"-({inner()})",
            lambda: (
                f"({inner()})**{dice.choice(['2', '3', '(-1)', '(-2)', '(1/2)', '(1/3)', '(-1/2)', '(3/2)', '(-1.3)'])}"
            ),
            lambda: f"({inner()})**({inner()})",
            lambda: f"exp({inner()})",
            lambda: f"log({inner()})",
            lambda: f"log({inner()})",
            lambda: f"sqrt({inner()})",
            lambda: f"sin({inner()})",
            lambda: f"cos({inner()})",
            lambda: f"abs({inner()})",
            lambda: f"floor({inner()})",
            lambda: f"min({inner()}, {inner()})",
            lambda: f"max({inner()}, {inner()})",
            lambda: f"where({inner()} {dice.choice(['<', '<=', '>', '>='])} {inner()}, {inner()}, {inner()})",
        ]
    )()


def parsed(text, **more):
    try:
        return parse(text, **more)
    except FormulaError:
        return None


def at(f, domain, place):
    """The range of an expansion at one place of its domain."""
    with ctx.workprec(400):
        here = exponentials(place, 0)
        total = None
        for m, c in f:
            term = interval(c) * domain._at(m, here)
            total = term if total is None else total + term
    return total


# ---------------------------------------------------------------------------------------------------- constants
CONSTANTS = [
    "1",
    "2",
    "3",
    "1/2",
    "0.75",
    "pi",
    "sqrt(2)",
    "log(2)",
    "exp(1)",
    "cos(1)",
    "sqrt(3)",
    "5",
    "2**(1/3)",
    "cos(pi/5)",
    "log(6)",
]


@pytest.mark.parametrize("seed", range(600))
def test_a_constant_has_the_sign_and_value_that_mpmath_finds(seed):
    dice = random.Random(seed)
    formula = parsed(random_text(dice, 4, CONSTANTS))
    if formula is None:
        return
    evaluator = Evaluator(Calculus(Domain.between(3, 3), 2, 8))
    try:
        with ctx.workprec(128):
            value = evaluator.value(formula.node)
    except UnknownError:
        return
    with ctx.workprec(300):
        true = formula.ball(arb(0))
    if not true.is_finite():  # a tie inside, which balls do not decide
        assert formula.float(0) == formula.float(0), f"the checker gives a value to {formula}"
        return
    if not value:
        assert abs(true) < 1e-60 or true.contains(0)
        return
    ((_, c),) = value
    with ctx.workprec(128):
        held = interval(c)
    assert held.low <= true.upper(), formula
    assert held.high >= true.lower(), formula
    if not hasattr(c, "low") and true != 0:
        assert sign(c) == (1 if true > 0 else -1)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("sqrt(5+2*sqrt(6))", "sqrt(2)+sqrt(3)"),
        ("1/(sqrt(2)-1)", "sqrt(2)+1"),
        ("sqrt((1-sqrt(2))**(-2))", "1+sqrt(2)"),
        ("(7+5*sqrt(2))**(1/3)", "1+sqrt(2)"),
        ("cos(pi/7)-cos(2*pi/7)+cos(3*pi/7)", "1/2"),
        ("sin(1)**2+cos(1)**2", "1"),
        ("log(2)/log(3)", "1/(log(3)/log(2))"),
        ("exp(1)*exp(-1)", "1"),
        ("2*cos(pi/5)", "(1+sqrt(5))/2"),
        ("sin(pi/12)", "(sqrt(6)-sqrt(2))/4"),
        ("(2**(1/3)-1)**(1/3)", "(1-2**(1/3)+4**(1/3))/9**(1/3)"),
        ("sqrt(2+sqrt(2+sqrt(2)))", "2*cos(pi/16)"),
        ("log(sqrt(8)*3)", "1.5*log(2)+log(3)"),
        ("exp(log(7)/2)", "sqrt(7)"),
    ],
)
def test_equal_constants_are_shown_to_be_equal(left, right):
    evaluator = Evaluator(Calculus(Domain.between(3, 3), 2, 8))
    assert evaluator.value(parse(f"{left} - ({right})").node) == ()


@pytest.mark.parametrize(
    ("text", "true"),
    [
        ("sqrt(5+2*sqrt(6)) - sqrt(2) - sqrt(3) - 1e-30", -1),
        ("exp(pi*sqrt(163)) - 640320**3 - 744", -1),  # Ramanujan: -7.5e-13
        ("cos(pi/7)-cos(2*pi/7)+cos(3*pi/7) - 1/2 + 1e-40", 1),
        ("sqrt(10**20+1) - 10**10 - 1/(2*10**10)", -1),
        ("22/7 - pi", 1),
        ("sin(22)", -1),
        ("sin(355) + 0.00003", -1),
    ],
)
def test_almost_equal_constants_are_told_apart(text, true):
    evaluator = Evaluator(Calculus(Domain.between(3, 3), 2, 8))
    ((_, c),) = evaluator.value(parse(text).node)
    assert sign(c) == true


def test_what_cannot_be_told_is_not_guessed():
    """Nobody knows a proof that exp(exp(1)) and a number built to agree with it to 500 digits differ."""
    with mpmath.workdps(420):
        close = str(mpmath.floor(mpmath.e**mpmath.e * 10**40) / mpmath.mpf(10) ** 40)[:42]
    evaluator = Evaluator(Calculus(Domain.between(3, 3), 2, 8))
    ((_, c),) = evaluator.value(parse(f"exp(exp(1)) - {close}").node)
    assert sign(c) in (1, -1)  # 40 digits are far within 1024 bits
    huge = constants.exp(constants.exp(constants.ONE))
    with ctx.workprec(5000):
        man, exponent = ball(huge).mid().man_exp()
    copy = constants.rational(int(man)) * constants.power(constants.rational(2), int(exponent))
    with pytest.raises(UnknownError):
        sign(huge - copy)


# ---------------------------------------------------------------------------------------------------- expansions
LEAVES = ["t", "t", "t", "t", "log(t)", "sqrt(t)", "1", "2", "1/2", "-1", "3", "pi", "0.3", "sqrt(2)", "exp(-t)"]


@pytest.mark.parametrize("seed", range(1500))
def test_an_expansion_holds_the_formula_at_every_distance(seed):
    """On random domains, at random distances: the value lies in the range, and in the expansion taken at that place."""
    dice = random.Random(seed)
    formula = parsed(random_text(dice, dice.choice([2, 3, 3, 4]), LEAVES))
    if formula is None:
        return
    low = dice.choice(HALF_LINE)
    high = None if dice.random() < 0.6 else low + dice.choice([0, 1, 10, low, 100 * low])
    with ctx.workprec(128):
        domain = Domain(exponentials(low, 0), None) if high is None else Domain.between(low, high)
        evaluator = Evaluator(Calculus(domain, dice.choice([2, 3, 5]), dice.choice([4, 8, 16])))
        try:
            f = evaluator.value_or_none(formula.node)
            whole = evaluator.calculus.range(f)
            side = evaluator.calculus.sign(f)
        except UnknownError:
            return
    for _ in range(12):
        t = dice.randint(low, high if high is not None else low * dice.choice([2, 10, 1000]))
        for bits in (300, 3000):
            with ctx.workprec(bits):
                true = formula.ball(arb(t))
            if true.is_finite() and (true.rad() < 1e-20 * abs(true) or true.rad() < 1e-40):
                break
        if not true.is_finite():
            assert not true.is_nan() or _overflows(formula, t), f"{formula} has no value at {t}, says the ball"
            continue
        assert whole.low <= true.upper(), (str(formula), t)
        assert whole.high >= true.lower(), (str(formula), t)
        if side is not None and true.rad() < 1e-40:
            assert side == (0 if true.is_zero() else 1 if true > 0 else -1) or true.rad() > 0, (str(formula), t)
        here = at(f, domain, t)
        if here is not None:
            with ctx.workprec(400):
                slack = abs(true) * 1e-25 + arb(1e-60)
                assert here.low <= true.upper() + slack, (str(formula), t)
                assert here.high >= true.lower() - slack, (str(formula), t)


def _overflows(formula, t):
    """Whether a part of the formula is beyond what a ball can hold, or so close to 0 that a ball cannot tell."""
    with ctx.workprec(3000):
        for node in formula.node.walk():
            part = Formula(node).ball(arb(t))
            if not part.is_nan() and (
                not part.is_finite() or not abs(part) < arb((1, 10**8)) or abs(part) < arb((1, -(10**6)))
            ):
                return True
            if not part.is_nan() and (part.rad() > 1e-3 or (part.contains(0) and part.rad() > 0)):
                return True
    return False


@pytest.mark.parametrize("seed", range(400))
def test_the_size_of_a_formula_holds_its_logarithm(seed):
    dice = random.Random(10**6 + seed)
    formula = parsed(random_text(dice, 3, LEAVES))
    if formula is None:
        return
    low = dice.choice(HALF_LINE)
    with ctx.workprec(128):
        domain = Domain(exponentials(low, 0), None)
        evaluator = Evaluator(Calculus(domain, 3, 8), by_logarithms=dice.random() < 0.5)
        try:
            size = evaluator.size(formula.node)
            whole = evaluator.calculus.range(size.log)
        except UnknownError:
            return
    for _ in range(8):
        t = low * dice.randint(1, 50)
        with ctx.workprec(2000):
            true = abs(formula.ball(arb(t)))
            if not (true.is_finite() and true > 0):
                continue
            true = true.log()
            for node, e in size.waves.items():
                wave = abs(Formula(node).ball(arb(t)))
                if not wave > 0:
                    break
                true = true - ball(e) * wave.log()
            else:
                assert whole.low <= true.upper(), (str(formula), t)
                assert whole.high >= true.lower(), (str(formula), t)


# ---------------------------------------------------------------------------------------------------- ranges
@pytest.mark.parametrize("batch", range(4))
def test_a_range_holds_the_formula_at_every_distance_of_its_domain(batch):
    dice = random.Random(batch)
    met = 0
    for _ in range(250):
        formula = parsed(random_text(dice, 3, ["t", "t", "1", "2", "1/3", "(t+1)", "pi"]))
        if formula is None or formula.parameters:
            continue
        low = dice.choice([0, 1, 2, 3, 10])
        high = dice.choice([low, low + 1, low + 7, None])
        try:
            with ctx.workprec(64):
                held = range_of(formula, Interval(arb(low), INFINITY if high is None else arb(high)))
        except UnknownError:
            continue
        for t in range(low, low + 60 if high is None else high + 1, 7):
            with ctx.workprec(256):
                value = formula.ball(arb(t))
            if value.is_finite():
                assert not value < held.low, (formula.text(), t)
                assert not value > held.high, (formula.text(), t)
                met += 1
    assert met > 100
