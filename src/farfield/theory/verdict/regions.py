"""What is assumed of the parameters, and the signs that follow from it.

A verdict with open parameters is a decision tree: whenever a sign cannot be told from the assumptions, a Split is
raised, and the procedure is run again under each of the three signs. Where a constant is zero, one parameter is
expressed by the others, so that everything stays exact.
"""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass
from fractions import Fraction

from farfield.formula import Node, build
from farfield.theory.errors import EmptyRegionError, SplitError, UndecidedError, UndefinedError
from farfield.theory.exact import constants, signs
from farfield.theory.exact.constants import ONE, ZERO, Const, rational, substitute
from farfield.theory.verdict.boxes import factors, sign_on

NON_NEGATIVE = 2  # as a sign: zero or positive


def normal(c: Const) -> tuple[Const, int]:
    """The constant up to a rational factor, and the sign of that factor."""
    lead = min(c.terms, key=lambda m: (m == (), constants.spelling_order(m)))
    q = c.terms[lead]
    return Const({m: v / q for m, v in c.terms.items()}), (1 if q > 0 else -1)


def linear(c: Const) -> tuple[Const, Const] | None:
    """(L, root) with c = L - root, L the part with parameters; None if there is none. Call `normal` first."""
    moving = Const({m: q for m, q in c.terms.items() if Const({m: q}).parameters})
    return (moving, moving - c) if moving.terms else None


@dataclass(frozen=True)
class Region:
    """A set of parameter values: sign conditions, and parameters expressed by others."""

    facts: tuple[tuple[Const, int], ...] = ()
    values: tuple[tuple[str, Const], ...] = ()

    def value(self, name: str) -> Const:
        """What a parameter is here."""
        known = dict(self.values)
        return known[name] if name in known else constants.parameter(name)

    def sign(self, c: Const) -> int:
        """The sign of a constant; SplitError if the assumptions do not tell."""
        if c.rational is not None:
            q = c.rational
            return (q > 0) - (q < 0)
        if not c.parameters:
            return signs.sign(c)
        return _sign(self, c)

    def known_sign(self, c: Const) -> int | None:
        """The sign, or None where the assumptions do not tell."""
        try:
            return self.sign(c)
        except (SplitError, UndecidedError):
            return None

    def bounds(self, moving: Const) -> list[tuple[Const, int, bool]]:
        """What is known of one quantity: (bound, +1 if it lies below, -1 if above, 0 if equal; strict)."""
        known = []
        for c, s in self.facts:
            line = linear(c)
            if line is not None and line[0] == moving:
                known.append((line[1], 1 if s == NON_NEGATIVE else s, s != NON_NEGATIVE))
        return known

    def assume(self, c: Const, s: int) -> Region:
        """The part of the region where the constant has this sign; EmptyRegionError if there is none."""
        core, flip = normal(c)
        if s == 0:
            return self._with_zero(core)
        terms = _sign_of_terms(self, core)
        if (
            terms is not None
            and terms[0] == -flip * (1 if s == NON_NEGATIVE else s)
            and (terms[1] or s != NON_NEGATIVE)
        ):
            raise EmptyRegionError
        return Region((*self.facts, (core, s * flip if s != NON_NEGATIVE else s)), self.values)

    def _with_zero(self, core: Const) -> Region:
        product = (
            len(core.terms) == 1 and len(core.parameters) > 1
        )  # one of several parameters is 0: no need to say which
        for name in sorted(core.parameters) if not product else ():
            slope, rest = _solve(core, name)
            if slope is None:
                continue
            if self.known_sign(slope) in (None, 0):
                continue
            try:
                return self._with_value(name, -rest / slope)
            except UndefinedError:  # what has a sign has a value
                raise EmptyRegionError from None
        for part, _ in factors(core) if not product else ():  # a product is 0 if one of its factors is
            if part != core and part.parameters and self.known_sign(part) is None:
                raise SplitError(normal(part)[0])
        return Region((*self.facts, (core, 0)), self.values)  # not solved for a parameter: kept as it is

    def _with_value(self, name: str, value: Const) -> Region:
        """The part of the region where a parameter has this value."""
        facts = []
        for c, s in self.facts:
            c = substitute(c, name, value)
            if c.terms and c.parameters:
                new, flip = normal(c)
                facts.append((new, s * flip if s != NON_NEGATIVE else s))
            elif (signs.sign(c) if c.terms else 0) not in ((0, 1) if s == NON_NEGATIVE else (s,)):
                raise EmptyRegionError
        values = [(n, substitute(v, name, value)) for n, v in self.values]
        return Region(tuple(facts), (*values, (name, value)))


