"""False claims, each of which one line of the checker refuses: with that line gone it would be accepted."""

import json
from fractions import Fraction

import pytest
from false_certificates import proves
from flint import arb, ctx

from farfield.formula import parse
from farfield.theory.checker.claims import read
from farfield.theory.checker.examination import examine
from farfield.theory.errors import UnknownError
from farfield.theory.exact import constants
from farfield.theory.exact.constants import rational
from farfield.theory.exact.intervals import Interval, range_of


def claim(kind, ln_constant="0", exponent="2", start="3", depth=0, **more):
    return {"claim": kind, "ln_constant": ln_constant, "depth": depth, "exponent": exponent, "from": start, **more}


def lower(start="3", ln_constant="0", exponent="1"):
    return claim("lower", ln_constant, exponent, start)


def mean(factor, of, start="3"):
    return claim("mean", "0", "1", start, factor=factor, mean=of)


def part(certificate, index=0):
    return {"claim": "part", "index": index, "part": certificate}


FINITE = {"claim": "finite", "from": "3"}
HARMONIC = part(lower())
FALSE = [
    # the logic of certificates (examination.py)
    ("weight: 1/t + (1/t**2 - 1/t)", "diverges", HARMONIC),  # 1/t**2: a summand is negative
    ("weight: 1/t**2 + 1/t", "converges", {"claim": "sum", "parts": [claim("upper")]}),  # one of two summands
    ("weight: 1/t**2 + 1/t", "converges", {"claim": "sum", "parts": [claim("upper"), lower()]}),
    ("weight: 1/t**2 + 1/t**2", "diverges", part(claim("upper"))),
    ("weight: 1/t**2 + 1/t**2", "diverges", part(lower(), 5)),
    ("weight: (1/t)*(1/t)", "diverges", HARMONIC),  # a product, no sum
    ("-log(t) + -log(t)", "diverges", HARMONIC),  # a sum of biases is a product of weights
    ("-log(t)*(2+cos(pi*t))", "converges", {"claim": "classes", "modulus": 2, "classes": [claim("upper", "9"), None]}),
    # a whole domain (examination.py)
    ("t/(t+1)", "converges", FINITE),
    ("weight: 1/t", "diverges", mean("3*cos(t)**2", "1")),  # the factor exceeds 1
    ("where(sin(t) < 1/2, -2*log(t+1), 0)", "converges", claim("upper")),  # one case of two
    ("where(sin(t) < 1/2, 0, -2*log(t+1))", "converges", claim("upper")),
    ("weight: where(t < 9, 1/t, 0)", "diverges", lower("9")),  # 0 is not above 1/t
    ("weight: where(t < 9, 1/t, 0)", "diverges", mean("cos(t)**2", "1/2", "9")),
    ("weight: abs(cos(t))/t", "diverges", lower()),  # a wave touches 0
    ("weight: cos(t)**2/t", "diverges", mean("1/2", "1/2")),
    ("weight: (1+2*cos(t))**2/t**2", "converges", claim("upper", "2")),  # up to 9
    ("weight: sqrt(abs(1+2*cos(t)))/t**2", "converges", claim("upper", "0.5")),  # up to sqrt(3)
    ("weight: 1/t**2", "converges", claim("upper", "-0.0001")),
    ("weight: 1/t", "diverges", lower(ln_constant="0.0001")),
    ("weight: t**(-2) - t**(-3)", "converges", claim("upper", "-0.0001", start="exp(50)")),
    # one distance
    ("weight: where(t < 9, 0, 1/t)", "diverges", lower()),
    ("where(t < 9, -inf, -log(t))", "diverges", lower()),
    ("where(t < 9, -3*log(t), -inf)", "converges", FINITE),
    ("where(t < 5, sqrt(2)*sqrt(2) - 2 - 2*log(t) + 1e-100, -3*log(t))", "converges", claim("upper")),
    ("where(t < 5, 2 - sqrt(2)*sqrt(2) - log(t) - 1e-100, 0)", "diverges", lower()),
    ("weight: where(t < 5, sqrt(2)*sqrt(2) - 2 - 1e-100, 1/t**2)", "converges", claim("upper")),  # negative
    ("weight: where(t < 5, sqrt(2)*sqrt(2) - 2, 1/t)", "diverges", lower()),  # exactly 0
    ("weight: where(t < 5, sqrt(2)*sqrt(2) - 2 + 1e-100, 0)", "converges", FINITE),
    ("-t + where(t < 6, 100, 0)", "converges", claim("upper", "3")),
    # what has no value (evaluation.py, expansions.py)
    ("-2*log(0-t)", "converges", claim("upper")),
    ("weight: 1/t + 2**log(1-t)", "diverges", HARMONIC),
    ("weight: 1/t + sqrt(1-t)", "diverges", HARMONIC),
    ("weight: 1/t + (1-t)**(1/2)", "diverges", HARMONIC),
    ("weight: 1/t + exp(log(1-t))", "diverges", HARMONIC),
    ("weight: 1/t + abs(log(1-t))", "diverges", HARMONIC),
    ("weight: 1/t + (1/t**2 + -1)", "diverges", HARMONIC),
    ("-2*log(t+1) + log(log(log(t))) - log(log(log(t)))", "converges", claim("upper", start="2")),
    ("-2*log(t+1) + sin(t)**(1/2)/10**9", "converges", claim("upper")),
    ("-2*log(t+1) + sqrt(sin(t))/10**9", "converges", claim("upper")),
    ("-2*log(t+1) + 1/cos(t)", "converges", claim("upper", "1")),
    ("-2*log(t+1) + 1/(t-5)", "converges", claim("upper", "9")),
    ("-2*log(t+1) + (1+sin(t))**(-1/2)", "converges", claim("upper", "9")),
    # what is not what it looks like
    ("weight: where(sin(t) < 1/2, cos(t)**2, 1)/t", "diverges", lower(ln_constant="-0.001")),
    ("weight: t*log(t) - floor(t*log(t))", "converges", FINITE),
    ("weight: log(t) - floor(log(t))", "converges", FINITE),
    ("weight: exp(t) - floor(exp(t))", "converges", FINITE),
    ("weight: sqrt(t) - floor(sqrt(t))", "converges", FINITE),
    ("weight: t/2 - floor(t/2)", "converges", FINITE),
    ("weight: 3/t - floor(3/t)", "converges", {**FINITE, "from": "4"}),
    ("weight: 1 - cos(2*pi*log(t))", "converges", FINITE),
    ("weight: 1 - cos(pi*t)", "converges", FINITE),
    ("weight: 1 - cos(2*pi*t**2/3)", "converges", FINITE),
    ("weight: abs(max(-t, -t**2) + t**2)", "converges", FINITE),
    ("weight: max(0, sin(t))/t", "diverges", lower()),
    ("weight: min(1, t/9)/t", "diverges", lower()),
    # intervals.py: a hole in one summand
    ("weight: 1/t + abs(1/(t-5))", "diverges", HARMONIC),
    ("weight: 1/t + abs(1/(t-3))", "diverges", HARMONIC),
    ("weight: 1/t + abs(log(t-3))", "diverges", HARMONIC),
    ("weight: 1/t + t*sqrt(t-4)", "diverges", HARMONIC),
    ("weight: 1/t + t*(t-4)**(1/2)", "diverges", HARMONIC),
    ("weight: 1/t + (t-3)**(-0.5)", "diverges", HARMONIC),
    ("where(t < 9, 0, -inf)", "diverges", lower("9", exponent="0")),  # -inf is no number
    # mean values (waves.py)
    ("weight: (1+cos(pi*t))/t", "diverges", mean("1+cos(pi*t)", "2")),
    ("weight: (1+cos(t))/t", "diverges", mean("1+cos(t)", "1.5")),
    ("weight: cos(t)**2/t", "diverges", mean("cos(t)**2", "0.51")),
    ("weight: cos(2*pi*t/3)**2/t", "diverges", mean("cos(2*pi*t/3)**2", "1")),
    ("weight: (1-cos(2*pi*t))/t", "diverges", mean("1-cos(2*pi*t)", "1")),  # 0
    ("weight: (1+sin(2*pi*t))/t", "diverges", mean("1+sin(2*pi*t)", "2")),
]  # fmt: skip


