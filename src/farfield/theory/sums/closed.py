"""Series with a closed form: geometric, power laws (Hurwitz zeta), quadratics (digamma), rational weights.

Each class states its weight and its tail; `closed` finds the one that fits a shape. Where the closed form itself
tells that the sum is infinite, it says so.
"""

from __future__ import annotations

import math
from fractions import Fraction

from flint import acb, arb, ctx, fmpz

from farfield.formula import Formula
from farfield.theory.errors import DivergenceError, UndecidedError
from farfield.theory.exact.constants import Constant, ball, exp, known_sign, log, power, rational, vanishes
from farfield.theory.sums.shapes import Log, LogPolynomial, Shape, T, constant_part
from farfield.theory.sums.weight import Weight


class Series:
    """The weights b(t) for t >= start: `term`, `tail`, `head` and `B` as Arb balls at the current precision."""

    method = ""
    rough = False  # whether more precision would not narrow the enclosures

    def __init__(self, weight: Weight, start: int = 0):
        self.weight, self.start = weight, start
        self._sums: dict[int, arb] = {}

    @property
    def formula(self) -> Formula:
        return self.weight.formula

    def term(self, j: int) -> arb:
        """b(j); distances below the start contribute nothing."""
        return self.weight(j) if j >= self.start else arb(0)

    def tail(self, j: int) -> arb:
        """The sum of b(t) over t >= j."""
        j = max(int(j), self.start)
        return self.B() if j == self.start else self._tail(j)

    def head(self, j: int) -> arb:
        """The sum of b(t) over t < j."""
        return arb(0) if j <= self.start else self.B() - self.tail(j)

    def B(self) -> arb:  # noqa: N802 - the paper's name
        """The whole sum."""
        if ctx.prec not in self._sums:
            self._sums[ctx.prec] = self._tail(self.start)
        return self._sums[ctx.prec]

    def _tail(self, j: int) -> arb:
        raise NotImplementedError

    def add_terms(self, end: int, tail: arb) -> list[arb]:
        """The tails from every distance up to `end` on, from that of `end`, by adding terms one by one."""
        tails = [tail]
        for t in range(end - 1, self.start - 1, -1):
            value = self.term(t)
            if value < 0:
                raise ValueError(f"the weight at distance {t} is negative")
            if not value.is_finite():
                raise UndecidedError(f"the weight at distance {t} could not be enclosed")
            tails.append(tails[-1] + value)
        return tails[::-1]

    def tie(self, j: int, epsilon: Fraction) -> bool | None:
        """Whether tail(j) = epsilon * B exactly; None if this cannot be told."""
        return None


class Geometric(Series):
    """b(t) = C*exp(-k*t) (ALiBi): tail(j) = b(j)/(1 - exp(-k))."""

    method = "geometric series"

    def __init__(self, weight: Weight, start: int, k: Constant):
        super().__init__(weight, start)
        self.k = k

    def _tail(self, j: int) -> arb:
        return self.term(j) / -(-ball(self.k)).expm1()

    def tie(self, j: int, epsilon: Fraction) -> bool | None:
        return vanishes(self.k * (j - self.start) + log(rational(epsilon)))


class PowerLaw(Series):
    """b(t) = C*(t + shift)**-s: tail(j) = C*zeta(s, j + shift), Hurwitz's zeta."""

    method = "Hurwitz zeta"

    def __init__(self, weight: Weight, start: int, factor: Constant, s: Constant, shift: Constant):
        super().__init__(weight, start)
        self.factor, self.s, self.shift = factor, s, shift

    def _tail(self, j: int) -> arb:
        return ball(self.factor) * ball(self.s).zeta(arb(fmpz(j)) + ball(self.shift))


class Quadratic(Series):
    """b(t) = C/((t + shift)**2 + c**2): tail(j) = C/c * Im digamma(j + shift + i*c)."""

    method = "digamma"

    def __init__(self, weight: Weight, start: int, factor: Constant, shift: Constant, c: Constant):
        super().__init__(weight, start)
        self.factor, self.shift, self.c = factor, shift, c

    def _tail(self, j: int) -> arb:
        c = ball(self.c)
        value = acb(arb(fmpz(j)) + ball(self.shift), c).digamma().imag / c
        return ball(self.factor) * value


