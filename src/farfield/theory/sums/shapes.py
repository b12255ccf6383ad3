"""The shape of a bias: which sum of powers, logarithms and iterated logarithms of t it is, however it is spelled.

`-2*log(t + 1)`, `weight: 1/(t+1)**2` and `-log(1 + 2*t + t**2)` are one shape, so they get one closed form. The shape
is worked out by the rules of algebra on exact constants, not by looking for texts. What has no shape here is no worse
off: the general method sums it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from farfield.formula import Formula, FormulaError, Node, index_range, number
from farfield.formula.algebras import exact_value, to_ball
from farfield.formula.functions import reading
from farfield.formula.tree import substitute
from farfield.theory.exact.precision import precision
from farfield.theory.sums.evaluation import compiled

Constant = Fraction | Node  # a rational, or an exact expression without t
_MOST_TERMS = 40


# ---------------------------------------------------------------------------------------------------- constants
def simple(node: Node) -> Constant:
    """A constant expression as a rational if it plainly is one."""
    value = exact_value(node, {})
    return node if value is None else value


def as_node(c: Constant) -> Node:
    return c if isinstance(c, Node) else number(c)


def apply(op: str, *args: Constant) -> Constant:
    """The constant that an operation makes of constants."""
    if op == "exp" and isinstance(args[0], Node) and args[0].op == "log":
        return simple(args[0].args[0])
    if op == "log" and isinstance(args[0], Node) and args[0].op == "exp":
        return simple(args[0].args[0])
    if op == "log" and args[0] == 1:
        return Fraction(0)
    if op == "exp" and args[0] == 0:
        return Fraction(1)
    if op in ("+", "-") and args[1] == 0:
        return args[0]
    if op == "+" and args[0] == 0:
        return args[1]
    if op == "*" and 0 in args:
        return Fraction(0)
    if op == "*" and args[0] == 1:
        return args[1]
    if op in ("*", "/", "**") and args[1] == 1:
        return args[0]
    if op == "**" and args[0] == 1:
        return Fraction(1)
    return simple(Node(op, tuple(as_node(a) for a in args)))


def ball(c: Constant) -> Any:
    """A ball around a constant at the current precision."""
    return to_ball(c) if isinstance(c, Fraction) else compiled(c)(None, False)


def sign(c: Constant) -> int | None:
    """The sign of a constant, or None if it cannot be told."""
    if isinstance(c, Fraction):
        return (c > 0) - (c < 0)
    for bits in (64, 256, 1024):
        with precision(bits):
            value = ball(c)
            if value > 0 or value < 0:
                return 1 if value > 0 else -1
    return None


# ---------------------------------------------------------------------------------------------------- shapes
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


Atom = Power | Log | LogLog | LogPolynomial | None  # None is the constant 1
Shape = dict[Atom, Constant]  # the sum of coefficient * atom
Rule = Callable[[Node], Shape | None]


def _plain(c: Constant) -> Shape:
    return {None: c} if c != 0 else {}


def _add(a: Shape, b: Shape, factor: Constant = Fraction(1)) -> Shape:
    total = dict(a)
    for atom, c in b.items():
        value = apply("+", total.get(atom, Fraction(0)), apply("*", factor, c))
        if value == 0:
            total.pop(atom, None)
        else:
            total[atom] = value
    return total


def _scaled(a: Shape, factor: Constant) -> Shape:
    return _add({}, a, factor)


def constant_part(a: Shape) -> Constant:
    return a.get(None, Fraction(0))


def is_constant(a: Shape) -> bool:
    return all(atom is None for atom in a)


def polynomial(a: Shape) -> list[Constant] | None:
    """The coefficients from t**0 on, or None if the shape is no polynomial in t."""
    found: dict[int, Constant] = {}
    for atom, c in a.items():
        if atom is None:
            found[0] = c
        elif (
            isinstance(atom, Power)
            and atom.shift == 0
            and isinstance(atom.exponent, Fraction)
            and atom.exponent.denominator == 1
            and 0 < atom.exponent <= 64
        ):
            found[int(atom.exponent)] = c
        else:
            return None
    return [found.get(i, Fraction(0)) for i in range(max(found, default=0) + 1)]


def _atoms_product(a: Atom, b: Atom) -> Atom | bool:
    """The product of two atoms as an atom; False if it is none."""
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, Power) and isinstance(b, Power) and a.shift == b.shift:
        exponent = apply("+", a.exponent, b.exponent)
        return None if exponent == 0 else Power(a.shift, exponent)
    if isinstance(a, Log) and isinstance(b, Log) and (a.scale, a.shift) == (b.scale, b.shift):
        return Log(a.scale, a.shift, a.exponent + b.exponent) if a.exponent + b.exponent else None
    return False


def _product(a: Shape, b: Shape) -> Shape | None:
    total: Shape = {}
    for x, c in a.items():
        for y, d in b.items():
            atom = _atoms_product(x, y)
            if atom is False:
                return None
            total = _add(total, {atom: apply("*", c, d)})  # type: ignore[dict-item]
            if len(total) > _MOST_TERMS:
                return None
    return total


def _power(base: Shape, exponent: Constant) -> Shape | None:
    if isinstance(exponent, Fraction) and exponent.denominator == 1 and 0 <= exponent <= 8:
        total: Shape | None = _plain(Fraction(1))
        for _ in range(int(exponent)):
            total = None if total is None else _product(total, base)
        return total
    if len(base) == 1:
        ((atom, c),) = base.items()
        if sign(c) == 1:
            factor = apply("**", c, exponent)
            if isinstance(atom, Power):
                return {Power(atom.shift, apply("*", atom.exponent, exponent)): factor}
            if isinstance(atom, Log) and isinstance(exponent, Fraction):
                return {Log(atom.scale, atom.shift, atom.exponent * exponent): factor}
    line = polynomial(base)
    if line is not None and len(line) == 2 and sign(line[1]) == 1:
        return {Power(apply("/", line[0], line[1]), exponent): apply("**", line[1], exponent)}
    inner = _one_log(base)
    if inner is not None and isinstance(exponent, Fraction):
        c, log = inner
        return {Log(log.scale, log.shift, exponent): apply("**", c, exponent)}
    return None


def _one_log(a: Shape) -> tuple[Constant, Log] | None:
    """The shape as c * log(scale*(t + shift)) with c > 0, if it is that."""
    others = [(atom, c) for atom, c in a.items() if atom is not None]
    if len(others) != 1:
        return None
    atom, c = others[0]
    if not isinstance(atom, Log) or atom.exponent != 1 or sign(c) != 1:
        return None
    return c, Log(apply("*", atom.scale, apply("exp", apply("/", constant_part(a), c))), atom.shift)


def _log_of_shape(a: Shape) -> Shape | None:
    """The shape of log(a) for a shape that is one atom, a polynomial or a logarithm."""
    if is_constant(a):
        return _plain(apply("log", constant_part(a))) if sign(constant_part(a)) == 1 else None
    coefficients = polynomial(a)
    if coefficients is not None:
        lead = coefficients[-1]
        if sign(lead) != 1:
            return None
        lower = tuple(apply("/", c, lead) for c in coefficients[:-1])
        low = next(i for i, c in enumerate(coefficients) if c != 0)
        total = _plain(apply("log", lead))
        if low == len(lower):
            return _add(total, {Log(Fraction(1), Fraction(0)): Fraction(low)})
        if low:
            total = _add(total, {Log(Fraction(1), Fraction(0)): Fraction(low)})
        return _add(total, _log_of_monic(lower[low:]))
    if len(a) == 1:
        ((atom, c),) = a.items()
        if sign(c) != 1:
            return None
        if isinstance(atom, Power):
            inside: Shape = {Log(Fraction(1), atom.shift): atom.exponent}
            return _add(_plain(apply("log", c)), inside)
        if isinstance(atom, Log):
            return _add(_plain(apply("log", c)), {LogLog(atom.scale, atom.shift): atom.exponent})
    inner = _one_log(a)
    if inner is None:
        return None
    return _add(_plain(apply("log", inner[0])), {LogLog(inner[1].scale, inner[1].shift): Fraction(1)})


def _log_of_monic(lower: tuple[Constant, ...]) -> Shape:
    """log of a monic polynomial; a perfect power of t + a is written as that."""
    degree = len(lower)
    if degree == 1:
        return {Log(Fraction(1), lower[0]): Fraction(1)}
    shift = apply("/", lower[-1], Fraction(degree))
    power = (
        _power({Power(Fraction(0), Fraction(1)): Fraction(1), None: shift}, Fraction(degree)) if degree <= 8 else None
    )
    if power is not None and (polynomial(power) or [])[:-1] == list(lower):
        return {Log(Fraction(1), shift): Fraction(degree)}
    return {LogPolynomial(lower): Fraction(1)}


# ---------------------------------------------------------------------------------------------------- reading
def shape_of_node(node: Node) -> Shape | None:
    """The shape of an expression in t, or None if it has none."""
    if not node.free():
        return _plain(simple(node))
    return {Power(Fraction(0), Fraction(1)): Fraction(1)} if node.op == "name" else _SHAPES[node.op](node)


def _shape_of_log(node: Node) -> Shape | None:
    """The shape of log(node)."""
    if not node.free():
        c = simple(node)
        return _plain(apply("log", c)) if sign(c) == 1 else None
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
        return _scaled(top, apply("/", Fraction(1), constant_part(bottom)))
    inverse = _power(bottom, Fraction(-1))
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


_SHAPES: dict[str, Rule] = reading("shape", {
    "neg": _of_shapes(lambda a: _scaled(a, Fraction(-1))),
    "+": _of_shapes(_add),
    "-": _of_shapes(lambda a, b: _add(a, b, Fraction(-1))),
    "*": _of_shapes(_product),
    "/": _of_shapes(_quotient),
    "**": _of_shapes(lambda a, b: _power(a, constant_part(b)) if is_constant(b) else None),
    "sqrt": _of_shapes(lambda a: _power(a, Fraction(1, 2))),
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
        return _add(left, right, Fraction(right_sign))

    return rule


def _log_of_power(node: Node) -> Shape | None:
    inner, exponent = _shape_of_log(node.args[0]), shape_of_node(node.args[1])
    return None if inner is None or exponent is None else _product(inner, exponent)


def _log_of_root(node: Node) -> Shape | None:
    inner = _shape_of_log(node.args[0])
    return None if inner is None else _scaled(inner, Fraction(1, 2))


_LOG_SHAPES: dict[str, Rule] = reading("shape of a logarithm", {
    "*": _log_of_product(1),
    "/": _log_of_product(-1),
    "**": _log_of_power,
    "exp": lambda node: shape_of_node(node.args[0]),
    "sqrt": _log_of_root,
    **dict.fromkeys(
        ("+", "-", "neg", "log", "sin", "cos", "abs", "floor", "min", "max", "where", "sum"), _log_of_whole
    ),
}, ("where", "sum"))  # fmt: skip


def _whole_valued(a: Shape) -> bool:
    """Whether a polynomial has whole coefficients, so that floor changes nothing at whole t."""
    coefficients = polynomial(a)
    return coefficients is not None and all(isinstance(c, Fraction) and c.denominator == 1 for c in coefficients)


def without_idle_floors(node: Node) -> Node:
    """The expression without the floors that change nothing at whole t, such as floor(t)."""
    if not node.args:
        return node
    args = tuple(without_idle_floors(a) for a in node.args)
    if node.op == "floor" and args[0].free() <= {"t"}:
        inner = shape_of_node(args[0])
        if inner is not None and _whole_valued(inner):
            return args[0]
    return Node(node.op, args, node.value, node.column)


def shape(formula: Formula) -> Shape | None:
    """The shape of the bias r(t) of a formula without open parameters, or None if it has none."""
    try:
        return _shape_of_log(formula.node) if formula.weight else shape_of_node(formula.node)
    except (FormulaError, ZeroDivisionError, OverflowError):
        return None
