"""The sign of an exact constant, proven: balls of growing precision, and a proof of zero where they never part.

Zero is proven by the form itself or, for algebraic numbers, by a separation bound (Burnikel, Fleischer, Mehlhorn,
Schirra 2000): a number is written as U/L with algebraic integers U and L whose conjugates are at most u and l in size.
If it is not 0, its size is at least 1/(l * u**(D - 1)), D the degree of the field that its roots generate.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from fractions import Fraction

from flint import arb, ctx, fmpq, fmpz

from farfield.theory.errors import UndecidedError
from farfield.theory.exact.constants import ZERO, Atom, Const, Monomial, exp, text

_FUNCTIONS: dict[str, Callable[[arb], arb]] = {
    "exp": arb.exp, "cos": arb.cos, "sin": arb.sin, "abs": abs, "floor": arb.floor, "sum": lambda x: x,
    "log": lambda x: abs(x).log(), "atan": arb.atan, "erf": arb.erf, "gamma": arb.gamma,
}  # fmt: skip
_MOST_BITS = 60_000  # of a proof that an algebraic number is 0


def ball(c: Const | Fraction | int) -> arb:
    """A ball that contains the constant, at the current precision."""
    q = c.rational if isinstance(c, Const) else c
    if q is None:
        assert isinstance(c, Const)
        return _ball(c, ctx.prec)
    return arb(fmpq(q.numerator, q.denominator))


@functools.lru_cache(maxsize=8192)
def _ball(c: Const, precision: int) -> arb:
    total = arb(0)
    for monomial, q in c.terms.items():
        part = ball(q)
        for atom, e in monomial:
            value = _atom_ball(atom)
            if e.denominator == 1:
                part = part * (value ** int(e) if e > 0 else 1 / value ** int(-e))
            else:
                part = part * value ** ball(e)
        total = total + part
    return total


def _atom_ball(atom: Atom) -> arb:
    if atom.kind == "pi":
        return arb.pi()
    if atom.kind in ("prime", "log prime"):
        return arb(atom.made_of) if atom.kind == "prime" else arb(atom.made_of).log()
    if atom.kind == "param":
        raise UndecidedError(f"the parameter {atom.made_of} has no value")
    return _FUNCTIONS[atom.kind](ball(atom.made_of))


@functools.lru_cache(maxsize=100_000)
def sign(c: Const) -> int:
    """The sign of a constant without parameters, proven; UndecidedError if it cannot be."""
    q = c.rational
    if q is not None:
        return (q > 0) - (q < 0)
    for bits in (64, 256, 1024, 4096):
        with ctx.workprec(bits):
            value = ball(c)
        if value > 0:
            return 1
        if value < 0:
            return -1
        if bits == 256 and is_zero(c):
            return 0
    raise UndecidedError(f"cannot decide whether the constant {text(c)} is zero")


def hidden_rational(c: Const) -> Fraction | None:
    """The simple rational number that a constant without parameters is, proven; None if it is none."""
    if c.rational is not None:
        return c.rational
    with ctx.workprec(128):
        value = ball(c)
    if not abs(value) < 10**9:
        return None
    near = Fraction(float(value.mid())).limit_denominator(1000)
    return near if value.contains(ball(near)) and sign(c - near) == 0 else None


def known_sign(c: Const) -> int | None:
    """The sign of a constant without parameters, or None if it cannot be proven."""
    try:
        return sign(c)
    except UndecidedError:
        return None


def is_zero(c: Const) -> bool:
    """Whether the constant is proven zero: every algebraic coefficient of its transcendental monomials vanishes."""
    groups: list[tuple[Monomial, Const, Const]] = []  # what is not algebraic: plain atoms and an exponent; coefficient
    for monomial, q in _over_coprimes(c).terms.items():
        rest = tuple(p for p in monomial if not is_algebraic(p[0]) and p[0].kind != "exp")
        exponent = sum((a.made_of * e for a, e in monomial if a.kind == "exp"), ZERO)
        mine = Const({tuple(p for p in monomial if is_algebraic(p[0])): q})
        for i, (other, power, coefficient) in enumerate(groups):
            if other == rest and (power == exponent or is_zero(power - exponent)):
                groups[i] = other, power, coefficient + mine
                break
        else:
            groups.append((rest, exponent, mine))
    if all(_algebraic_is_zero(coefficient) for _, _, coefficient in groups):
        return True
    return _is_sum_of_logs(c) and _algebraic_is_zero(exp(c) - 1)


def _is_sum_of_logs(c: Const) -> bool:
    """Whether exp of the constant is algebraic: rational multiples of logarithms of algebraic numbers."""
    for monomial in c.terms:
        if len(monomial) != 1 or monomial[0][1] != 1:
            return False
        atom = monomial[0][0]
        inside = atom.made_of.terms if atom.kind == "log" else ()
        if atom.kind != "log prime" and not (inside and all(is_algebraic(a) for m in inside for a, _ in m)):
            return False
    return True


def is_algebraic(atom: Atom) -> bool:
    """Whether an atom is an algebraic number."""
    if atom.kind == "cos":
        return _order(atom) is not None
    return atom.kind == "prime" or (
        atom.kind == "sum" and all(is_algebraic(a) for m in atom.made_of.terms for a, _ in m)
    )


def _order(atom: Atom) -> int | None:
    """n if the atom is cos(2*pi*m/n)."""
    if len(atom.made_of.terms) == 1:
        ((monomial, q),) = atom.made_of.terms.items()
        if len(monomial) == 1 and monomial[0][0].kind == "pi" and monomial[0][1] == 1:
            return (q / 2).denominator
    return None


def _algebraic_is_zero(c: Const) -> bool:
    if not c.terms:
        return True
    roots: dict[Atom | None, int] = {}
    with ctx.workprec(128):
        u, lower = _separation(c, roots)
        circle = int(fmpz(roots.pop(None, 1)).euler_phi())
        degree = math.prod(roots.values()) * max(1, circle // 2)
        bits = ((u.log() * (degree - 1) + lower.log()) / arb(2).log()).upper()
    if not bits < _MOST_BITS:
        return False
    needed = int(float(bits)) + 64
    with ctx.workprec(2 * needed):
        return bool(abs(ball(c)) < arb(2) ** (-needed + 32))


def _separation(c: Const, roots: dict[Atom | None, int]) -> tuple[arb, arb]:
    """Bounds (u, l) of the conjugates of U and L with c = U/L.

    `roots` gathers what generates the field: the degree of the root of each atom, and under None the n for which all
    cosines are those of multiples of 2*pi/n.
    """
    u, lower = arb(0), arb(1)
    for monomial, q in c.terms.items():
        tu, tl = arb(abs(q.numerator)), arb(q.denominator)
        for atom, e in monomial:
            au, al = _atom_separation(atom, e, roots)
            tu, tl = tu * au, tl * al
        u, lower = u * tl + tu * lower, lower * tl
    return u, lower


def _atom_separation(atom: Atom, e: Fraction, roots: dict[Atom | None, int]) -> tuple[arb, arb]:
    if atom.kind == "cos":  # 2*cos is an algebraic integer, and its conjugates are at most 2
        roots[None] = math.lcm(roots.get(None, 1), _order(atom) or 1)
        au, al = arb(2), arb(2)
    else:
        au, al = (arb(atom.made_of), arb(1)) if atom.kind == "prime" else _separation(atom.made_of, roots)
    au, al = (au, al) if e > 0 else (al, au)
    n, k = abs(e).numerator, e.denominator
    au, al = au**n, al**n
    if k > 1:  # the k-th root of U/L is that of U*L**(k-1), over L
        roots[atom] = math.lcm(roots.get(atom, 1), k)
        au = (au * al ** (k - 1)).max(arb(1)).root(k)
    return au, al


# ------------------------------------------------------------------------------------------------ large integers
def _over_coprimes(c: Const) -> Const:
    """Logarithms of integers too large to factor, written over pairwise coprime ones: then equal sums look equal."""
    large = {a.made_of for m in c.terms for a, _ in m if a.kind == "log prime" and a.made_of.bit_length() > 160}
    if len(large) < 2:
        return c
    base = _coprime(large)
    total = ZERO
    for monomial, q in c.terms.items():
        part = Const({(): q})
        for atom, e in monomial:
            own = Const({((atom, e),): Fraction(1)})
            if atom.kind == "log prime" and atom.made_of in large and e == 1:
                powers = [(p, _valuation(atom.made_of, p)) for p in base]
                own = Const({((Atom("log prime", p), Fraction(1)),): Fraction(n) for p, n in powers})
            part = part * own
        total = total + part
    return total


def _coprime(numbers: Iterable[int]) -> list[int]:
    """Pairwise coprime integers > 1 whose products are all the given numbers."""
    base: list[int] = []
    todo = [n for n in numbers if n > 1]
    while todo:
        n = todo.pop()
        for i, m in enumerate(base):
            common = math.gcd(n, m)
            if common > 1:
                base.pop(i)
                todo += [p for p in (n // common, m // common, common) if p > 1]
                break
        else:
            base.append(n)
    return base


def _valuation(n: int, base: int) -> int:
    count = 0
    while n % base == 0:
        n, count = n // base, count + 1
    return count
