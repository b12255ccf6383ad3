"""The two engines of expansions: what the interval of a remainder means.

- Asymptotic: the lower and upper limit of R / m as t -> infinity lie in the interval. Everything is exact, parameters
  may be open. Verdicts come from here.
- Explicit: R / m lies in the interval *for all* t >= X. Numbers are Arb balls. Certificates come from here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from flint import arb

from farfield.theory.budget import Work
from farfield.theory.errors import LargerStartError, MoreTermsError
from farfield.theory.exact import constants, signs
from farfield.theory.exact.constants import ONE, ZERO, Const, rational
from farfield.theory.verdict.expansion import MINUS, Engine, Expansion
from farfield.theory.verdict.monomials import UNIT, Mono, ell
from farfield.theory.verdict.regions import Region


class Asymptotic(Engine):
    """Remainders as limits: exact numbers, open parameters; None is a bound that exists but is not known."""

    def interval(self, lo: int, hi: int) -> Any:
        return rational(lo), rational(hi)

    def exactly(self, c: Const) -> Any:
        return c, c

    def plus(self, a: Any, b: Any) -> Any:
        return None if a is None or b is None else (a[0] + b[0], a[1] + b[1])

    def scaled(self, a: Any, c: Const) -> Any:
        if a is None:
            return None
        ends = a[0] * c, a[1] * c
        return ends if a[0] == a[1] or self.region.sign(c) >= 0 else ends[::-1]

    def product(self, a: Any, b: Any) -> Any:
        if a is None or b is None:
            return None
        ends = [x * y for x in a for y in b]
        return functools.reduce(self._smaller, ends), functools.reduce(self._larger, ends)

    def _smaller(self, x: Const, y: Const) -> Const:
        return x if x == y or self.region.sign(x - y) <= 0 else y

    def _larger(self, x: Const, y: Const) -> Const:
        return x if x == y or self.region.sign(x - y) >= 0 else y

    def with_zero(self, a: Any) -> Any:
        return None if a is None else (self._smaller(a[0], ZERO), self._larger(a[1], ZERO))

    def not_negative(self, a: Any) -> Any:
        return None if a is None else (self._larger(a[0], ZERO), a[1])

    def under(self, a: Any, m: Mono) -> Any:
        return ZERO, ZERO

    def mapped(self, a: Any, f: str, c: Const = ONE) -> Any:
        if a is None:
            raise MoreTermsError("a remainder matters whose size is not known")
        if f in ("exp", "log"):
            function = constants.exp if f == "exp" else constants.log
            return function(a[0]), function(a[1])
        if f in ("atan", "erf", "gamma"):
            low, high = (constants.function(f, x) for x in a)
            if f != "gamma":
                return low, high
            return low if self.region.sign(a[0] - LEAST_GAMMA_AT) >= 0 else LEAST_GAMMA, self._larger(low, high)
        ends = constants.real_power(a[0], c), constants.real_power(a[1], c)
        return ends if self.region.sign(c) >= 0 else ends[::-1]

    def interval_sign(self, a: Any) -> int | None:
        if a is None:
            raise MoreTermsError("a remainder matters whose size is not known")
        if self.region.sign(a[0]) > 0:
            return 1
        return -1 if self.region.sign(a[1]) < 0 else None

    def series_rest(self, d: Expansion, order: int, bound: Callable[[Any], Any]) -> Expansion:
        m = d.terms[0][0] if d.terms else d.rest[0] if d.rest else UNIT
        return Expansion((), (self.raised(m, rational(order + 1)), None))

    def small_enough(self, d: Expansion) -> None:
        return None


LEAST_GAMMA, LEAST_GAMMA_AT = rational(Fraction(22, 25)), rational(Fraction(3, 2))  # gamma is at least, rises from
_LARGE = arb(10) ** 15


class Explicit(Engine):
    """Remainders for all t >= X, as Arb balls; X is given by its logarithm."""

    def __init__(self, ln_start: arb, length: int, work: Work):
        super().__init__(Region(), length, work)
        self.levels = {1: ln_start}  # l_i(X)
        while self.levels[len(self.levels)] > 0 and len(self.levels) < 12:
            self.levels[len(self.levels) + 1] = self.levels[len(self.levels)].log()
        self._largest: dict[Mono, arb] = {}
        self._positive: set[Mono] = set()

    def make(self, items: Iterable[tuple[Mono, Const]], rests: Iterable[tuple[Mono, Any] | None] = ()) -> Expansion:
        made = super().make(items, rests)
        for m, _ in made.terms if made.rest is None else (*made.terms, made.rest):
            self._require_positive(m)
        return made

    def _require_positive(self, m: Mono) -> None:
        """A monomial counts only where all its logarithms are positive."""
        if m not in self._positive:
            for i, _ in m.powers:
                if i:
                    self.level(i)
            for x, _ in m.phi:
                self._require_positive(x)
            self._positive.add(m)

    def interval(self, lo: int, hi: int) -> Any:
        return arb(lo), arb(hi)

    def exactly(self, c: Const) -> Any:
        value = signs.ball(c)
        return value.lower(), value.upper()

    def plus(self, a: Any, b: Any) -> Any:
        return (a[0] + b[0]).lower(), (a[1] + b[1]).upper()

    def scaled(self, a: Any, c: Const) -> Any:
        return self.product(a, self.exactly(c))

    def product(self, a: Any, b: Any) -> Any:
        ends = [x * y for x in a for y in b]
        return functools.reduce(arb.min, ends).lower(), functools.reduce(arb.max, ends).upper()

    def with_zero(self, a: Any) -> Any:
        return a[0].min(arb(0)).lower(), a[1].max(arb(0)).upper()

    def not_negative(self, a: Any) -> Any:
        return a[0].max(arb(0)).lower(), a[1]

    def under(self, a: Any, m: Mono) -> Any:
        return self.with_zero(self.product(a, (arb(0), self.largest(m))))

    def mapped(self, a: Any, f: str, c: Const = ONE) -> Any:
        if f == "power":
            e = signs.ball(c)
            ends = (e * a[0].log()).exp(), (e * a[1].log()).exp()
        else:
            ends = getattr(a[0], f)(), getattr(a[1], f)()
        if f == "gamma" and not a[0] > signs.ball(LEAST_GAMMA_AT):
            return signs.ball(LEAST_GAMMA).lower(), ends[0].max(ends[1]).upper()
        return ends[0].min(ends[1]).lower(), ends[0].max(ends[1]).upper()

    def interval_sign(self, a: Any) -> int | None:
        return 1 if a[0] > 0 else -1 if a[1] < 0 else None

    def size(self, s: Expansion) -> tuple[Mono, arb]:
        """(m, A) with |s| <= A * m for all t >= X."""
        if not s.terms:
            if s.rest is None:
                return UNIT, arb(0)
            return s.rest[0], abs(s.rest[1][0]).max(abs(s.rest[1][1])).upper()
        m0, total = s.terms[0][0], arb(0)
        for m, c in s.terms:
            total += abs(signs.ball(c)) * self.largest(self.over(m, m0))
        if s.rest is not None:
            total += abs(s.rest[1][0]).max(abs(s.rest[1][1])) * self.largest(self.over(s.rest[0], m0))
        return m0, total.upper()

    def series_rest(self, d: Expansion, order: int, bound: Callable[[Any], Any]) -> Expansion:
        m, size = self.size(d)
        worst = (bound((size * self.largest(m)).upper()) * size ** (order + 1)).upper()
        return Expansion((), (self.raised(m, rational(order + 1)), (-worst, worst)))

    def small_enough(self, d: Expansion) -> None:
        m, size = self.size(d)
        if not size * self.largest(m) < 1:
            raise LargerStartError("the leading term does not dominate yet")

    def level(self, i: int) -> arb:
        """l_i(X), which must be positive."""
        if i not in self.levels or not self.levels[i] > 0:
            raise LargerStartError("a logarithm is not positive yet")
        return self.levels[i]

    def log_at_start(self, m: Mono) -> arb:
        """log m at t = X."""
        total = arb(0)
        for i, a in m.powers:
            if i:
                self.level(i)
            total += signs.ball(a) * (self.levels[i + 1] if i + 1 in self.levels else self.level(i + 1))
        for x, c in m.phi:
            total += signs.ball(c) * self.log_at_start(x).exp()
        return total

    def largest(self, m: Mono) -> arb:
        """An upper bound of a monomial that does not grow, over all t >= X."""
        if m == UNIT:
            return arb(1)
        known = self._largest.get(m)
        if known is not None:
            return known
        if not m.phi:
            # the slope of log m against log l_first is a_first + sum of a_i / (l_{first+1} ... l_i), largest at X
            first, exponent = m.powers[0]
            slope, product, last = signs.ball(exponent), arb(1), first
            for i, a in m.powers[1:]:
                for k in range(last + 1, i + 1):
                    product *= self.level(k)
                last = i
                if signs.ball(a) > 0 or not signs.ball(a) < 0:
                    slope += abs(signs.ball(a)) / product
            if not slope <= 0:
                raise LargerStartError("a monomial does not decrease yet")
            exponent_at_start = self.log_at_start(m)
        else:
            lead, c = self.leading_log(m)
            others = arb(0)
            for i, a in m.powers:
                if ell(i + 1) != lead:
                    others += abs(signs.ball(a)) * self.largest(self.over(ell(i + 1), lead))
            for x, b in m.phi:
                if x != lead:
                    others += abs(signs.ball(b)) * self.largest(self.over(x, lead))
            others /= abs(signs.ball(c))
            if not others < 1:
                raise LargerStartError("the leading term does not dominate yet")
            exponent_at_start = signs.ball(c) * (1 - others) / self.largest(self.raised(lead, MINUS))
        value = (-_LARGE if exponent_at_start < -_LARGE else exponent_at_start).exp().upper()
        self._largest[m] = value
        return value
