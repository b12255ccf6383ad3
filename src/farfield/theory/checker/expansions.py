"""The arithmetic of expansions: sums of monomials that enclose a function on a whole domain of distances.

Nothing is ever left out: what a power series would cut off stays in an interval. So an expansion is a proof about all
distances of the domain, and exact cancellation is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from flint import arb, fmpq

from farfield.theory.budget import Effort
from farfield.theory.checker.monomials import (
    UNIT,
    Coefficient,
    Domain,
    Expansion,
    Monomial,
    as_key,
    as_monomial,
    compare,
    raised,
    times,
)  # fmt: skip
from farfield.theory.errors import UnknownError
from farfield.theory.exact import constants
from farfield.theory.exact.constants import (
    MINUS,
    ONE,
    ZERO,
    Constant,
    ball,
    rational,
    sign,
)
from farfield.theory.exact.intervals import FROM_ZERO_TO_ONE, INFINITY, NEAR_ONE, UNIT_WAVE, Interval, exactly, span
from farfield.theory.exact.regions import OpenSignError
from farfield.theory.exact.spreads import Spread

MAX_EXACT = 24  # terms of a coefficient that stays exact
NULL: Expansion = ()


def interval(c: Coefficient) -> Interval:
    """A coefficient as an interval."""
    if not isinstance(c, Constant):
        return c
    return span(ball(c)) if c.region is None else Spread.of(c)


def _plus(c: Coefficient, d: Coefficient) -> Coefficient:
    if isinstance(c, Constant) and isinstance(d, Constant) and len(c.terms) + len(d.terms) <= MAX_EXACT:
        return c + d
    return interval(c) + interval(d)


def _by(c: Coefficient, d: Coefficient) -> Coefficient:
    if isinstance(c, Constant) and isinstance(d, Constant) and len(c.terms) * len(d.terms) <= MAX_EXACT // 2:
        return c * d
    return interval(c) * interval(d)


def _vanishes(c: Coefficient) -> bool:
    return constants.is_zero(c) if isinstance(c, Constant) else c.is_zero


def constant(c: Coefficient) -> Expansion:
    """A constant function."""
    return NULL if _vanishes(c) else ((UNIT, c),)


def add(*summands: Expansion) -> Expansion:
    """The sum."""
    total, *others = summands
    for other in others:
        total = _merged(total, other)
    return total


def _merged(f: Expansion, g: Expansion) -> Expansion:
    out: list[tuple[Monomial, Coefficient]] = []
    i = j = 0
    while i < len(f) and j < len(g):
        try:
            order = compare(f[i][0], g[j][0])
        except OpenSignError as error:
            return _with_small_rest(out, (*f[i:], *g[j:]), error)
        if order > 0:
            out.append(f[i])
            i += 1
        elif order < 0:
            out.append(g[j])
            j += 1
        else:
            c = _plus(f[i][1], g[j][1])
            if not _vanishes(c):
                out.append((f[i][0], c))
            i, j = i + 1, j + 1
    return (*out, *f[i:], *g[j:])


def _with_small_rest(terms: list[tuple[Monomial, Coefficient]], rest: Expansion, error: OpenSignError) -> Expansion:
    """Terms in order, and a rest whose order depends on parameters: for large distances it is a small part of one."""
    for k in range(len(terms) - 1, -1, -1):
        m, c = terms[k]
        try:
            if all(compare(m, n) > 0 for n, _ in rest) and not interval(c).contains_zero():
                nearest = c if isinstance(c, Constant) else c.ends[0] if c.positive else c.ends[1]
                small = scale((*terms[k + 1 :], *rest), raised(m, MINUS), constants.inverse(nearest))
                error.region.require_small(small)
                error.region.postpone(error)
                return (*terms[:k], (m, interval(c) * NEAR_ONE))
        except OpenSignError:
            continue
    raise error


def scale(f: Expansion, m: Monomial, c: Coefficient) -> Expansion:
    """f times one term."""
    if _vanishes(c):
        return NULL
    scaled = ((times(m, n), _by(c, d)) for n, d in f)
    return tuple((n, d) for n, d in scaled if not (isinstance(d, Constant) and d.region is not None and _vanishes(d)))


def negative(f: Expansion) -> Expansion:
    """-f."""
    return scale(f, UNIT, MINUS)


def _pairs(f: Expansion, g: Expansion) -> Iterator[tuple[Monomial, Coefficient, Coefficient]]:
    """Every monomial of f or g with its two coefficients."""
    i = j = 0
    while i < len(f) or j < len(g):
        order = -1 if i == len(f) else 1 if j == len(g) else compare(f[i][0], g[j][0])
        yield f[i][0] if order >= 0 else g[j][0], f[i][1] if order >= 0 else ZERO, g[j][1] if order <= 0 else ZERO
        i, j = i + (order >= 0), j + (order <= 0)


def _same(c: Coefficient, d: Coefficient) -> bool:
    return isinstance(c, Constant) and isinstance(d, Constant) and sign(c - d) == 0


def between(f: Expansion, g: Expansion) -> Expansion:
    """What holds f, g and everything between them."""
    return tuple((m, c if _same(c, d) else interval(c).union(interval(d))) for m, c, d in _pairs(f, g))


def at_least(f: Expansion, g: Expansion) -> Expansion:
    """What holds everything from f up to the larger of f and g.

    The sum of the low ends lies below it, that of the high ends above, so some choice of coefficients meets it.
    """
    mixed: list[tuple[Monomial, Coefficient]] = []
    for m, c, d in _pairs(f, g):
        low, other = interval(c), interval(d)
        mixed.append((m, c if _same(c, d) else low.up_to(other)))
    return tuple((m, c) for m, c in mixed if not _vanishes(c))


def above(f: Expansion) -> Expansion:
    """An upper bound without wide coefficients."""
    ends = ((m, c if isinstance(c, Constant) else c.top) for m, c in f)
    return tuple((m, c) for m, c in ends if not _vanishes(c))


def below(f: Expansion) -> Expansion:
    """A lower bound without wide coefficients."""
    return negative(above(negative(f)))


def is_wide(f: Expansion) -> bool:
    """Whether the first coefficient says little more than its size."""
    c = f[0][1]
    return not isinstance(c, Constant) and not c.is_narrow


def sign_of_terms(f: Expansion) -> int | None:
    """1 or -1 if all coefficients have this sign, or are 0 at times; None otherwise."""
    parts = [interval(c) for _, c in f]
    if all(c.not_negative for c in parts) and any(c.positive for c in parts):
        return 1
    if all(c.not_positive for c in parts) and any(c.negative for c in parts):
        return -1
    return None


class Calculus:
    """Functions of expansions on one domain; `order` is that of power series, `size` the most terms that are kept."""

    def __init__(self, domain: Domain, order: int, size: int, effort: Effort | None = None):
        self.domain, self.order, self.size = domain, order, size
        self.effort = Effort() if effort is None else effort

    # ------------------------------------------------------------------------------------------------ ranges and signs
    def terms_range(self, f: Expansion) -> Interval:
        """The range of f, term by term."""
        total = exactly(0)
        for m, c in f:
            total = total + interval(c) * self.domain.range(m)
        return total

    def lead_range(self, f: Expansion) -> Interval:
        """The range of f divided by its first monomial."""
        return self.terms_range(scale(f, raised(f[0][0], MINUS), ONE)) if f else exactly(0)

    def range(self, f: Expansion) -> Interval:
        """A range of f, seen in two ways."""
        if len(f) < 2:
            return self.terms_range(f)
        return self.terms_range(f).meet(self.domain.range(f[0][0]) * self.lead_range(f))

    def sign(self, f: Expansion) -> int | None:
        """1 or -1 where f has this sign on the whole domain, 0 where it vanishes, None where nothing is shown."""
        if not f:
            return 0
        lead = self.lead_range(f)
        if lead.positive or lead.negative:
            return 1 if lead.positive else -1
        whole = self.terms_range(f)
        if whole.positive or whole.negative:
            return 1 if whole.positive else -1
        return sign_of_terms(f)

    def never_negative(self, f: Expansion) -> bool:
        """Whether f >= 0 on the whole domain."""
        return self.sign(f) in (0, 1) or self.lead_range(f).not_negative or self.terms_range(f).not_negative

    # -------------------------------------------------------------------------------------------- products and powers
    def tidy(self, f: Expansion) -> Expansion:
        """f with what follows its first terms gathered in one interval."""
        if len(f) <= self.size:
            return f
        kept, rest = f[: self.size - 1], f[self.size - 1 :]
        return (*kept, (rest[0][0], self.lead_range(rest)))

    def multiply(self, f: Expansion, g: Expansion) -> Expansion:
        """f * g."""
        if len(f) > len(g):
            f, g = g, f
        self.effort.spend(len(f) * len(g))
        total: Expansion = NULL
        for m, c in f:
            total = add(total, scale(g, m, c))
        return self.tidy(total)

    def _split(self, f: Expansion) -> tuple[Monomial, Coefficient, Expansion, Interval]:
        """(m, c, d, range of 1 + d) with f = c m (1 + d) > 0 and d a sum of monomials that fall."""
        m, c = f[0]
        if not (interval(c).positive or (isinstance(c, Constant) and sign(c) > 0)):
            raise UnknownError("the sign of a part")
        inverted: Coefficient = constants.inverse(c) if isinstance(c, Constant) else c.inverse()
        d = scale(f[1:], raised(m, MINUS), inverted)
        near_one = exactly(1) + self.range(d)
        if not near_one.positive:
            raise UnknownError("the sign of a sum")
        return m, c, d, near_one

    def power_series(
        self, d: Expansion, coefficients: Callable[[int], Constant], rest: Interval, whole: Interval
    ) -> Expansion:
        """Sum of coefficients(j) d**j below the order, and rest * d**order; `whole` is the range of the function."""
        total = constant(coefficients(0))
        power: Expansion = ((UNIT, ONE),)
        if not d:
            return total
        near = self.range(d)
        left = whole - interval(coefficients(0))
        for j in range(1, self.order):
            power = self.multiply(power, d)
            total = add(total, scale(power, UNIT, coefficients(j)))
            left = left - interval(coefficients(j)) * near.power(j)
        if not near.contains_zero():  # the rest, seen as the function less its series: better on a narrow domain
            rest = rest.meet(left * near.power(self.order).inverse())
        last = raised(d[0][0], rational(self.order)), rest * self.lead_range(d).power(self.order)
        return self.tidy(add(total, (last,)))

    def log(self, f: Expansion) -> Expansion:
        """The logarithm of a function that is positive."""
        if not f:
            raise UnknownError("the logarithm of 0")
        if is_wide(f) and self.sign(f) == 1:
            return between(self.log(below(f)), self.log(above(f)))
        m, c, d, near_one = self._split(f)
        n = self.order
        rest = exactly(fmpq((-1) ** (n - 1), n)) * near_one.union(exactly(1)).power(n).inverse()
        series = self.power_series(d, lambda j: rational(fmpq((-1) ** (j - 1), j)) if j else ZERO, rest, near_one.log())
        lead = constants.log(c) if isinstance(c, Constant) else c.log()
        return self.tidy(add(self.log_monomial(m), constant(lead), series))

    def log_monomial(self, m: Monomial) -> Expansion:
        """The logarithm of a monomial."""
        for key, _ in m.logs:
            if isinstance(key, int) and not self.domain.positive(key):
                raise UnknownError("a logarithm that is not positive from here on")
        return tuple((as_monomial(key), c) for key, c in m.logs)

    def power(self, f: Expansion, e: Constant) -> Expansion:
        """f ** e: whole powers of anything, other powers of what is positive."""
        q = e.rational
        if q is not None and q.q == 1:
            return self._whole_power(f, int(q.p))
        if not f:
            if sign(e) > 0:
                return NULL
            raise UnknownError("a power of 0")
        if is_wide(f):
            return self._power_of_wide(f, e)
        m, c, d, near_one = self._split(f)
        if isinstance(c, Constant):
            lead: Coefficient = constants.real_power(c, e)
        else:
            lead = (interval(e) * c.log()).exp()
        return self._binomial(m, lead, d, near_one, e)

    def _power_of_wide(self, f: Expansion, e: Constant) -> Expansion:
        """A power of what is not negative but may touch 0."""
        if not self.never_negative(f) or (sign(e) < 0 and self.sign(f) != 1):
            raise UnknownError("a power of something that may be negative or 0")
        least, most = below(f), above(f)
        if sign(e) < 0 or self.sign(least) == 1:
            return between(self.power(least, e), self.power(most, e))
        return between(NULL, self.power(most, e))

    def _binomial(self, m: Monomial, lead: Coefficient, d: Expansion, near_one: Interval, e: Constant) -> Expansion:
        """lead * m**e * (1 + d)**e."""

        def binomial(j: int) -> Constant:
            result = ONE
            for i in range(j):
                result = result * (e - rational(i)) * rational(fmpq(1, i + 1))
            return result

        rest = self.near_power(d, near_one.union(exactly(1)), e - rational(self.order))
        series = self.power_series(d, binomial, interval(binomial(self.order)) * rest, self.near_power(d, near_one, e))
        return self.tidy(scale(series, raised(m, e), lead))

    def near_power(self, d: Expansion, near_one: Interval, e: Constant) -> Interval:
        """The range of (1 + d)**e, where 1 + d lies in an interval."""
        return (interval(e) * near_one.log()).exp()

    def _whole_power(self, f: Expansion, n: int) -> Expansion:
        if n < 0:
            return self.inverse(self._whole_power(f, -n))
        if n == 0:
            return constant(ONE)
        if len(f) == 1 or (n % 2 == 0 and f and self.sign(f) is None):
            c = f[0][1] if len(f) == 1 else self.lead_range(f)
            raised_c: Coefficient = constants.power(c, n) if isinstance(c, Constant) else c.power(n)
            return ((raised(f[0][0], rational(n)), raised_c),)
        if n > 8 and f and self.sign(f) in (1, -1):
            side = self.sign(f)
            m, c, d, near_one = self._split(f if side == 1 else negative(f))
            lead: Coefficient = constants.power(c, n) if isinstance(c, Constant) else c.power(n)
            result = self._binomial(m, lead, d, near_one, rational(n))
            return negative(result) if side == -1 and n % 2 else result
        result = f
        for _ in range(n - 1):
            result = self.multiply(result, f)
        return result

    def inverse(self, f: Expansion) -> Expansion:
        """1/f."""
        side = self.sign(f)
        if side in (None, 0):
            raise UnknownError("a division by something that may be 0")
        if side == -1:
            return negative(self.inverse(negative(f)))
        if is_wide(f):
            return between(self.inverse(below(f)), self.inverse(above(f)))
        m, c, d, near_one = self._split(f)
        inverted: Coefficient = constants.inverse(c) if isinstance(c, Constant) else c.inverse()
        return self._binomial(m, inverted, d, near_one, MINUS)

    # ----------------------------------------------------------------------------------------- exponentials and waves
    def exp(self, f: Expansion) -> Expansion:
        """The exponential: what grows becomes a monomial, what falls a power series."""
        grown: Monomial = UNIT
        lead: Coefficient = ONE
        falling: list[tuple[Monomial, Coefficient]] = []
        for m, c in f:
            order = compare(m, UNIT)
            if order > 0:
                if not isinstance(c, Constant):
                    lead, c = _by(lead, FROM_ZERO_TO_ONE), c.ends[1]
                if _vanishes(c):
                    continue
                grown = times(grown, Monomial(((as_key(m), c),)))
            elif order == 0:
                lead = _by(lead, constants.exp(c) if isinstance(c, Constant) else c.exp())
            else:
                falling.append((m, c))
        d = tuple(falling)
        factorials = [1]
        for j in range(1, self.order + 1):
            factorials.append(factorials[-1] * j)
        near = self.range(d)
        rest = near.union(exactly(0)).exp() * exactly(fmpq(1, factorials[-1]))
        series = self.power_series(d, lambda j: rational(fmpq(1, factorials[j])), rest, near.exp())
        return self.tidy(scale(series, grown, lead))

    def wave(self, f: Expansion, name: str) -> Expansion:
        """sin or cos of f; the distance is a whole number."""
        turned = _without_full_turns(f)
        if turned and compare(turned[0][0], UNIT) > 0:
            if isinstance(turned[0][1], Constant):
                sign(turned[0][1])  # with parameters: a frequency of 0 is a case of its own
            value = self.range(turned).wave(name)
            return constant(value)
        still = turned[0][1] if turned and turned[0][0] == UNIT else ZERO
        if not isinstance(still, Constant):
            return constant(self.range(turned).wave(name))
        d = turned[1:] if turned and turned[0][0] == UNIT else turned
        values = constants.sin(still), constants.cos(still)
        first = 0 if name == "sin" else 1
        signs = [(0, 1), (1, 1), (0, -1), (1, -1)]  # sin, cos, -sin, -cos: each the derivative of the one before

        def coefficient(j: int) -> Constant:
            which, side = signs[(first + j) % 4]
            factorial = 1
            for i in range(2, j + 1):
                factorial *= i
            return values[which] * rational(fmpq(side, factorial))

        factorial = 1
        for i in range(2, self.order + 1):
            factorial *= i
        return self.power_series(d, coefficient, UNIT_WAVE * exactly(fmpq(1, factorial)), self.range(turned).wave(name))

    # ------------------------------------------------------------------------------------------------ steps and choices
    def floor(self, f: Expansion) -> Expansion:
        """The floor of f; the distance is a whole number, and so are its powers."""
        whole, rest = _whole_part(f)
        for n in self._near(rest):
            up, down = add(rest, constant(rational(-n))), add(constant(rational(n + 1)), negative(rest))
            if self.never_negative(up) and self.sign(down) == 1:
                return add(whole, constant(rational(n)))
        return add(f, constant(Interval(arb(-1), arb(0))))

    def _near(self, f: Expansion) -> list[int]:
        """Whole numbers that may be the floor of f everywhere."""
        near = self.range(f)
        low = near.low if type(near) is Interval else INFINITY
        if not low.is_finite() or abs(low) > 10**6:
            return []
        first = int(low.floor().lower().fmpz())
        return [first, first + 1]

    def abs(self, f: Expansion) -> Expansion:
        """The absolute value."""
        if self.never_negative(f):
            return f
        if self.never_negative(negative(f)):
            return negative(f)
        return ((f[0][0], self.lead_range(f).abs()),)

    def larger_of(self, f: Expansion, g: Expansion) -> int | None:
        """0 if f is the larger on the whole domain, 1 if g is; None if that is not shown."""
        difference = add(f, negative(g))
        if self.never_negative(difference):
            return 0
        return 1 if self.never_negative(negative(difference)) else None

    def larger(self, f: Expansion, g: Expansion) -> Expansion:
        """max(f, g)."""
        known = self.larger_of(f, g)
        if known is not None:
            return (f, g)[known]
        first = interval(add(f, negative(g))[0][1])
        return at_least(f, g) if first.leans_up else at_least(g, f)


def _without_full_turns(f: Expansion) -> Expansion:
    """An angle without 2 pi times a whole number: the distance is one, and so are its powers."""
    two_pi = constants.pi() * rational(2)
    return tuple((m, c) for m, c in f if not (isinstance(c, Constant) and _is_whole(m) and _is_multiple(c, two_pi)))


def _is_multiple(c: Constant, of: Constant) -> bool:
    q = (c * constants.inverse(of)).rational
    return q is not None and q.q == 1


def _is_whole(m: Monomial) -> bool:
    """Whether m is a power of t with a whole exponent above 0."""
    if len(m.logs) != 1 or m.logs[0][0] != 1:
        return False
    q = m.logs[0][1].rational
    return q is not None and q.q == 1 and q > 0


def _whole_part(f: Expansion) -> tuple[Expansion, Expansion]:
    """(terms that are whole at every whole distance, the others)."""
    whole = {m for m, c in f if isinstance(c, Constant) and _is_whole(m) and _is_multiple(c, ONE)}
    return tuple(x for x in f if x[0] in whole), tuple(x for x in f if x[0] not in whole)
