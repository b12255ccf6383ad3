"""Intervals with exact ends, rounded outwards, of which one may be infinite, and the range of a formula over them.

Arb's balls keep a radius of 30 bits, so that a ball around [1, 10**20] reaches below 0. Ends do not. The range of a
formula is rough, but cheap and robust: it shows that a formula has a value, or that it lies on one side of a bound by
far, where expansions are needlessly fine (roots of roots) or numbers too large to write down (towers of exponentials).
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from flint import arb, fmpq

from farfield.formula import Formula, Node
from farfield.formula.algebras import ARITHMETIC, COMPARE, OPPOSITE, Algebra, evaluate
from farfield.formula.functions import rule_table
from farfield.theory.errors import UnknownError
from farfield.theory.exact.constants import Constant, rational_end

INFINITY = arb("inf")
MAX_POWER = 64  # of a number that may be negative
_NARROW = arb((1, -20))
_HUGE = arb((1, 40))  # the exponential of anything beyond is taken as 0 or infinite


class Interval:
    """All numbers from low to high."""

    __slots__ = ("high", "low")

    def __init__(self, low: arb, high: arb):
        self.low, self.high = low, high

    @classmethod
    def of(cls, x: Interval) -> Interval:
        """The interval as one of this kind."""
        return x

    def __repr__(self) -> str:
        return f"[{self.low.str(6, radius=False)}, {self.high.str(6, radius=False)}]"

    @property
    def positive(self) -> bool:
        return bool(self.low > 0)

    @property
    def negative(self) -> bool:
        return bool(self.high < 0)

    @property
    def not_negative(self) -> bool:
        return bool(self.low >= 0)

    @property
    def not_positive(self) -> bool:
        return bool(self.high <= 0)

    @property
    def is_zero(self) -> bool:
        return bool(self.low.is_zero() and self.high.is_zero())

    @property
    def ends(self) -> tuple[Constant, Constant]:
        """The ends as exact numbers."""
        return rational_end(self.low), rational_end(self.high)

    @property
    def top(self) -> Interval:
        """Its high end."""
        return Interval(self.high, self.high)

    @property
    def is_narrow(self) -> bool:
        """Whether it says more than its size."""
        return bool(self.high - self.low < abs(self.high) * _NARROW)

    def __add__(self, other: Interval) -> Interval:
        return Interval((self.low + other.low).lower(), (self.high + other.high).upper())

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def __sub__(self, other: Interval) -> Interval:
        return self + -other

    def __mul__(self, other: Interval) -> Interval:
        ends = [_product(x, y) for x in (self.low, self.high) for y in (other.low, other.high)]
        return span(*ends)

    def contains_zero(self) -> bool:
        return not (self.low > 0 or self.high < 0)

    def inverse(self) -> Interval:
        """1/x; everything where it contains 0 inside."""
        if self.low >= 0:
            return Interval(_reciprocal(self.high).lower(), _reciprocal(self.low).upper())
        if self.high <= 0:
            return -((-self).inverse())
        return EVERYTHING

    def exp(self) -> Interval:
        return Interval(_exp(self.low)[0], _exp(self.high)[1])

    def log(self) -> Interval:
        """The logarithm of what is not negative; log 0 is minus infinity."""
        assert self.low >= 0
        low = self.low.log().lower() if self.low > 0 else -INFINITY
        return Interval(low, self.high.log().upper() if self.high.is_finite() else INFINITY)

    def power(self, n: int) -> Interval:
        """x ** n for n >= 0."""
        if n == 1:
            return self
        ends = [_whole_power(self.low, n), _whole_power(self.high, n)]
        if n % 2 == 0 and n and self.low < 0 < self.high:
            ends.append(arb(0))
        return span(*ends)

    def wave(self, name: str) -> Interval:
        """sin or cos."""
        if self.low.is_finite() and self.high.is_finite() and self.high - self.low < 3:
            value = getattr(self.low.union(self.high), name)()
            return Interval(value.lower().max(arb(-1)), value.upper().min(arb(1)))
        return UNIT_WAVE

    def abs(self) -> Interval:
        if self.low >= 0:
            return self
        return -self if self.high <= 0 else Interval(arb(0), self.high.max(-self.low))

    def union(self, other: Interval) -> Interval:
        if type(other) is not Interval:
            return other.union(self)
        return Interval(self.low.min(other.low), self.high.max(other.high))

    def up_to(self, other: Interval) -> Interval:
        """From its own low end to the higher of the two high ends."""
        if type(other) is not Interval:
            return type(other).of(self).up_to(other)
        return Interval(self.low, self.high.max(other.high))

    @property
    def leans_up(self) -> bool:
        """Whether more of it is positive than negative."""
        return bool(self.low + self.high >= 0)

    def meet(self, other: Interval) -> Interval:
        """What lies in both; each is known to hold the number."""
        if type(other) is not Interval:
            return self
        return Interval(self.low.max(other.low), self.high.min(other.high))


def _product(x: arb, y: arb) -> arb:
    value = x * y
    return arb(0) if value.is_nan() else value  # 0 times infinity: the other factor is finite wherever it is taken


def _reciprocal(x: arb) -> arb:
    return INFINITY if x.is_zero() else 1 / x


def _whole_power(x: arb, n: int) -> arb:
    return x**n if x.is_finite() else INFINITY if x > 0 or n % 2 == 0 else -INFINITY


def _exp(x: arb) -> tuple[arb, arb]:
    """exp from below and from above."""
    if x > _HUGE:
        return _HUGE.exp().lower(), INFINITY
    if x < -_HUGE:
        return arb(0), (-_HUGE).exp().upper()
    value = x.exp()
    return value.lower().max(arb(0)), value.upper()


def span(*ends: arb) -> Interval:
    """The least interval that holds all these."""
    low = high = ends[0]
    for x in ends[1:]:
        low, high = low.min(x), high.max(x)
    return Interval(low.lower(), high.upper())


def exactly(q: fmpq | int) -> Interval:
    """An interval around a rational number."""
    return span(arb(q))


EVERYTHING = Interval(-INFINITY, INFINITY)
UNIT_WAVE = Interval(arb(-1), arb(1))
FROM_ZERO_TO_ONE = Interval(arb(0), arb(1))
SMALL = arb(fmpq(1, 1024))  # what falls is at most that, at all large distances (checker/families.py)
NEAR_ZERO, NEAR_ONE = Interval(-SMALL, SMALL), Interval(1 - SMALL, 1 + SMALL)


# ---------------------------------------------------------------------------------------------------- formulas
def range_of(formula: Formula, t: Interval) -> Interval:
    """A range of the formula's value over t; UnknownError unless it is shown to have one at every distance."""
    value = evaluate(formula.node, {"t": t}, RANGES)
    if value.low.is_nan() or value.high.is_nan():
        raise UnknownError("a range that is not known")
    return value