@pytest.mark.hostile("false and malformed certificates")
@pytest.mark.parametrize(("text", "verdict", "certificate"), FALSE)
def test_a_false_claim_is_refused(text, verdict, certificate):
    result = examine(parse(text), verdict, certificate, start=2 if certificate.get("from") == "2" else 3)
    assert not result.accepted
    assert result.refused


TRUE = [  # the same with what was wrong put right
    ("weight: 1/t + (1/t - 1/t**2)", "diverges", HARMONIC),
    ("weight: 1/t**2 + 1/t**3", "converges", {"claim": "sum", "parts": [claim("upper"), claim("upper")]}),
    ("weight: 1/t**2 + 1/t", "diverges", part(lower(), 1)),
    ("weight: 3/t", "diverges", mean("3*cos(t)**2", "1.5")),
    ("where(sin(t) < 1/2, -2*log(t+1), -t)", "converges", claim("upper", "3")),
    ("weight: where(t < 9, 1/t, 0)", "converges", {**FINITE, "from": "9"}),
    ("weight: abs(cos(t))/t", "diverges", mean("cos(t)**2", "1/2")),
    ("weight: (1+2*cos(t))**2/t**2", "converges", claim("upper", "2.2")),
    ("where(t < 5, sqrt(2)*sqrt(2) - 2 - 2*log(t) - 1e-100, -3*log(t))", "converges", claim("upper")),
    ("weight: where(t < 5, sqrt(2)*sqrt(2) - 2 + 1e-100, 1/t**2)", "converges", claim("upper")),
    ("weight: where(t < 5, sqrt(2)*sqrt(2) - 2, 0)", "converges", FINITE),
    ("weight: 1/t + 2**log(t)", "diverges", HARMONIC),
    ("weight: 1/t + sqrt(t-1)", "diverges", HARMONIC),
    ("-2*log(t+1) + sqrt(1+sin(t))", "converges", claim("upper", "1.5")),
    ("-2*log(t+1) + 1/(2+cos(t))", "converges", claim("upper", "1.01")),
    ("weight: t**2 - floor(t**2)", "converges", FINITE),
    ("weight: 1 - cos(2*pi*t)", "converges", FINITE),
    ("weight: 1/t + abs(1/(t-2))", "diverges", HARMONIC),
    ("weight: 1/t + abs(log(t-2))", "diverges", HARMONIC),
    ("weight: 1/t + t*sqrt(t-3)", "diverges", HARMONIC),
    ("weight: (1+cos(2*pi*t))/t", "diverges", mean("1+cos(2*pi*t)", "2")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "verdict", "certificate"), TRUE)
