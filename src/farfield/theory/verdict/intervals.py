"""A formula over a whole range of distances: intervals given by their ends, and a guard at every risky operation.

Arb balls have a radius of 30 bits, so a ball around [64, 10**20] reaches below zero; ends that are rounded outwards
do not. Used to show that a formula is defined on a range.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from flint import arb

from farfield.formula import Node
from farfield.formula.algebras import Algebra, Names, evaluate, to_ball
from farfield.formula.functions import reading
from farfield.theory.errors import FaultError

INFINITY = arb("inf")


class Range(NamedTuple):
    """All numbers from low to high."""

    low: arb
    high: arb

    def __add__(self, other: Any) -> Range:
        return outward([self.low + other.low], [self.high + other.high])

    def __sub__(self, other: Any) -> Range:
        return outward([self.low - other.high], [self.high - other.low])

    def __neg__(self) -> Range:
        return Range(-self.high, -self.low)

    def __mul__(self, other: Any) -> Range:
        ends = [_product(x, y) for x in self for y in other]
        return outward(ends, ends)


def _product(x: arb, y: arb) -> arb:
    """x * y for ends; 0 times an infinite end is 0, because every number of a range is finite."""
    return arb(0) if x.is_zero() or y.is_zero() else x * y


def outward(lows: list[arb], highs: list[arb]) -> Range:
    """The least range that contains all these ends, rounded outwards; nan stands for anything."""
    if any(x.is_nan() for x in (*lows, *highs)):
        return Range(-INFINITY, INFINITY)
    low, high = lows[0].lower(), highs[0].upper()
    for x in lows[1:]:
        low = low.min(x.lower())
    for x in highs[1:]:
        high = high.max(x.upper())
    return Range(low, high)


def _inverse(x: Range) -> Range:
    if x.low <= 0 and x.high >= 0:
        raise FaultError("a division by zero", bool(x.low.is_zero() and x.high.is_zero()))
    return outward([1 / x.high], [1 / x.low])


def _exp(x: Range) -> Range:
    low, high = x.low.exp(), x.high.exp()
    return outward(
        [low if low.is_finite() and low >= 0 else arb(0)],
        [high if high.is_finite() else arb(0) if x.high == -INFINITY else INFINITY],
    )


def _log(x: Range) -> Range:
    if not x.low > 0:
        raise FaultError("log of a number that is not positive", bool(x.high <= 0))
    return outward([x.low.log()], [x.high.log() if x.high.is_finite() else INFINITY])


def _sqrt(x: Range) -> Range:
    if not x.low >= 0:
        raise FaultError("sqrt of a negative number", bool(x.high < 0))
    return outward([x.low.sqrt()], [x.high.sqrt() if x.high.is_finite() else INFINITY])


def _power(x: Range, y: Range) -> Range:
    whole = y.low.unique_fmpz() if y.low == y.high else None
    if whole is not None:
        if whole < 0:
            return _inverse(_power(x, -y))
        ends = [x.low**whole, x.high**whole]
        if whole % 2 == 0 and x.low < 0 < x.high:
            ends.append(arb(0))
        return outward(ends, ends)
    if x.low > 0:
        return _exp(y * _log(x))
    if x.low.is_zero() and y.low > 0:
        top = _exp(y * _log(Range(x.high, x.high))) if x.high > 0 else Range(arb(0), arb(0))
        return Range(arb(0), top.high)
    raise FaultError("a real power of a number that is not positive", bool(x.high < 0))


def _wave(name: str) -> Callable[[Range], Range]:
    def wave(x: Range) -> Range:
        if x.low.is_finite() and x.high.is_finite() and x.high - x.low < 3:
            value = getattr(x.low.union(x.high), name)()
            return Range(value.lower().max(arb(-1)), value.upper().min(arb(1)))
        return Range(arb(-1), arb(1))

    return wave


def _abs(x: Range) -> Range:
    if x.low >= 0:
        return x
    return -x if x.high <= 0 else Range(arb(0), x.high.max(-x.low))


def _rising(name: str) -> Callable[[Range], Range]:
    """atan or erf, which rise from -limit to limit."""

    def rising(x: Range) -> Range:
        limit = arb.pi() / 2 if name == "atan" else arb(1)
        low, high = (getattr(end, name)() if end.is_finite() else limit if end > 0 else -limit for end in x)
        return outward([low], [high])

    return rising


def gamma(x: Range) -> Range:
    """gamma, which is convex and nowhere below 0.88; of what is far out only that it is large."""
    if not x.low > 0:
        raise FaultError("gamma of a number that is not positive", bool(x.high <= 0))
    least = x.low.min(arb(1000)).gamma() if x.low > 1.5 else x.high.gamma() if x.high < 1.4 else arb("0.88")
    most = x.low.gamma().max(x.high.gamma()) if x.high < 10**6 else INFINITY
    return outward([least], [most])


class Ranges(Algebra):
    """The meaning of a formula's parts for ranges."""

    operations = reading("ranges", {
        "+": Range.__add__, "-": Range.__sub__, "*": Range.__mul__, "/": lambda x, y: x * _inverse(y),
        "neg": Range.__neg__, "**": _power, "exp": _exp, "log": _log, "sqrt": _sqrt, "sin": _wave("sin"),
        "cos": _wave("cos"), "abs": _abs, "floor": lambda x: outward([x.low.floor()], [x.high.floor()]),
        "atan": _rising("atan"), "erf": _rising("erf"), "gamma": gamma,
        "min": lambda x, y: Range(x.low.min(y.low), x.high.min(y.high)),
        "max": lambda x, y: Range(x.low.max(y.low), x.high.max(y.high)),
    })  # fmt: skip

    def number(self, value: Fraction) -> Range:
        ball = to_ball(value)
        return Range(ball.lower(), ball.upper())

    def constant(self, name: str) -> Range:
        value = arb.pi() if name == "pi" else -INFINITY
        return Range(value.lower(), value.upper())

    def integer(self, value: Range) -> int | None:
        whole = value.low.unique_fmpz() if value.low == value.high else None
        return None if whole is None else int(whole)

    def where(self, node: Node, names: Names) -> Range:
        left, right = (evaluate(n, names, self) for n in node.args[:2])
        less = str(node.value) in ("<", "<=")
        a, b = (left, right) if less else (right, left)
        strict = "=" not in str(node.value)
        yes = a.high < b.low or (not strict and a.high <= b.low)
        no = a.low > b.high or (strict and a.low >= b.high)
        if yes or no:
            return evaluate(node.args[2 if yes else 3], names, self)
        one, two = (evaluate(n, names, self) for n in node.args[2:])
        return Range(one.low.min(two.low), one.high.max(two.high))


RANGES = Ranges()
