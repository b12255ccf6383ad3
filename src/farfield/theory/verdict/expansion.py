"""Expansions at infinity on the logarithmic scale, with a remainder that is always accounted for.

A function is written as a sum of terms c * m plus a remainder R, where m is a monomial
    l_0**a_0 * l_1**a_1 * ... * exp(phi),      l_0 = t, l_1 = ln t, l_2 = ln ln t, ...
and R / m_err lies in an interval. What that interval
means is said by the two engines that inherit this algebra (engines.py).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, NamedTuple

from flint import arb

from farfield.formula import Node, build
from farfield.theory.budget import Work
from farfield.theory.errors import MoreTermsError, UndecidedError
from farfield.theory.exact import constants, signs
from farfield.theory.exact.constants import ONE, ZERO, Const, rational
from farfield.theory.verdict.monomials import UNIT, Mono, ell, sum_node
from farfield.theory.verdict.regions import Region

MINUS = rational(-1)


class Expansion(NamedTuple):
    """Terms, largest first, and the remainder: (monomial, interval)."""

    terms: tuple[tuple[Mono, Const], ...] = ()
    rest: tuple[Mono, Any] | None = None

    def node(self) -> Node:
        """The expansion as an expression, with at most four terms."""
        parts = [sum_node(self.terms[:4])] + [build.DOTS] * (len(self.terms) > 4)
        return build.total([*parts, *([] if self.rest is None else [build.order(self.rest[0].node())])])


class Engine:
    """Arithmetic of expansions; subclasses say what the interval of a remainder means."""

    def __init__(self, region: Region, length: int, work: Work):
        self.region, self.length, self.work = region, length, work
        self._compared: dict[tuple[Mono, Mono], int] = {}
        self._known: list[Const] = []  # the irrational exponents that were met
        self._canonical: dict[Const, Const] = {}

    # -- intervals: what the subclasses define
    def interval(self, lo: int, hi: int) -> Any:
        raise NotImplementedError

    def exactly(self, c: Const) -> Any:
        raise NotImplementedError

    def plus(self, a: Any, b: Any) -> Any:
        raise NotImplementedError

    def scaled(self, a: Any, c: Const) -> Any:
        raise NotImplementedError

    def product(self, a: Any, b: Any) -> Any:
        raise NotImplementedError

    def with_zero(self, a: Any) -> Any:
        """The smallest interval that contains 0 and a."""
        raise NotImplementedError

    def under(self, a: Any, m: Mono) -> Any:
        """What an interval contributes through a monomial m that tends to 0."""
        raise NotImplementedError

    def mapped(self, a: Any, f: str, c: Const = ONE) -> Any:
        """The interval under "exp", "atan", "erf", or under "log", "gamma" or "power" c of what is positive."""
        raise NotImplementedError

    def interval_sign(self, a: Any) -> int | None:
        """+1 or -1 if the whole interval has that sign, None otherwise."""
        raise NotImplementedError

    def whole_power(self, a: Any, n: int) -> Any:
        """The interval of x**n, for x in an interval of any sign."""
        result, base = None, a
        for bit in bin(n)[:1:-1]:  # from the lowest bit on
            if bit == "1":
                result = base if result is None else self.product(result, base)
            base = self.product(base, base)
        return self.not_negative(result) if n % 2 == 0 else result

    def not_negative(self, a: Any) -> Any:
        """The part of an interval that is not negative."""
        raise NotImplementedError

    def series_rest(self, d: Expansion, order: int, bound: Callable[[Any], Any]) -> Expansion:
        """The remainder of a power series in d after `order`; `bound` maps sup|d| to the bound of the coefficient."""
        raise NotImplementedError

    def small_enough(self, d: Expansion) -> None:
        """Make sure that |d| < 1 where this engine speaks (d tends to 0)."""
        raise NotImplementedError

    # -- monomials
    def canonical(self, c: Const) -> Const:
        """The one spelling of an exponent: constants that are equal but written differently become the same."""
        if c.rational is not None or c.parameters:
            return c
        if c not in self._canonical:
            plain = signs.hidden_rational(c)
            same = (k for k in self._known if signs.sign(c - k) == 0)
            self._canonical[c] = rational(plain) if plain is not None else next(same, c)
            if self._canonical[c] is c:
                self._known.append(c)
        return self._canonical[c]

    def times(self, a: Mono, b: Mono) -> Mono:
        powers = dict(a.powers)
        for i, e in b.powers:
            powers[i] = self.canonical(powers.get(i, ZERO) + e)
        kept = tuple(sorted((i, e) for i, e in powers.items() if e.terms and self.region.sign(e)))
        if not b.phi:
            return Mono(kept, a.phi)
        if not a.phi:
            return Mono(kept, b.phi)
        phi: dict[Mono, Const] = {}
        for m, c in a.phi + b.phi:
            phi[m] = self.canonical(phi.get(m, ZERO) + c)
        return Mono(kept, self.ordered([(m, c) for m, c in phi.items() if c.terms and self.region.sign(c)]))

    def raised(self, m: Mono, e: Const) -> Mono:
        """The monomial to a constant power."""
        if not e.terms or not self.region.sign(e):
            return UNIT
        powers = tuple((i, self.canonical(a * e)) for i, a in m.powers)
        return Mono(powers, tuple((x, self.canonical(c * e)) for x, c in m.phi))

    def over(self, a: Mono, b: Mono) -> Mono:
        return self.times(a, self.raised(b, MINUS))

    def leading_log(self, m: Mono) -> tuple[Mono, Const]:
        """The largest term of log m, for m other than 1."""
        best: tuple[Mono, Const] | None = (ell(m.powers[0][0] + 1), m.powers[0][1]) if m.powers else None
        if m.phi and (best is None or self.compare(m.phi[0][0], best[0]) > 0):
            best = m.phi[0]
        assert best is not None
        return best

    def compare(self, a: Mono, b: Mono) -> int:
        """+1 if a/b -> infinity, -1 if a/b -> 0, 0 if they are the same."""
        if a == b:
            return 0
        known = self._compared.get((a, b))
        if known is None:
            m = self.over(a, b)
            if m == UNIT:
                known = 0
            elif m.phi:
                known = self.region.sign(self.leading_log(m)[1])
            else:
                known = self.region.sign(m.powers[0][1])
            self._compared[a, b], self._compared[b, a] = known, -known
        return known

    def ordered(self, terms: list[tuple[Mono, Const]]) -> tuple[tuple[Mono, Const], ...]:
        if len(terms) < 2:
            return tuple(terms)

        def order(x: tuple[Mono, Const], y: tuple[Mono, Const]) -> int:
            return self.compare(y[0], x[0])

        return tuple(sorted(terms, key=functools.cmp_to_key(order)))

    # -- building
    def is_zero(self, c: Const) -> bool:
        """Whether a coefficient is known to be 0; with open parameters a term may stay that later turns out to be."""
        return not c.terms or self.region.known_sign(c) == 0

    def led(self, s: Expansion) -> Expansion:
        """The expansion with a first term that is certainly not 0."""
        while s.terms and not self.region.sign(s.terms[0][1]):
            s = Expansion(s.terms[1:], s.rest)
        return s

    def make(self, items: Iterable[tuple[Mono, Const]], rests: Iterable[tuple[Mono, Any] | None] = ()) -> Expansion:
        """Collect terms, order them, cut to length, and gather every remainder in one."""
        items = list(items)
        self.work.spend(1 + sum(len(c.terms) for _, c in items))
        gathered: dict[Mono, Const] = {}
        for m, c in items:
            gathered[m] = gathered.get(m, ZERO) + c
        terms = self._merged(self.ordered([(m, c) for m, c in gathered.items() if not self.is_zero(c)]))
        left = [r for r in rests if r is not None]
        if not left and len(terms) <= self.length:
            return Expansion(terms)
        largest: Mono | None = None
        for m, _ in left:
            if largest is None or self.compare(m, largest) > 0:
                largest = m
        if len(terms) > self.length and (largest is None or self.compare(terms[self.length][0], largest) > 0):
            largest = terms[self.length][0]
        assert largest is not None
        total = self.exactly(ZERO)
        for m, interval in left:
            same = self.compare(m, largest) == 0
            total = self.plus(total, interval if same else self.under(interval, self.over(m, largest)))
        kept = []
        for m, c in terms:
            order = self.compare(m, largest)
            if order > 0:
                kept.append((m, c))
            else:
                part = self.exactly(c)
                total = self.plus(total, part if order == 0 else self.under(part, self.over(m, largest)))
        return Expansion(tuple(kept), (largest, total))

    def _merged(self, terms: tuple[tuple[Mono, Const], ...]) -> tuple[tuple[Mono, Const], ...]:
        """Ordered terms, in which monomials that are equal under the assumptions are one."""
        merged: list[tuple[Mono, Const]] = []
        for m, c in terms:
            if merged and self.compare(m, merged[-1][0]) == 0:
                m, c = merged[-1][0], merged.pop()[1] + c
                if self.is_zero(c):
                    continue
            merged.append((m, c))
        return tuple(merged)

    def constant(self, c: Const) -> Expansion:
        return self.make([(UNIT, c)])

    def bounded(self, lo: int, hi: int) -> Expansion:
        """Anything between two numbers."""
        return Expansion((), (UNIT, self.interval(lo, hi)))

    def add(self, *all_of: Expansion) -> Expansion:
        return self.make([x for s in all_of for x in s.terms], [s.rest for s in all_of])

    def scale(self, s: Expansion, c: Const) -> Expansion:
        if self.is_zero(c):
            return Expansion()
        rest = None if s.rest is None else (s.rest[0], self.scaled(s.rest[1], c))
        return self.make([(m, a * c) for m, a in s.terms], [rest])

    def negative(self, s: Expansion) -> Expansion:
        return self.scale(s, MINUS)

    def times_mono(self, s: Expansion, m: Mono) -> Expansion:
        rest = None if s.rest is None else (self.times(s.rest[0], m), s.rest[1])
        return Expansion(tuple((self.times(x, m), c) for x, c in s.terms), rest)

    def multiply(self, s: Expansion, u: Expansion) -> Expansion:
        items = [(self.times(m1, m2), c1 * c2) for m1, c1 in s.terms for m2, c2 in u.terms]
        rests = []
        for a, b in ((s, u), (u, s)):
            if a.rest is not None:
                rests += [(self.times(a.rest[0], m), self.scaled(a.rest[1], c)) for m, c in b.terms]
        if s.rest is not None and u.rest is not None:
            rests.append((self.times(s.rest[0], u.rest[0]), self.product(s.rest[1], u.rest[1])))
        return self.make(items, rests)

    # -- signs
    def sign(self, s: Expansion) -> int:
        """The sign wherever this engine speaks: eventually, or for all t >= X."""
        s = self.led(s)
        if s.terms:
            result = self.region.sign(s.terms[0][1])
            self.small_enough(self._relative(s)[2])
            return result
        if s.rest is None:
            return 0
        known = self.interval_sign(s.rest[1])
        if known is None:
            raise UndecidedError("a quantity whose sign matters oscillates around 0")
        return known

    # -- functions
    def _relative(self, s: Expansion) -> tuple[Mono, Const, Expansion]:
        """s = c * m * (1 + d) with d -> 0: (m, c, d)."""
        m, c = s.terms[0]
        inverse, factor = self.raised(m, MINUS), constants.power(c, Fraction(-1))
        rest = None if s.rest is None else (self.times(s.rest[0], inverse), self.scaled(s.rest[1], factor))
        return m, c, self.make([(self.times(x, inverse), y * factor) for x, y in s.terms[1:]], [rest])

    def series(self, d: Expansion, coefficient: Callable[[int], Const], bound: Callable[[int, Any], Any]) -> Expansion:
        """sum over k of coefficient(k) * d**k, with the remainder."""
        if not d.terms and d.rest is None:
            return self.constant(coefficient(0))
        parts, p, order = [self.constant(coefficient(0))], self.constant(ONE), self.length
        for k in range(1, self.length + 1):
            p = self.multiply(p, d)
            parts.append(self.scale(p, coefficient(k)))
            if not p.terms:
                order = k
                break
        parts.append(self.series_rest(d, order, lambda size: bound(order, size)))
        return self.add(*parts)

    def log_mono(self, m: Mono) -> Expansion:
        return self.make([(ell(i + 1), a) for i, a in m.powers] + list(m.phi))

    def log(self, s: Expansion) -> Expansion:
        """log of something positive."""
        if self.sign(s) <= 0:
            raise UndecidedError("the logarithm of something that is not positive")
        s = self.led(s)
        if not s.terms:
            assert s.rest is not None
            return self.add(self.log_mono(s.rest[0]), Expansion((), (UNIT, self.mapped(s.rest[1], "log"))))
        m, c, d = self._relative(s)
        base = self.add(self.log_mono(m), self.constant(constants.log(c)))
        if not d.terms and d.rest is None:
            return base
        return self.add(
            base,
            self.series(
                d,
                lambda k: rational(Fraction((-1) ** (k + 1), k)) if k else ZERO,
                lambda order, size: 1 / ((order + 1) * (1 - size)),
            ),
        )

    def _is_one(self, c: Const) -> bool:
        return c == ONE or (bool(c.parameters) and self.region.known_sign(c - ONE) == 0)

    def exp(self, s: Expansion) -> Expansion:
        """exp: what grows becomes the monomial, what tends to 0 a power series."""
        powers: list[tuple[int, Const]] = []
        phi: list[tuple[Mono, Const]] = []
        small: list[tuple[Mono, Const]] = []
        shift = ZERO
        for m, c in s.terms:
            order = self.compare(m, UNIT)
            if order > 0 and not self.region.sign(c):
                continue
            if order < 0:
                small.append((m, c))
            elif order == 0:
                shift = shift + c
            elif not m.phi and len(m.powers) == 1 and m.powers[0][0] >= 1 and self._is_one(m.powers[0][1]):
                powers.append((m.powers[0][0] - 1, self.canonical(c)))
            else:
                phi.append((m, self.canonical(c)))
        big = Mono(tuple(sorted(powers)), self.ordered(phi))
        factor = constants.exp(shift)
        if s.rest is not None:
            order = self.compare(s.rest[0], UNIT)
            if order > 0:
                raise MoreTermsError("exp of something known only up to an unbounded remainder")
            if order == 0:
                return Expansion((), (big, self.scaled(self.mapped(s.rest[1], "exp"), factor)))
        d = self.make(small, [s.rest])
        if not d.terms and d.rest is None:
            return Expansion(((big, factor),))
        series = self.series(
            d,
            lambda k: rational(Fraction(1, math.factorial(k))),
            lambda order, size: size.exp() / arb(math.factorial(order + 1)),
        )
        return self.times_mono(self.scale(series, factor), big)

    def power(self, s: Expansion, e: Const) -> Expansion:
        """A constant power: whole powers of anything, real powers of what is positive."""
        q = e.rational
        if q is not None and q.denominator == 1 and q > 0 and not s.terms and s.rest is not None:
            return Expansion((), (self.raised(s.rest[0], e), self.whole_power(s.rest[1], int(q))))
        if q is not None and q.denominator == 1 and 0 <= q <= 3:
            return functools.reduce(self.multiply, [s] * int(q), self.constant(ONE))
        result, s = self.sign(s), self.led(s)
        if result == 0:
            raise UndecidedError("a power of 0")
        whole = q is not None and q.denominator == 1
        if result < 0 and not whole:
            raise UndecidedError("a real power of something negative")
        if result < 0 and q is not None:
            flipped = self.power(self.negative(s), e)
            return self.negative(flipped) if q % 2 else flipped
        if not s.terms:
            assert s.rest is not None
            return Expansion((), (self.raised(s.rest[0], e), self.mapped(s.rest[1], "power", e)))
        m, c, d = self._relative(s)
        lead = constants.real_power(c, e)
        if not d.terms and d.rest is None:
            return Expansion(((self.raised(m, e), lead),))

        def binomial(k: int) -> Const:
            return functools.reduce(lambda a, i: a * (e - rational(i)) * rational(Fraction(1, i + 1)), range(k), ONE)

        def bound(order: int, size: Any) -> Any:
            x = signs.ball(e) - order - 1
            growth = (x * (1 + size).log()).exp() if x > 0 else (x * (1 - size).log()).exp()
            return abs(signs.ball(binomial(order + 1))) * growth

        return self.times_mono(self.scale(self.series(d, binomial, bound), lead), self.raised(m, e))