def test_a_true_claim_of_the_same_form_is_proven(text, verdict, certificate):
    result = examine(parse(text), verdict, certificate, start=3)
    assert result.accepted, result.refused
    assert proves(certificate) == verdict


@pytest.mark.parametrize("certificate", [certificate for _, _, certificate in (*FALSE, *TRUE)])
def test_a_certificate_is_read_back_from_its_json(certificate):
    value = read(certificate)
    assert read(json.loads(json.dumps(value.json()))) == value


@pytest.mark.parametrize(
    "certificate",
    [
        {"claim": "sum", "parts": [claim("upper"), claim("upper", exponent="1")]},
        part(lower(exponent="2")),
        {"claim": "classes", "modulus": 2, "classes": [None, lower(exponent="2")]},
        {"claim": "classes", "modulus": 2, "classes": [claim("upper", exponent="1"), claim("upper")]},
    ],
)
def test_a_certificate_made_of_claims_that_prove_nothing_proves_nothing(certificate):
    assert proves(certificate) is None


@pytest.mark.parametrize(
    ("text", "low", "high", "least", "most"),
    [
        ("t**(1/2)", 0, 4, 0, 2), ("t**0", 0, 4, 1, 1), ("t**(-2)", 1, 4, "1/16", 1), ("sqrt(t)", 0, 9, 0, 3),
        ("t**2 - t", 0, 2, -2, 4), ("floor(t/2)", 3, 5, 1, 2), ("abs(t-3)", 1, 4, 0, 2), ("min(t, 3)", 1, 4, 1, 3),
        ("max(t, 3)", 1, 4, 3, 4), ("where(t < 3, 1, 2)", 1, 2, 1, 1), ("where(t < 3, 1, 2)", 3, 4, 2, 2),
        ("where(t < 3, 1, 2)", 1, 4, 1, 2), ("1/t", 1, 4, "1/4", 1), ("(t-3)**3", 1, 4, -8, 1),
    ],
)  # fmt: skip
def test_a_range_is_as_narrow_as_its_ends(text, low, high, least, most):
    result = range_of(parse(text), Interval(arb(low), arb(high)))
    with ctx.workprec(60):
        for end, truth in ((result.low, least), (result.high, most)):
            assert abs(end - constants.ball(number(truth))) < 1e-15


INTERVALS = [(-4, -1), (-4, 0), (-1, -1), ("-1/2", 2), (-2, 2), (0, 0), (0, 2), (1, 4), (2, 2)]