def _solve(c: Const, name: str) -> tuple[Const | None, Const]:
    """(slope, rest) with c = slope * name + rest, or (None, ...) if it is not of that form."""
    slope, rest = ZERO, ZERO
    for monomial, q in c.terms.items():
        power = [e for a, e in monomial if a.kind == "param" and a.made_of == name]
        others = tuple(p for p in monomial if not (p[0].kind == "param" and p[0].made_of == name))
        if any(isinstance(a.made_of, Const) and name in a.made_of.parameters for a, _ in others):
            return None, ZERO
        if not power:
            rest = rest + Const({monomial: q})
        elif power == [1]:
            slope = slope + Const({others: q})
        else:
            return None, ZERO
    return (slope, rest) if len(slope.terms) == 1 else (None, ZERO)


@functools.lru_cache(maxsize=50_000)
def _sign(region: Region, c: Const) -> int:
    monomials = list(c.terms)
    common: dict[str, Fraction] = {}
    first = {a.made_of: e for a, e in monomials[0] if a.kind == "param"}
    for key in first:
        exponents = [{a.made_of: e for a, e in m if a.kind == "param"}.get(key, Fraction(0)) for m in monomials]
        if all(e > 0 for e in exponents) or all(e < 0 for e in exponents):
            common[key] = min(exponents, key=abs)
    if common and (len(monomials) > 1 or len(monomials[0]) > 1 or monomials[0][0][1] != 1):
        inner, odd = c, ONE
        for key, e in common.items():
            one = constants.parameter(key)
            inner = inner * constants.power(one, -e)
            if e.denominator == 1 and e % 2:
                odd = odd * one
            elif region.sign(one) == 0:
                return 0
        return _sign_of_product(region, odd) * region.sign(inner)
    core, flip = normal(c)
    for known, s in region.facts:
        if known == core and s != NON_NEGATIVE:
            return s * flip
    line = linear(core)
    assert line is not None
    moving, root = line
    if not root.terms and len(moving.terms) == 1 and len(monomials[0]) == 1 and monomials[0][0][0].kind == "param":
        known_side = _parameter_sign(region, monomials[0][0][0].made_of)
        if known_side is not None and monomials[0][0][1] == 1:
            return known_side * flip
    for bound, side, strict in region.bounds(moving):
        gap = signs.sign(bound - root)
        if side == 0:
            return gap * flip
        if gap == side or (gap == 0 and strict):  # a lower bound at or above the root, or an upper one at or below
            return side * flip
    inside = _inside("floor", core + root)
    if inside is not None and root.rational is not None:  # floor(x) > n if and only if x >= n + 1
        n = root.rational
        if region.sign(inside - rational(math.floor(n) + 1)) >= 0:
            return flip
        return 0 if n.denominator == 1 and region.sign(inside - rational(n)) >= 0 else -flip
    inside = _inside("log", core)
    if inside is not None:
        s = region.sign(inside)
        if s == 0:
            raise UndecidedError("the logarithm of zero")
        return flip * region.sign((inside if s > 0 else -inside) - constants.ONE)
    simpler = _without_abs(region, core)
    if simpler != core:
        return flip * region.sign(simpler)
    plain = _plainer(region, moving, root)
    if plain is not None:
        return plain * flip
    terms = _sign_of_terms(region, core)
    if terms is not None and terms[1]:
        return terms[0] * flip
    result = _sign_by_factors(region, core)
    if result is None:
        result = sign_on(region.facts, core)
    if result is None:
        raise SplitError(core)
    return result * flip


