"""Intervals whose ends depend on open parameters."""

from __future__ import annotations

from collections.abc import Iterable

from flint import arb

from farfield.theory.errors import UnknownError
from farfield.theory.exact import constants
from farfield.theory.exact.constants import MINUS, ONE, ZERO, Constant, rational_end
from farfield.theory.exact.intervals import FROM_ZERO_TO_ONE, UNIT_WAVE, Interval, exactly
from farfield.theory.exact.regions import ANY, NEGATIVE, NULL, POSITIVE, Signs, sign_product, sign_sum

_ONCE = exactly(1)
MAX_TERMS = 24  # of all constants of one spread


class Spread(Interval):
    """All sums of C_1 x_1 + C_2 x_2 + ..., with exact constants C and numbers x in an interval each."""

    __slots__ = ("parts",)

    @property
    def low(self) -> arb:  # type: ignore[override]
        raise UnknownError("a bound that depends on the parameters")

    high = low

    def __init__(self, parts: Iterable[tuple[Constant, Interval]]):
        total: dict[Constant, Interval] = {}
        for c, x in parts:
            total[c] = total[c] + x if c in total else x
        self.parts = tuple(total.items())
        if len(self.parts) > 1 and sum(len(c.terms) for c in total) > MAX_TERMS:
            raise UnknownError("bounds that grow too long")

    @classmethod
    def of(cls, x: Constant | Interval) -> Spread:
        """A constant or an interval as a spread."""
        if isinstance(x, Spread):
            return x
        return cls(((x, _ONCE),)) if isinstance(x, Constant) else cls(((ONE, x),))

    @classmethod
    def between(cls, low: Constant, high: Constant) -> Spread:
        """Everything from low to high."""
        return cls(((low, _ONCE), (high - low, FROM_ZERO_TO_ONE)))

    # ------------------------------------------------------------------------------------------------ signs and ends
    @property
    def signs(self) -> Signs:
        """All signs that its numbers may have."""
        result = NULL
        for c, x in self.parts:
            result = sign_sum(result, sign_product(constants.signs(c), _signs_of(x)))
        if len(result) > 1 and len(self.parts) > 1:
            try:
                low, high = self.ends
            except UnknownError:
                return result
            if constants.signs(low) <= POSITIVE | NULL:
                result &= constants.signs(low) | POSITIVE
            if constants.signs(high) <= NEGATIVE | NULL:
                result &= constants.signs(high) | NEGATIVE
        return result

    @property
    def positive(self) -> bool:
        return self.signs == POSITIVE

    @property
    def negative(self) -> bool:
        return self.signs == NEGATIVE

    @property
    def not_negative(self) -> bool:
        return -1 not in self.signs

    @property
    def not_positive(self) -> bool:
        return 1 not in self.signs

    @property
    def is_zero(self) -> bool:
        return all(x.is_zero or constants.is_zero(c) for c, x in self.parts)

    def contains_zero(self) -> bool:
        return 0 in self.signs

    @property
    def ends(self) -> tuple[Constant, Constant]:
        """The least and the largest of its numbers."""
        low, high = ZERO, ZERO
        for c, x in self.parts:
            first, last = rational_end(x.low), rational_end(x.high)
            if first != last and constants.sign(c) < 0:
                first, last = last, first
            low, high = low + c * first, high + c * last
        return low, high

    @property
    def is_narrow(self) -> bool:
        return len(self.parts) == 1 and self.parts[0][1].is_narrow

    # ------------------------------------------------------------------------------------------------ arithmetic
    def __add__(self, other: Interval) -> Spread:
        return Spread((*self.parts, *Spread.of(other).parts))

    __radd__ = __add__

    def __neg__(self) -> Spread:
        return Spread((c, -x) for c, x in self.parts)

    def __sub__(self, other: Interval) -> Spread:
        return self + -other

    def __rsub__(self, other: Interval) -> Spread:
        return -self + other

    def __mul__(self, other: Interval) -> Spread:
        return Spread((c * d, x * y) for c, x in self.parts for d, y in Spread.of(other).parts)

    __rmul__ = __mul__

    def inverse(self) -> Spread:
        """1/x; it must not contain 0."""
        if self.contains_zero():
            raise UnknownError("a division by something that may be 0")
        if len(self.parts) == 1:
            ((c, x),) = self.parts
            return Spread(((constants.inverse(c), x.inverse()),))
        low, high = self.ends
        return Spread.between(constants.inverse(high), constants.inverse(low))

    def exp(self) -> Spread:
        return Spread.between(*(constants.exp(end) for end in self.ends))

    def log(self) -> Spread:
        if not self.positive:
            raise UnknownError("a logarithm of something that may not be positive")
        if len(self.parts) == 1:
            ((c, x),) = self.parts
            side = constants.sign(c)
            return Spread.of(constants.log(c if side > 0 else -c)) + (x if side > 0 else -x).log()
        return Spread.between(*(constants.log(end) for end in self.ends))

    def power(self, n: int) -> Spread:
        """x ** n for n >= 0."""
        if len(self.parts) == 1:
            ((c, x),) = self.parts
            return Spread(((constants.power(c, n), x.power(n)),))
        result = Spread.of(ONE)
        for _ in range(n):
            result = result * self
        return result

    def abs(self) -> Spread:
        if self.not_negative or self.not_positive:
            return self if self.not_negative else -self
        sizes = ((c * (ONE if constants.sign(c) >= 0 else MINUS), x.abs()) for c, x in self.parts)
        return Spread((c, Interval(arb(0), x.high)) for c, x in sizes)

    def union(self, other: Interval) -> Spread:
        mine, others = self.ends, Spread.of(other).ends
        low = mine[0] if constants.sign(others[0] - mine[0]) >= 0 else others[0]
        high = mine[1] if constants.sign(others[1] - mine[1]) <= 0 else others[1]
        return Spread.between(low, high)

    def up_to(self, other: Interval) -> Spread:
        """From its own low end to the higher of the two high ends."""
        (low, high), (_, other_high) = self.ends, Spread.of(other).ends
        return Spread.between(low, high if constants.sign(high - other_high) >= 0 else other_high)

    @property
    def leans_up(self) -> bool:
        """Whether more of it is positive than negative."""
        low, high = self.ends
        return constants.sign(low + high) >= 0

    @property
    def top(self) -> Spread:
        """Its high end."""
        return Spread.of(self.ends[1])

    def meet(self, other: Interval) -> Spread:
        """What lies in both is in one of them."""
        return self

    def wave(self, name: str) -> Interval:
        return UNIT_WAVE


def _signs_of(x: Interval) -> Signs:
    if x.low.is_zero() and x.high.is_zero():
        return NULL
    result = ANY
    if x.not_negative:
        result &= frozenset((1,)) if x.positive else frozenset((0, 1))
    if x.not_positive:
        result &= frozenset((-1,)) if x.negative else frozenset((-1, 0))
    return result
