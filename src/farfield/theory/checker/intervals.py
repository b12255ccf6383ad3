"""Intervals with exact ends, rounded outwards; an end may be infinite.

Arb's balls keep a radius of 30 bits, so that a ball around [1, 10**20] reaches below 0. Ends do not.
"""

from __future__ import annotations

from collections.abc import Callable

from flint import arb, fmpq

INFINITY = arb("inf")
_HUGE = arb((1, 40))  # the exponential of anything beyond is taken as 0 or infinite


class Interval:
    """All numbers from low to high."""

    __slots__ = ("high", "low")

    def __init__(self, low: arb, high: arb):
        self.low, self.high = low, high

    def __repr__(self) -> str:
        return f"[{self.low.str(6, radius=False)}, {self.high.str(6, radius=False)}]"

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
            return Interval(_inverted(self.high).lower(), _inverted(self.low).upper())
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
        return Interval(self.low.min(other.low), self.high.max(other.high))

    def meet(self, other: Interval) -> Interval:
        """What lies in both; each is known to hold the number."""
        return Interval(self.low.max(other.low), self.high.min(other.high))


def _product(x: arb, y: arb) -> arb:
    value = x * y
    return arb(0) if value.is_nan() else value  # 0 times infinity: the other factor is finite wherever it is taken


def _inverted(x: arb) -> arb:
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
    low, high = ends[0].lower(), ends[0].upper()
    for x in ends[1:]:
        low, high = low.min(x.lower()), high.max(x.upper())
    return Interval(low, high)


def exactly(q: fmpq | int) -> Interval:
    """An interval around a rational number."""
    return span(arb(q))


def monotone(function: Callable[[arb], arb], x: Interval, limits: tuple[int, int]) -> Interval:
    """The range of an increasing function with these limits at minus and plus infinity."""
    low = function(x.low).lower() if x.low.is_finite() else arb(limits[0])
    high = function(x.high).upper() if x.high.is_finite() else arb(limits[1])
    return Interval(low.max(arb(limits[0])), high.min(arb(limits[1])))


EVERYTHING = Interval(-INFINITY, INFINITY)
UNIT_WAVE = Interval(arb(-1), arb(1))
FROM_ZERO_TO_ONE = Interval(arb(0), arb(1))
