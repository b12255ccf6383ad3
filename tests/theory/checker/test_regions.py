"""Signs that follow from assumptions about parameters: none contradicts a point at which the assumptions hold."""

import contextlib
import random
from fractions import Fraction

import pytest
from flint import arb, ctx

from farfield.formula import Formula, FormulaError, parse, tree
from farfield.formula.tree import substitute
from farfield.theory.checker.families import Family
from farfield.theory.errors import EmptyRegionError, UnknownError
from farfield.theory.exact import constants
from farfield.theory.exact.constants import ONE, rational
from farfield.theory.exact.intervals import Interval
from farfield.theory.exact.regions import ANY, NEGATIVE, NOT_NEGATIVE, NOT_NULL, NOT_POSITIVE, NULL, POSITIVE
from farfield.theory.exact.spreads import Spread

SIGNS = {">": POSITIVE, ">=": NOT_NEGATIVE, "=": NULL, "!=": NOT_NULL, "<=": NOT_POSITIVE, "<": NEGATIVE}
LEAVES = ["a", "a", "b", "b", "1", "2", "1/2", "3", "(a-1)", "(a-b)", "(1-b)", "(a+b)"]
VALUES = [Fraction(n, 12) for n in (-36, -25, -24, -13, -12, -6, -1, 0, 1, 3, 6, 8, 11, 12, 13, 18, 24, 30, 36, 49)]


def expression(dice, depth):
    if depth == 0 or dice.random() < 0.15:
        return dice.choice(LEAVES)
    inner = lambda: expression(dice, depth - 1)  # noqa: E731
    return dice.choice([
        lambda: f"({inner()} + {inner()})", lambda: f"({inner()} - {inner()})", lambda: f"({inner()})*({inner()})",
        lambda: f"({inner()})*({inner()})", lambda: f"({inner()})/({inner()})", lambda: f"-({inner()})",
        lambda: f"({inner()})**{dice.choice(['2', '3', '(-1)', '(-2)'])}", lambda: f"exp({inner()})",
        lambda: f"log({inner()})", lambda: f"sqrt({inner()})", lambda: f"floor({inner()})",
        lambda: f"{dice.choice(['2', '3/2', '1/3'])}**({inner()})",
    ])()  # fmt: skip


def sign_at(text, point):
    """The sign of an expression at a point, by balls; None where it has no value or none is seen."""
    node = substitute(node_of(text), {name: tree.fraction(x) for name, x in point.items()})
    with ctx.workprec(300):
        value = Formula(node).ball(arb(0))
    if not value.is_finite():
        return None
    return 1 if value > 0 else -1 if value < 0 else 0 if value.is_zero() else None


def holds(relations, point):
    return all(sign_at(text, point) in signs for text, signs in relations)


def facts(dice):
    texts = [expression(dice, dice.choice([0, 1, 1, 2])) for _ in range(dice.choice([1, 2, 2, 3]))]
    texts = [text for text in texts if "a" in text or "b" in text]
    return [(text, SIGNS[dice.choice([">", ">", ">=", "=", "!=", "<=", "<"])]) for text in texts]


@pytest.mark.parametrize("seed", range(40))
def test_no_sign_contradicts_a_point(seed):
    """Assumptions and questions at random; a region that is called empty has no point either."""
    dice = random.Random(seed)
    points = [{"a": x, "b": y} for x in VALUES for y in VALUES]
    for _ in range(5):
        family = Family(parse("-a*t - b*t"))
        relations, questions = facts(dice), [expression(dice, 2) for _ in range(4)]
        here = [point for point in dice.sample(points, 60) if holds(relations, point)]
        with contextlib.ExitStack() as stack, ctx.workprec(128):
            try:
                for text, signs in relations:
                    stack.enter_context(family.region.assuming(family.value(node_of(text)), signs))
            except EmptyRegionError:
                assert here == [], (relations, here[:1])
                continue
            except (UnknownError, FormulaError, ValueError):
                continue
            for text in questions:
                try:
                    c = family.value(node_of(text))
                    signs = constants.signs(c)
                except (UnknownError, FormulaError):
                    continue
                for point in here:
                    assert sign_at(text, point) in {*signs, None}, (relations, text, point, signs)


def node_of(text):
    return parse(f"t + ({text})").node.args[1]


