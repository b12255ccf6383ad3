"""Sums over a finite stretch of distances: rows of n tokens, pieces of a formula, divergent encodings too."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from flint import arb, ctx, fmpz

from farfield.formula import Formula, Node
from farfield.theory.errors import DivergenceError, IntegralError, NotReachedError, NotSmoothError, UndecidedError
from farfield.theory.exact.constants import ONE, exp, rational
from farfield.theory.exact.signs import ball, known_sign
from farfield.theory.sums.branches import at, has_switch, pieces, ratio_at
from farfield.theory.sums.closed import Geometric, PowerLaw, Series, beyond, closed, logs_and_rest
from farfield.theory.sums.eulermaclaurin import smooth
from farfield.theory.sums.evaluation import Weight
from farfield.theory.sums.panels import FIRST, SmoothSum
from farfield.theory.sums.shapes import Shape, T, constant_part, is_constant, shape

_SHORT = 1024  # add this many terms without a thought
_LONGEST = 1 << 18  # never add more
_EXACT = 4096  # terms added as fractions to decide a tie


class Stretch:
    """The sum of b(t) over first <= t < last: `from_(j)` is the part with t >= j."""

    def __init__(self, formula: Formula, first: int, last: int):
        self.formula, self.first, self.last = formula, first, last
        self.weight = Weight(formula)
        self.shape = shape(formula)
        self._closed = self._find_closed() if last - first > _SHORT else None
        self._parts: dict[int, tuple[list[Any], SmoothSum | None]] = {}

    @property
    def constant(self) -> bool:
        return self.shape is not None and is_constant(self.shape)

    def _find_closed(self) -> Series | None:
        if self.shape is None:
            return None
        try:
            result = closed(self.weight, self.shape, self.first) or smooth(self.weight, self.shape, self.first)
        except DivergenceError:
            result = _divergent(self.weight, self.shape, self.first)
        return result

    def from_(self, j: int) -> Any:
        """The sum over max(j, first) <= t < last."""
        j = max(j, self.first)
        if j >= self.last:
            return arb(0)
        if self.constant:
            return arb(fmpz(self.last - j)) * self.weight(self.first)
        if self._closed is not None:
            return self._closed.tail(j) - self._closed.tail(self.last)
        if ctx.prec not in self._parts:
            self._parts[ctx.prec] = self._prepare()
        tails, smooth_sum = self._parts[ctx.prec]
        if j - self.first < len(tails):
            return tails[j - self.first]
        assert smooth_sum is not None
        return smooth_sum.from_(j)

    def _prepare(self) -> tuple[list[Any], SmoothSum | None]:
        length = self.last - self.first
        if length > 2 * _SHORT:
            with ctx.workprec(64):
                error = max((self.weight(self.first + i).abs_upper() for i in range(4)), key=float)
            for offset in FIRST:
                try:
                    result = SmoothSum(
                        self.weight, self.first + offset, arb(fmpz(self.last)), error * arb(2) ** -ctx.prec
                    )
                    return self._add_up([result.from_(self.first + offset)], self.first + offset), result
                except (NotSmoothError, IntegralError):
                    break
                except NotReachedError:
                    continue
        if length > _LONGEST:
            raise UndecidedError(f"the sum of {length} weights that vary this fast is too long to be certified")
        return self._add_up([arb(0)], self.last), None

    def _add_up(self, tails: list[Any], end: int) -> list[Any]:
        for t in range(end - 1, self.first - 1, -1):
            value = self.weight(t)
            if not value.is_finite() or value < 0:
                raise ValueError(undefined(self.formula, t))
            tails.append(tails[-1] + value)
        return tails[::-1]

    def exact(self, j: int, unit: Node) -> Fraction | None:
        """The same sum in units of one weight, as a rational number if the weights plainly have rational ratios."""
        j = max(j, self.first)
        if j >= self.last:
            return Fraction(0)
        if self.constant:
            value = ratio_at(self.formula, self.first, unit)
            return None if value is None else value * (self.last - j)
        if self.last - j > _EXACT:
            return None
        total = Fraction(0)
        for t in range(j, self.last):
            value = ratio_at(self.formula, t, unit)
            if value is None:
                return None
            total += value
        return total

    def unit(self) -> Node:
        """The first weight, in which the others may be measured."""
        return at(self.formula.node, self.first)


def undefined(formula: Formula, t: int) -> str:
    """The sentence for a weight that is no number at some distance."""
    return (
        f"the bias {formula.text()} has no value at distance {t}; "
        "shift the distance (t + 1) or let the sum start later (start)"
    )


class _GrowingPower(PowerLaw):
    """b(t) = C*(t + a)**-s with s <= 1: differences of Hurwitz zeta, continued; of digamma for s = 1."""

    def _tail(self, j: int) -> Any:
        if self.s != ONE:
            return super()._tail(j)
        return ball(self.factor) * -(arb(fmpz(j)) + ball(self.shift)).digamma()


def _divergent(weight: Weight, a: Shape, start: int) -> Series | None:
    """A function whose differences are the sums of a divergent shape, for the simplest shapes."""
    factor = exp(constant_part(a))
    logs, rest = logs_and_rest(a)
    if not rest and len(logs) == 1:
        ((shift, c),) = logs.items()
        if beyond(start, shift) and (c == rational(-1) or known_sign(-c - 1) == -1):
            return _GrowingPower(weight, start, factor, -c, shift)
    if not logs and set(rest) == {T}:
        return Geometric(weight, start, -next(iter(rest.values())))  # its tail is -b(j)/(exp(k) - 1) where b grows
    return None


class Row:
    """The weights of a row of n tokens, t = start ... n - 1, with `term`, `tail`, `head` and `B` like a series."""

    method = "finite sum"
    rough = False

    def __init__(self, formula: Formula, length: int, start: int = 0):
        self.formula, self.length, self.start = formula.primitive, length, start
        formula = self.formula
        self.weight = Weight(formula)
        if length <= start:
            raise ValueError(f"the row must be longer than the start, {start} tokens, not {length}")
        try:
            result = pieces(formula, start) if has_switch(formula.node) else []
        except UndecidedError:
            result = []
        self.stretches = [
            Stretch(p.formula, p.first, min(length, p.last or length))
            for p in result
            if p.formula is not None and p.first < length
        ]
        if not result:
            self.stretches = [Stretch(formula, start, length)]
        first = self.weight(start)
        if not first.is_finite() or first < 0:
            raise ValueError(undefined(formula, start))

    def term(self, j: int) -> Any:
        return sum((s.weight(j) for s in self.stretches if s.first <= j < s.last), arb(0))

    def tail(self, j: int) -> Any:
        return sum((s.from_(j) for s in self.stretches if s.last > j), arb(0))

    def B(self) -> Any:  # noqa: N802 - the paper's name
        return self.tail(0)

    def head(self, j: int) -> Any:
        return self.B() - self.tail(j)

    def tie(self, j: int, epsilon: Fraction) -> bool | None:
        unit = self.stretches[0].unit()
        here = [s.exact(j, unit) for s in self.stretches]
        whole = [s.exact(0, unit) for s in self.stretches]
        if any(x is None for x in (*here, *whole)):
            return None
        zero = Fraction(0)
        return sum((x or zero for x in here), zero) == epsilon * sum((x or zero for x in whole), zero)
