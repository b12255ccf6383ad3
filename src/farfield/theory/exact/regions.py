"""What is assumed of open parameters, and the signs that follow from it.

A `Region` holds assumptions such as p - 1 > 0 about constants that are made of parameters. A sign follows from them by
a few rules, each of which is a proof: a product has the product of the signs, a polynomial is factored, exp(x) > c
means x > log(c), a sum of logarithms is the logarithm of a product, linear inequalities are combined (Fourier and
Motzkin), and boxes that cover the region are evaluated in interval arithmetic. A sign that does not follow is *open*;
whoever needs it looks at the three cases one by one.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any

from flint import Ordering, arb, ctx, fmpq, fmpq_mpoly_ctx

from farfield.theory.errors import EmptyRegionError, UnknownError
from farfield.theory.exact import constants
from farfield.theory.exact.constants import MINUS, ONE, ZERO, Atom, Constant, Product, alone, rational
from farfield.theory.exact.intervals import EVERYTHING, INFINITY, UNIT_WAVE, Interval, exactly, span

Signs = frozenset[int]
ANY: Signs = frozenset((-1, 0, 1))
POSITIVE, NEGATIVE, NULL = frozenset((1,)), frozenset((-1,)), frozenset((0,))
NOT_NEGATIVE, NOT_POSITIVE, NOT_NULL = ANY - NEGATIVE, ANY - POSITIVE, ANY - NULL
MAX_DEGREE = 12  # of a polynomial that is factored
MAX_POWER = 16  # of a product that a sum of logarithms becomes
MAX_ROWS = 60  # inequalities that are combined
MAX_BOXES = 40
MAX_DEPTH = 6  # rules that follow one another


class OpenSignError(UnknownError):
    """A sign depends on the parameters beyond what is assumed of them."""

    def __init__(self, constant: Constant):
        super().__init__("a sign that depends on the parameters")
        assert constant.region is not None
        self.constant, self.region = constant, constant.region


def sign_product(a: Signs, b: Signs) -> Signs:
    """The signs of x * y."""
    return frozenset(x * y for x in a for y in b)


def _sign_power(signs: Signs, e: int) -> Signs:
    """The signs of x ** e, for a whole e that is not 0."""
    return signs if e % 2 else frozenset(s * s for s in signs)


def sign_sum(a: Signs, b: Signs) -> Signs:
    """The signs of x + y."""
    sums = (ANY if x * y < 0 else {x or y} for x in a for y in b)
    return frozenset(itertools.chain.from_iterable(sums))


def opposite(signs: Signs) -> Signs:
    """The signs of -x."""
    return frozenset(-s for s in signs)


@functools.lru_cache(maxsize=4096)
def collect(c: Constant) -> dict[Product, Constant]:
    """The constant as a sum of products of parametric atoms with numbers as coefficients."""
    result: dict[Product, Constant] = {}
    for product, q in c.terms.items():
        outer = tuple(pair for pair in product if pair[0].region is not None)
        inner = tuple(pair for pair in product if pair[0].region is None)
        result[outer] = result.get(outer, ZERO) + Constant({inner: q})
    return {product: number for product, number in result.items() if number.terms}


def _order(product: Product) -> list[tuple[bool, str, int, int]]:
    """Parameters by their names first, then other atoms in the order in which they appeared."""
    return sorted((a.kind != "parameter", a.name, a.serial * bool(a.of.terms), -e) for a, e in product)


def normal(c: Constant) -> tuple[Constant, int]:
    """The constant with 1 as the coefficient of its first parametric term, and the sign of what it was divided by."""
    parts = collect(c)
    first = parts[min((p for p in parts if p), key=_order)]
    return c * constants.inverse(first), constants.sign(first)


class Region:
    """Open parameters, and a stack of assumptions about them."""

    def __init__(self) -> None:
        self._atoms: dict[object, Atom] = {}
        self.facts: list[tuple[Constant, Signs]] = []
        self._memory: list[dict[Constant, Signs]] = [{}]
        self._nested: list[dict[Constant, tuple[int, Signs]]] = [{}]  # what was seen so deep on the way to another sign
        self._boxed: dict[tuple[Constant, frozenset[tuple[Constant, Signs]]], Signs] = {}
        self._parameters: list[dict[Atom, Signs]] = [{}]
        self._busy: list[Constant] = []
        self.work = 0  # signs that were looked at
        self.requirements: dict[Any, None] = {}
        self.postponed: OpenSignError | None = None  # the first sign that was not needed so far

    def postpone(self, error: OpenSignError) -> None:
        """Remember a sign that is open, in case that the proof needs it after all."""
        self.postponed = self.postponed or error

    def require_small(self, f: Any) -> None:
        """Remember that an expansion which falls has to be small."""
        self.requirements[f] = None

    def parameter(self, name: str) -> Constant:
        """An open parameter."""
        key = ("parameter", name)
        if key not in self._atoms:
            self._atoms[key] = Atom("parameter", ZERO, 1, self, name)
        return alone((self._atoms[key], 1))

    def atom(self, kind: str, of: Constant, degree: int) -> Constant:
        """exp, log, a root, ... of something with parameters in it."""
        key = (kind, of, degree)
        if key not in self._atoms:
            self._atoms[key] = Atom(kind, of, degree)
        return alone((self._atoms[key], 1))

    @contextlib.contextmanager
    def assuming(self, c: Constant, signs: Signs) -> Iterator[None]:
        """The part of the region where a constant has one of these signs; EmptyRegionError if there is none."""
        if c.region is None:
            if constants.sign(c) not in signs:
                raise EmptyRegionError
            yield
            return
        core, flip = normal(c)
        allowed = signs if flip > 0 else opposite(signs)
        if not self.signs(core) & allowed:
            raise EmptyRegionError
        self.facts.append((core, allowed))
        self._memory.append({})
        self._nested.append({})
        self._parameters.append(dict(self._parameters[-1]))
        try:
            for a in dict.fromkeys(a for fact in self._linked_facts(core) for a in parameters_of(fact)):
                self._parameters[-1][a] = self.signs(alone((a, 1)))
                if not self._parameters[-1][a]:
                    raise EmptyRegionError
            if not self.signs(core):
                raise EmptyRegionError
            yield
        finally:
            self.facts.pop()
            self._memory.pop()
            self._nested.pop()
            self._parameters.pop()

    def _linked_facts(self, core: Constant) -> list[Constant]:
        """The constant, and the facts that share parameters with it or with each other."""
        linked, names = [core], set(parameters_of(core))
        todo = [fact for fact, _ in self.facts if fact != core]
        while True:
            near = [fact for fact in todo if not names.isdisjoint(parameters_of(fact))]
            if not near:
                return linked
            linked += near
            names.update(a for fact in near for a in parameters_of(fact))
            todo = [fact for fact in todo if fact not in near]

    def vanishes(self, c: Constant) -> bool:
        """Whether a constant is shown to be 0: it may be only where an equation is assumed."""
        return any(allowed == NULL for _, allowed in self.facts) and self.signs(c) == NULL

    def sign(self, c: Constant) -> int:
        """The one sign of a constant; OpenSignError if there are several."""
        signs = self.signs(c)
        if not signs:
            raise EmptyRegionError
        if len(signs) != 1:
            raise OpenSignError(self._split_at(c))
        (result,) = signs
        return result

    def _split_at(self, c: Constant) -> Constant:
        """Whose sign should be looked at to learn that of a constant: a factor of it, if it has some."""
        for part, _ in factors_of(normal(c)[0])[1]:
            if part.region is not None and len(self.signs(part)) != 1:
                return self._plainer(normal(part)[0])
        return self._plainer(normal(c)[0])

    def _plainer(self, core: Constant) -> Constant:
        """The constant, or the odd parameters of a product with an open sign, or what a rule compares instead."""
        parts = collect(core)
        if len(parts) == 1:
            ((product, _),) = parts.items()
            odd = [(a, 1) for a, e in product if e % 2 and len(self._of_atom(a)) != 1]
            even = [(a, 1) for a, e in product if e % 2 == 0 and len(self._of_atom(a)) != 1]
            if odd or even:
                core = alone(*(odd or even[:1]))
            if len(odd or even) == 1 and (inside := _inside((odd or even)[0][0])) is not None:
                return self._split_at(inside)
        with contextlib.suppress(UnknownError):
            for other, _ in self._equivalents(core):
                if other.region is not None and _complexity(other) < _complexity(core):
                    return self._split_at(other)
        return core

    # ------------------------------------------------------------------------------------------------ signs
    def signs(self, c: Constant) -> Signs:
        """All signs that the constant may have, as far as is known; none if the assumptions contradict each other."""
        if c.region is None:
            return frozenset((constants.sign(c),))
        core, flip = normal(c)
        memory = self._memory[-1]
        result = memory.get(core)
        if result is None:
            if core in self._busy or len(self._busy) > MAX_DEPTH:
                return ANY
            depth, nested = self._nested[-1].get(core, (MAX_DEPTH + 1, ANY))
            if 0 < depth <= len(self._busy):
                return nested if flip > 0 else opposite(nested)
            self._busy.append(core)
            try:
                result = self._signs(core)
            finally:
                self._busy.pop()
            if not self._busy or len(result) < 2:  # on the way to something else less may be seen
                memory[core] = result
            else:
                self._nested[-1][core] = len(self._busy), result
        return result if flip > 0 else opposite(result)

    def _signs(self, core: Constant) -> Signs:
        self.work += 1
        result = ANY
        for rule in (self._by_facts, self._by_terms, self._by_factors, self._by_rules, self._by_rows, self._by_boxes):
            with contextlib.suppress(UnknownError):
                result &= rule(core, result)
            if len(result) < 2:
                break
        return result

    def _by_facts(self, core: Constant, known: Signs) -> Signs:
        result = ANY
        for fact, allowed in self.facts:
            if fact == core:
                result &= allowed
        return result

    def _by_terms(self, core: Constant, known: Signs) -> Signs:
        """The sum of the signs of its terms."""
        result = NULL
        for product, number in collect(core).items():
            result = sign_sum(result, sign_product(self._of_product(product), frozenset((constants.sign(number),))))
        return result

    def _of_product(self, product: Product) -> Signs:
        even = odd = POSITIVE
        turning = []  # atoms whose sign matters
        for a, e in product:
            signs = self._of_atom(a) - NULL if e < 0 else self._of_atom(a)
            if e % 2 and signs != POSITIVE:
                odd = sign_product(odd, signs)
                turning.append((a, 1))
            else:
                even = sign_product(even, _sign_power(signs, e))
        if len(turning) > 1:
            odd &= self._by_facts(alone(*turning), ANY)
        return sign_product(even, odd)

    def _of_atom(self, a: Atom) -> Signs:
        return self._by_facts(alone((a, 1)), ANY) & self._by_kind(a)

    def _by_kind(self, a: Atom) -> Signs:
        if a.kind == "parameter":
            return self._parameters[-1].get(a, ANY)
        if a.kind == "exp":
            return POSITIVE
        if a.kind == "root":
            return self.signs(a.of) & NOT_NEGATIVE
        if a.kind == "inverse":
            return self.signs(a.of) - NULL
        if a.kind == "log":
            return self.signs(a.of - ONE)
        if a.kind == "floor":
            low, high = self.signs(a.of), self.signs(a.of - ONE)
            inside = NULL if low - NEGATIVE and high & NEGATIVE else frozenset()
            return inside | (low & NEGATIVE) | (POSITIVE if high - NEGATIVE else frozenset())
        return ANY

    def _by_factors(self, core: Constant, known: Signs) -> Signs:
        lead, parts = factors_of(core)
        if len(parts) == 1 and parts[0][1] == 1:
            return ANY
        result = POSITIVE if lead > 0 else NEGATIVE
        for part, n in parts:
            result = sign_product(result, _sign_power(self.signs(part), n))
        return result

    def _by_rules(self, core: Constant, known: Signs) -> Signs:
        result = ANY
        for other, factor in self._equivalents(core):
            result &= sign_product(self.signs(other), factor)
            if len(result) < 2:
                break
        return result

    def _equivalents(self, core: Constant) -> Iterator[tuple[Constant, Signs]]:
        """Constants of which one has the sign of the given one, up to the sign of a factor."""
        parts = collect(core)
        atoms = {a: max(dict(p).get(a, 0) for p in parts) for p in parts for a, _ in p}
        for a, n in atoms.items():
            if a.kind == "inverse" and n > 0:
                cleared = ZERO
                for product, q in core.terms.items():
                    e = dict(product).get(a, 0)
                    rest = Constant({tuple(pair for pair in product if pair[0] is not a): q})
                    cleared = cleared + rest * constants.power(a.of, n - e)
                factor = self.signs(a.of) - NULL
                yield cleared, factor if n % 2 else POSITIVE
                return
        yield from self._by_powers(core, [a for a in atoms if a.kind == "root"])
        yield from self._by_logarithms(core, parts)
        logs = [a for a in atoms if a.kind == "log"]
        if logs:
            yield from self._by_exponentials(core, parts, logs)
        if len(parts) <= 2:
            yield from self._of_floor(parts)

    def _by_powers(self, core: Constant, roots: list[Atom]) -> Iterator[tuple[Constant, Signs]]:
        """c x**(1/k) + d has the sign of c (x - (-d/c)**k), if -d/c is not negative, and that of c otherwise."""
        for a in roots:
            slope, rest = _line(core, a)
            side = ANY if slope is None else self.signs(slope)
            if slope is None or len(side) != 1 or side == NULL:
                continue
            bound = rest * constants.inverse(slope) * MINUS
            if self.signs(bound) == NEGATIVE:
                yield ONE, side
            elif -1 not in self.signs(bound):
                yield a.of - constants.power(bound, a.degree), side

    def _by_logarithms(self, core: Constant, parts: dict[Product, Constant]) -> Iterator[tuple[Constant, Signs]]:
        """x - y has the sign of log(x) - log(y), if x and y are positive and made of exponentials or roots."""
        if len(parts) != 2:
            return
        (p, x), (q, y) = parts.items()
        left, right = (sign_product(self._of_product(m), frozenset((constants.sign(c),))) for m, c in ((p, x), (q, y)))
        if len(left) != 1 or right != opposite(left) or left == NULL:
            return
        if not any(a.kind in ("exp", "root") for a, _ in (*p, *q)):
            return
        ratio = _product(p, 1) * _product(q, -1) * x * constants.inverse(y) * MINUS
        if len(ratio.terms) == 1:
            yield constants.log(ratio), left

    def _by_exponentials(
        self, core: Constant, parts: dict[Product, Constant], logs: list[Atom]
    ) -> Iterator[tuple[Constant, Signs]]:
        """A sum of logarithms has the sign of the product less 1; c log(x) + d that of c (x - exp(-d/c))."""
        single = {
            p[0][0]: c.rational for p, c in parts.items() if len(p) == 1 and p[0][0].kind == "log" and p[0][1] == 1
        }
        factors = {a: q for a, q in single.items() if q is not None}
        elsewhere = {a for p in parts if len(p) != 1 or p[0][1] != 1 for a, _ in p}
        if set(factors) == set(logs) and elsewhere.isdisjoint(logs):
            common = math.lcm(*(int(q.q) for q in factors.values()))
            powers = {a: int((q * common).p) for a, q in factors.items()}
            if sum(abs(n) for n in powers.values()) > MAX_POWER:
                return
            rest = core
            for a, q in factors.items():
                rest = rest - alone((a, 1)) * rational(q)
            left, right = ONE, constants.exp(rest * rational(-common))
            for a, n in powers.items():
                left, right = (
                    (left * constants.power(a.of, n), right) if n > 0 else (left, right * constants.power(a.of, -n))
                )
            yield left - right, POSITIVE
            return
        for a in logs:
            slope, rest = _line(core, a)
            side = ANY if slope is None else self.signs(slope)
            if slope is not None and len(side) == 1 and side != NULL:
                yield a.of - constants.exp(rest * constants.inverse(slope) * MINUS), side

    def _of_floor(self, parts: dict[Product, Constant]) -> Iterator[tuple[Constant, Signs]]:
        """floor(x) - n is positive if x >= floor(n) + 1, negative if x < n rounded up."""
        (product, c), *others = sorted(parts.items(), key=lambda part: -len(part[0]))
        number = others[0][1].rational if others and not others[0][0] else fmpq(0)
        if (
            len(product) != 1
            or product[0][0].kind != "floor"
            or product[0][1] != 1
            or c.rational != 1
            or number is None
        ):
            return
        if others and others[0][0]:
            return
        n, x = -number, product[0][0].of
        up = self.signs(x - rational(n.floor() + 1))
        if not up & NEGATIVE:
            yield ONE, POSITIVE
        elif up == NEGATIVE:
            low = self.signs(x - rational(n)) if n.q == 1 else NEGATIVE
            if not low & NEGATIVE:
                yield ZERO, POSITIVE
            elif low == NEGATIVE:
                yield MINUS, POSITIVE

    # -------------------------------------------------------------------------------------------- linear inequalities
    def _by_rows(self, core: Constant, known: Signs) -> Signs:
        linked = self._linked_facts(core)
        rows = [row for fact, allowed in self.facts if fact in linked for row in _rows(fact, allowed)]
        if not rows and all(len(p) == 1 and p[0][0].kind == "parameter" for p in collect(core) if p):
            return ANY
        quantities = dict.fromkeys(p for c in linked for p in collect(c) if p)
        for product in quantities:
            signs = self._of_product(product)
            if ANY != signs != NOT_NULL:
                rows += _rows(Constant({product: fmpq(1)}), signs)
            if len(product) == 1 and product[0][0].kind == "floor" and product[0][1] == 1:
                fraction = product[0][0].of - Constant({product: fmpq(1)})  # from 0 to below 1
                rows += _rows(fraction, NOT_NEGATIVE) + _rows(ONE - fraction, POSITIVE)
        return frozenset(s for s in known if not _infeasible([*rows, *_rows(core, frozenset((s,)))]))

    # ------------------------------------------------------------------------------------------------ boxes
    def _by_boxes(self, core: Constant, known: Signs) -> Signs:
        linked = self._linked_facts(core)
        facts = frozenset((fact, allowed) for fact, allowed in self.facts if allowed != NOT_NULL and fact in linked)
        if (core, facts) not in self._boxed:
            self._boxed[core, facts] = _over_boxes(core, facts)
        return self._boxed[core, facts]


def _over_boxes(core: Constant, facts: frozenset[tuple[Constant, Signs]]) -> Signs:
    """The signs of a constant on boxes that cover the part of the parameters where the facts hold."""
    if all(_is_linear(c) for c in (core, *(fact for fact, _ in facts))):
        return ANY  # linear inequalities have told everything
    names = sorted({a.serial: a for c in (core, *(f for f, _ in facts)) for a in parameters_of(c)}.items())
    atoms = [a for _, a in names]
    if not 0 < len(atoms) <= 3:
        return ANY
    seen: set[int] = set()
    todo = [((EVERYTHING,) * len(atoms), 0)]
    count = 0
    with ctx.workprec(64):
        while todo:
            box, depth = todo.pop()
            count += 1
            here = dict(zip(atoms, box, strict=True))
            if any(not _may_be(_range(fact, here), allowed) for fact, allowed in facts):
                continue
            value = _range(core, here)
            side = (value.low > 0) - (value.high < 0)
            if not side:
                if count + len(todo) > MAX_BOXES:
                    return ANY
                todo += [(half, depth + 1) for half in _halves(box, depth % len(atoms))]
                continue
            seen.add(int(side))
            if len(seen) > 1:
                return ANY
    return frozenset(seen)


@functools.lru_cache(maxsize=4096)
def factors_of(c: Constant) -> tuple[fmpq, tuple[tuple[Constant, int], ...]]:
    """(q, ((x, n), (y, m), ...)) with c = q * x**n * y**m * ...; the constant itself if it has no factors."""
    atoms = list(dict.fromkeys(a for product in c.terms for a, _ in product))
    below = {a: -min(min(dict(p).get(a, 0) for p in c.terms), 0) for a in atoms}
    exponents = {tuple(dict(p).get(a, 0) + below[a] for a in atoms): q for p, q in c.terms.items()}
    if len(c.terms) < 2 or max(max(e) for e in exponents) > MAX_DEGREE:
        return fmpq(1), ((c, 1),)
    ring = fmpq_mpoly_ctx.get([f"x{i}" for i in range(len(atoms))], Ordering.lex)
    lead, polynomials = ring.from_dict(exponents).factor()
    parts = [(alone((a, 1)), -n) for a, n in below.items() if n]
    for polynomial, n in polynomials:
        part = ZERO
        for powers, q in polynomial.to_dict().items():
            part = part + alone(*((a, int(e)) for a, e in zip(atoms, powers, strict=True) if e)) * rational(q)
        parts.append((part, int(n)))
    return lead, tuple(parts)


def _line(c: Constant, a: Atom) -> tuple[Constant | None, Constant]:
    """(slope, rest) with c = slope * a + rest; the slope is None if c is not of that form."""
    slope = rest = ZERO
    for product, q in c.terms.items():
        e = dict(product).get(a, 0)
        others = Constant({tuple(pair for pair in product if pair[0] is not a): q})
        if e not in (0, 1):
            return None, ZERO
        slope, rest = (slope + others, rest) if e else (slope, rest + others)
    return slope, rest


def presuppositions(c: Constant) -> list[tuple[Constant, Signs]]:
    """What must hold for the constant to have a value."""
    result: dict[Constant, Signs] = {}
    for a, e in dict.fromkeys((a, e < 0) for product in c.terms for a, e in product if a.region is not None):
        if e or a.kind == "inverse":
            base = alone((a, 1)) if a.kind != "inverse" else a.of
            result[base] = result.get(base, ANY) & NOT_NULL
        if a.kind in ("log", "root"):
            result[a.of] = result.get(a.of, ANY) & (POSITIVE if a.kind == "log" else NOT_NEGATIVE)
        if a.kind != "parameter":
            result |= presuppositions(a.of)
    return list(result.items())


def _inside(a: Atom) -> Constant | None:
    """A constant whose sign is that of an atom."""
    if a.kind in ("root", "inverse"):
        return a.of
    return a.of - ONE if a.kind == "log" else None


def _complexity(c: Constant) -> int:
    """How many functions of parameters stand in a constant."""
    atoms = {a for product in c.terms for a, _ in product if a.region is not None}
    return sum(1 + _complexity(a.of) for a in atoms if a.kind != "parameter")


def _product(product: Product, e: int) -> Constant:
    return Constant({tuple((a, n * e) for a, n in product): fmpq(1)}) if product else ONE


def _is_linear(c: Constant) -> bool:
    return all(not p or (len(p) == 1 and p[0][0].kind == "parameter" and p[0][1] == 1) for p in collect(c))


Row = tuple[dict[Product, Any], bool]  # the sum of coefficient * quantity, with 1 under (), is > 0, or >= 0


def _rows(c: Constant, signs: Signs) -> list[Row]:
    rows: list[Row] = []
    for side, bad in ((1, NEGATIVE), (-1, POSITIVE)):
        if bad.isdisjoint(signs):
            parts = collect(c if side > 0 else -c)
            rational_parts = {p: q for p, x in parts.items() if (q := x.rational) is not None}
            rows.append((rational_parts if len(rational_parts) == len(parts) else dict(parts), 0 not in signs))
    return rows


def _side(x: Constant | fmpq) -> int:
    return constants.sign(x) if isinstance(x, Constant) else (x > 0) - (x < 0)


def _infeasible(rows: list[Row]) -> bool:
    """Whether linear inequalities are proven to contradict each other."""
    return _contradict(tuple(dict.fromkeys((tuple(row.items()), strict) for row, strict in rows)))


@functools.lru_cache(maxsize=4096)
def _contradict(inequalities: tuple[tuple[tuple[tuple[Product, Any], ...], bool], ...]) -> bool:
    rows: list[Row] = [(dict(row), strict) for row, strict in inequalities]
    if any(isinstance(x, Constant) for row, _ in rows for x in row.values()):
        rows = [({p: x if isinstance(x, Constant) else rational(x) for p, x in row.items()}, s) for row, s in rows]
    while True:
        for row, strict in rows:
            if not any(row):
                side = _side(row[()]) if row else 0
                if side < 0 or (side == 0 and strict):
                    return True
        rows = [(row, strict) for row, strict in rows if any(row)]
        if not rows or len(rows) > MAX_ROWS:
            return False
        sides: dict[Product, list[list[Row]]] = {}
        for one in rows:
            for p, x in one[0].items():
                if p:
                    sides.setdefault(p, [[], []])[_side(x) < 0].append(one)
        quantity, (up, down) = min(sides.items(), key=lambda side: len(side[1][0]) * len(side[1][1]))
        rows = [row for row in rows if quantity not in row[0]] + [_combine(u, d, quantity) for u in up for d in down]


def _combine(up: Row, down: Row, quantity: Product) -> Row:
    a, b = -down[0][quantity], up[0][quantity]
    total = {p: c * a for p, c in up[0].items()}
    for p, c in down[0].items():
        total[p] = total[p] + c * b if p in total else c * b
    return {p: c for p, c in total.items() if p != quantity and _side(c)}, up[1] or down[1]


# ---------------------------------------------------------------------------------------------------- boxes
def parameters_of(c: Constant) -> Iterator[Atom]:
    """The parameters in a constant, each as often as it occurs."""
    for product in c.terms:
        for a, _ in product:
            if a.kind == "parameter":
                yield a
            elif a.region is not None:
                yield from parameters_of(a.of)


def _range(c: Constant, here: dict[Atom, Interval]) -> Interval:
    """A range of the constant over a box, wherever it has a value."""
    total: Interval | None = None
    for product, q in c.terms.items():
        value = None if q == 1 and product else span(arb(q))
        for a, e in product:
            one = here[a] if a.kind == "parameter" else _atom_range(a, here)
            one = one.power(e) if e > 0 else one.power(-e).inverse()
            value = one if value is None else value * one
        total = value if total is None or value is None else total + value
    if total is None:
        return exactly(0)
    return EVERYTHING if total.low.is_nan() or total.high.is_nan() else total


def _atom_range(a: Atom, here: dict[Atom, Interval]) -> Interval:
    if a.region is None:
        return span(constants.ball(alone((a, 1))))
    x = _range(a.of, here)
    if a.kind == "exp":
        return x.exp()
    if a.kind == "inverse":
        return x.inverse()
    if a.kind in ("log", "root"):
        if x.high < 0:
            return EVERYTHING
        x = Interval(x.low.max(arb(0)), x.high)
        if a.kind == "log":
            return x.log()
        high = x.high.root(a.degree).upper() if x.high.is_finite() else INFINITY
        return Interval(x.low.root(a.degree).lower().max(arb(0)), high)
    if a.kind in ("sin", "cos"):
        return UNIT_WAVE
    if a.kind == "floor":
        return x + Interval(arb(-1), arb(0))
    return EVERYTHING


def sign_at(c: Constant, point: dict[Atom, Interval]) -> int | None:
    """The sign of a constant at one point, where intervals tell it."""
    value = _range(c, point)
    return 1 if value.positive else -1 if value.negative else 0 if value.is_zero else None


def _may_be(x: Interval, signs: Signs) -> bool:
    return bool((1 in signs and x.high > 0) or (-1 in signs and x.low < 0) or (0 in signs and x.contains_zero()))


def _halves(box: tuple[Interval, ...], i: int) -> list[tuple[Interval, ...]]:
    """The box cut in two along one side: at 0, then at powers of 4, or in the middle."""
    low, high = box[i].low, box[i].high
    if not low.is_finite() and not high.is_finite():
        cut = arb(0)
    elif not high.is_finite():
        cut = arb(1) if low < 1 else low * 4
    elif not low.is_finite():
        cut = arb(-1) if high > -1 else high * 4
    else:
        cut = ((low + high) / 2).mid()
    return [(*box[:i], half, *box[i + 1 :]) for half in (Interval(low, cut), Interval(cut, high))]
