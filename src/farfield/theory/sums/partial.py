"""Sums over a finite stretch of distances: rows of n tokens, pieces of a formula, divergent encodings too."""

from __future__ import annotations

import contextlib
from fractions import Fraction

from flint import arb, ctx, fmpz

from farfield.formula import Formula, Node
from farfield.theory.errors import DivergenceError, IntegralError, NotSmoothError, UndecidedError
from farfield.theory.exact.constants import ONE, ball, exp, known_sign, rational
from farfield.theory.sums.branches import at, pieces, ratio_at
from farfield.theory.sums.closed import Geometric, PowerLaw, Series, beyond, closed, logs_and_rest
from farfield.theory.sums.eulermaclaurin import smooth
from farfield.theory.sums.panels import SmoothSum, smooth_sum
from farfield.theory.sums.shapes import Shape, T, constant_part, has_switch, is_constant, shape
from farfield.theory.sums.weight import Weight

_SHORT = 1024  # add this many terms without a thought
_LONGEST = 1 << 18  # never add more
_EXACT = 4096  # terms added as fractions to decide a tie


class Stretch(Series):
    """The sum of b(t) over first <= t < last."""

    method = "finite sum"

    def __init__(self, formula: Formula, first: int, last: int):
        super().__init__(Weight(formula), first)
        self.last = last
        self.shape = shape(formula)
        self._closed = self._find_closed() if last - first > _SHORT else None
        self._parts: dict[int, tuple[list[arb], SmoothSum | None]] = {}

    @property
    def constant(self) -> bool:
        return self.shape is not None and is_constant(self.shape)

    def _find_closed(self) -> Series | None:
        if self.shape is None:
            return None
        try:
            return closed(self.weight, self.shape, self.start) or smooth(self.weight, self.shape, self.start)
        except DivergenceError:
            return _divergent(self.weight, self.shape, self.start)

    def term(self, j: int) -> arb:
        value = super().term(j) if j < self.last else arb(0)
        if not value.is_finite() or value < 0:
            raise ValueError(undefined(self.formula, j))
        return value

    def _tail(self, j: int) -> arb:
        if j >= self.last:
            return arb(0)
        if self.constant:
            return arb(fmpz(self.last - j)) * self.weight(self.start)
        if self._closed is not None:
            return self._closed.tail(j) - self._closed.tail(self.last)
        if ctx.prec not in self._parts:
            self._parts[ctx.prec] = self._prepare()
        tails, smooth_part = self._parts[ctx.prec]
        if j - self.start < len(tails):
            return tails[j - self.start]
        assert smooth_part is not None
        return smooth_part.tail(j)

    def _prepare(self) -> tuple[list[arb], SmoothSum | None]:
        length = self.last - self.start
        if length > 2 * _SHORT:
            with ctx.workprec(64):
                error = max((self.weight(self.start + i).abs_upper() for i in range(4)), key=float)
            with contextlib.suppress(NotSmoothError, IntegralError):
                result = smooth_sum(self.weight, self.start, arb(fmpz(self.last)), error * arb(2) ** -ctx.prec)
                if result is not None:
                    return self.add_terms(result[0].first, result[1]), result[0]
        if length > _LONGEST:
            raise UndecidedError(f"the sum of {length} weights that vary this fast is too long to be certified")
        return self.add_terms(self.last, arb(0)), None

    def exact(self, j: int, unit: Node) -> Fraction | None:
        """The same sum in units of one weight, as a rational number if the weights plainly have rational ratios."""
        j = max(j, self.start)
        if j >= self.last:
            return Fraction(0)
        if self.constant:
            value = ratio_at(self.formula, self.start, unit)
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


def undefined(formula: Formula, t: int) -> str:
    """The sentence for a weight that is no number at some distance."""
    return (
        f"the bias {formula.text()} has no value at distance {t}; "
        "shift the distance (t + 1) or let the sum start later (start)"
    )


class _GrowingPower(PowerLaw):
    """b(t) = C*(t + a)**-s with s <= 1: differences of Hurwitz zeta, continued; of digamma for s = 1."""

    def _tail(self, j: int) -> arb:
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


class Stretches(Series):
    """Weights in finite stretches, and perhaps a `rest` beyond them."""

    stretches: list[Stretch]
    rest: Series | None = None

    def term(self, j: int) -> arb:
        """b(j) by the piece that holds there: at the edge a ball around t could not tell the branches apart."""
        if self.rest is not None and j >= self.rest.start:
            return self.rest.term(j)
        return sum((s.weight(j) for s in self.stretches if s.start <= j < s.last), arb(0))

    def _tail(self, j: int) -> arb:
        total = sum((s.tail(j) for s in self.stretches if s.last > j), arb(0))
        return total if self.rest is None else total + self.rest.tail(j)

    def tie(self, j: int, epsilon: Fraction) -> bool | None:
        here, total = self._exact(j), self._exact(self.start)
        return None if here is None or total is None else here == epsilon * total

    def _exact(self, j: int) -> Fraction | None:
        """The tail in units of the first weight, as a rational number if it is one."""
        if not self.stretches:
            return None
        unit = at(self.stretches[0].formula.node, self.stretches[0].start)
        total = Fraction(0) if self.rest is None else _exact_tail(self.rest, j, unit)
        for stretch in self.stretches:
            part = stretch.exact(j, unit)
            if total is None or part is None:
                return None
            total += part
        return total


def _exact_tail(s: Series, j: int, unit: Node) -> Fraction | None:
    """The tail of a geometric series in units of one weight, as a rational number if it is one."""
    if not isinstance(s, Geometric):
        return None
    first, ratio = ratio_at(s.formula, max(j, s.start), unit), exp(-s.k).fraction
    return None if ratio is None or first is None else first / (1 - ratio)


class Row(Stretches):
    """The weights of a row of n tokens, t = start ... n - 1."""

    method = "finite sum"

    def __init__(self, formula: Formula, length: int, start: int = 0):
        formula = formula.primitive
        super().__init__(Weight(formula), start)
        if length <= start:
            raise ValueError(f"the row must be longer than the start, {start} tokens, not {length}")
        try:
            cut = pieces(formula, start) if has_switch(formula.node) else []
        except UndecidedError:
            cut = []
        inside = [(p.formula, p.first, min(length, p.last or length)) for p in cut if p.first < length]
        self.stretches = [Stretch(piece, first, last) for piece, first, last in inside if piece is not None]
        if not cut:
            self.stretches = [Stretch(formula, start, length)]
        first_weight = self.weight(start)
        if not first_weight.is_finite() or first_weight < 0:
            raise ValueError(undefined(formula, start))
