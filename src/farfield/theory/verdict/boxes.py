"""Signs that follow from inequalities between parameters: interval arithmetic over boxes that hold the whole region.

Where a > 2 is assumed, 1/a**2 < 1 needs no case of its own. The plane of the parameters is cut into boxes; those in
which an assumption cannot hold are dropped, and if the constant has one sign on all others, that is its sign.
"""

from __future__ import annotations

import functools
from fractions import Fraction

from flint import Ordering, arb, ctx, fmpq, fmpq_mpoly_ctx

from farfield.formula import FormulaError, Node
from farfield.formula.algebras import evaluate
from farfield.formula.functions import reading
from farfield.theory.errors import EmptyRegionError, FaultError
from farfield.theory.exact import constants
from farfield.theory.exact.constants import Const
from farfield.theory.verdict.intervals import INFINITY, RANGES, Range, Ranges, gamma

MAX_BOXES = 30
MAX_NAMES = 3
MAX_DEGREE = 8
Box = tuple[Range, ...]
EVERYTHING = Range(-INFINITY, INFINITY)
ALLOWED = {1: (1,), 0: (0,), -1: (-1,), 2: (0, 1)}  # signs that an assumption leaves, with 2 for "not negative"


@functools.lru_cache(maxsize=20_000)
def sign_on(facts: tuple[tuple[Const, int], ...], c: Const) -> int | None:
    """The sign of a constant under these assumptions, or None; EmptyRegionError if nothing satisfies them."""
    names = sorted(c.parameters.union(*(fact.parameters for fact, _ in facts)))
    if len(names) > MAX_NAMES:
        return None
    known = [(_node(fact), ALLOWED[s]) for fact, s in facts]
    gap, seen, count = _node(c), set(), 0
    todo: list[tuple[Box, int]] = [((EVERYTHING,) * len(names), 0)]
    with ctx.workprec(64):
        while todo:
            box, depth = todo.pop()
            count += 1
            here = dict(zip(names, box, strict=True))
            if not all(_possible(node, allowed, here) for node, allowed in known):
                continue
            value = _range(gap, here)
            result = 0 if value is None else (value.low > 0) - (value.high < 0)
            if not result:
                if count + len(todo) > MAX_BOXES:
                    return None
                todo += [(half, depth + 1) for half in _halves(box, depth % len(names))]
                continue
            seen.add(result)
            if len(seen) > 1:
                return None
    if not seen:
        raise EmptyRegionError
    return seen.pop()


@functools.lru_cache(maxsize=20_000)
def _node(c: Const) -> Node:
    return constants.node(c)


def _range(node: Node, here: dict[str, Range]) -> Range | None:
    try:
        value: Range = evaluate(node, here, RANGES)
    except (FaultError, FormulaError):
        return None
    return None if value.low.is_nan() or value.high.is_nan() else value


class _WhereDefined(Ranges):
    """Ranges over that part of a box in which a root or a logarithm has a value; FaultError if there is none."""

    operations = reading("ranges where defined", {
        **Ranges.operations, "log": lambda x: _log(_clipped(x)), "**": lambda x, y: _power(x, y),
        "sqrt": lambda x: Ranges.operations["sqrt"](_clipped(x)), "gamma": lambda x: _gamma(_clipped(x)),
    })  # fmt: skip


def _clipped(x: Range) -> Range:
    """What is not negative of a range."""
    if x.high < 0:
        raise FaultError("a root or a logarithm of a negative number", True)
    return Range(x.low.max(arb(0)), x.high)


def _log(x: Range) -> Range:
    return Range(-INFINITY, INFINITY) if not x.high > 0 else Range(
        x.low.log().lower() if x.low > 0 else -INFINITY, x.high.log().upper() if x.high.is_finite() else INFINITY
    )  # fmt: skip


def _gamma(x: Range) -> Range:
    return gamma(x) if x.low > 0 else Range(arb("0.88").lower(), INFINITY)


def _power(x: Range, y: Range) -> Range:
    try:
        value: Range = Ranges.operations["**"](x, y)
    except FaultError:  # a root of a part, or nothing is known
        return Range(arb(0), INFINITY) if RANGES.integer(y) is None and y.low == y.high else EVERYTHING
    return value


WHERE_DEFINED = _WhereDefined()


def _possible(node: Node, allowed: tuple[int, ...], here: dict[str, Range]) -> bool:
    """Whether a constant can have one of these signs in a box; it has none where it has no value."""
    try:
        value: Range = evaluate(node, here, WHERE_DEFINED)
    except FaultError as fault:
        return not fault.certain
    except FormulaError:
        return True
    if value.low.is_nan() or value.high.is_nan():
        return True
    return (1 in allowed and bool(value.high > 0)) or (-1 in allowed and bool(value.low < 0)) or (
        0 in allowed and bool(value.low <= 0) and bool(value.high >= 0)
    )  # fmt: skip


def _halves(box: Box, i: int) -> list[Box]:
    """The box cut in two along one side: at 0, then at powers of 4, or in the middle."""
    low, high = box[i]
    if not low.is_finite() and not high.is_finite():
        cut = arb(0)
    elif not high.is_finite():
        cut = arb(1) if low < 1 else low * 4
    elif not low.is_finite():
        cut = arb(-1) if high > -1 else high * 4
    else:
        cut = ((low + high) / 2).mid()
    return [(*box[:i], half, *box[i + 1 :]) for half in (Range(low, cut), Range(cut, high))]


@functools.lru_cache(maxsize=5_000)
def factors(c: Const) -> tuple[tuple[Const, int], ...]:
    """A polynomial in its atoms as a product of powers, up to a positive number; one factor if it is none."""
    atoms = {a: f"x{i}" for i, a in enumerate(dict.fromkeys(a for m in c.terms for a, _ in m))}
    powers = [e for m in c.terms for _, e in m]
    if len(c.terms) < 2 or any(e.denominator != 1 or not 0 < e <= MAX_DEGREE for e in powers):
        return ((c, 1),)
    ring = fmpq_mpoly_ctx.get(list(atoms.values()), Ordering.lex)
    whole = ring.from_dict(
        {tuple(int(dict(m).get(a, 0)) for a in atoms): fmpq(q.numerator, q.denominator) for m, q in c.terms.items()}
    )
    lead, result = whole.factor()
    if sum(n for _, n in result) == 1:
        return ((c, 1),)
    parts = [(_const(p.to_dict(), list(atoms)), int(n)) for p, n in result]
    return (*parts, (constants.rational(-1), 1)) if lead < 0 else tuple(parts)


def _const(terms: dict[tuple[int, ...], fmpq], atoms: list[constants.Atom]) -> Const:
    total = constants.ZERO
    for exponents, q in terms.items():
        part = constants.rational(Fraction(int(q.p), int(q.q)))
        for a, e in zip(atoms, exponents, strict=True):
            if e:
                part = part * Const({((a, Fraction(int(e))),): Fraction(1)})
        total = total + part
    return total