KNOWN = [  # what is assumed, an expression, and exactly the signs that follow
    ([], "a**2", NOT_NEGATIVE),
    ([], "a**2 + 1", POSITIVE),
    ([], "exp(a)", POSITIVE),
    ([], "-exp(a*b)", NEGATIVE),
    ([], "a - b", ANY),
    ([("a", "<")], "a**3", NEGATIVE),
    ([("a", "<")], "1/a", NEGATIVE),
    ([("a", "!=")], "a**2", POSITIVE),
    ([("a", ">"), ("b", "<")], "a*b", NEGATIVE),
    ([("a", ">"), ("b", "<")], "a - b", POSITIVE),
    ([("a", ">"), ("b", ">")], "a/b + b/a", POSITIVE),
    ([("a - 1", ">")], "log(a)", POSITIVE),
    ([("a - 1", "=")], "log(a)", NULL),
    ([("a", ">"), ("a - 1", "<")], "log(a)", NEGATIVE),
    ([("a - 1", ">")], "a**2 - a", POSITIVE),
    ([("a - b", ">"), ("b - 1", ">=")], "a - 1", POSITIVE),
    ([("a - b", ">="), ("b - a", ">=")], "a - b", NULL),
    ([("2*a + b - 3", ">"), ("b + 1", "<=")], "a - 2", POSITIVE),
    ([("a - 4", ">")], "sqrt(a) - 2", POSITIVE),
    ([("exp(a) - 2", ">")], "a - 1/2", POSITIVE),
    ([("a + 1", "<")], "2**a - 1/2", NEGATIVE),
    ([("a - 1", ">="), ("a - 2", "<")], "floor(a) - 1", NULL),
    ([("a", ">"), ("a - 1", "<")], "floor(a)", NULL),
    ([("a - 2", ">=")], "floor(a) - 1", POSITIVE),
    ([("a", "<")], "floor(a)", NEGATIVE),
    ([("a", ">"), ("b", ">")], "log(a) + log(b) - log(a*b)", NULL),
    ([("a", ">"), ("b", ">"), ("a*b - 1", ">")], "log(a) + log(b)", POSITIVE),
    ([("a**2 - 4", "<")], "a - 3", NEGATIVE),
]


@pytest.mark.parametrize(("assumed", "text", "signs"), KNOWN)
def test_a_sign_that_follows_is_found(assumed, text, signs):
    family = Family(parse("-a*t - b*t"))
    with contextlib.ExitStack() as stack, ctx.workprec(128):
        for one, relation in assumed:
            stack.enter_context(family.region.assuming(family.value(node_of(one)), SIGNS[relation]))
        c = family.value(node_of(text))
        assert constants.signs(c) == signs


@pytest.mark.parametrize(
    "assumed",
    [
        [("a", ">"), ("a", "<=")],
        [("a", ">"), ("b", ">"), ("a + b", "<")],
        [("a - b", ">"), ("b - 1", ">="), ("a - 1", "<=")],
        [("a**2 + 1", "<=")],
        [("exp(a)", "=")],
        [("a", ">"), ("b", "<"), ("a*b", ">=")],
        [("a - 1", "="), ("a**2 - a", "!=")],
    ],
)
def test_a_contradiction_is_seen(assumed):
    family = Family(parse("-a*t - b*t"))
    *first, (last, relation) = assumed
    with contextlib.ExitStack() as stack, ctx.workprec(128):
        for one, other in first:
            stack.enter_context(family.region.assuming(family.value(node_of(one)), SIGNS[other]))
        c = family.value(node_of(last))
        with pytest.raises(EmptyRegionError):
            stack.enter_context(family.region.assuming(c, SIGNS[relation]))


# ---------------------------------------------------------------------------------------------------- spreads
def test_a_spread_holds_every_number_between_its_ends():
    """With 0 < a < b: sums, products, inverses, powers, logarithms and unions of intervals with such ends."""
    family = Family(parse("-a*t - b*t"))
    a, b = family.parameters["a"], family.parameters["b"]
    point = {"a": Fraction(3, 2), "b": Fraction(7, 3)}

    def at(c):
        total = Fraction(0)
        for factors, q in c.terms.items():
            value = Fraction(int(q.p), int(q.q))
            for atom, e in factors:
                value *= point[atom.name] ** e
            total += value
        return total

    with contextlib.ExitStack() as stack:
        for c, signs in ((a, POSITIVE), (b - a, POSITIVE)):
            stack.enter_context(family.region.assuming(c, signs))
        one, other = Spread.between(a, b), Spread.between(-b, a)
        wide = Spread.of(Interval(arb(-1), arb(2)))
        cases = [
            (one + other, lambda x, y: x + y), (one - other, lambda x, y: x - y), (one * other, lambda x, y: x * y),
            (one * wide, None), (one.inverse(), lambda x, y: 1 / x), (one.power(3), lambda x, y: x**3),
            (other.power(2), lambda x, y: y**2), (other.abs(), lambda x, y: abs(y)), (-one, lambda x, y: -x),
        ]  # fmt: skip
        for result, function in cases:
            low, high = (at(end) for end in result.ends)
            for i in range(5):
                for j in range(5):
                    x = point["a"] + (point["b"] - point["a"]) * Fraction(i, 4)
                    y = -point["b"] + (point["a"] + point["b"]) * Fraction(j, 4)
                    values = [function(x, y)] if function else [x * z for z in (-1, 0, 2)]
                    assert all(low <= value <= high for value in values)
        assert (one.positive, one.negative, one.contains_zero()) == (True, False, False)
        assert (other.positive, other.negative, other.contains_zero()) == (False, False, True)
        assert (-one).negative
        assert at(one.union(other).ends[0]) == -point["b"]
        assert at(one.union(other).ends[1]) == point["b"]
        assert at(other.up_to(one).ends[1]) == point["b"]
        assert at(one.top.ends[0]) == point["b"]
        with pytest.raises(UnknownError):
            other.inverse()
        with pytest.raises(UnknownError):
            other.log()
        assert Spread.of(ONE).is_narrow
        assert Spread.of(rational(2)).ends == (rational(2), rational(2))
