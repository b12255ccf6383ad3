"""Exact real constants: sums of products of known numbers, with rational coefficients and parameters kept as names.

A constant is a polynomial over *atoms*: pi, fractional powers of primes, logarithms of primes, exponentials,
parameters, and whatever else is kept whole. Everything stays exact, so that 1.0000001 is not 1 and
sqrt(2)*sqrt(3) - sqrt(6) is 0. Signs are proven with balls; zero is proven by the form itself or, for radicals, by a
separation bound (Burnikel, Fleischer, Mehlhorn, Schirra 2000).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from flint import arb, fmpq, fmpz

from farfield.formula import Node, build
from farfield.formula.text import text as spelt
from farfield.theory.errors import UndecidedError
from farfield.theory.exact.precision import precision


@dataclass(frozen=True, slots=True)
class Atom:
    """A number that is kept whole: its kind, a text that identifies it, and what it is made of."""

    kind: str  # "pi" "prime" "logprime" "exp" "param" "abs" "logabs" "whole" "cos" "sin" "floor"
    key: str
    made_of: Any = field(compare=False, repr=False)


Monomial = tuple[tuple[Atom, Fraction], ...]
_ALGEBRAIC, _POSITIVE = {"prime", "whole"}, {"pi", "prime", "logprime", "exp", "abs"}


class Const:
    """An exact constant; arithmetic returns exact constants."""

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: dict[Monomial, Fraction]):
        self.terms = {m: c for m, c in terms.items() if c}
        self._hash = hash(frozenset(self.terms.items()))

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
    def parameters(self) -> frozenset[str]:
        """The names that occur anywhere in it."""
        found: set[str] = set()
        for monomial in self.terms:
            for atom, _ in monomial:
                found |= {atom.key} if atom.kind == "param" else _made_of(atom).parameters
        return frozenset(found)

    def __add__(self, other: Const) -> Const:
        terms = dict(self.terms)
        for m, c in other.terms.items():
            terms[m] = terms.get(m, Fraction(0)) + c
        return Const(terms)

    def __neg__(self) -> Const:
        return Const({m: -c for m, c in self.terms.items()})

    def __sub__(self, other: Const) -> Const:
        return self + -other

    def __mul__(self, other: Const) -> Const:
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

    def __truediv__(self, other: Const) -> Const:
        return self * power(other, Fraction(-1))

    def __repr__(self) -> str:
        return text(self)


def rational(value: Fraction | int) -> Const:
    """A rational number as a constant."""
    return Const({(): Fraction(value)})


ZERO, ONE = Const({}), rational(1)


def _atom(kind: str, key: str, made_of: Any = None) -> Const:
    return Const({((Atom(kind, key, made_of), Fraction(1)),): Fraction(1)})


PI = _atom("pi", "pi")


def parameter(name: str) -> Const:
    """A parameter that has no value yet."""
    return _atom("param", name)


def _made_of(atom: Atom) -> Const:
    return atom.made_of if isinstance(atom.made_of, Const) else ZERO


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
        if atom.kind == "prime":
            whole = math.floor(e)
            coefficient *= Fraction(atom.made_of) ** whole
            e -= whole
        elif atom.kind == "whole" and e.denominator == 1 and e > 0:
            expand += [atom.made_of] * int(e)
            continue
        elif atom.kind == "abs" and e.denominator == 1 and e % 2 == 0:
            expand.append(power(atom.made_of, e))
            continue
        if e:
            keep.append((atom, e))
    result = Const({tuple(sorted(keep, key=lambda p: (p[0].kind, p[0].key))): coefficient})
    for c in expand:
        result = result * c
    return result


def _single(c: Const) -> tuple[Monomial, Fraction] | None:
    return next(iter(c.terms.items())) if len(c.terms) == 1 else None


def _absolute(atom: Atom) -> Atom:
    return Atom("abs", atom.key, Const({((atom, Fraction(1)),): Fraction(1)}))


@functools.lru_cache(maxsize=4096)
def _factors(n: int) -> tuple[tuple[int, int], ...]:
    """Prime factors of a positive integer; a large one is kept whole, which only makes zero harder to see."""
    if n.bit_length() > 160:
        return ((n, 1),)
    return tuple((int(p), int(e)) for p, e in fmpz(n).factor())


def _rational_power(q: Fraction, e: Fraction) -> Const:
    """A positive rational to a rational power."""
    pairs = []
    for n, sign in ((q.numerator, 1), (q.denominator, -1)):
        pairs += [(Atom("prime", str(p), p), sign * m * e) for p, m in _factors(n) if n > 1]
    return _product(tuple(pairs), Fraction(1))


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
    if single is not None:
        monomial, q = single
        if e.denominator == 1:
            sign = -1 if q < 0 and e % 2 else 1
            return _product(tuple((a, x * e) for a, x in monomial), sign * abs(q) ** int(e))
        positive = tuple((a if a.kind in {*_POSITIVE, "whole"} else _absolute(a), x * e) for a, x in monomial)
        return _rational_power(abs(q), e) * _product(positive, Fraction(1))
    lead = next(iter(c.terms.values()))
    scale = abs(lead)
    core = Const({m: v / scale for m, v in c.terms.items()})
    return _rational_power(scale, e) * Const({((Atom("whole", text(core), core), e),): Fraction(1)})


def log(c: Const) -> Const:
    """The logarithm of the absolute value of a constant that is not zero."""
    single = _single(c)
    if single is None:
        scale = abs(next(iter(c.terms.values())))
        core = Const({m: v / scale for m, v in c.terms.items()})
        return log(rational(scale)) + _atom("logabs", text(core), core)
    monomial, q = single
    total = ZERO
    for n, sign in ((abs(q.numerator), 1), (q.denominator, -1)):
        for p, m in _factors(n) if n > 1 else ():
            total = total + rational(sign * m) * _atom("logprime", str(p), p)
    for atom, e in monomial:
        if atom.kind == "prime":
            part = _atom("logprime", atom.key, atom.made_of)
        elif atom.kind == "exp":
            part = atom.made_of
        elif atom.kind in ("abs", "whole"):
            part = log(atom.made_of) if atom.kind == "abs" else _atom("logabs", atom.key, atom.made_of)
        else:
            inside = Const({((atom, Fraction(1)),): Fraction(1)})
            part = _atom("logabs", text(inside), inside)
        total = total + rational(e) * part
    return total


def exp(c: Const) -> Const:
    """The exponential of a constant, one factor for each term."""
    result = ONE
    for monomial, q in c.terms.items():
        if len(monomial) == 1 and monomial[0][1] == 1 and monomial[0][0].kind in ("logprime", "logabs"):
            atom = monomial[0][0]
            if atom.kind == "logprime":
                factor = _rational_power(Fraction(atom.made_of), q)
            else:
                factor = _product(((Atom("abs", text(atom.made_of), atom.made_of), q),), Fraction(1))
        else:
            core = Const({monomial: Fraction(1)})
            factor = Const({((Atom("exp", text(core), core), q),): Fraction(1)})
        result = result * factor
    return result


def real_power(base: Const, e: Const) -> Const:
    """A positive constant to any real power."""
    q = e.rational
    return power(base, q) if q is not None else exp(e * log(base))


def trigonometric(name: str, c: Const) -> Const:
    """sin or cos of a constant."""
    turns = (c / PI).rational  # in units of pi
    if turns is not None:
        exact = _COSINES.get((turns if name == "cos" else turns - Fraction(1, 2)) % 2)
        if exact is not None:
            return exact
    return _atom(name, text(c), c)


def _cosines() -> dict[Fraction, Const]:
    """cos(x*pi) for the multiples x of 1/4 and 1/6 in [0, 2)."""
    half = rational(Fraction(1, 2))
    first = {Fraction(0): ONE, Fraction(1, 6): power(rational(3), Fraction(1, 2)) * half, Fraction(1, 3): half,
             Fraction(1, 4): power(rational(2), Fraction(1, 2)) * half, Fraction(1, 2): ZERO}  # fmt: skip
    upper = {**first, **{1 - x: -c for x, c in first.items()}}
    return {**upper, **{2 - x: c for x, c in upper.items() if x}}


_COSINES = _cosines()


def floor(c: Const) -> Const:
    """The largest integer up to a constant; kept whole while parameters are open."""
    if c.rational is not None:
        return rational(math.floor(c.rational))
    if c.parameters:
        return _atom("floor", text(c), c)
    whole = ball(c).floor().unique_fmpz()
    if whole is None:
        raise UndecidedError("the floor of a constant is not certain")
    return rational(int(whole))


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
    if atom.kind == "param":
        inside = value if atom.key == name else parameter(atom.key)
        if not inside.terms and e < 0:
            raise UndecidedError("division by zero")
        return power(inside, e)
    if name not in _made_of(atom).parameters:
        return Const({((atom, e),): Fraction(1)})
    inside = substitute(atom.made_of, name, value)
    if atom.kind == "exp":
        return power(exp(inside), e)
    if not inside.terms and atom.kind in ("logabs", "whole"):
        raise UndecidedError("a constant becomes undefined")
    if atom.kind == "logabs":
        return power(log(inside), e)
    if atom.kind == "abs":
        return power(exp(log(inside)), e) if inside.terms else ZERO
    if atom.kind == "whole":
        return power(inside, e)
    return power(floor(inside) if atom.kind == "floor" else trigonometric(atom.kind, inside), e)


# ------------------------------------------------------------------------------------------------ values and signs
def ball(c: Const) -> arb:
    """A ball that contains the constant, at the current precision."""
    total = arb(0)
    for monomial, q in c.terms.items():
        part = arb(fmpq(q.numerator, q.denominator))
        for atom, e in monomial:
            value = _atom_ball(atom)
            if e.denominator == 1:
                part = part * (value ** int(e) if e > 0 else 1 / value ** int(-e))
            else:
                part = part * value ** arb(fmpq(e.numerator, e.denominator))
        total = total + part
    return total


def _atom_ball(atom: Atom) -> arb:
    if atom.kind == "pi":
        return arb.pi()
    if atom.kind == "prime":
        return arb(atom.made_of)
    if atom.kind == "logprime":
        return arb(atom.made_of).log()
    if atom.kind == "param":
        raise UndecidedError(f"the parameter {atom.key} has no value")
    inside = ball(atom.made_of)
    if atom.kind == "logabs":
        return abs(inside).log()
    return {"exp": arb.exp, "abs": abs, "cos": arb.cos, "sin": arb.sin, "floor": arb.floor}.get(atom.kind, lambda x: x)(
        inside
    )


@functools.lru_cache(maxsize=100_000)
def sign(c: Const) -> int:
    """The sign of a constant without parameters, proven; UndecidedError if it cannot be."""
    q = c.rational
    if q is not None:
        return (q > 0) - (q < 0)
    for bits in (64, 256, 1024, 4096):
        with precision(bits):
            value = ball(c)
        if value > 0:
            return 1
        if value < 0:
            return -1
        if bits == 256 and _is_zero(c):
            return 0
    raise UndecidedError(f"cannot decide whether the constant {text(c)} is zero")


def _is_zero(c: Const) -> bool:
    """Whether the constant is proven zero: every algebraic coefficient of its transcendental monomials vanishes."""
    groups: dict[Monomial, Const] = {}
    for monomial, q in c.terms.items():
        rest = tuple(p for p in monomial if not is_algebraic(p[0]))
        mine = tuple(p for p in monomial if is_algebraic(p[0]))
        groups[rest] = groups.get(rest, ZERO) + Const({mine: q})
    return all(_radical_is_zero(g) for g in groups.values())


def is_algebraic(atom: Atom) -> bool:
    """Whether an atom is an algebraic number."""
    if atom.kind not in _ALGEBRAIC:
        return False
    return atom.kind == "prime" or all(is_algebraic(a) for m in atom.made_of.terms for a, _ in m)


def _radical_is_zero(c: Const) -> bool:
    """Zero test of an expression in radicals: a nonzero one is at least (l * u**(D*D - 1))**-1 in size."""
    if not c.terms:
        return True
    roots: dict[Atom, int] = {}
    with precision(128):
        u, lower = _separation(c, roots)
        degree = math.prod(roots.values())
        bits = ((u.log() * (degree * degree - 1) + lower.log()) / arb(2).log()).upper()
    if not bits < 60_000:
        return False
    needed = int(float(bits)) + 64
    with precision(2 * needed):
        return bool(abs(ball(c)) < arb(2) ** (-needed + 32))


def _separation(c: Const, roots: dict[Atom, int]) -> tuple[arb, arb]:
    u, lower = arb(0), arb(1)
    for monomial, q in c.terms.items():
        tu, tl = arb(abs(q.numerator)), arb(q.denominator)
        for atom, e in monomial:
            au, al = (arb(atom.made_of), arb(1)) if atom.kind == "prime" else _separation(atom.made_of, roots)
            if e.denominator > 1:
                roots[atom] = math.lcm(roots.get(atom, 1), e.denominator)
            x = arb(fmpq(abs(e).numerator, abs(e).denominator))
            au, al = au.max(arb(1)) ** x, al.max(arb(1)) ** x
            tu, tl = (tu * au, tl * al) if e > 0 else (tu * al, tl * au)
        u, lower = u * tl + tu * lower, lower * tl
    return u, lower


# ------------------------------------------------------------------------------------------------ spelling
def node(c: Const) -> Node:
    """The constant as an expression of the formula language, for proofs and conditions."""
    ordered = sorted(c.terms.items(), key=lambda item: (item[0] == (), [(a.key, -e) for a, e in item[0]]))
    return build.total(_term_node(monomial, q) for monomial, q in ordered)


def text(c: Const) -> str:
    """The constant in the formula language."""
    return spelt(node(c))


def _term_node(monomial: Monomial, q: Fraction) -> Node:
    below = [_atom_node(a, -e) for a, e in monomial if e < 0 and e.denominator == 1 and a.kind != "exp"]
    above = [_atom_node(a, e) for a, e in monomial if e > 0 or e.denominator != 1 or a.kind == "exp"]
    top = build.product([build.fraction(q.numerator), *above])
    return build.quotient(top, *below, build.fraction(q.denominator))


def _atom_node(atom: Atom, e: Fraction) -> Node:
    if atom.kind == "exp":
        return build.call("exp", node(Const({m: q * e for m, q in atom.made_of.terms.items()})))
    if atom.kind in ("pi", "param"):
        base = Node("pi") if atom.kind == "pi" else build.name(atom.key)
    elif atom.kind in ("prime", "logprime"):
        base = build.fraction(atom.made_of)
    else:
        base = node(atom.made_of)
    function = {"logprime": "log", "logabs": "log"}.get(atom.kind, atom.kind)
    inside = base if atom.kind in ("pi", "param", "prime", "whole") else build.call(function, base)
    return build.power(inside, build.fraction(e))
