"""Exact real constants: sums of products of known numbers, with rational coefficients and parameters kept as names.

A constant is a polynomial over *atoms*: pi, fractional powers of primes, logarithms of primes, exponentials, cosines,
parameters, and whatever else is kept whole. Everything stays exact, so that 1.0000001 is not 1 and
sqrt(2)*sqrt(3) - sqrt(6) is 0. Signs are proven in signs.py; whoever takes a root or a logarithm knows the sign.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Any

from flint import ctx, fmpz

from farfield.formula import Node, build
from farfield.theory.errors import UndecidedError, UndefinedError

LONGEST = 1 << 20  # bits of an integer that is written out
_FUNCTIONS = ("atan", "erf", "gamma")
_KINDS = ("pi", "prime", "log prime", "exp", "cos", "sin", "abs", "sum", "log", "floor", "param", *_FUNCTIONS)
_POSITIVE = {"pi", "prime", "log prime", "exp", "gamma"}
_LARGEST_FACTORIAL = 200  # that is written out


class Atom:
    """A number that is kept whole: its kind, and what it is made of.

    "pi"; "prime" p; "log prime" p; "exp", "cos", "sin", "abs", "log" (of the absolute value), "floor", "atan", "erf"
    and "gamma" of a constant; "sum", a constant of several terms under a power; "param", a name.
    """

    __slots__ = ("_hash", "_rank", "kind", "made_of")

    def __init__(self, kind: str, made_of: Any = None):
        self.kind, self.made_of = kind, made_of
        self._hash = hash((kind, made_of))
        self._rank: tuple[Any, ...] | None = None

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Atom) or self._hash != other._hash:
            return False
        return self.kind == other.kind and self.made_of == other.made_of

    @property
    def rank(self) -> tuple[Any, ...]:
        """Where the atom stands in an order that does not depend on the run."""
        if self._rank is None:
            inside = self.made_of.rank if isinstance(self.made_of, Const) else self.made_of or 0
            self._rank = (_KINDS.index(self.kind), inside)
        return self._rank

    @property
    def parameters(self) -> frozenset[str]:
        """The names that occur in it."""
        if self.kind == "param":
            return frozenset((self.made_of,))
        return self.made_of.parameters if isinstance(self.made_of, Const) else frozenset()


Monomial = tuple[tuple[Atom, Fraction], ...]


class Const:
    """An exact constant; arithmetic returns exact constants."""

    __slots__ = ("_hash", "_parameters", "_rank", "terms")

    def __init__(self, terms: dict[Monomial, Fraction]):
        self.terms = {m: c for m, c in terms.items() if c}
        self._hash = hash(frozenset(self.terms.items()))
        self._rank: tuple[Any, ...] | None = None
        self._parameters: frozenset[str] | None = None

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Const) and self._hash == other._hash and self.terms == other.terms

    @property
    def rational(self) -> Fraction | None:
        """The value if it is plainly rational."""
        if not self.terms:
            return Fraction(0)
        return self.terms.get(()) if len(self.terms) == 1 else None

    @property
    def whole(self) -> int | None:
        """The value if it is plainly a whole number."""
        q = self.rational
        return int(q) if q is not None and q.denominator == 1 else None

    @property
    def rank(self) -> tuple[Any, ...]:
        """Where the constant stands in an order that does not depend on the run."""
        if self._rank is None:
            ranks = ((tuple((a.rank, e) for a, e in m), q) for m, q in self.terms.items())
            self._rank = tuple(sorted(ranks))
        return self._rank

    @property
    def parameters(self) -> frozenset[str]:
        """The names that occur anywhere in it."""
        if self._parameters is None:
            self._parameters = frozenset().union(*(a.parameters for m in self.terms for a, _ in m))
        return self._parameters

    def __add__(self, other: Const | Fraction | int) -> Const:
        terms = dict(self.terms)
        for m, c in exactly(other).terms.items():
            terms[m] = terms.get(m, Fraction(0)) + c
        return Const(terms)

    def __neg__(self) -> Const:
        return Const({m: -c for m, c in self.terms.items()})

    def __sub__(self, other: Const | Fraction | int) -> Const:
        return self + -exactly(other)

    def __mul__(self, other: Const | Fraction | int) -> Const:
        other = exactly(other)
        a, b = self.rational, other.rational
        if a is not None:
            return Const({m: a * c for m, c in other.terms.items()})
        if b is not None:
            return Const({m: b * c for m, c in self.terms.items()})
        total = ZERO
        for m1, c1 in self.terms.items():
            for m2, c2 in other.terms.items():
                total = total + _product(m1 + m2, c1 * c2)
        return total

    def __truediv__(self, other: Const | Fraction | int) -> Const:
        return self * power(exactly(other), Fraction(-1))

    def __repr__(self) -> str:
        return text(self)


def rational(value: Fraction | int) -> Const:
    """A rational number as a constant."""
    return Const({(): Fraction(value)})


def exactly(value: Const | Fraction | int) -> Const:
    """A constant, or a rational number as one."""
    return value if isinstance(value, Const) else rational(value)


def _atom(kind: str, made_of: Any = None, exponent: Fraction | int = 1) -> Const:
    return Const({((Atom(kind, made_of), Fraction(exponent)),): Fraction(1)})


ZERO, ONE, PI = Const({}), rational(1), _atom("pi")


def parameter(name: str) -> Const:
    """A parameter that has no value yet."""
    return _atom("param", name)


def _product(pairs: Monomial, coefficient: Fraction) -> Const:
    """The product of atom powers in normal form."""
    exponents: dict[Atom, Fraction] = {}
    for atom, e in pairs:
        exponents[atom] = exponents.get(atom, Fraction(0)) + e
    keep: list[tuple[Atom, Fraction]] = []
    expand: list[Const] = []
    for atom, e in exponents.items():
        if e == 0:
            continue
        if atom.kind == "prime" and abs(e) * atom.made_of.bit_length() < LONGEST:
            coefficient *= Fraction(atom.made_of) ** math.floor(e)
            e -= math.floor(e)
        elif atom.kind == "sum" and e.denominator == 1 and e > 0:
            expand += [atom.made_of] * int(e)
            continue
        elif atom.kind == "abs" and e.denominator == 1 and e % 2 == 0:
            expand.append(power(atom.made_of, e))
            continue
        elif atom.kind == "sin" and e.denominator == 1 and e > 1:
            expand += [ONE - power(_atom("cos", atom.made_of), Fraction(2))] * int(e // 2)
            e %= 2
        elif atom.kind == "cos" and e.denominator == 1 and e > 1 and _turns(atom.made_of) is not None:
            expand.append(_power_of_cosine(atom.made_of, int(e)))
            continue
        if e:
            keep.append((atom, e))
    turning = [i for i, (a, e) in enumerate(keep) if a.kind == "cos" and e == 1 and _turns(a.made_of) is not None]
    if len(turning) > 1:  # of two roots of unity: cos x cos y is a sum
        (x, _), (y, _) = keep[turning[0]], keep[turning[1]]
        rest = tuple(p for i, p in enumerate(keep) if i not in turning[:2])
        both = trigonometric("cos", x.made_of + y.made_of) + trigonometric("cos", x.made_of - y.made_of)
        result = both * _product(rest, coefficient / 2)
    else:
        result = Const({tuple(sorted(keep, key=lambda p: p[0].rank)): coefficient})
    for c in expand:
        result = result * c
    return result


@functools.lru_cache(maxsize=4096)
def factors(n: int) -> tuple[tuple[int, int], ...]:
    """Prime factors of a positive integer; what is left of a large one after small primes is kept whole."""
    if n.bit_length() <= 160:
        return tuple((int(p), int(e)) for p, e in fmpz(n).factor())
    answer = []
    for p in (2, 3, 5, 7, 11, 13):
        times = 0
        while n % p == 0:
            n, times = n // p, times + 1
        answer += [(p, times)] * bool(times)
    return (*answer, *([(n, 1)] if n > 1 else []))


def _rational_power(q: Fraction, e: Fraction) -> Const:
    """A positive rational to a rational power."""
    if e.denominator == 1 and abs(e) * max(q.numerator.bit_length(), q.denominator.bit_length()) < LONGEST:
        return rational(q ** int(e))
    pairs = []
    for n, sign in ((q.numerator, 1), (q.denominator, -1)):
        pairs += [(Atom("prime", p), sign * m * e) for p, m in factors(n) if n > 1]
    return _product(tuple(pairs), Fraction(1))


def _single(c: Const) -> tuple[Monomial, Fraction] | None:
    return next(iter(c.terms.items())) if len(c.terms) == 1 else None


def _size(atom: Atom, whole: bool) -> Const:
    """The absolute value of an atom that stands under a whole power, or under a root (which is positive then)."""
    own = Const({((atom, Fraction(1)),): Fraction(1)})
    if atom.kind in _POSITIVE or atom.kind == "abs" or not whole:
        return own
    from farfield.theory.exact.signs import sign

    return own if not atom.parameters and sign(own) > 0 else _atom("abs", own)


def power(c: Const, e: Fraction) -> Const:
    """A constant to a rational power; the caller knows that it is positive, or e an integer and c not zero."""
    if e == 0:
        return ONE
    if not c.terms:
        assert e > 0, "a power of zero"
        return ZERO
    if e.denominator == 1 and 0 < e <= 4:
        return functools.reduce(lambda a, b: a * b, [c] * int(e))
    single = _single(c)
    if single is None:
        return _power_of_sum(c, e)
    monomial, q = single
    if e.denominator == 1:
        sign = -1 if q < 0 and e % 2 else 1
        return _product(tuple((a, x * e) for a, x in monomial), Fraction(sign)) * _rational_power(abs(q), e)
    result = _rational_power(abs(q), e)
    for atom, x in monomial:  # the product is positive, and so it is the product of the absolute values
        inside = _single(_size(atom, x.denominator == 1))
        assert inside is not None
        result = result * _product(((inside[0][0][0], x * e),), Fraction(1))
    return result


def _power_of_sum(c: Const, e: Fraction) -> Const:
    """A power of several terms; one that is made of plain numbers is kept with a positive sum."""
    scale = abs(next(iter(c.terms.values())))
    core, sign = c * (1 / scale), 1
    if not core.parameters:
        from farfield.theory.exact import signs

        if signs.sign(core) < 0:
            assert e.denominator == 1, "a root of something negative"
            core, sign = -core, (-1) ** (int(e) % 2)
    return _rational_power(scale, e) * _atom("sum", core, e) * sign


def log(c: Const) -> Const:
    """The logarithm of the absolute value of a constant that is not zero."""
    single = _single(c)
    if single is None:
        scale = abs(next(iter(c.terms.values())))
        return log(rational(scale)) + _log_atom(c * (1 / scale))
    monomial, q = single
    total = ZERO
    for n, sign in ((abs(q.numerator), 1), (q.denominator, -1)):
        for p, m in factors(n) if n > 1 else ():
            total = total + _atom("log prime", p) * (sign * m)
    for atom, e in monomial:
        if atom.kind == "prime":
            part = _atom("log prime", atom.made_of)
        elif atom.kind == "exp":
            part = atom.made_of
        elif atom.kind in ("abs", "sum"):
            part = log(atom.made_of) if atom.kind == "abs" else _log_atom(atom.made_of)
        else:
            part = _log_atom(Const({((atom, Fraction(1)),): Fraction(1)}))
        total = total + part * e
    return total


def _log_atom(core: Const) -> Const:
    """log|core|, with core positive where that can be told."""
    if not core.parameters:
        from farfield.theory.exact.signs import sign

        core = core if sign(core) > 0 else -core
    return _atom("log", core)


def exp(c: Const) -> Const:
    """The exponential of a constant, one factor for each term."""
    result = ONE
    for monomial, q in c.terms.items():
        atom = monomial[0][0] if len(monomial) == 1 and monomial[0][1] == 1 else None
        if atom is not None and atom.kind == "log prime":
            factor = _rational_power(Fraction(atom.made_of), q)
        elif atom is not None and atom.kind == "log":
            inside = atom.made_of if not atom.made_of.parameters else _atom("abs", atom.made_of)
            factor = power(inside, q)
        else:
            factor = _atom("exp", Const({monomial: Fraction(1)}), q)
        result = result * factor
    return result


def real_power(base: Const, e: Const) -> Const:
    """A positive constant to any real power."""
    q = e.rational
    return power(base, q) if q is not None else exp(e * log(base))


# ------------------------------------------------------------------------------------------------ waves
def _turns(c: Const) -> Fraction | None:
    """q if the constant is q*pi."""
    single = _single(c)
    if single is None or len(single[0]) != 1:
        return None
    (atom, e), q = single[0][0], single[1]
    return q if atom.kind == "pi" and e == 1 else None


def trigonometric(name: str, c: Const) -> Const:
    """sin or cos of a constant; of a rational multiple of pi as a cosine between 0 and pi/2."""
    turns = Fraction(0) if not c.terms else _turns(c)
    if turns is None:
        negative = _leads_negative(c)
        value = _atom(name, -c if negative else c)
        return -value if negative and name == "sin" else value
    x = (turns if name == "cos" else turns - Fraction(1, 2)) % 2
    x = 2 - x if x > 1 else x
    sign, x = (-1, 1 - x) if x > Fraction(1, 2) else (1, x)
    known = _COSINES.get(x)
    return (_atom("cos", PI * x) if known is None else known) * sign


def _leads_negative(c: Const) -> bool:
    """Whether the first term has a minus sign, so that sin(-x) and sin(x) are kept as one."""
    return min(c.terms.items(), key=lambda item: tuple((a.rank, e) for a, e in item[0]))[1] < 0


def _power_of_cosine(angle: Const, n: int) -> Const:
    """cos(x)**n as a sum of cosines of multiples."""
    total = ZERO
    for k in range(n + 1):
        total = total + trigonometric("cos", angle * (n - 2 * k)) * math.comb(n, k)
    return total * Fraction(1, 2**n)


def _cosines() -> dict[Fraction, Const]:
    """cos(x*pi) for x between 0 and 1/2 where it is made of square roots."""
    half, root = rational(Fraction(1, 2)), lambda n: power(rational(n), Fraction(1, 2))
    return {
        Fraction(0): ONE,
        Fraction(1, 6): root(3) * half,
        Fraction(1, 5): (root(5) + 1) * Fraction(1, 4),
        Fraction(1, 4): root(2) * half,
        Fraction(1, 3): half,
        Fraction(2, 5): (root(5) - 1) * Fraction(1, 4),
        Fraction(1, 2): ZERO,
    }


_COSINES = _cosines()


def function(name: str, c: Const) -> Const:
    """atan or erf of a constant, or gamma of a positive one."""
    if name == "gamma":
        return _gamma(c)
    if not c.terms:
        return ZERO
    if _leads_negative(c):
        return -function(name, -c)
    turns = _ARCTANGENTS.get(c) if name == "atan" else None
    return _atom(name, c) if turns is None else PI * turns


_ARCTANGENTS = {ONE: Fraction(1, 4), power(rational(3), Fraction(1, 2)): Fraction(1, 3)} | {
    power(rational(3), Fraction(-1, 2)): Fraction(1, 6)
}


def _gamma(c: Const) -> Const:
    """(n - 1)! at whole n, rational multiples of sqrt(pi) halfway between."""
    q = c.rational
    if q is None or q.denominator > 2 or q > _LARGEST_FACTORIAL:
        return _atom("gamma", c)
    if q.denominator == 1:
        return rational(math.factorial(int(q) - 1))
    n = int(q)
    return power(PI, Fraction(1, 2)) * Fraction(math.factorial(2 * n), 4**n * math.factorial(n))


def floor(c: Const) -> Const:
    """The largest integer up to a constant; kept whole while parameters are open."""
    if c.rational is not None:
        return rational(math.floor(c.rational))
    if c.parameters:
        return _atom("floor", c)
    from farfield.theory.exact.signs import ball, sign

    for bits in (64, 1024, 4096):
        with ctx.workprec(bits):
            value = ball(c)
        if value.rad() < 0.25:
            near = int((value.mid() + 0.5).floor().unique_fmpz())  # at most 3/4 away
            return rational(near if sign(c - near) >= 0 else near - 1)
    raise UndecidedError("the floor of a constant is not certain")


def substitute(c: Const, name: str, value: Const) -> Const:
    """The constant with a parameter replaced."""
    total = ZERO
    for monomial, q in c.terms.items():
        part = rational(q)
        for atom, e in monomial:
            part = part * _substituted_atom(atom, e, name, value)
        total = total + part
    return total


def _substituted_atom(atom: Atom, e: Fraction, name: str, value: Const) -> Const:
    if name not in atom.parameters:
        return Const({((atom, e),): Fraction(1)})
    inside = value if atom.kind == "param" else substitute(atom.made_of, name, value)
    if not inside.terms and (atom.kind == "log" or (e < 0 and atom.kind in ("param", "abs", "sum"))):
        raise UndefinedError("a constant becomes undefined")
    if atom.kind in ("param", "sum"):
        return power(inside, e)
    if atom.kind == "abs":
        return power(exp(log(inside)), e) if inside.terms else ZERO
    if atom.kind == "gamma" and not inside.parameters:
        from farfield.theory.exact.signs import sign

        if sign(inside) <= 0:
            raise UndefinedError("a constant becomes undefined")
    new = {"exp": exp, "log": log, "floor": floor}.get(atom.kind)
    if atom.kind in _FUNCTIONS:
        new = functools.partial(function, atom.kind)
    return power(trigonometric(atom.kind, inside) if new is None else new(inside), e)


# ------------------------------------------------------------------------------------------------ spelling
def node(c: Const) -> Node:
    """The constant as an expression of the formula language, for proofs and conditions."""
    terms = [(_term_node(monomial, q), monomial) for monomial, q in c.terms.items()]
    ordered = sorted(terms, key=lambda item: (item[1] == (), spelling_order(item[1])))
    return build.total(term for term, _ in ordered)


def text(c: Const) -> str:
    """The constant in the formula language."""
    from farfield.formula.plain_text import text as spelt

    return spelt(node(c))


def spelling_order(monomial: Monomial) -> list[Any]:
    """Parameters by their names first, and then the other atoms."""
    return [(a.kind != "param", a.made_of if a.kind == "param" else "", a.rank, -e) for a, e in monomial]


def _term_node(monomial: Monomial, q: Fraction) -> Node:
    parts = sorted(monomial, key=lambda p: spelling_order((p,)))
    below = [_atom_node(a, -e) for a, e in parts if e < 0 and e.denominator == 1 and a.kind != "exp"]
    above = [_atom_node(a, e) for a, e in parts if e > 0 or e.denominator != 1 or a.kind == "exp"]
    top = build.product([build.fraction(q.numerator), *above])
    return build.quotient(top, *below, build.fraction(q.denominator))


def _atom_node(atom: Atom, e: Fraction) -> Node:
    if atom.kind == "exp":
        return build.call("exp", node(atom.made_of * e))
    if atom.kind in ("pi", "param"):
        base = Node("pi") if atom.kind == "pi" else build.name(atom.made_of)
    elif atom.kind in ("prime", "log prime"):
        base = build.fraction(atom.made_of)
    else:
        base = node(atom.made_of)
    if atom.kind == "log" and atom.parameters:
        base = build.call("abs", base)
    function = "log" if atom.kind == "log prime" else atom.kind
    inside = base if atom.kind in ("pi", "param", "prime", "sum") else build.call(function, base)
    return build.power(inside, build.fraction(e))
