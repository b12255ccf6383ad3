"""Sums by Euler-Maclaurin with a closed integral and a proven remainder.

    sum over t >= N of b(t) = integral from N of b + b(N)/2 - sum_{k<=p} B_2k/(2k)! * b^(2k-1)(N) + R,
    |R| <= |B_2p|/(2p)! * integral from N of |b^(2p)|

The remainder is bounded in one of two ways. A completely monotone weight has derivatives of alternating sign, so its
remainder is at most the last term that was used. A weight exp(-c*L**2 + s*L), L = log(t + a), is bounded by Cauchy's
inequality on the discs |z - x| <= (x + a)/2, on which |arg(z + a)| <= pi/6.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from flint import arb, ctx, fmpz

from farfield.theory.errors import UndecidedError
from farfield.theory.exact.constants import ONE, ZERO, Constant, ball, exp, known_sign
from farfield.theory.sums.closed import Series, beyond, logs_and_rest
from farfield.theory.sums.shapes import Log, LogLog, Power, Shape, constant_part
from farfield.theory.sums.weight import Weight

Integral = Callable[[arb], arb]  # x -> the integral of b from x to infinity
_MOST_TERMS = 2048  # of one power series
_FARTHEST = 1 << 14  # the largest number of terms added one by one


@lru_cache(maxsize=4096)
def bernoulli(n: int, bits: int) -> arb:
    """The Bernoulli number B_n as a ball."""
    with ctx.workprec(bits):
        return arb.bernoulli(n)


def correction(jet: list[arb], k: int) -> arb:
    """B_2k/(2k)! * b^(2k-1) from the Taylor coefficients of b."""
    return bernoulli(2 * k, ctx.prec) / (2 * k) * jet[2 * k - 1]


class EulerMaclaurin(Series):
    """Euler-Maclaurin from the first N at which it reaches the precision; the terms before N are added."""

    def __init__(self, weight: Weight, start: int, integral: Integral, shift: Constant):
        super().__init__(weight, start)
        self.integral, self.shift = integral, shift
        self._near: dict[int, tuple[int, list[arb]]] = {}  # precision -> first N, tails from start to N

    def _tail(self, j: int) -> arb:
        if ctx.prec not in self._near:
            self._near[ctx.prec] = self._begin()
        first, tails = self._near[ctx.prec]
        if j <= first:
            return tails[j - self.start]
        value = self._far(j)
        if value is None:
            raise UndecidedError(f"the sum from distance {j} on could not be enclosed")
        return value

    def _begin(self) -> tuple[int, list[arb]]:
        first = max(self.start, ctx.prec // 5 - self._floor_of_shift())
        while True:
            value = self._far(first)
            if value is not None:
                break
            first = max(2 * first, 16)
            if first > _FARTHEST:
                raise UndecidedError("the weights vary too fast for their sum to be enclosed")
        return first, self.add_terms(first, value)

    def _floor_of_shift(self) -> int:
        with ctx.workprec(64):
            whole = ball(self.shift).floor().unique_fmpz()
        return int(whole) if whole is not None and abs(whole) < 1 << 60 else 0

    def _far(self, n: int) -> arb | None:
        """The tail from n on, or None if the remainder does not fall below the precision there."""
        raise NotImplementedError


class CompletelyMonotone(EulerMaclaurin):
    """Derivatives of alternating sign: the remainder is at most the last term used."""

    method = "Euler-Maclaurin, completely monotone weight"

    def _far(self, n: int) -> arb | None:
        x = arb(fmpz(n))
        terms, total = 16, arb(0)
        while terms <= _MOST_TERMS:
            jet = self.weight.jet(x, terms)
            small = jet[0].abs_upper() * arb(2) ** -ctx.prec
            total, before = self.integral(x) + jet[0] / 2, None
            for k in range(1, terms // 2 + 1):
                term = correction(jet, k)
                total -= term
                size = term.abs_upper()
                if size <= small:
                    return total + arb(0, size)
                if before is not None and not size < before:
                    return None
                before = size
            terms *= 2
        return None


class LogSquare(EulerMaclaurin):
    """b(t) = C*exp(-c*L**2 + s*L), L = log(t + a) (type 2): the remainder by Cauchy's inequality.

    On |z - x| <= y/2, y = x + a: Re(-c*L**2 + s*L) <= c*(pi/6)**2 + g(log(y/2)) with g(l) = -c*l**2 + s*l falling
    for l >= s/(2c). Hence |R| <= |B_2p| * exp(c*pi**2/36) * (2/(N + a))**2p * 2 * integral of b from y = (N + a)/2.
    """

    method = "Euler-Maclaurin with the error function"

    def __init__(self, weight: Weight, start: int, factor: Constant, c: Constant, s: Constant, shift: Constant):
        self.factor, self.c, self.s = factor, c, s
        super().__init__(weight, start, lambda x: self._integral_in_y(x + ball(shift)), shift)

    def _integral_in_y(self, y: arb) -> arb:
        c, m = ball(self.c), ball(self.s) + 1
        root = c.sqrt()
        value = (root * (y.log() - m / (2 * c))).erfc() * (m * m / (4 * c)).exp()
        return ball(self.factor) * value * (arb.pi() / c).sqrt() / 2

    def _far(self, n: int) -> arb | None:
        x = arb(fmpz(n))
        y, c = x + ball(self.shift), ball(self.c)
        if not (y / 2).log() >= ball(self.s) / (2 * c):
            return None
        small = self.weight(n).abs_upper() * arb(2) ** -ctx.prec
        with ctx.workprec(64):
            scale = 2 * self._integral_in_y(y / 2) * (c * arb.pi() ** 2 / 36).exp()
            bound, best = scale, None
            for p in range(2, _MOST_TERMS // 2):
                bound = (abs(bernoulli(2 * p, 64)) * scale * (2 / y) ** (2 * p)).upper()
                if bound <= small:
                    break
                if best is not None and not bound < best * 16:
                    return None
                best = bound if best is None or bound < best else best
            else:
                return None
        jet = self.weight.jet(x, 2 * p)
        total = self.integral(x) + jet[0] / 2
        for k in range(1, p + 1):
            total -= correction(jet, k)
        return total + arb(0, bound)


class FastDecay(Series):
    """A weight that falls so fast that its terms are added one by one, the rest bounded by a closed integral.

    The weight must fall from `falling` on: then the sum over t >= T is at most b(T) + integral from T.
    """

    method = "direct sum with a closed bound of the rest"

    def __init__(self, weight: Weight, start: int, integral: Integral, falling: int):
        super().__init__(weight, start)
        self.integral, self.falling = integral, max(falling, start)
        self._tails: dict[int, list[arb]] = {}

    def rest(self, t: int) -> arb:
        """An upper bound of the sum over distances >= t, for t beyond the peak."""
        return (self.weight(t) + self.integral(arb(fmpz(t)))).abs_upper()

    def last(self) -> int | None:
        """The first power of two from which on the rest does not count at the current precision."""
        small = self.weight(self.start).abs_upper() * arb(2) ** -(ctx.prec + 8)
        t = max(16, self.falling)
        while not self.rest(t) <= small:
            t *= 2
            if t - self.start > _FARTHEST:
                return None
        return t

    def _tail(self, j: int) -> arb:
        if ctx.prec not in self._tails:
            last = self.last()
            if last is None:
                raise UndecidedError("the weights fall too slowly to be added one by one")
            self._tails[ctx.prec] = self.add_terms(last, arb(0).union(self.rest(last)))
        tails = self._tails[ctx.prec]
        return tails[j - self.start] if j - self.start < len(tails) else arb(0).union(self.rest(j))


# ---------------------------------------------------------------------------------------------------- recognition
def smooth(weight: Weight, a: Shape, start: int) -> Series | None:
    """The series of a shape whose integral is closed, or None."""
    factor = exp(constant_part(a))
    logs, rest = logs_and_rest(a)
    if len(logs) > 1 or len(rest) != 1:
        return None
    ((atom, c),) = rest.items()
    shift, s = next(iter(logs.items()), (None, ZERO))
    if isinstance(atom, Power):
        return _stretched(weight, start, factor, atom, c, shift, s)
    square = isinstance(atom, Log) and atom.exponent == 2 and atom.scale == ONE and shift in (None, atom.shift)
    if isinstance(atom, Log) and square and known_sign(c) == -1 and beyond(start, atom.shift):
        return LogSquare(weight, start, factor, -c, s, atom.shift)
    if isinstance(atom, LogLog) and shift == atom.shift:
        return _bertrand(weight, start, factor, atom, -c, -s)
    return None


def _stretched(
    weight: Weight, start: int, factor: Constant, atom: Power, c: Constant, shift: Constant | None, s: Constant
) -> Series | None:
    """b(t) = C*(t + a)**s * exp(-c*(t + a)**p): the integral is C*Gamma((s+1)/p, c*(x+a)**p)/(p*c**((s+1)/p))."""
    p, a, c = atom.exponent, atom.shift, -c
    if shift is not None and shift != a:
        if p != ONE:
            return None
        a, factor = shift, factor * exp(c * shift)  # c*t = c*(t + a) - c*a
    if (
        known_sign(c) != 1
        or known_sign(p) != 1
        or (s.terms and not beyond(start, a))
        or known_sign(a + start) not in (0, 1)
    ):
        return None

    def integral(x: arb) -> arb:
        order, scale = (ball(s) + 1) / ball(p), ball(c)
        return ball(factor) * (scale * (x + ball(a)) ** ball(p)).gamma_upper(order) / (ball(p) * scale**order)

    slow, falls = known_sign(p - 1), known_sign(s)
    if slow in (0, -1) and falls in (0, -1):
        return CompletelyMonotone(weight, start, integral, a)
    if falls is None:
        return None
    peak = 0
    if falls == 1:  # the weight falls once c*p*(t + a)**p > s
        with ctx.workprec(64):
            top = ((ball(s) / (ball(c) * ball(p))) ** (1 / ball(p)) - ball(a)).upper().ceil().unique_fmpz()
        if top is None or top > _FARTHEST:
            return None
        peak = max(0, int(top))
    series = FastDecay(weight, start, integral, peak)
    with ctx.workprec(192):
        return series if series.last() is not None else None


def _bertrand(weight: Weight, start: int, factor: Constant, atom: LogLog, q: Constant, s: Constant) -> Series | None:
    """b(t) = C*n**-s * (log(k*n))**-q, n = t + a, s >= 1, q > 0: closed by the incomplete gamma function."""
    k, a = atom.scale, atom.shift
    slow = known_sign(s - 1)
    inside = known_sign(k * (a + start) - 1)  # the sign of the logarithm at the start
    if known_sign(q) != 1 or known_sign(k) != 1 or inside != 1 or not beyond(start, a) or slow not in (0, 1):
        return None
    if slow == 0 and known_sign(q - 1) != 1:
        return None

    def integral(x: arb) -> arb:
        m, order = (ball(k) * (x + ball(a))).log(), 1 - ball(q)
        if slow == 0:
            return ball(factor) * m**order / -order
        rate = ball(s) - 1
        return ball(factor) * ball(k) ** rate * rate**-order * (rate * m).gamma_upper(order)

    return CompletelyMonotone(weight, start, integral, a)
