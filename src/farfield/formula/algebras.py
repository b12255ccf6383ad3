"""The values of a formula: one walk over the expression, one table for each kind of value.

An algebra says what a number, pi and each operation mean: here doubles, exact rationals and Arb balls, in libraries.py
arrays, tensors and sympy expressions, in theory/exact/intervals.py ranges.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Generic, SupportsFloat, TypeVar

from flint import arb, fmpq, fmpz

from farfield.formula.functions import DERIVED, definition, expand, rule_table
from farfield.formula.tree import FormulaError, Node

MAX_TERMS = 1024  # of one sum

V = TypeVar("V")
Exact = Fraction | float | int | fmpq | fmpz | arb  # what becomes a ball
ARITHMETIC: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "neg": operator.neg,
}
COMPARE: dict[str, Callable[..., Any]] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


class Algebra(Generic[V]):
    """What the parts of a formula mean for one kind of value."""

    operations: Mapping[str, Callable[..., V]]

    def number(self, value: Fraction) -> V:
        raise NotImplementedError

    def constant(self, name: str) -> V:
        """The value of "pi" or "-inf"."""
        raise NotImplementedError

    def integer(self, value: V) -> int | None:
        """The value as an int if it is one for certain."""
        raise NotImplementedError

    def where(self, node: Node, names: Mapping[str, V]) -> V:
        left, right = evaluate(node.args[0], names, self), evaluate(node.args[1], names, self)
        branch = node.args[2] if COMPARE[str(node.value)](left, right) else node.args[3]
        return evaluate(branch, names, self)

    def sum(self, node: Node, names: Mapping[str, V]) -> V:
        body, *bounds = node.args
        first, last = (self.integer(evaluate(b, names, self)) for b in bounds)
        if first is None or last is None:
            raise FormulaError("the bounds of a sum must be whole numbers", column=node.column)
        if last - first >= MAX_TERMS:
            raise FormulaError(f"the sum has more than {MAX_TERMS} terms", column=node.column)
        total = self.number(Fraction(0))
        for j in range(first, last + 1):
            term = evaluate(body, {**names, str(node.value): self.number(Fraction(j))}, self)
            total = self.operations["+"](total, term)
        return total


def evaluate(node: Node, names: Mapping[str, V], algebra: Algebra[V]) -> V:
    """The value of an expression in an algebra; `names` gives t and the parameters."""
    op = node.op
    if isinstance(node.value, Fraction):
        return algebra.number(node.value)
    if op == "name":
        try:
            return names[node.value]
        except KeyError:
            raise FormulaError(f"the parameter {node.value!r} has no value", column=node.column) from None
    if op in ("pi", "-inf"):
        return algebra.constant(op)
    if op == "where":
        return algebra.where(node, names)
    if op == "sum":
        return algebra.sum(node, names)
    if op in DERIVED and op not in algebra.operations:
        return evaluate(expand(node), names, algebra)
    return algebra.operations[op](*[evaluate(a, names, algebra) for a in node.args])


# ---------------------------------------------------------------------------------------------------- doubles
def _double(function: Callable[..., Any]) -> Callable[..., float]:
    def call(*args: float) -> float:
        try:
            value = function(*args)
        except OverflowError:
            return math.inf
        except (ValueError, ZeroDivisionError):
            return math.nan
        return math.nan if isinstance(value, complex) else value

    return call


def _float_floor(x: float) -> float:
    return float(math.floor(x)) if math.isfinite(x) else x


def _float_sinh(x: float) -> float:
    return math.sinh(x) if abs(x) < 710 else math.copysign(math.inf, x)


_MATH: dict[str, Callable[..., Any]] = {
    **ARITHMETIC, "**": operator.pow, "exp": math.exp, "log": math.log, "sqrt": math.sqrt, "sin": math.sin,
    "cos": math.cos, "abs": abs, "floor": _float_floor, "min": min, "max": max, "tanh": math.tanh, "log1p": math.log1p,
    "log2": math.log2, "log10": math.log10, "expm1": math.expm1, "cosh": math.cosh, "sinh": _float_sinh,
    "tan": math.tan,
    "sigmoid": lambda x: math.exp(min(x, 0.0)) / (1 + math.exp(-abs(x))),
    "softplus": lambda x: max(x, 0.0) + math.log1p(math.exp(-abs(x))),
}  # fmt: skip


class _Doubles(Algebra[float]):
    operations = rule_table("doubles", {op: _double(f) for op, f in _MATH.items()})

    def number(self, value: Fraction) -> float:
        return float(value)

    def constant(self, name: str) -> float:
        return math.pi if name == "pi" else -math.inf

    def integer(self, value: float) -> int | None:
        return int(value) if math.isfinite(value) and value == math.floor(value) else None


def float_value(node: Node, names: Mapping[str, SupportsFloat]) -> float:
    """The expression in double precision; nan where it is undefined, inf where it overflows."""
    return evaluate(node, {n: float(v) for n, v in names.items()}, DOUBLES)


def float_log(value: float) -> float:
    """The bias of a weight in double precision."""
    return -math.inf if value == 0 else math.log(value) if value > 0 else math.nan


# ---------------------------------------------------------------------------------------------------- rationals
class _NotRationalError(Exception):
    """The expression is not plainly a rational number."""


def _not_rational(*_: Fraction) -> Fraction:
    raise _NotRationalError


def _rational_power(a: Fraction, b: Fraction) -> Fraction:
    if b.denominator != 1 or abs(b) > 64 or (a == 0 and b < 0):
        raise _NotRationalError
    return a ** int(b)


class _Rationals(Algebra[Fraction]):
    operations = rule_table("rationals", {
        **ARITHMETIC, "**": _rational_power, "abs": abs, "min": min, "max": max,
        "floor": lambda x: Fraction(math.floor(x)),
        **dict.fromkeys(("exp", "log", "sqrt", "sin", "cos"), _not_rational),
    })  # fmt: skip

    def number(self, value: Fraction) -> Fraction:
        return value

    def constant(self, name: str) -> Fraction:
        raise _NotRationalError

    def integer(self, value: Fraction) -> int | None:
        return int(value) if value.denominator == 1 else None


def exact_value(node: Node, names: Mapping[str, Fraction]) -> Fraction | None:
    """The expression as an exact rational, or None if it is not plainly one."""
    try:
        return evaluate(node, names, _RATIONALS)
    except (_NotRationalError, ZeroDivisionError, KeyError, FormulaError):
        return None


def index_range(node: Node, names: Mapping[str, Fraction] | None = None) -> range | None:
    """The indices of a sum node, or None while a parameter leaves its bounds open."""
    bounds = []
    for bound in node.args[1:]:
        if bound.free() - set(names or {}):
            return None
        value = exact_value(bound, names or {})
        if value is None or value.denominator != 1:
            raise FormulaError("the bounds of a sum must be whole numbers", column=bound.column)
        bounds.append(int(value))
    count = bounds[1] - bounds[0] + 1
    if count > MAX_TERMS:
        terms = str(count) if count < 10**12 else "too many"
        raise FormulaError(f"the sum has {terms} terms; at most {MAX_TERMS} are allowed", column=node.column)
    return range(bounds[0], bounds[1] + 1)


def expanded_size(node: Node) -> int:
    """How many parts the expression has when every sum and every derived function is written out."""
    inside = [expanded_size(a) for a in node.args]
    if node.op == "sum":
        indices = index_range(node)
        return inside[0] * (1 if indices is None else max(1, len(indices)))
    if node.op in DERIVED:
        parts = list(definition(node.op).walk())
        size = dict(zip("tm", inside, strict=False))
        return sum(size[str(n.value)] if n.op == "name" else 1 for n in parts)
    return 1 + sum(inside)


# ---------------------------------------------------------------------------------------------------- Arb balls
def ball_power(a: arb, b: arb) -> arb:
    """a ** b for balls: integer powers of anything, real powers of what is not negative."""
    exponent = b.unique_fmpz() if b.is_exact() and abs(b) < arb((1, 4096)) else None  # 2**(10**9) is not written out
    if exponent is not None:
        return _whole_power(a, exponent) if exponent >= 0 else 1 / _whole_power(a, -exponent)
    if a > 0:
        return a**b
    if b > 0 and a >= 0:  # the ball touches 0, where the power is 0
        return arb(0) if a.is_zero() else arb(0).union(a.upper() ** b)
    return arb("nan")


def _whole_power(a: arb, n: fmpz) -> arb:
    """a ** n for n >= 0; the library answers nan for a ball around 0."""
    if a != 0 or a.is_exact() or n == 0 or not a.is_finite():
        return a**n
    ends = a.lower() ** n, a.upper() ** n
    return arb(0).union(ends[0]).union(ends[1]) if n % 2 == 0 else ends[0].union(ends[1])


def ball_exp(value: arb) -> arb:
    """exp of a ball, with exp(-inf) = 0."""
    return arb(0) if value.is_exact() and value == arb("-inf") else value.exp()


def ball_log(value: arb) -> arb:
    """log of a ball, with log(0) = -inf."""
    return arb("-inf") if value.is_zero() else value.log()


class Balls(Algebra[arb]):
    """The meaning of a formula's parts for Arb balls."""

    operations: Mapping[str, Callable[..., arb]] = rule_table("balls", {
        **ARITHMETIC, "**": ball_power, "exp": ball_exp, "log": lambda x: x.log(), "sqrt": lambda x: x.sqrt(),
        "sin": lambda x: x.sin(), "cos": lambda x: x.cos(), "abs": abs, "floor": lambda x: x.floor(),
        "min": lambda x, y: x.min(y), "max": lambda x, y: x.max(y),
    })  # fmt: skip

    def number(self, value: Fraction) -> arb:
        return to_ball(value)

    def constant(self, name: str) -> arb:
        return arb.pi() if name == "pi" else arb("-inf")

    def integer(self, value: arb) -> int | None:
        whole = value.unique_fmpz() if value.is_exact() else None
        return None if whole is None else int(whole)

    def where(self, node: Node, names: Mapping[str, arb]) -> arb:
        left, right = evaluate(node.args[0], names, self), evaluate(node.args[1], names, self)
        yes = COMPARE[str(node.value)](left, right)
        no = COMPARE[OPPOSITE[str(node.value)]](left, right)
        if yes or no:
            return evaluate(node.args[2] if yes else node.args[3], names, self)
        a, b = (evaluate(n, names, self) for n in node.args[2:])
        return a.union(b)  # over a range of t both may be met


def to_ball(value: Exact) -> arb:
    """A ball around an exact number; a ball is returned as it is."""
    return arb(fmpq(value.numerator, value.denominator)) if isinstance(value, Fraction) else arb(value)


def ball_value(node: Node, names: Mapping[str, Exact]) -> arb:
    """A ball that contains the expression, at the current precision; not finite where it is undefined."""
    return evaluate(node, {n: to_ball(v) for n, v in names.items()}, _BALLS)


DOUBLES, _RATIONALS, _BALLS = _Doubles(), _Rationals(), Balls()