def _inverse(x: Interval) -> Interval:
    if x.contains_zero():
        raise UnknownError("a division by something that may be 0")
    return x.inverse()


def _log(x: Interval) -> Interval:
    if not x.low > 0:
        raise UnknownError("a logarithm of something that may not be positive")
    return x.log()


def _sqrt(x: Interval) -> Interval:
    if not x.low >= 0:
        raise UnknownError("a root of something that may be negative")
    return Interval(x.low.sqrt().lower(), x.high.sqrt().upper() if x.high.is_finite() else x.high)


def _power(x: Interval, e: Interval) -> Interval:
    n = RANGES.integer(e)
    if n is not None and abs(n) <= MAX_POWER:
        return x.power(n) if n >= 0 else _inverse(x.power(-n))
    if x.low > 0 or (x.low >= 0 and e.low > 0):
        return (e * x.log()).exp()
    raise UnknownError("a real power of something that may not be positive")


def _floor(x: Interval) -> Interval:
    low, high = (end.floor() if end.is_finite() else end for end in (x.low, x.high))
    return span(low, high) if low.is_finite() and high.is_finite() else Interval(low, high)


class _Ranges(Algebra[Interval]):
    operations = rule_table("ranges", {
        **ARITHMETIC, "/": lambda x, y: x * _inverse(y), "**": _power, "exp": lambda x: x.exp(), "log": _log,
        "sqrt": _sqrt, "sin": lambda x: x.wave("sin"), "cos": lambda x: x.wave("cos"), "abs": lambda x: x.abs(),
        "floor": _floor,
        "min": lambda x, y: Interval(x.low.min(y.low), x.high.min(y.high)),
        "max": lambda x, y: Interval(x.low.max(y.low), x.high.max(y.high)),
    })  # fmt: skip

    def number(self, value: Fraction) -> Interval:
        return exactly(fmpq(value.numerator, value.denominator))

    def constant(self, name: str) -> Interval:
        if name != "pi":
            raise UnknownError("-inf inside a formula")
        return span(arb.pi())

    def integer(self, value: Interval) -> int | None:
        whole = value.low.unique_fmpz() if value.low == value.high and abs(value.low) < 10**6 else None
        return None if whole is None else int(whole)

    def where(self, node: Node, names: Mapping[str, Interval]) -> Interval:
        left, right = (evaluate(a, names, self) for a in node.args[:2])
        if _surely(str(node.value), left, right):
            return evaluate(node.args[2], names, self)
        if _surely(OPPOSITE[str(node.value)], left, right):
            return evaluate(node.args[3], names, self)
        return evaluate(node.args[2], names, self).union(evaluate(node.args[3], names, self))


def _surely(relation: str, x: Interval, y: Interval) -> bool:
    """Whether every pair of numbers from the two ranges is so related."""
    compare = COMPARE[relation]
    return bool(compare(x.high, y.low) if relation in ("<", "<=") else compare(x.low, y.high))


RANGES = _Ranges()
