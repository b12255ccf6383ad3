"""Monomials of the logarithmic scale, their ranges on a domain of distances, and how sums of them are written.

A monomial is exp(c_1 k_1 + c_2 k_2 + ...) with exact constants c and keys k that grow, the largest first. A key is a
level, l_0 = t, l_1 = ln t, l_2 = ln ln t, ..., or a monomial that grows. So t**a * (ln t)**b is exp(a l_1 + b l_2).

An expansion c_1 m_1 + c_2 m_2 + ... (the largest monomial first) holds a function f on a domain if for every distance
there are numbers k_i in c_i with f = k_1 m_1 + k_2 m_2 + ...; a coefficient c is an exact constant or an interval.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from fractions import Fraction

from flint import arb, fmpq

from farfield.formula import Node, tree
from farfield.theory.errors import UnknownError
from farfield.theory.exact.constants import MINUS, ONE, Atom, Constant, Product, ball, is_zero, sign
from farfield.theory.exact.intervals import INFINITY, Interval, exactly, span
from farfield.theory.exact.spreads import Spread

LEVELS = 9
MAX_TERMS = 4  # of an expansion that is written out


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
Coefficient = Constant | Interval
Expansion = tuple[tuple[Monomial, Coefficient], ...]
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
            if not is_zero(c + d):
                logs.append((key, c + d))
    return Monomial((*logs, *left, *right))


@functools.lru_cache(maxsize=20_000)
def raised(m: Monomial, e: Constant) -> Monomial:
    """m ** e."""
    return Monomial(tuple((k, c * e) for k, c in m.logs)) if not is_zero(e) else UNIT


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


# ---------------------------------------------------------------------------------------------------- as expressions
def constant_node(c: Constant) -> Node:
    """A constant; parameters by their names, the plain number last."""
    terms = sorted(c.terms.items(), key=lambda term: (not term[0], _order(term[0])))
    return tree.total(_term(product, _fraction(q)) for product, q in terms)


def _order(product: Product) -> list[tuple[bool, str, int, int]]:
    return [(a.kind != "parameter", a.name, a.serial, -e) for a, e in product]


def _term(product: Product, q: Fraction) -> Node:
    pairs = sorted(product, key=lambda pair: _order((pair,)))
    above = [_atom(a, e) for a, e in pairs if e > 0 or a.kind == "exp"]
    below = [_atom(a, -e) for a, e in pairs if e < 0 and a.kind != "exp"]
    top = tree.product([tree.fraction(Fraction(q.numerator)), *above])
    return tree.quotient(top, *below, tree.fraction(Fraction(q.denominator)))


def _atom(a: Atom, e: int) -> Node:
    if a.kind == "exp":
        return _exponential(a, e)
    if a.kind == "root":
        return tree.power(constant_node(a.of), tree.fraction(Fraction(e, a.degree)))
    if a.kind == "inverse":
        return tree.power(constant_node(a.of), tree.fraction(Fraction(-e)))
    if a.kind == "parameter":
        base = tree.name(a.name)
    elif a.kind == "pi":
        base = Node("pi")
    elif a.kind == "turn":
        base = tree.call("cos", tree.product([Node("pi"), constant_node(a.of)]))
    else:
        base = tree.call(a.kind, constant_node(a.of))
    return tree.power(base, tree.fraction(Fraction(e)))


def _exponential(a: Atom, e: int) -> Node:
    """exp(c), or x**c where c is a multiple of one logarithm."""
    log = _logarithm(a)
    if log is None:
        return tree.call("exp", constant_node(Constant({m: q * e for m, q in a.of.terms.items()})))
    ((product, q),) = a.of.terms.items()
    rest = Constant({tuple(pair for pair in product if pair[0] is not log): q * e})
    return Node("**", (constant_node(log.of), constant_node(rest)))


def _logarithm(a: Atom) -> Atom | None:
    """The logarithm of x, if an exponential is written as a power of x."""
    if len(a.of.terms) != 1:
        return None
    return next((b for product in a.of.terms for b, n in product if b.kind == "log" and n == 1), None)


def power_bases(c: Constant) -> Iterator[Constant]:
    """What must be positive for a constant to have a value, though the text does not say it: a in a**b."""
    for a in dict.fromkeys(a for product in c.terms for a, _ in product if a.region is not None):
        if a.kind == "exp" and (log := _logarithm(a)) is not None and log.of.region is not None:
            yield log.of
        if a.kind != "parameter":
            yield from power_bases(a.of)


def level_node(i: int) -> Node:
    """t, log(t), log(log(t)), ..."""
    node = tree.T
    for _ in range(i):
        node = tree.call("log", node)
    return node


def monomial_node(m: Monomial) -> Node:
    """A monomial: a product of powers of t and its logarithms, and exponentials of larger monomials."""
    above: list[Node] = []
    below: list[Node] = []
    inside: list[Node] = []
    for key, c in m.logs:
        if isinstance(key, int) and key:
            down = c.rational is not None and c.rational < 0
            power = tree.power(level_node(key - 1), constant_node(-c if down else c))
            (below if down else above).append(power)
        else:
            inside.append(tree.product([constant_node(c), _key(key)]))
    top = tree.product([*([tree.call("exp", tree.total(inside))] if inside else []), *above])
    return tree.quotient(top, *below)


def _key(key: Key) -> Node:
    return level_node(key) if isinstance(key, int) else monomial_node(key)


def expansion_node(f: Expansion) -> Node:
    """The first terms of an expansion, and the order of what follows."""
    parts: list[Node] = []
    for m, c in f[:MAX_TERMS]:
        if not isinstance(c, Constant):
            return tree.total([*parts, tree.call("order", monomial_node(m))])
        parts.append(_term_node(c, monomial_node(m)))
    return tree.total([*parts, *([tree.DOTS] if len(f) > MAX_TERMS else [])])


def _term_node(c: Constant, m: Node) -> Node:
    """c*m; where m is x/y, c*x/y; t/8 for 1/8 of t."""
    top, bottom = m.args if m.op == "/" else (m, tree.ONE)
    if c.rational is None:
        return tree.quotient(tree.product([constant_node(c), top]), bottom)
    q = _fraction(c.rational)
    return tree.quotient(
        tree.product([tree.fraction(q.numerator), top]), tree.product([tree.fraction(q.denominator), bottom])
    )


def size_node(f: Expansion) -> Node:
    """A sum that is at least the absolute value of an expansion."""
    return tree.total(tree.product([_size(c), monomial_node(m)]) for m, c in f)


def _size(c: Coefficient) -> Node:
    if isinstance(c, Constant):
        return tree.call("abs", constant_node(c)) if c.rational is None else tree.fraction(_fraction(abs(c.rational)))
    parts = c.parts if isinstance(c, Spread) else ((ONE, c),)
    sizes = [(d, x.low.max(-x.low).max(x.high).max(-x.high)) for d, x in parts]
    return tree.total(tree.product([tree.fraction(_above(most)), _size(d)]) for d, most in sizes)


def _fraction(q: fmpq) -> Fraction:
    return Fraction(int(q.p), int(q.q))


def _above(x: arb) -> Fraction:
    """A rational number with a small denominator that is at least x."""
    return Fraction(int((x * 4096).upper().ceil().fmpz()), 4096)
