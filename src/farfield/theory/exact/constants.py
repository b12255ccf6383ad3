"""Exact real numbers: polynomials with rational coefficients in irrational atoms.

An atom is pi, a root, a logarithm, an exponential, a cosine, a sine or an inverse of such a number.
What cancels in the polynomial is 0; otherwise a sign comes from a ball that misses 0. A ball that never misses 0 proves
nothing, so the number is also shown to vanish: it is sorted by its transcendental atoms, and each algebraic coefficient
U/L is compared with a bound below which no such number lies but 0. U is an algebraic integer; if all its conjugates are
at most u, and it has at most D of them, then U = 0 or |U| >= u**(1 - D), since the product of the conjugates is an
integer.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

from flint import arb, ctx, fmpq, fmpz

from farfield.theory.errors import UnknownError

if TYPE_CHECKING:
    from farfield.theory.exact.regions import Region

MAX_TERMS = 60
MAX_ATOMS = 20_000  # that are remembered
MAX_BITS = 40_000  # of a ball that shows that a number vanishes
MAX_POWER = 64  # of a sum that is multiplied out
_SMALL = 10**6  # the largest denominator of a rational number that is recognised
_PRIMES = 2000  # by how many primes a number is divided before its rest is kept whole


class Atom:
    """An irrational number that is kept whole: `kind` of the number `of`, with the `degree` of a root.

    An open parameter is an atom too, with its name; what is made of parameters belongs to their `region`, which knows
    its sign.
    """

    __slots__ = ("algebraic", "degree", "kind", "name", "of", "region", "serial")
    algebraic: bool
    count = 0

    def __init__(self, kind: str, of: Constant, degree: int, region: Region | None = None, name: str = ""):
        self.kind, self.of, self.degree, self.name = kind, of, degree, name
        self.region = of.region if region is None else region
        inside = all(a.algebraic for m in of.terms for a, _ in m)
        self.algebraic = kind == "turn" or (kind in ("root", "inverse") and inside)
        Atom.count += 1
        self.serial = Atom.count


Product = tuple[tuple[Atom, int], ...]  # atoms with whole powers, by serial number


class Constant:
    """A sum of rational multiples of products of atoms."""

    __slots__ = ("_hash", "terms")

    def __init__(self, terms: dict[Product, fmpq]):
        if len(terms) > MAX_TERMS:
            raise UnknownError("a constant has too many terms")
        self.terms = terms
        self._hash: int | None = None

    @property
    def region(self) -> Region | None:
        """Where the parameters in it live; None without parameters."""
        return next((a.region for m in self.terms for a, _ in m if a.region is not None), None)

    @property
    def rational(self) -> fmpq | None:
        """The number, if it is plainly rational."""
        if not self.terms:
            return _ZERO
        return self.terms.get(()) if len(self.terms) == 1 else None

    @property
    def fraction(self) -> Fraction | None:
        """The number as a fraction, if it is plainly rational."""
        q = self.rational
        return None if q is None else Fraction(int(q.p), int(q.q))

    @property
    def whole(self) -> int | None:
        """The number, if it is plainly a whole one."""
        q = self.rational
        return int(q.p) if q is not None and q.q == 1 else None

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset((tuple((a.serial, e) for a, e in m), q.p, q.q) for m, q in self.terms.items()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and self.terms == other.terms

    def __add__(self, other: Constant | Rational) -> Constant:
        if not isinstance(other, Constant):
            other = rational(other)
        if not self.terms or not other.terms:
            return self if self.terms else other
        terms = dict(self.terms)
        for m, q in other.terms.items():
            total = terms.pop(m, _ZERO) + q
            if total:
                terms[m] = total
        return Constant(terms)

    def __neg__(self) -> Constant:
        return Constant({m: -q for m, q in self.terms.items()})

    def __sub__(self, other: Constant | Rational) -> Constant:
        return self + -other

    def __truediv__(self, other: Constant | Rational) -> Constant:
        return self * inverse(exactly(other))

    def __mul__(self, other: Constant | Rational) -> Constant:
        if not isinstance(other, Constant):
            other = rational(other)
        p, q = self.rational, other.rational
        if p is not None and q is not None:
            return rational(p * q)
        if q is not None:
            return Constant({m: c * q for m, c in self.terms.items()}) if q else ZERO
        total = ZERO
        for m, c in self.terms.items():
            for n, d in other.terms.items():
                total = total + _times(m, n) * rational(c * d)
        return total


_ZERO = fmpq(0)
Rational = fmpq | fmpz | Fraction | int


def exactly(value: Constant | Rational) -> Constant:
    """A constant, or a rational number as one."""
    return value if isinstance(value, Constant) else rational(value)


def _fmpq(value: Rational) -> fmpq:
    return fmpq(value.numerator, value.denominator) if isinstance(value, Fraction) else fmpq(value)


def rational(value: Rational) -> Constant:
    """A rational number."""
    q = _fmpq(value)
    return Constant({(): q}) if q else Constant({})


def rational_end(x: arb) -> Constant:
    """The end of an interval as an exact number."""
    if not x.is_finite():
        raise UnknownError("a part without a bound")
    man, exponent = x.man_exp()
    return rational(fmpq(man) * fmpq(2) ** int(exponent))


ZERO, ONE, MINUS = rational(0), rational(1), rational(-1)
_ATOMS: dict[tuple[str, Constant, int] | tuple[str, int, str], Atom] = {}


def _atom(kind: str, of: Constant = ZERO, degree: int = 1) -> Constant:
    """The number that one atom stands for; one that is equal, however it was written, is used again."""
    if of.region is not None:
        return of.region.atom(kind, of, degree)
    result = _ATOMS.get((kind, of, degree))
    if result is None:
        with ctx.workprec(128):
            about = kind, degree, ball(of).mid().str(20, radius=False)
        result = _ATOMS.get(about)
        if result is None or not vanishes(result.of - of):
            result = _ATOMS[about] = Atom(kind, of, degree)
        _ATOMS[kind, of, degree] = result
    return alone((result, 1))


def alone(*pairs: tuple[Atom, int]) -> Constant:
    """A product of atoms with whole powers as a constant."""
    return Constant({tuple(sorted(pairs, key=lambda pair: pair[0].serial)): fmpq(1)})


def forget() -> None:
    """Drop what was remembered of earlier formulas, once it is much."""
    if len(_ATOMS) > MAX_ATOMS:
        _ATOMS.clear()


def _times(m: Product, n: Product) -> Constant:
    """A product of two products of atoms, in its shortest form."""
    powers = dict(m)
    for a, e in n:
        powers[a] = powers.get(a, 0) + e
    extra, exponent, exponentials = ONE, ZERO, 0
    for a, e in list(powers.items()):
        if a.kind == "root" and not 0 <= e < a.degree:
            extra = extra * power(a.of, e // a.degree)
            powers[a] = e % a.degree
        elif a.kind == "inverse" and e < 0:
            extra = extra * power(a.of, -e)
            powers[a] = 0
        elif a.kind == "sin" and e >= 2:
            cosine = _atom("cos", a.of)
            extra = extra * power(ONE - cosine * cosine, e // 2)
            powers[a] = e % 2
        elif a.kind == "exp":
            exponent, exponentials = exponent + a.of * rational(e), exponentials + (1 if e == 1 else 2)
    if exponentials > 1:
        powers = {a: e for a, e in powers.items() if a.kind != "exp"}
        extra = extra * exp(exponent)
    rest = alone(*((a, e) for a, e in powers.items() if e))
    return rest if extra is ONE else rest * extra if rest.rational is None else extra


# ---------------------------------------------------------------------------------------------------- balls and signs
def ball(c: Constant | Rational) -> arb:
    """A ball around the number, at the current precision."""
    if not isinstance(c, Constant):
        return arb(_fmpq(c))
    total = arb(0)
    for product, q in c.terms.items():
        value = arb(q)
        for a, e in product:
            value = value * _atom_ball(a, ctx.prec) ** e
        total = total + value
    return total


_BALLS: dict[str, Callable[[arb, int], arb]] = {
    "pi": lambda x, k: arb.pi(),
    "root": lambda x, k: x.root(k),
    "log": lambda x, k: x.log(),
    "exp": lambda x, k: x.exp(),
    "cos": lambda x, k: x.cos(),
    "sin": lambda x, k: x.sin(),
    "turn": lambda x, k: x.cos_pi(),
    "inverse": lambda x, k: 1 / x,
}


@functools.lru_cache(maxsize=4096)
def _atom_ball(a: Atom, precision: int) -> arb:
    return _BALLS[a.kind](ball(a.of), a.degree)


def sign(c: Constant) -> int:
    """-1, 0 or 1, proven; UnknownError if it cannot be told."""
    q = c.rational
    if q is not None:
        return (q > 0) - (q < 0)
    region = c.region
    return _numeric_sign(c) if region is None else region.sign(c)


def signs(c: Constant) -> frozenset[int]:
    """All signs that the number may have: one, unless parameters leave more."""
    return frozenset((sign(c),)) if c.region is None else c.region.signs(c)


def is_zero(c: Constant) -> bool:
    """Whether the number is 0; with parameters, whether it is known to be."""
    region = c.region
    return sign(c) == 0 if region is None else region.vanishes(c)


@functools.lru_cache(maxsize=20_000)
def _numeric_sign(c: Constant) -> int:
    for precision in (64, 256, 1024):
        with ctx.workprec(precision):
            value = ball(c)
        if value != 0:
            return 1 if value > 0 else -1
    if vanishes(c):
        return 0
    raise UnknownError("whether a constant is 0")


def known_sign(c: Constant) -> int | None:
    """The sign of the number, or None if it cannot be told."""
    try:
        return sign(c)
    except UnknownError:
        return None


def vanishes(c: Constant) -> bool:
    """Whether the number is shown to be 0."""
    if c.region is not None:
        return c.region.vanishes(c)
    with ctx.workprec(256):
        if ball(c) != 0:
            return False
    sorted_out: dict[Product, dict[Product, fmpq]] = {}
    for product, q in c.terms.items():
        outer = tuple((a, e) for a, e in product if not a.algebraic)
        inner = tuple((a, e) for a, e in product if a.algebraic)
        sorted_out.setdefault(outer, {})[inner] = q
    return all(_algebraic_zero(Constant(terms)) for terms in sorted_out.values())


def _algebraic_zero(c: Constant) -> bool:
    if c.rational is not None:
        return not c.terms
    seen: set[Atom] = set()
    u, low = _conjugates(c, seen)
    degree = math.prod(a.degree for a in seen)
    bits = int(1.001 * ((degree - 1) * u + low)) + 64
    if bits > MAX_BITS:
        return False
    with ctx.workprec(bits + 64):
        value = abs(ball(c))
        return bool(value < arb((1, -bits)))


def _conjugates(c: Constant, seen: set[Atom]) -> tuple[float, float]:
    """(log2 u, log2 l): the number is U/L, algebraic integers whose conjugates are at most u and l; adds its roots."""
    sizes: dict[tuple[Atom, bool], tuple[float, float]] = {}  # of each atom, and of its inverse where it stands below
    most: dict[tuple[Atom, bool], int] = {}
    for product in c.terms:
        for a, e in product:
            key = a, e < 0
            if key not in sizes:
                u, low = _atom_conjugates(a, seen)
                sizes[key] = (low, u) if e < 0 else (u, low)
            most[key] = max(most.get(key, 0), abs(e))
    common = math.lcm(*(int(q.q) for q in c.terms.values()))
    tops = []
    for product, q in c.terms.items():
        powers = {(a, e < 0): abs(e) for a, e in product}
        top = math.log2(abs(int(q.p)) * (common // int(q.q)))
        for key, most_of in most.items():
            top += sizes[key][0] * powers.get(key, 0) + sizes[key][1] * (most_of - powers.get(key, 0))
        tops.append(top)
    largest = max(tops)
    u = largest + math.log2(sum(2.0 ** (x - largest) for x in tops))
    return max(u, 0.0), math.log2(common) + sum(sizes[key][1] * e for key, e in most.items())


def _atom_conjugates(a: Atom, seen: set[Atom]) -> tuple[float, float]:
    if a.kind == "turn":  # cos(pi q) is half an algebraic integer whose conjugates are at most 2
        seen.add(a)
        return 1.0, 1.0
    u, low = _conjugates(a.of, seen)
    if a.kind == "inverse":
        return low, u
    seen.add(a)  # the root of U/L is that of U * L**(k-1), divided by L
    return (u + (a.degree - 1) * low) / a.degree, low


# ---------------------------------------------------------------------------------------------------- functions
def pi() -> Constant:
    """pi."""
    return _atom("pi")


def _is_positive(c: Constant) -> bool:
    """Whether a number is known to be positive."""
    return signs(c) == {1}


def inverse(c: Constant) -> Constant:
    """1/c."""
    if 0 in signs(c) and sign(c) == 0:
        raise UnknownError("a division by 0")
    if len(c.terms) == 1:
        ((product, q),) = c.terms.items()
        return _times(tuple((a, -e) for a, e in product), ()) * rational(1 / q)
    return _atom("inverse", c)


def power(c: Constant, e: Rational) -> Constant:
    """c ** e for a rational e: a whole power of anything but 0 ** -1, another power of what is not negative."""
    e = _fmpq(e)
    if e < 0:
        return inverse(power(c, -e))
    if e.q == 1 and c.rational is not None and e <= 10_000:
        return rational(c.rational ** int(e.p))
    if e.q == 1 and e <= MAX_POWER:
        return functools.reduce(Constant.__mul__, [c] * int(e.p), ONE)
    side = sign(c)
    if side == 0:
        return ZERO
    if side < 0:
        if e.q != 1:
            raise UnknownError("a real power of a negative number")
        return power(-c, e) * (ONE if e.p % 2 == 0 else MINUS)
    if c.rational is not None:
        return _rational_power(c.rational, e)
    if len(c.terms) == 1:  # factors that are positive are taken out, the others stay together
        ((product, q),) = c.terms.items()
        result, rest = _rational_power(abs(q), e), MINUS if q < 0 else ONE
        for a, n in product:
            if _is_positive(alone((a, 1))):
                result = result * _positive_atom_power(a, e * n)
            else:
                rest = rest * power(alone((a, 1)), n)
        return result if rest.rational == 1 else result * _root_of(rest, e)
    return _root_of(c, e)


def _positive_atom_power(a: Atom, e: fmpq) -> Constant:
    if a.kind == "exp":
        return exp(a.of * rational(e))
    if a.kind == "root":
        return power(a.of, e / a.degree)
    if a.kind == "inverse":
        return power(a.of, -e)
    return _root_of(alone((a, 1)), e)


def _root_of(c: Constant, e: fmpq) -> Constant:
    """c ** e for a positive c that is kept whole."""
    if c.region is not None and e.q != 1:
        return _root_with_parameters(c, e)
    n, k = int(e.p), int(e.q)
    if abs(n) > MAX_POWER or k > MAX_POWER:
        return _atom("exp", log(c) * rational(e))
    inside = c if k == 1 else _atom("root", c, k)
    return power(inside, n)


def _root_with_parameters(c: Constant, e: fmpq) -> Constant:
    """The same with parameters: of a square, the root is the absolute value, which needs its sign."""
    from farfield.theory.exact.regions import factors_of

    lead, parts = factors_of(c) if len(c.terms) > 1 else (fmpq(1), _atoms_of(c))
    outside, inside = ONE, rational(lead)
    for part, n in parts:
        if (e * n).q == 1:
            size = part if sign(part) > 0 else -part
            outside = outside * power(size, e * n)
            inside = inside if size is part or n % 2 == 0 else -inside
        else:
            inside = inside * power(part, n)
    if inside.rational is not None:
        return outside * power(inside, e)
    return outside * power(_atom("root", inside, int(e.q)), int(e.p))


def _atoms_of(c: Constant) -> list[tuple[Constant, int]]:
    ((product, q),) = c.terms.items()
    return [(alone((a, 1)), n) for a, n in product] + [(rational(q), 1)]


def _rational_power(q: fmpq, e: fmpq) -> Constant:
    """q ** e for q > 0, by the primes of q."""
    result, outside = ONE, fmpq(1)
    for p, n in _primes(q):
        total = e * n
        up = total.p // total.q
        if abs(up) > 10_000 or total.q > MAX_POWER:
            return _atom("exp", log(rational(q)) * rational(e))
        outside *= fmpq(p) ** int(up)
        rest = int(total.p - up * total.q)
        if rest:
            result = result * power(_atom("root", rational(p), int(total.q)), rest)
    return result * rational(outside)


def _primes(q: fmpq) -> list[tuple[fmpz, int]]:
    """The prime factors of a positive rational with their powers; a large rest counts as one of them."""
    above = [(p, int(n)) for p, n in fmpz(q.p).factor(trial_limit=_PRIMES) if p != 1]
    return above + [(p, -int(n)) for p, n in fmpz(q.q).factor(trial_limit=_PRIMES) if p != 1]


def real_power(c: Constant, e: Constant) -> Constant:
    """c ** e."""
    if e.rational is not None:
        return power(c, e.rational)
    if sign(c) == 0 and sign(e) > 0:
        return ZERO
    return exp(e * log(c))


def log(c: Constant) -> Constant:
    """The logarithm of a positive number, taken apart where that is allowed."""
    if sign(c) <= 0:
        raise UnknownError("a logarithm of a number that is not positive")
    if len(c.terms) > 1:
        return _atom("log", c)
    ((product, q),) = c.terms.items()
    total, rest = ZERO, rational(1 if q > 0 else -1)
    for p, n in _primes(abs(q)):
        total = total + _atom("log", rational(p)) * n
    for a, n in product:
        if a.kind == "exp":
            total = total + a.of * n
        elif a.kind == "root":
            total = total + log(a.of) * fmpq(n, a.degree)
        elif _is_positive(alone((a, 1))):
            negated = a.kind == "inverse" and sign(a.of) > 0
            total = total + (-log(a.of) if negated else _atom("log", alone((a, 1)))) * n
        else:
            rest = rest * power(alone((a, 1)), n)
    return total if rest.rational == 1 else total + _atom("log", rest)


def exp(c: Constant) -> Constant:
    """The exponential; rational multiples of logarithms become powers."""
    rest, result = c, ONE
    for product, q in c.terms.items():
        small = abs(q) <= MAX_POWER and q.q <= MAX_POWER
        if small and len(product) == 1 and product[0][1] == 1 and product[0][0].kind == "log":
            rest = rest - Constant({product: q})
            result = result * power(product[0][0].of, q)
    if not rest.terms or vanishes(rest):
        return result
    return result * _atom("exp", rest)


def cos(c: Constant) -> Constant:
    """The cosine."""
    turns = _turns(c)
    if turns is not None:
        return _cos_pi(turns)
    return _atom("cos", c if _leads_positive(c) else -c)


def sin(c: Constant) -> Constant:
    """The sine."""
    turns = _turns(c)
    if turns is not None:
        return _cos_pi(turns - fmpq(1, 2))
    return _atom("sin", c) if _leads_positive(c) else _atom("sin", -c) * MINUS


def _leads_positive(c: Constant) -> bool:
    """Which of c and -c is kept: the positive one, or with parameters the one whose first term has no minus sign."""
    if c.region is None:
        return sign(c) > 0
    return bool(min(c.terms.items(), key=lambda term: [(a.serial, e) for a, e in term[0]])[1] > 0)


def _turns(c: Constant) -> fmpq | None:
    """q with c = q * pi."""
    if not c.terms:
        return _ZERO
    if len(c.terms) == 1:
        ((product, q),) = c.terms.items()
        if len(product) == 1 and product[0][0].kind == "pi" and product[0][1] == 1:
            return q
    return ZERO.rational if vanishes(c) else None


def _cos_pi(q: fmpq) -> Constant:
    """cos(q pi)."""
    q = q - 2 * (q / 2).floor()
    if q > 1:
        q = 2 - q
    if q > fmpq(1, 2):
        return _cos_pi(1 - q) * MINUS
    plain = {(0, 1): ONE, (1, 2): ZERO, (1, 3): rational(fmpq(1, 2))}.get((int(q.p), int(q.q)))
    if plain is not None:
        return plain
    if q == fmpq(1, 4) or q == fmpq(1, 6):
        return _rational_power(fmpq(2 if q == fmpq(1, 4) else 3), fmpq(1, 2)) * rational(fmpq(1, 2))
    degree = sum(math.gcd(k, 2 * int(q.q)) == 1 for k in range(1, 2 * int(q.q))) if q.q < 1000 else 2 * int(q.q)
    return _atom("turn", rational(q), degree)


def simplify(c: Constant) -> Constant:
    """The number itself, as a rational one if it is shown to be one with a small denominator."""
    if c.rational is not None or c.region is not None:
        return c
    with ctx.workprec(128):
        value = ball(c)
        if not value.is_finite() or abs(value) > 10**6:
            return c
        about = Fraction(value.mid().str(35, radius=False))
        guess = rational(about.limit_denominator(_SMALL))
        near = abs(value - ball(guess)) < arb((1, -90))
    return guess if near and vanishes(c - guess) else c


def floor(c: Constant) -> Constant:
    """The largest integer that is not above c."""
    if c.region is not None:
        return _atom("floor", c)
    for precision in (64, 512, 4096):
        with ctx.workprec(precision):
            value = ball(c)
            exact = value.floor().unique_fmpz()
            if exact is not None:
                return rational(exact)
            near = (value + arb(0.5)).floor().unique_fmpz()
        if near is not None:
            return rational(near if sign(c - rational(near)) >= 0 else near - 1)
    raise UnknownError("a floor")
