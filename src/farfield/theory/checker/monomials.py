"""Monomials of the logarithmic scale, and their ranges on a domain of distances.

A monomial is exp(c_1 k_1 + c_2 k_2 + ...) with exact constants c and keys k that grow, the largest first. A key is a
level, l_0 = t, l_1 = ln t, l_2 = ln ln t, ..., or a monomial that grows. So t**a * (ln t)**b is exp(a l_1 + b l_2).
"""

from __future__ import annotations

import functools

from flint import arb

from farfield.theory.checker.constants import MINUS, ONE, Constant, UnknownError, ball, sign
from farfield.theory.checker.intervals import INFINITY, Interval, exactly, span

LEVELS = 9


class Monomial:
    """exp of a sum of constants times keys, the largest key first."""

    __slots__ = ("_hash", "logs")

    def __init__(self, logs: tuple[tuple[Key, Constant], ...]):
        self.logs = logs
        self._hash = hash(logs)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Monomial) and self._hash == other._hash and self.logs == other.logs

    def __repr__(self) -> str:
        return "exp(" + " + ".join(f"{float(ball(c).mid()):g}*{k!r}" for k, c in self.logs) + ")"


Key = int | Monomial
UNIT = Monomial(())


def level(i: int) -> Monomial:
    """The monomial l_i."""
    return Monomial(((i + 1, ONE),))


T = level(0)


def as_monomial(key: Key) -> Monomial:
    """A key as a monomial."""
    return level(key) if isinstance(key, int) else key


def as_key(m: Monomial) -> Key:
    """A monomial that grows, as a key."""
    if len(m.logs) == 1 and isinstance(m.logs[0][0], int) and m.logs[0][0] and m.logs[0][1] == ONE:
        return m.logs[0][0] - 1
    return m


def _key_order(a: Key, b: Key) -> int:
    """1 if a outgrows b, -1 the other way round, 0 if they are equal."""
    if isinstance(a, int) and isinstance(b, int):
        return (a < b) - (a > b)
    return compare(as_monomial(a), as_monomial(b))


@functools.lru_cache(maxsize=50_000)
def times(m: Monomial, n: Monomial) -> Monomial:
    """The product of two monomials."""
    logs: list[tuple[Key, Constant]] = []
    left, right = list(m.logs), list(n.logs)
    while left and right:
        order = _key_order(left[0][0], right[0][0])
        if order:
            logs.append((left if order > 0 else right).pop(0))
        else:
            (key, c), (_, d) = left.pop(0), right.pop(0)
            if sign(c + d):
                logs.append((key, c + d))
    return Monomial((*logs, *left, *right))


@functools.lru_cache(maxsize=20_000)
def raised(m: Monomial, e: Constant) -> Monomial:
    """m ** e."""
    return Monomial(tuple((k, c * e) for k, c in m.logs)) if sign(e) else UNIT


@functools.lru_cache(maxsize=50_000)
def compare(m: Monomial, n: Monomial) -> int:
    """1 if m outgrows n, -1 the other way round, 0 if they are equal."""
    if m is n:
        return 0
    quotient = times(m, raised(n, MINUS))
    return sign(quotient.logs[0][1]) if quotient.logs else 0


def _larger_first(a: tuple[Monomial, Constant], b: tuple[Monomial, Constant]) -> int:
    return compare(b[0], a[0])


def forget() -> None:
    """Drop what was remembered of earlier formulas."""
    for remembered in (times, raised, compare):
        remembered.cache_clear()


# ---------------------------------------------------------------------------------------------------- domains
class Domain:
    """The distances from `low` to `high` (None: all that follow), each given by its logarithms l_0, l_1, ..."""

    def __init__(self, low: tuple[Interval, ...], high: tuple[Interval, ...] | None):
        self.low, self.high = low, high
        self._ranges: dict[Monomial, Interval] = {}
        self._depth = 0

    @classmethod
    def between(cls, low: int, high: int) -> Domain:
        """All distances from low to high."""
        return cls(logarithms(exactly(low)), logarithms(exactly(high)))

    def positive(self, i: int) -> bool:
        """Whether l_i is positive on the whole domain."""
        return i < len(self.low) and bool(self.low[i].low > 0)

    def range(self, m: Monomial) -> Interval:
        """All values of a monomial on the domain."""
        result = self._ranges.get(m)
        if result is None:
            self._depth += 1
            result = self._ranges[m] = self._range(m)
            self._depth -= 1
        return result

    def _range(self, m: Monomial) -> Interval:
        if not m.logs:
            return exactly(1)
        slope = self._slope(m)
        if slope:
            first = self._at(m, self.low)
            last = None if self.high is None else self._at(m, self.high)
            if slope > 0:
                return Interval(first.low, INFINITY if last is None else last.high)
            return Interval(arb(0) if last is None else last.low, first.high)
        total = exactly(0)
        for key, c in m.logs:
            total = total + span(ball(c)) * self.range(as_monomial(key))
        return total.exp()

    def _at(self, m: Monomial, place: tuple[Interval, ...]) -> Interval:
        """A monomial at one place."""
        total = exactly(0)
        for key, c in m.logs:
            value = place[key] if isinstance(key, int) else self._at(key, place)
            total = total + span(ball(c)) * value
        return total.exp()

    def _slope(self, m: Monomial) -> int:
        """1 if the monomial rises on the whole domain, -1 if it falls, 0 if neither is shown."""
        keys = [key for key, _ in m.logs if isinstance(key, int)]
        if any(key >= len(self.low) for key in keys):
            raise UnknownError("a logarithm of something that is not positive from here on")
        if self._depth > 12:
            return 0
        steepness = self._derivative(m)  # one term for each key, the steepest first
        lead = steepness[0][0]
        total = exactly(0)
        for n, c in steepness:
            ratio = times(n, raised(lead, MINUS))
            total = total + span(ball(c)) * (self.range(ratio) if ratio.logs else exactly(1))
        return 1 if total.low >= 0 else -1 if total.high <= 0 else 0

    def _derivative(self, m: Monomial) -> list[tuple[Monomial, Constant]]:
        """The derivative of ln m as a sum of constants times monomials, the largest first."""
        terms: list[tuple[Monomial, Constant]] = []
        for key, c in m.logs:
            if isinstance(key, int):  # the derivative of l_i is 1/(l_0 l_1 ... l_(i-1))
                terms.append((Monomial(tuple((j, MINUS) for j in range(1, key + 1))), c))
            else:
                terms += [(times(key, n), c * d) for n, d in self._derivative(key)]
        return sorted(terms, key=functools.cmp_to_key(_larger_first))


def logarithms(t: Interval) -> tuple[Interval, ...]:
    """t, ln t, ln ln t, ... as long as they exist."""
    result = [t]
    while len(result) < LEVELS and result[-1].low > 0:
        result.append(result[-1].log())
    return tuple(result)


def exponentials(whole: int, nesting: int) -> tuple[Interval, ...]:
    """The same for exp(exp(... whole))."""
    result = logarithms(exactly(whole))
    for _ in range(nesting):
        result = (result[0].exp(), *result)[:LEVELS]
    return result
