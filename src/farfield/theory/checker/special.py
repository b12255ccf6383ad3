"""atan, erf and gamma of expansions, as the checker knows them: a power or asymptotic series with its whole rest.

Each series is cut at the calculus' order; the rest is an interval times the next power, from the alternating or
Lagrange bound that holds for every real argument of the case at hand, and never left out.
"""

from __future__ import annotations

import math

from flint import arb, fmpq

from farfield.theory.checker import constants
from farfield.theory.checker.constants import ONE, ZERO, Constant, UnknownError, rational, sign
from farfield.theory.checker.expansions import Calculus, Coefficient, Expansion, add, constant, negative, scale
from farfield.theory.checker.intervals import FROM_ZERO_TO_ONE, INFINITY, UNIT_WAVE, Interval, exactly, monotone, span
from farfield.theory.checker.monomials import UNIT, compare

_HALF = rational(fmpq(1, 2))
_FAR = 10**6  # gamma of anything beyond is only known to be large


def atan_range(x: Interval) -> Interval:
    """atan of an interval."""
    half = (arb.pi() / 2).upper()
    low, high = (
        x.low.atan().lower() if x.low.is_finite() else -half,
        x.high.atan().upper() if x.high.is_finite() else half,
    )
    return Interval(low, high)


def erf_range(x: Interval) -> Interval:
    """erf of an interval."""
    return monotone(arb.erf, x, (-1, 1))


def gamma_range(x: Interval) -> Interval:
    """gamma of an interval of positive numbers: it is convex, falls up to 1.46 and rises from 1.47 on."""
    if not x.low > 0:
        raise UnknownError("gamma of something that may not be positive")
    if x.low > fmpq(147, 100):
        least = x.low.min(arb(_FAR)).gamma().lower()
    else:
        least = x.high.gamma().lower() if x.high < fmpq(146, 100) else arb(fmpq(22, 25)).lower()
    most = x.low.gamma().max(x.high.gamma()).upper() if x.high < _FAR else INFINITY
    return Interval(least, most)


def _grows(f: Expansion) -> bool:
    return bool(f) and compare(f[0][0], UNIT) > 0


def _around_constant(f: Expansion) -> tuple[Coefficient, Expansion]:
    """(c, d) with f = c + d, for an f that does not grow."""
    if f and f[0][0] == UNIT:
        return f[0][1], f[1:]
    return ZERO, f


# ------------------------------------------------------------------------------------------------ atan
def atan(k: Calculus, f: Expansion) -> Expansion:
    """atan(f): of what grows pi/2 - atan(1/f)."""
    side = k.sign(f)
    if _grows(f) and side in (1, -1):
        limit = constants.pi() * _HALF
        return k.tidy(add(constant(limit if side == 1 else -limit), negative(_small_atan(k, k.inverse(f)))))
    c, d = _around_constant(f)
    if _grows(f) or isinstance(c, Interval):
        return constant(atan_range(k.range(f)))
    if sign(c) == 0:
        return _small_atan(k, d)
    below = add(constant(ONE + c * c), scale(d, UNIT, c))
    if k.sign(below) != 1:
        raise UnknownError("atan of something far from a constant")
    moved = _small_atan(k, k.multiply(d, k.inverse(below)))  # atan(c + d) - atan(c) = atan(d/(1 + c**2 + c d))
    return k.tidy(add(constant(constants.atan(c)), moved))