def _sign_by_factors(region: Region, core: Const) -> int | None:
    """The sign of a polynomial from those of its factors; with one parameter these are cases of their own."""
    parts = factors(core)
    if len(parts) == 1 and parts[0][1] == 1:
        return None
    alone = len(core.parameters) == 1
    each = [region.sign(part) if alone else region.known_sign(part) for part, _ in parts]
    if 0 in each:
        return 0
    if None in each:
        return None
    return math.prod(s**n for s, (_, n) in zip(each, parts, strict=True) if s is not None)


def _without_abs(region: Region, c: Const) -> Const:
    """The constant with x or -x for every abs(x) of known sign."""
    for atom in dict.fromkeys(a for m in c.terms for a, _ in m if a.kind == "abs"):
        s = region.known_sign(atom.made_of)
        if s is not None:
            total = ZERO
            for m, q in c.terms.items():
                e = dict(m).get(atom, Fraction(0))
                rest = Const({tuple(p for p in m if p[0] != atom): q})
                total = total + rest * constants.power(atom.made_of * rational(s or 1), e) if e else total + rest
            c = total
    return c


def _plainer(region: Region, moving: Const, root: Const) -> int | None:
    """The sign of moving - root as that of something plainer: exp(q) > 1 is q > 0, q**2 > 1 is q > 1 or q < -1."""
    logs = _product_of_logs(moving)
    if logs is not None:
        s = region.sign(logs)
        return region.sign(logs * s - constants.exp(root)) if s else None
    if len(moving.terms) != 1:
        return None
    ((monomial, q),) = moving.terms.items()
    if len(monomial) != 1 or q != 1 or signs.known_sign(root) != 1:
        return None
    atom, e = monomial[0]
    if atom.kind == "exp":  # exp(x)**e against a positive number
        s = 1 if e > 0 else -1
        return s * region.sign(atom.made_of - constants.log(root) / abs(e))
    if e == 1 or atom.kind not in ("param", "abs"):
        return None
    size = constants.power(root, 1 / e)  # |x|**e > root if |x| > size, or if |x| < size for a negative e
    inside = atom.made_of if atom.kind == "abs" else Const({((atom, Fraction(1)),): Fraction(1)})
    s = region.sign(inside)
    if s == 0 or (s < 0 and atom.kind == "param" and e % 2 != 0):
        return None
    return region.sign(inside * s - size) * (1 if e > 0 else -1)


def _product_of_logs(c: Const) -> Const | None:
    """x*y for log|x| + log|y|, with two factors or more."""
    product = ONE
    for monomial, q in c.terms.items():
        if len(monomial) != 1 or monomial[0][0].kind != "log" or monomial[0][1] != 1 or q.denominator != 1 or q < 1:
            return None
        product = product * constants.power(monomial[0][0].made_of, q)
    return product if len(c.terms) > 1 else None


def _sign_of_product(region: Region, product: Const) -> int:
    """The sign of a product of parameters: from theirs, or else as one condition such as a*b > 0."""
    ((monomial, _),) = product.terms.items()
    each = [_parameter_sign(region, atom.made_of) for atom, _ in monomial]
    if len(each) < 2 or (product, 1) in region.facts or (product, -1) in region.facts or (product, 0) in region.facts:
        return region.sign(product) if len(each) < 2 else next(s for c, s in region.facts if c == product)
    unknown = [Const({(pair,): Fraction(1)}) for pair, s in zip(monomial, each, strict=True) if s is None]
    if unknown:
        raise SplitError(math.prod(unknown, start=ONE))
    return math.prod(s for s in each if s is not None)


