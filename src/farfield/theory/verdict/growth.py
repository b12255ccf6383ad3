"""What each function of the language does as t -> infinity: to an expansion, to a sign, to a logarithm.

Three tables over all operations. A rule is given the reader (reader.py) and the part of the formula. What is not smooth
enters as an interval: sin and cos of what grows lie in [-1, 1], floor(x) in [x - 1, x], min, max and abs become one
branch as soon as a sign is proven and an interval otherwise. The same rules serve both engines.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

from flint import arb

from farfield.formula import FormulaError, Node
from farfield.formula.functions import reading
from farfield.theory.errors import MoreTermsError, UndecidedError, UndefinedError
from farfield.theory.exact import constants
from farfield.theory.exact.constants import ONE, ZERO, Const, rational
from farfield.theory.exact.values import holds
from farfield.theory.verdict import special_growth as special
from farfield.theory.verdict.expansion import MINUS, Engine, Expansion
from farfield.theory.verdict.monomials import UNIT

if TYPE_CHECKING:
    from farfield.theory.verdict.reader import Reader

HALF = rational(Fraction(1, 2))
NOTHING = Expansion(((UNIT, ZERO),))  # the bias -inf: a weight of exactly 0, for good
Rule = Callable[["Reader", Node], Expansion]


# ------------------------------------------------------------------------------------------------ expansions
def _values(rule: Callable[..., Expansion]) -> Rule:
    """The rule of an operation that needs only the expansions of its arguments."""

    def apply(reader: Reader, node: Node) -> Expansion:
        args = [reader.expand(a) for a in node.args]
        if any(a is NOTHING for a in args):
            return _with_nothing(reader.engine, node.op, args)
        return rule(reader.engine, *args)

    return apply


def _with_nothing(e: Engine, op: str, args: list[Expansion]) -> Expansion:
    others = [a for a in args if a is not NOTHING]
    if op == "+" or (op == "-" and args[0] is NOTHING and others):
        return NOTHING
    if op == "exp":
        return Expansion()
    if op == "max" and others:
        return others[0]
    if op == "min":
        return NOTHING
    if op in ("*", "/") and others and (op == "*" or args[0] is NOTHING) and e.sign(others[0]) > 0:
        return NOTHING
    raise UndefinedError("-inf stands where only a finite bias has a meaning")


def _inverse(e: Engine, s: Expansion) -> Expansion:
    s = e.led(s)
    if not s.terms and s.rest is None:
        raise UndefinedError("a division by zero")
    return e.power(s, MINUS)


def _root(e: Engine, s: Expansion) -> Expansion:
    if not s.terms and s.rest is None:
        return s
    if e.sign(s) < 0:
        raise UndefinedError("sqrt of something negative for large t")
    return e.power(s, HALF)


def _logarithm(reader: Reader, node: Node) -> Expansion:
    if reader.sign(node.args[0]) <= 0:
        raise UndefinedError("log of something that is not positive for large t")
    return reader.log(node.args[0])


def _no_root(exponent: Const) -> Exception:
    """What is wrong with a power of something negative."""
    if exponent.parameters:
        return UndecidedError("a power of something negative, which has a value only for whole exponents")
    return UndefinedError("a real power of something negative for large t")


def _power(reader: Reader, node: Node) -> Expansion:
    base, exponent = node.args
    e = reader.engine
    if "t" not in exponent.free():
        s = e.led(reader.expand(base))
        c = reader.constant(exponent)
        q = c.rational
        if not s.terms and s.rest is None:
            side = e.region.sign(c)
            if side < 0:
                raise UndefinedError("a negative power of zero")
            return s if side else e.constant(ONE)
        if (q is None or q.denominator != 1) and e.sign(s) < 0:
            raise _no_root(c)
        return e.power(s, c)
    if reader.sign(base) <= 0:
        raise UndefinedError("a power of something that is not positive for large t")
    return e.exp(e.multiply(reader.expand(exponent), reader.log(base)))


def _wave(op: str) -> Callable[[Engine, Expansion], Expansion]:
    """sin or cos: of what tends to a constant an expansion, of anything else something in [-1, 1]."""

    def wave(e: Engine, s: Expansion) -> Expansion:
        s = e.led(s)
        lead = s.terms[0][0] if s.terms else s.rest[0] if s.rest else UNIT
        if e.compare(lead, UNIT) > 0 or (not s.terms and s.rest is not None and lead == UNIT):
            return e.bounded(-1, 1)
        shift = next((c for m, c in s.terms if m == UNIT), ZERO)
        d = e.make([(m, c) for m, c in s.terms if m != UNIT], [s.rest])
        if d.rest is not None and e.compare(d.rest[0], UNIT) >= 0:
            return e.bounded(-1, 1)
        sine, cosine = (_small_wave(e, name, d) for name in ("sin", "cos"))
        if not shift.terms:
            return sine if op == "sin" else cosine
        s0, c0 = constants.trigonometric("sin", shift), constants.trigonometric("cos", shift)
        if op == "sin":
            return e.add(e.scale(cosine, s0), e.scale(sine, c0))
        return e.add(e.scale(cosine, c0), e.scale(sine, -s0))

    return wave


def _small_wave(e: Engine, op: str, d: Expansion) -> Expansion:
    odd = op == "sin"

    def coefficient(k: int) -> Const:
        if k % 2 != odd:
            return ZERO
        return rational(Fraction((-1) ** ((k - odd) // 2), math.factorial(k)))

    return e.series(d, coefficient, lambda order, _: 1 / arb(math.factorial(order + 1)))


def _floor(e: Engine, s: Expansion) -> Expansion:
    s = e.led(s)
    lead = s.terms[0][0] if s.terms else s.rest[0] if s.rest else UNIT
    if e.compare(lead, UNIT) <= 0 and (s.rest is None or e.compare(s.rest[0], UNIT) < 0):
        shift = next((c for m, c in s.terms if m == UNIT), ZERO)
        whole = constants.floor(shift)
        if e.region.sign(shift - whole) == 0:
            d = e.make([(m, c) for m, c in s.terms if m != UNIT], [s.rest])
            up = e.sign(d) >= 0
            if up and e.sign(e.add(d, e.constant(MINUS))) < 0:  # also where an explicit range begins
                return e.constant(whole)
            if not up and e.sign(e.add(d, e.constant(ONE))) > 0:
                return e.constant(whole - ONE)
        gap = e.add(s, e.constant(-whole))
        if e.sign(gap) > 0 and e.sign(e.add(gap, e.constant(MINUS))) < 0:
            return e.constant(whole)
    return e.add(s, e.bounded(-1, 0))


def _larger(e: Engine, a: Expansion, b: Expansion) -> Expansion:
    gap = e.add(a, e.negative(b))
    try:
        return a if e.sign(gap) >= 0 else b
    except UndecidedError:
        if gap.terms or gap.rest is None:
            raise
    m, interval = gap.rest  # b + max(gap, 0), and gap oscillates around 0
    low, high = e.with_zero(interval)
    return e.add(b, Expansion((), (m, (ZERO if isinstance(low, Const) else low * 0, high))))


def branch(reader: Reader, node: Node) -> Node:
    """The branch of a where that counts for large t."""
    left, right, yes, no = node.args
    e = reader.engine
    sign = e.sign(e.add(reader.expand(left), e.negative(reader.expand(right))))
    return yes if holds(str(node.value), sign) else no


def _where(reader: Reader, node: Node) -> Expansion:
    try:
        return reader.expand(branch(reader, node))
    except UndecidedError:
        a, b = (reader.expand(n) for n in node.args[2:])
        if a is NOTHING or b is NOTHING:
            raise
    e = reader.engine
    gap = e.led(e.add(a, e.negative(b)))  # the value is b, or b + gap
    if not gap.terms and gap.rest is None:
        return a
    m = gap.terms[0][0] if gap.terms else gap.rest[0]  # type: ignore[index]
    whole = e.make([], [(x, e.exactly(c)) for x, c in gap.terms] + [gap.rest])
    assert whole.rest is not None
    return e.add(b, Expansion((), (m, e.with_zero(whole.rest[1]))))


def _sum(reader: Reader, node: Node) -> Expansion:
    try:
        indices = reader.indices_of(node)
    except UndecidedError:
        return _open_sum(reader, node)
    except FormulaError as error:
        raise UndefinedError(error.sentence) from None
    return reader.engine.add(*(reader.at_index(node, rational(j), reader.expand) for j in indices))


def _open_sum(reader: Reader, node: Node) -> Expansion:
    """A sum with open bounds, where every term lies in one interval."""
    e = reader.engine
    first, last = (reader.constant(b) for b in node.args[1:])
    index = constants.parameter(f"{node.value}'")
    body = reader.at_index(node, index, reader.expand)
    count = last - first + ONE
    if e.region.sign(count) <= 0:
        return Expansion()
    if body.terms or body.rest is None or body.rest[0] != UNIT or body.rest[1] is None:
        raise UndecidedError("a sum with open bounds of terms that are not merely bounded")
    if any(index.parameters & c.parameters for c in body.rest[1]):
        raise UndecidedError("a sum with open bounds whose terms depend on the index")
    return Expansion((), (UNIT, e.scaled(body.rest[1], count)))


EXPANSIONS = reading("growth", {
    "+": _values(lambda e, a, b: e.add(a, b)),
    "-": _values(lambda e, a, b: e.add(a, e.negative(b))),
    "*": _values(lambda e, a, b: e.multiply(a, b)),
    "/": _values(lambda e, a, b: e.multiply(a, _inverse(e, b))),
    "neg": _values(lambda e, a: e.negative(a)),
    "**": _power,
    "exp": _values(lambda e, a: e.exp(a)),
    "log": _logarithm,
    "sqrt": _values(_root),
    "sin": _values(_wave("sin")),
    "cos": _values(_wave("cos")),
    "abs": _values(lambda e, a: _larger(e, a, e.negative(a))),
    "floor": _values(_floor),
    "atan": _values(special.arctangent),
    "erf": _values(special.error_function),
    "gamma": special.gamma,
    "min": _values(lambda e, a, b: e.negative(_larger(e, e.negative(a), e.negative(b)))),
    "max": _values(_larger),
    "where": _where,
    "sum": _sum,
}, ("where", "sum"))  # fmt: skip


# ------------------------------------------------------------------------------------------------ signs
def _sign_of_expansion(reader: Reader, node: Node) -> int:
    return reader.engine.sign(reader.expand(node))


def _sign_of_gamma(reader: Reader, node: Node) -> int:
    if reader.sign(node.args[0]) <= 0:
        raise UndefinedError("gamma of something that is not positive for large t")
    return 1


def _sign_of_power(reader: Reader, node: Node) -> int:
    if "t" in node.args[1].free() or reader.sign(node.args[0]) > 0:
        return reader.sign(node.args[0])
    return _sign_of_expansion(reader, node)


def _sign_of_sum(right_sign: int) -> Callable[[Reader, Node], int]:
    def rule(reader: Reader, node: Node) -> int:
        try:
            return _sign_of_expansion(reader, node)
        except (UndecidedError, MoreTermsError):
            left, right = reader.sign(node.args[0]), reader.sign(node.args[1]) * right_sign
            if left * right <= 0:
                raise
            return left  # two parts of one sign, though their sum cannot be expanded

    return rule


SIGNS = reading("sign at infinity", {
    "+": _sign_of_sum(1),
    "-": _sign_of_sum(-1),
    "*": lambda reader, node: reader.sign(node.args[0]) * reader.sign(node.args[1]),
    "/": lambda reader, node: reader.sign(node.args[0]) * reader.sign(node.args[1]),
    "neg": lambda reader, node: -reader.sign(node.args[0]),
    "**": _sign_of_power,
    "exp": lambda reader, node: 1,
    **dict.fromkeys(("atan", "erf"), lambda reader, node: reader.sign(node.args[0])),
    "gamma": _sign_of_gamma,
    **dict.fromkeys(
        ("log", "sqrt", "sin", "cos", "abs", "floor", "min", "max", "where", "sum"), _sign_of_expansion
    ),
}, ("where", "sum"))  # fmt: skip


# ------------------------------------------------------------------------------------------------ logarithms
def _log_of_expansion(reader: Reader, node: Node) -> Expansion:
    e, s = reader.engine, reader.expand(node)
    return e.log(s if e.sign(s) > 0 else e.negative(s))


def _log_of_power(reader: Reader, node: Node) -> Expansion:
    base, exponent = node.args
    e = reader.engine
    if "t" in exponent.free():
        if reader.sign(base) <= 0:
            raise UndefinedError("a power of something that is not positive for large t")
        return e.multiply(reader.expand(exponent), reader.log(base))
    c = reader.constant(exponent)
    if (c.rational is None or c.rational.denominator != 1) and reader.sign(base) < 0:
        raise _no_root(c)
    return e.scale(reader.log(base), c)


def _log_of_sum(reader: Reader, node: Node) -> Expansion:
    """log(x + y); of positive x and y that cannot be expanded the larger logarithm, plus something in [0, log 2]."""
    try:
        return _log_of_expansion(reader, node)
    except MoreTermsError:
        pass
    e = reader.engine
    if any(reader.sign(a) <= 0 for a in node.args):
        raise UndecidedError("a sum of terms of both signs that cannot be expanded")
    x, y = (reader.log(a) for a in node.args)
    more = e.mapped((e.exactly(ONE)[0], e.exactly(rational(2))[1]), "log")
    return e.add(_larger(e, x, y), Expansion((), (UNIT, more)))


LOGARITHMS = reading("logarithm at infinity", {
    "+": _log_of_sum,
    "*": lambda reader, node: reader.engine.add(*(reader.log(a) for a in node.args)),
    "/": lambda reader, node: reader.engine.add(
        reader.log(node.args[0]), reader.engine.negative(reader.log(node.args[1]))
    ),
    "neg": lambda reader, node: reader.log(node.args[0]),
    "abs": lambda reader, node: reader.log(node.args[0]),
    "**": _log_of_power,
    "exp": lambda reader, node: reader.expand(node.args[0]),
    "sqrt": lambda reader, node: reader.engine.scale(reader.log(node.args[0]), HALF),
    "where": lambda reader, node: reader.log(branch(reader, node)),
    "gamma": special.log_gamma,
    **dict.fromkeys(("-", "log", "sin", "cos", "floor", "min", "max", "sum", "atan", "erf"), _log_of_expansion),
}, ("where", "sum"))  # fmt: skip