def _small_atan(k: Calculus, d: Expansion) -> Expansion:
    """The power series at 0; its n-th coefficient anywhere is at most 1/n."""

    def coefficient(j: int) -> Constant:
        return rational(fmpq((-1) ** (j // 2), j)) if j % 2 else ZERO

    return k.power_series(d, coefficient, UNIT_WAVE * exactly(fmpq(1, k.order)), atan_range(k.range(d)))


# ------------------------------------------------------------------------------------------------ erf
def erf(k: Calculus, f: Expansion) -> Expansion:
    """erf(f): of what grows 1 less the complement."""
    side = k.sign(f)
    if _grows(f) and side in (1, -1):
        rest = _complement(k, f if side == 1 else negative(f))
        whole = add(constant(ONE), negative(rest))
        return k.tidy(whole if side == 1 else negative(whole))
    c, d = _around_constant(f)
    if _grows(f) or isinstance(c, Interval):
        return constant(erf_range(k.range(f)))
    factor = constants.exp(-(c * c)) * rational(2) * constants.inverse(constants.power(constants.pi(), fmpq(1, 2)))

    def coefficient(j: int) -> Constant:
        if j == 0:
            return constants.erf(c)
        before, now = ZERO, ONE  # Hermite polynomials
        for i in range(j - 1):
            before, now = now, c * now * rational(2) - before * rational(2 * i)
        return factor * now * rational(fmpq((-1) ** (j - 1), math.factorial(j)))

    n = k.order  # |H_m(x)| exp(-x**2) <= 1.0865 sqrt(2**m m!), and 2/sqrt(pi) < 2
    most = fmpq(21730, 10000) * (math.isqrt(2 ** (n - 1) * math.factorial(n - 1)) + 1) / math.factorial(n)
    return k.power_series(d, coefficient, UNIT_WAVE * exactly(most), erf_range(k.range(f)))


def _complement(k: Calculus, f: Expansion) -> Expansion:
    """1 - erf(f) = exp(-f**2)/(f sqrt(pi)) (1 - u + 3 u**2 - 15 u**3 ...), u = 1/(2 f**2), of a positive f."""

    def coefficient(j: int) -> Constant:
        return rational((-1) ** j * math.prod(range(1, 2 * j, 2)))

    square = k.multiply(f, f)
    rest = FROM_ZERO_TO_ONE * exactly(fmpq((-1) ** k.order * math.prod(range(1, 2 * k.order, 2))))
    u = k.inverse(scale(square, UNIT, rational(2)))
    series = k.power_series(u, coefficient, rest, FROM_ZERO_TO_ONE)
    factor = k.multiply(k.exp(negative(square)), k.inverse(f))
    return scale(k.multiply(factor, series), UNIT, constants.inverse(constants.power(constants.pi(), fmpq(1, 2))))


# ------------------------------------------------------------------------------------------------ gamma
def log_gamma(k: Calculus, f: Expansion, log_f: Expansion) -> Expansion:
    """log(gamma(f)) of a positive f: Stirling's series where f grows, whose rest is below the first term left out."""
    if k.sign(f) != 1:
        raise UnknownError("gamma of something that may not be positive")
    if not _grows(f):
        return k.log(gamma_near(k, f))

    def coefficient(j: int) -> Constant:
        return rational(_stirling(j)) if j % 2 else ZERO

    inverse = k.inverse(f)
    near = k.range(inverse)
    first = k.order if k.order % 2 else k.order + 1  # the first power that is left out
    rest = FROM_ZERO_TO_ONE * exactly(_stirling(first))
    if first > k.order:
        rest = rest * near
    whole = Interval(arb(0), (near.high / 12).upper())
    series = k.power_series(inverse, coefficient, rest, whole)
    shift = constants.log(constants.pi() * rational(2)) * _HALF
    main = k.multiply(add(f, constant(-_HALF)), log_f)
    return k.tidy(add(main, negative(f), constant(shift), series))


def _stirling(j: int) -> fmpq:
    """The coefficient of f**-j, for odd j."""
    return fmpq.bernoulli(j + 1) / (j * (j + 1))


def gamma_near(k: Calculus, f: Expansion) -> Expansion:
    """gamma of a positive f that does not grow: of c + d its value at c and d times the range of the derivative."""
    c, d = _around_constant(f)
    if isinstance(c, Interval):
        return constant(gamma_range(k.range(f)))
    if sign(c) == 0:  # gamma(f) = gamma(1 + f)/f
        return k.multiply(gamma_near(k, add(constant(ONE), f)), k.inverse(f))
    if not d:
        return constant(constants.gamma(c))
    x = k.range(f).union(span(constants.ball(c)))
    slope = gamma_range(x) * Interval(x.low.digamma().lower(), x.high.digamma().upper())  # digamma rises
    return add(constant(constants.gamma(c)), scale(d, UNIT, slope))
