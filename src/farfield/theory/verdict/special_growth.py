"""atan, erf and gamma as t -> infinity: their limits, power series and asymptotic series, with bounds of every rest.

atan(x) = pi/2 - atan(1/x); 1 - erf(x) = exp(-x**2)/(x sqrt(pi)) (1 - 1/(2x**2) + 3/(2x**2)**2 - ...) and Stirling's
series of log(gamma(x)), both with a rest of at most the first term that is left out, for every x > 0 (Abramowitz and
Stegun 7.1.23, 6.1.42). The derivatives of erf are bounded by Cramer's inequality of Hermite polynomials (22.14.17).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

from flint import arb, fmpq

from farfield.formula import Node
from farfield.theory.errors import LargerStartError, UndecidedError, UndefinedError
from farfield.theory.exact import constants, signs
from farfield.theory.exact.constants import ONE, PI, ZERO, Const, rational
from farfield.theory.verdict.expansion import MINUS, Engine, Expansion
from farfield.theory.verdict.monomials import UNIT, Mono

if TYPE_CHECKING:
    from farfield.theory.verdict.reader import Reader

HALF = rational(Fraction(1, 2))
_ROOT_PI = constants.power(PI, Fraction(1, 2))
_CRAMER = arb("1.0865")


def _lead(s: Expansion) -> Mono:
    return s.terms[0][0] if s.terms else s.rest[0] if s.rest else UNIT


def _limit(e: Engine, s: Expansion) -> tuple[Const, Expansion] | None:
    """(c, d) with s = c + d and d -> 0; None if s oscillates without growing."""
    if s.rest is not None and e.compare(s.rest[0], UNIT) == 0:
        return None
    shift = next((c for m, c in s.terms if m == UNIT), ZERO)
    return shift, e.make([(m, c) for m, c in s.terms if m != UNIT], [s.rest])


Far = Callable[[Engine, Expansion], Expansion]
Near = Callable[[Engine, Const, Expansion], Expansion]


def _odd(e: Engine, s: Expansion, name: str, most: Const, rest: Far, near: Near) -> Expansion:
    """An odd function that rises from -most to most: of what grows, what oscillates, and what has a limit.

    Args:
        e: the engine.
        s: the argument.
        name: of the function in the language.
        most: its limit at infinity.
        rest: most - f(s), of an s that grows.
        near: f(c + d), of a constant c and a d that tends to 0.
    """
    s = e.led(s)
    if e.compare(_lead(s), UNIT) > 0:
        try:
            side = e.sign(s)
        except UndecidedError:
            return Expansion((), (UNIT, e.scaled(e.interval(-1, 1), most)))
        size = s if side > 0 else e.negative(s)
        return e.add(e.constant(most * side), e.scale(rest(e, size), rational(-side)))
    limit = _limit(e, s)
    if limit is None:
        assert s.rest is not None
        return Expansion((), (UNIT, e.mapped(s.rest[1], name)))
    return near(e, *limit)


# ------------------------------------------------------------------------------------------------ atan
def arctangent(e: Engine, s: Expansion) -> Expansion:
    """atan(s)."""
    return _odd(e, s, "atan", PI * HALF, lambda e, s: _small_arctangent(e, e.power(s, MINUS)), _arctangent_near)


def _arctangent_near(e: Engine, c: Const, d: Expansion) -> Expansion:
    if not c.terms:
        return _small_arctangent(e, d)
    below = e.add(e.constant(ONE + c * c), e.scale(d, c))  # atan(c + d) - atan(c) = atan(d/(1 + c (c + d)))
    if e.sign(below) <= 0:
        raise UndecidedError("atan of something far from its limit")
    small = _small_arctangent(e, e.multiply(d, e.power(below, MINUS)))
    return e.add(e.constant(constants.function("atan", c)), small)


def _small_arctangent(e: Engine, d: Expansion) -> Expansion:
    """atan of what tends to 0; the n-th derivative of atan is at most (n - 1)! in size."""

    def coefficient(k: int) -> Const:
        return rational(Fraction((-1) ** (k // 2), k)) if k % 2 else ZERO

    return e.series(d, coefficient, lambda order, _: 1 / arb(order + 1))


# ------------------------------------------------------------------------------------------------ erf
def error_function(e: Engine, s: Expansion) -> Expansion:
    """erf(s)."""
    return _odd(e, s, "erf", ONE, _complement, _error_function_near)


def _error_function_near(e: Engine, c: Const, d: Expansion) -> Expansion:
    factor = constants.exp(-(c * c)) * 2 / _ROOT_PI

    def coefficient(k: int) -> Const:
        if not k:
            return constants.function("erf", c)
        return factor * _hermite(k - 1, c) * Fraction((-1) ** (k - 1), math.factorial(k))

    def bound(order: int, _: arb) -> arb:
        return 2 * _CRAMER * (arb(2) ** order * math.factorial(order)).sqrt() / math.factorial(order + 1)

    return e.series(d, coefficient, bound)


def _hermite(n: int, c: Const) -> Const:
    before, now = ZERO, ONE
    for i in range(n):
        before, now = now, c * now * 2 - before * (2 * i)
    return now


def _complement(e: Engine, s: Expansion) -> Expansion:
    """1 - erf(s) of what grows."""
    if s.rest is not None and e.compare(s.rest[0], UNIT) >= 0:  # the exponential is not followed: at most 1/s**2
        return e.multiply(e.bounded(0, 1), e.power(s, rational(-2)))
    square = e.multiply(s, s)
    series = e.series(
        e.power(e.scale(square, rational(2)), MINUS),
        lambda k: rational((-1) ** k * _odd_factorial(k)),
        lambda order, _: arb(_odd_factorial(order + 1)),
    )
    factor = e.multiply(e.exp(e.negative(square)), e.power(s, MINUS))
    return e.scale(e.multiply(factor, series), ONE / _ROOT_PI)


def _odd_factorial(k: int) -> int:
    """1 * 3 * ... * (2k - 1)."""
    return math.prod(range(1, 2 * k, 2))


# ------------------------------------------------------------------------------------------------ gamma
def gamma(reader: Reader, node: Node) -> Expansion:
    """gamma(s) of a positive s."""
    e, s = reader.engine, _positive(reader, node)
    if e.compare(_lead(s), UNIT) > 0:
        return e.exp(_stirling(reader, node, s))
    limit = _limit(e, s)
    if limit is None:
        assert s.rest is not None
        return Expansion((), (UNIT, e.mapped(s.rest[1], "gamma")))
    c, d = limit
    if not c.terms:  # gamma(s) = gamma(1 + s)/s
        return e.multiply(_gamma_near(e, ONE, d), e.power(s, MINUS))
    return _gamma_near(e, c, d)


def log_gamma(reader: Reader, node: Node) -> Expansion:
    """log(gamma(s)) of a positive s."""
    e, s = reader.engine, _positive(reader, node)
    if e.compare(_lead(s), UNIT) > 0:
        return _stirling(reader, node, s)
    limit = _limit(e, s)
    if limit is not None and not limit[0].terms:
        return e.add(e.log(_gamma_near(e, ONE, limit[1])), e.negative(reader.log(node.args[0])))
    return e.log(gamma(reader, node))


def _positive(reader: Reader, node: Node) -> Expansion:
    if reader.sign(node.args[0]) <= 0:
        raise UndefinedError("gamma of something that is not positive for large t")
    return reader.engine.led(reader.expand(node.args[0]))


def _gamma_near(e: Engine, c: Const, d: Expansion) -> Expansion:
    """gamma(c + d) for c > 0 and d -> 0, with one term."""
    value = e.constant(constants.function("gamma", c))
    if not d.terms and d.rest is None:
        return value

    def steepest(size: arb) -> arb:
        """The largest |gamma'| within size of c: gamma is convex and its logarithmic derivative rises."""
        ends = [signs.ball(c) - size, signs.ball(c) + size]
        if not ends[0] > 0:
            raise LargerStartError("the argument of gamma is not near its limit yet")
        largest = ends[0].gamma().max(ends[1].gamma())
        return largest * abs(ends[0].digamma()).max(abs(ends[1].digamma()))

    return e.add(value, e.series_rest(d, 0, steepest))


def _stirling(reader: Reader, node: Node, s: Expansion) -> Expansion:
    """(s - 1/2) log(s) - s + log(2 pi)/2 + 1/(12 s) - 1/(360 s**3) + ..."""
    e = reader.engine

    def coefficient(k: int) -> Const:
        return rational(_bernoulli_term(k)) if k % 2 else ZERO

    def bound(order: int, size: arb) -> arb:
        p = order + 1 if order % 2 == 0 else order + 2  # the first power that is left out
        value = abs(_bernoulli_term(p))
        return signs.ball(value) * (size if p > order + 1 else 1)

    main = e.multiply(e.add(s, e.constant(-HALF)), reader.log(node.args[0]))
    shift = e.constant(constants.log(PI * 2) * HALF)
    return e.add(main, e.negative(s), shift, e.series(e.power(s, MINUS), coefficient, bound))


def _bernoulli_term(k: int) -> Fraction:
    """The coefficient of s**-k in Stirling's series, for odd k."""
    b = fmpq.bernoulli(k + 1)
    return Fraction(int(b.p), int(b.q)) / (k * (k + 1))