def _inside(kind: str, c: Const) -> Const | None:
    """x if the constant is log|x| or floor(x)."""
    if len(c.terms) == 1:
        ((monomial, q),) = c.terms.items()
        if q == 1 and len(monomial) == 1 and monomial[0][0].kind == kind and monomial[0][1] == 1:
            return monomial[0][0].made_of
    return None


def _sign_of_terms(region: Region, c: Const) -> tuple[int, bool] | None:
    """The sign of a sum whose terms all have that one, and whether it is never 0: a**2 + b**2 may be."""
    total, strict = 0, False
    for monomial, q in c.terms.items():
        known = _term_sign(region, monomial, q)
        if known is None or (total and known[0] != total):
            return None
        total, strict = known[0], strict or known[1]
    return total, strict


def _term_sign(region: Region, monomial: constants.Monomial, q: Fraction) -> tuple[int, bool] | None:
    """The sign of one term, and whether it is never 0; None where it is not known."""
    total, strict = 1 if q > 0 else -1, True
    for atom, e in monomial:
        if atom.kind in ("pi", "prime", "log prime", "exp", "gamma"):
            continue
        c = Const({((atom, Fraction(1)),): Fraction(1)})
        if atom.kind == "param":
            s = _parameter_sign(region, atom.made_of)
        elif atom.kind in ("abs", "sum"):
            s = region.known_sign(atom.made_of)
        else:
            s = region.known_sign(c) if not c.parameters else None
        if s == 0:
            return None
        if atom.kind == "abs" or e.denominator != 1 or e % 2 == 0:
            strict = strict and (
                s is not None or e < 0 or _never_zero(region, c if atom.kind != "abs" else atom.made_of)
            )
        elif s is None:
            return None
        else:
            total *= s
    return total, strict


def _never_zero(region: Region, c: Const) -> bool:
    """Whether a product that has this factor is assumed to be positive or negative, such as a*b for a."""
    (monomial, _), *others = c.terms.items()
    if others or len(monomial) != 1:
        return False
    single = (next(iter(fact.terms)) for fact, s in region.facts if s in (1, -1) and len(fact.terms) == 1)
    return any(atom == monomial[0][0] for product in single for atom, _ in product)


def _parameter_sign(region: Region, name: str) -> int | None:
    for bound, side, strict in region.bounds(constants.parameter(name)):
        s = signs.sign(bound)
        if side and (s == side or (s == 0 and strict)):
            return side
    for c, s in region.facts:  # 1/b > 0
        (monomial, q), *others = c.terms.items()
        odd = len(monomial) == 1 and monomial[0][1].denominator == 1 and monomial[0][1] % 2 == 1
        if odd and not others and s in (1, -1) and monomial[0][0] == constants.Atom("param", name):
            return s if q > 0 else -s
    return None


_DOMAIN = re.compile(r"([a-z][a-z0-9_]*) (>|>=|<) (-?\d+)")


def domain_relation(text: str) -> Node | None:
    """A domain such as "k > 0" or "d >= 2" as a relation; None if it says nothing."""
    match = _DOMAIN.fullmatch(text)
    return match and build.relation(build.name(match[1]), match[2], build.fraction(int(match[3])))


def domain(texts: list[str]) -> Region:
    """The region of domains."""
    region = Region()
    for one in texts:
        match = _DOMAIN.fullmatch(one)
        if match:
            gap = constants.parameter(match[1]) - rational(int(match[3]))
            region = region.assume(gap, {">": 1, ">=": NON_NEGATIVE, "<": -1}[match[2]])
    return region


def relation(c: Const, s: int) -> Node:
    """A sign condition as a person writes it: p > 1, a*p = 1."""
    sign = {1: ">", 0: "=", -1: "<", NON_NEGATIVE: ">=", -2: "<=", 3: "!="}[s]
    line = linear(c)
    assert line is not None
    left, right = line
    if not right.terms and len(left.terms) == 2 and min(left.terms.values()) < 0:  # a - b > 0 is a > b
        right = Const({m: -q for m, q in left.terms.items() if q < 0})
        left = left + right
    return build.relation(constants.node(left), sign, constants.node(right))
