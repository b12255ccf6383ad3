"""The shape of a bias: which sum of powers, logarithms and iterated logarithms of t it is, however it is spelled.

`-2*log(t + 1)`, `weight: 1/(t+1)**2` and `-log(1 + 2*t + t**2)` are one shape, so they get one closed form. The shape
is worked out by the rules of algebra on exact constants, not by looking for texts. What has no shape here is no worse
off: the general method sums it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from farfield.formula import Formula, FormulaError, Node, index_range, number
from farfield.formula.functions import SWITCHES, rule_table
from farfield.formula.tree import substitute
from farfield.theory.checker.families import value_of
from farfield.theory.errors import UndecidedError
from farfield.theory.exact import constants
from farfield.theory.exact.constants import ONE, ZERO, Constant, known_sign, rational

_MOST_TERMS = 40
HALF = Fraction(1, 2)


@dataclass(frozen=True)
class Power:
    """(t + shift)**exponent; a power with a whole exponent is written out, with shift 0."""

    shift: Constant
    exponent: Constant


@dataclass(frozen=True)
class Log:
    """log(scale*(t + shift))**exponent; a first power has scale 1, its scale being a constant summand."""

    scale: Constant
    shift: Constant
    exponent: Fraction = Fraction(1)


@dataclass(frozen=True)
class LogLog:
    """log(log(scale*(t + shift)))."""

    scale: Constant
    shift: Constant


@dataclass(frozen=True)
class LogPolynomial:
    """log(t**n + ... + c1*t + c0), from c0 on, without the leading 1."""

    lower: tuple[Constant, ...]


Summand = Power | Log | LogLog | LogPolynomial | None  # None is the constant 1
Shape = dict[Summand, Constant]  # the sum of coefficient * summand
Rule = Callable[[Node], Shape | None]
T = Power(ZERO, ONE)


def _plain(c: Constant) -> Shape:
    return {None: c} if c.terms else {}


def _add(a: Shape, b: Shape, factor: Constant = ONE) -> Shape:
    total = dict(a)
    for summand, c in b.items():
        value = total.get(summand, ZERO) + factor * c
        if value.terms:
            total[summand] = value
        else:
            total.pop(summand, None)
    return total


def _scaled(a: Shape, factor: Constant) -> Shape:
    return _add({}, a, factor)


def constant_part(a: Shape) -> Constant:
    """The constant summand."""
    return a.get(None, ZERO)


def is_constant(a: Shape) -> bool:
    """Whether nothing in it depends on t."""
    return all(summand is None for summand in a)


def polynomial(a: Shape) -> list[Constant] | None:
    """The coefficients from t**0 on, or None if the shape is no polynomial in t."""
    powers: dict[int, Constant] = {}
    for summand, c in a.items():
        if summand is None:
            powers[0] = c
            continue
        if not isinstance(summand, Power) or summand.shift.terms:
            return None
        exponent = summand.exponent.whole
        if exponent is None or not 0 < exponent <= 64:
            return None
        powers[exponent] = c
    return [powers.get(i, ZERO) for i in range(max(powers, default=0) + 1)]


def _summands_product(a: Summand, b: Summand) -> Summand | bool:
    """The product of two summands as one; False if it is none."""
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, Power) and isinstance(b, Power) and a.shift == b.shift:
        exponent = a.exponent + b.exponent
        return Power(a.shift, exponent) if exponent.terms else None
    if isinstance(a, Log) and isinstance(b, Log) and (a.scale, a.shift) == (b.scale, b.shift):
        return Log(a.scale, a.shift, a.exponent + b.exponent) if a.exponent + b.exponent else None
    return False


def _product(a: Shape, b: Shape) -> Shape | None:
    total: Shape = {}
    for x, c in a.items():
        for y, d in b.items():
            summand = _summands_product(x, y)
            if isinstance(summand, bool):
                return None
            total = _add(total, {summand: c * d})
            if len(total) > _MOST_TERMS:
                return None
    return total


def _power(base: Shape, exponent: Constant) -> Shape | None:
    e = exponent.fraction
    if exponent.whole is not None and 0 <= exponent.whole <= 8:
        total: Shape | None = _plain(ONE)
        for _ in range(exponent.whole):
            total = None if total is None else _product(total, base)
        return total
    if len(base) == 1:
        ((summand, c),) = base.items()
        if known_sign(c) == 1:
            factor = constants.real_power(c, exponent)
            if isinstance(summand, Power):
                return {Power(summand.shift, summand.exponent * exponent): factor}
            if isinstance(summand, Log) and e is not None:
                return {Log(summand.scale, summand.shift, summand.exponent * e): factor}
    line = polynomial(base)
    if line is not None and len(line) == 2 and known_sign(line[1]) == 1:
        return {Power(line[0] / line[1], exponent): constants.real_power(line[1], exponent)}
    inner = _one_log(base)
    if inner is not None and e is not None:
        c, log = inner
        return {Log(log.scale, log.shift, e): constants.power(c, e)}
    return None


def _one_log(a: Shape) -> tuple[Constant, Log] | None:
    """The shape as c * log(scale*(t + shift)) with c > 0, if it is that."""
    others = [(summand, c) for summand, c in a.items() if summand is not None]
    if len(others) != 1:
        return None
    summand, c = others[0]
    if not isinstance(summand, Log) or summand.exponent != 1 or known_sign(c) != 1:
        return None
    return c, Log(summand.scale * constants.exp(constant_part(a) / c), summand.shift)


def _log_of_shape(a: Shape) -> Shape | None:
    """The shape of log(a) for a shape that is one summand, a polynomial or a logarithm."""
    if is_constant(a):
        return _plain(constants.log(constant_part(a))) if known_sign(constant_part(a)) == 1 else None
    coefficients = polynomial(a)
    if coefficients is not None:
        lead = coefficients[-1]
        if known_sign(lead) != 1:
            return None
        lower = tuple(c / lead for c in coefficients[:-1])
        low = next(i for i, c in enumerate(coefficients) if c.terms)
        total = _plain(constants.log(lead))
        if low:
            total = _add(total, {Log(ONE, ZERO): rational(low)})
        return total if low == len(lower) else _add(total, _log_of_monic(lower[low:]))
    if len(a) == 1:
        ((summand, c),) = a.items()
        if known_sign(c) != 1:
            return None
        if isinstance(summand, Power):
            return _add(_plain(constants.log(c)), {Log(ONE, summand.shift): summand.exponent})
        if isinstance(summand, Log):
            inside: Shape = {LogLog(summand.scale, summand.shift): rational(summand.exponent)}
            return _add(_plain(constants.log(c)), inside)
    inner = _one_log(a)
    if inner is None:
        return None
    return _add(_plain(constants.log(inner[0])), {LogLog(inner[1].scale, inner[1].shift): ONE})


def _log_of_monic(lower: tuple[Constant, ...]) -> Shape:
    """log of a monic polynomial; a perfect power of t + a is written as that."""
    degree = len(lower)
    if degree == 1:
        return {Log(ONE, lower[0]): ONE}
    shift = lower[-1] / degree
    power = _power({T: ONE, None: shift}, rational(degree)) if degree <= 8 else None
    if power is not None and (polynomial(power) or [])[:-1] == list(lower):
        return {Log(ONE, shift): rational(degree)}
    return {LogPolynomial(lower): ONE}


# ---------------------------------------------------------------------------------------------------- evaluator
def shape_of_node(node: Node) -> Shape | None:
    """The shape of an expression in t, or None if it has none."""
    if not node.free():
        return _plain(value_of(node))
    return {T: ONE} if node.op == "name" else _SHAPES[node.op](node)


def _shape_of_log(node: Node) -> Shape | None:
    """The shape of log(node)."""
    if not node.free():
        return _log_of_shape(_plain(value_of(node)))
    return _log_of_whole(node) if node.op == "name" else _LOG_SHAPES[node.op](node)


def _of_shapes(rule: Callable[..., Shape | None]) -> Rule:
    """The rule of an operation that needs only the shapes of its arguments."""

    def apply_rule(node: Node) -> Shape | None:
        parts = [shape_of_node(a) for a in node.args]
        return None if any(p is None for p in parts) else rule(*parts)

    return apply_rule


def _quotient(top: Shape, bottom: Shape) -> Shape | None:
    if len(bottom) != 1:
        return None
    if is_constant(bottom):
        return _scaled(top, ONE / constant_part(bottom))
    inverse = _power(bottom, rational(-1))
    return None if inverse is None else _product(top, inverse)


def _sum(node: Node) -> Shape | None:
    indices = index_range(node)
    if indices is None or len(indices) > 64:
        return None
    total: Shape | None = {}
    for j in indices:
        term = shape_of_node(substitute(node.args[0], {str(node.value): number(j)}))
        total = None if total is None or term is None else _add(total, term)
    return total


_SHAPES: dict[str, Rule] = rule_table("shape", {
    "neg": _of_shapes(lambda a: _scaled(a, rational(-1))),
    "+": _of_shapes(_add),
    "-": _of_shapes(lambda a, b: _add(a, b, rational(-1))),
    "*": _of_shapes(_product),
    "/": _of_shapes(_quotient),
    "**": _of_shapes(lambda a, b: _power(a, constant_part(b)) if is_constant(b) else None),
    "sqrt": _of_shapes(lambda a: _power(a, rational(HALF))),
    "floor": _of_shapes(lambda a: a if _whole_valued(a) else None),
    "log": lambda node: _shape_of_log(node.args[0]),
    "sum": _sum,
    **dict.fromkeys(("exp", "sin", "cos", "abs", "min", "max", "where"), lambda _: None),
}, ("where", "sum"))  # fmt: skip


def _log_of_whole(node: Node) -> Shape | None:
    whole = shape_of_node(node)
    return None if whole is None else _log_of_shape(whole)


def _log_of_product(right_sign: int) -> Rule:
    def rule(node: Node) -> Shape | None:
        left, right = (_shape_of_log(a) for a in node.args)
        if left is None or right is None:
            return _log_of_whole(node)
        return _add(left, right, rational(right_sign))

    return rule


def _log_of_power(node: Node) -> Shape | None:
    inner, exponent = _shape_of_log(node.args[0]), shape_of_node(node.args[1])
    return None if inner is None or exponent is None else _product(inner, exponent)


def _log_of_root(node: Node) -> Shape | None:
    inner = _shape_of_log(node.args[0])
    return None if inner is None else _scaled(inner, rational(HALF))


_LOG_SHAPES: dict[str, Rule] = rule_table("shape of a logarithm", {
    "*": _log_of_product(1),
    "/": _log_of_product(-1),
    "**": _log_of_power,
    "exp": lambda node: shape_of_node(node.args[0]),
    "sqrt": _log_of_root,
    **dict.fromkeys(
        ("+", "-", "neg", "log", "sin", "cos", "abs", "floor", "min", "max", "where", "sum"),
        _log_of_whole,
    ),
}, ("where", "sum"))  # fmt: skip


def _whole_valued(a: Shape) -> bool:
    """Whether a polynomial has whole coefficients, so that floor changes nothing at whole t."""
    coefficients = polynomial(a)
    return coefficients is not None and all(c.whole is not None for c in coefficients)


def has_switch(node: Node) -> bool:
    """Whether a part of it is one of several branches, by the distance."""
    return any(n.op in SWITCHES and n.free() for n in node.walk())


def without_idle_floors(node: Node) -> Node:
    """The expression without the floors that change nothing at whole t, such as floor(t)."""
    if not node.args:
        return node
    args = tuple(without_idle_floors(a) for a in node.args)
    if node.op == "floor" and args[0].free() <= {"t"}:
        inner = shape_of_node(args[0])
        if inner is not None and _whole_valued(inner):
            return args[0]
    return node if args == node.args else Node(node.op, args, node.value, node.column)


def shape(formula: Formula) -> Shape | None:
    """The shape of the bias r(t) of a formula without open parameters, or None if it has none."""
    try:
        return _shape_of_log(formula.node) if formula.weight else shape_of_node(formula.node)
    except (FormulaError, UndecidedError, ZeroDivisionError, OverflowError):
        return None