class Rational(Series):
    """b(t) = C / product of (t + a)**m for rational a and whole m: partial fractions, digamma and Hurwitz zeta.

    Where every pole is simple and the poles of each class modulo 1 cancel, the sum telescopes to a rational number.
    """

    method = "partial fractions"

    def __init__(self, weight: Weight, start: int, factor: Constant, poles: dict[Fraction, int]):
        super().__init__(weight, start)
        self.factor = factor
        self.parts = _partial_fractions(poles)
        self.degree = sum(poles.values())
        classes: dict[Fraction, Fraction] = {}
        for a, coefficients in self.parts.items():
            classes[a % 1] = classes.get(a % 1, Fraction(0)) + coefficients[0]
        self.telescopes = all(m == 1 for m in poles.values()) and not any(classes.values())

    def _tail(self, j: int) -> arb:
        lost = self.degree * max(j, 2).bit_length() + 16  # the digammas cancel down to j**(1 - degree)
        with ctx.workprec(ctx.prec + lost):
            total = arb(0)
            for a, coefficients in self.parts.items():
                x = arb(fmpz(j)) + ball(a)
                for order, c in enumerate(coefficients, 1):
                    total += -ball(c) * x.digamma() if order == 1 else ball(c) * arb(order).zeta(x)
        return ball(self.factor) * total

    def _exact(self, j: int) -> Fraction | None:
        """The rational tail without the factor: partial sums of 1/(t + a) from j up to where the poles meet."""
        if not self.telescopes or max(self.parts) - min(self.parts) > 10_000:
            return None
        top = max(self.parts)
        total = Fraction(0)
        for a, (c,) in self.parts.items():
            meet = top - (top - a) % 1  # the pole of this class that is reached last
            total += c * sum((1 / (j + a + i) for i in range(int(meet - a))), Fraction(0))
        return total

    def tie(self, j: int, epsilon: Fraction) -> bool | None:
        here, whole = self._exact(max(j, self.start)), self._exact(self.start)
        return None if here is None or whole is None else here == epsilon * whole


def _partial_fractions(poles: dict[Fraction, int]) -> dict[Fraction, list[Fraction]]:
    """For each a the coefficients of 1/(t + a), 1/(t + a)**2, ... in 1/product of (t + a)**m."""
    parts: dict[Fraction, list[Fraction]] = {}
    for a, order in poles.items():
        series = [Fraction(1)] + [Fraction(0)] * (order - 1)  # of the other factors in x = t + a
        for b, m in poles.items():
            if b == a:
                continue
            gap = b - a
            inverse = [math.comb(m + i - 1, i) * Fraction(-1) ** i / gap ** (m + i) for i in range(order)]
            series = [sum((series[i] * inverse[n - i] for i in range(n + 1)), Fraction(0)) for n in range(order)]
        parts[a] = series[::-1]
    return parts


# ---------------------------------------------------------------------------------------------------- recognition
def beyond(start: int, shift: Constant) -> bool:
    """Whether t + shift > 0 for all t >= start, so that its logarithm is defined."""
    return known_sign(shift + start) == 1


def logs_and_rest(a: Shape) -> tuple[dict[Constant, Constant], Shape]:
    """The coefficients of log(t + shift) by shift, and what remains, without the constant."""
    logs = {atom.shift: c for atom, c in a.items() if isinstance(atom, Log) and atom.exponent == 1}
    rest: Shape = {
        atom: c for atom, c in a.items() if atom is not None and not (isinstance(atom, Log) and atom.exponent == 1)
    }
    return logs, rest


def closed(weight: Weight, a: Shape, start: int) -> Series | None:
    """The series of a shape with a closed tail, or None; a DivergenceError if the shape shows that it diverges."""
    factor = exp(constant_part(a))
    logs, rest = logs_and_rest(a)
    if not logs and not rest:
        raise DivergenceError("the weights are constant")
    if not logs and set(rest) == {T}:
        return _geometric(weight, start, next(iter(rest.values())))
    if not rest and all(beyond(start, shift) for shift in logs):
        return _from_logs(weight, start, factor, logs)
    if len(rest) == 1 and not logs:
        ((atom, c),) = rest.items()
        if isinstance(atom, LogPolynomial) and len(atom.lower) == 2 and c == rational(-1):
            return _quadratic(weight, start, factor, atom.lower)
    return None


def _geometric(weight: Weight, start: int, c: Constant) -> Series | None:
    side = known_sign(c)
    if side == -1:
        return Geometric(weight, start, -c)
    if side is None:
        return None
    raise DivergenceError("the weights grow exponentially")


def _from_logs(weight: Weight, start: int, factor: Constant, logs: dict[Constant, Constant]) -> Series | None:
    if len(logs) == 1:
        ((shift, c),) = logs.items()
        above = known_sign(-c - 1)
        if above == 1:
            return PowerLaw(weight, start, factor, -c, shift)
        if above is None:
            return None
        raise DivergenceError("the weights fall no faster than 1/t")
    poles: dict[Fraction, int] = {}
    for shift, c in logs.items():
        place, order = shift.fraction, c.whole
        if place is None or order is None or not -12 <= order < 0:
            return None
        poles[place] = -order
    return Rational(weight, start, factor, poles) if sum(poles.values()) > 1 else None


def _quadratic(weight: Weight, start: int, factor: Constant, lower: tuple[Constant, ...]) -> Series | None:
    """1/(t**2 + c1*t + c0) by the sign of its discriminant."""
    c0, c1 = lower
    shift = c1 / 2
    square = c0 - shift * shift
    side = known_sign(square)
    if side == 1:
        return Quadratic(weight, start, factor, shift, power(square, Fraction(1, 2)))
    width = power(-square, Fraction(1, 2)).fraction if side == -1 else None
    place = shift.fraction
    if width is not None and place is not None and start + place - width > 0:
        return Rational(weight, start, factor, {place - width: 1, place + width: 1})
    return None