@pytest.mark.parametrize("x", INTERVALS)
@pytest.mark.parametrize("y", INTERVALS)
def test_an_interval_holds_its_numbers_and_no_more(x, y):
    (a, b), (c, d) = ([Fraction(end) for end in pair] for pair in (x, y))
    one, other = (Interval(*(constants.ball(rational(end)) for end in pair)) for pair in ((a, b), (c, d)))
    products = [p * q for p in (a, b) for q in (c, d)]
    cases = [(one + other, a + c, b + d), (one - other, a - d, b - c), (one * other, min(products), max(products)),
             (one.union(other), min(a, c), max(b, d)), (one.power(3), a**3, b**3), (-one, -b, -a),
             (one.power(2), 0 if a < 0 < b else min(a * a, b * b), max(a * a, b * b)), (one.power(0), 1, 1),
             (one.abs(), 0 if a < 0 < b else min(abs(a), abs(b)), max(abs(a), abs(b))),
             (one.up_to(other), a, max(b, d))]  # fmt: skip
    if a > 0 or b < 0:
        cases.append((one.inverse(), 1 / b, 1 / a))
    for result, low, high in cases:
        assert (result.low.mid(), result.high.mid()) == tuple(
            constants.ball(rational(end)).mid() for end in (low, high)
        )
    if a < 0 < b:
        assert not one.inverse().low.is_finite()
        assert not one.inverse().high.is_finite()
    assert one.contains_zero() == (a <= 0 <= b)
    assert (one.positive, one.negative) == (a > 0, b < 0)
    assert (one.not_negative, one.not_positive, one.is_zero) == (a >= 0, b <= 0, a == b == 0)


# ---------------------------------------------------------------------------------------------------- exact constants
def number(text):
    """A decimal as an exact constant."""
    return rational(Fraction(text))


def near(c, digits):
    """The decimal nearest to a constant."""
    with ctx.workprec(2000):
        return number(constants.ball(c).mid().str(digits, radius=False))


ROOT = {n: constants.power(rational(n), Fraction(1, 2)) for n in (2, 3, 5)}
ALGEBRAIC = {
    "a sum of roots": ROOT[2] + ROOT[3],
    "a root of a sum": constants.power(ROOT[2] + rational(1), Fraction(1, 3)),
    "an inverse": constants.inverse(ROOT[2] + ROOT[3]),
    "a power of an inverse": constants.power(constants.inverse(ROOT[2] + ROOT[3]), 3) + ROOT[5],
    "a turn": constants.cos(constants.pi() * number("1/7")),
    "an inverse of a turn": constants.inverse(constants.cos(constants.pi() * number("1/7"))),
    "a product": ROOT[2] * constants.inverse(constants.cos(constants.pi() * number("2/9")) + ROOT[3]),
}


@pytest.mark.parametrize("name", ALGEBRAIC)
@pytest.mark.parametrize("digits", [20, 78, 160, 290])
def test_a_small_number_is_not_zero(name, digits):
    """Of size 2**-66, 2**-259 and so on: the inverse of its inverse does not vanish either."""
    tiny = ALGEBRAIC[name] - near(ALGEBRAIC[name], digits)
    again = constants.inverse(constants.inverse(tiny))
    for c in (tiny, again, tiny * ROOT[5], again * ROOT[5], tiny * constants.log(rational(2))):
        assert not constants.vanishes(c)
    with ctx.workprec(4000):
        assert constants.sign(tiny) == (1 if constants.ball(tiny) > 0 else -1)
        assert constants.ball(again - tiny).contains(0)
        assert (constants.ball(again) / constants.ball(tiny) - 1).abs_upper() < arb("1e-100")


@pytest.mark.parametrize("name", ALGEBRAIC)
def test_zero_in_disguise_is_zero(name):
    c = ALGEBRAIC[name]
    inverse = constants.inverse(c)
    for zero in (constants.inverse(inverse) - c, c * inverse - 1, (c + 1) * (c - 1) - c * c + 1):
        assert constants.vanishes(zero)
        assert constants.sign(zero) == 0


@pytest.mark.parametrize(
    "refused",
    [
        lambda: constants.inverse(rational(0)),
        lambda: constants.inverse(ROOT[2] * ROOT[2] - 2),
        lambda: constants.power(rational(0), -1),
        lambda: constants.power(rational(-2), Fraction(1, 3)),
        lambda: constants.power(rational(1) - ROOT[2], Fraction(1, 2)),
        lambda: constants.log(rational(0)),
        lambda: constants.log(rational(-2)),
        lambda: constants.log(rational(1) - ROOT[2]),
        lambda: constants.log(ROOT[2] * ROOT[2] - 2),
        lambda: constants.rational_end(arb("inf")),
        lambda: constants.real_power(rational(-2), ROOT[2]),
    ],
)
def test_a_constant_without_a_value_is_refused(refused):
    with pytest.raises(UnknownError):
        refused()
