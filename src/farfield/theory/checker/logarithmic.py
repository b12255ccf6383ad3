"""Values too large for a ball, kept as a sign and the logarithm of their size: a reading for t = exp(exp(exp(20))).

It is one more algebra for the formula's own walk. Whatever cannot be enclosed becomes nan, never a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import arb

from farfield.formula import Node
from farfield.formula.algebras import Algebra, ball_power, evaluate, to_ball
from farfield.formula.functions import reading

_PLAIN = 10**6  # values within exp(+-this) are plain balls


@dataclass(frozen=True)
class Large:
    """sign * exp(size)."""

    sign: int
    size: arb


Value = Any  # an arb or a Large


def value_at(node: Node, ln_t: arb) -> Value:
    """The expression at t = exp(ln_t): a ball, or a Large."""
    return evaluate(node, {"t": large(1, ln_t)}, _LOGARITHMIC)


def large(sign: int, size: arb) -> Value:
    """sign * exp(size), as a plain ball where it is one."""
    return sign * size.exp() if abs(size) < _PLAIN else Large(sign, size)


def sign_of(x: Value) -> int | None:
    """-1, 0 or 1; None if the ball does not tell."""
    if isinstance(x, Large):
        return x.sign if x.size.is_finite() or x.size > 0 else None
    return 1 if x > 0 else -1 if x < 0 else 0 if x.is_zero() else None


def _size(x: Value) -> arb:
    """The logarithm of |x|."""
    return x.size if isinstance(x, Large) else abs(x).log()


def _ball(x: Value) -> arb:
    """The value as a ball, which may be infinitely wide."""
    return x.sign * x.size.exp() if isinstance(x, Large) else x


def add(x: Value, y: Value) -> Value:
    """x + y."""
    x, y = (_ball(v) if isinstance(v, Large) and v.size < 0 else v for v in (x, y))  # tiny: a ball holds it
    if not isinstance(x, Large) and not isinstance(y, Large):
        return x + y
    if not isinstance(x, Large) or (isinstance(y, Large) and y.size > x.size):
        x, y = y, x
    ratio = y.sign * x.sign * (y.size - x.size).exp() if isinstance(y, Large) else x.sign * y * (-x.size).exp()
    rest = 1 + ratio
    return large(x.sign, x.size + rest.log()) if rest > 0 else arb("nan")


def multiply(x: Value, y: Value) -> Value:
    """x * y."""
    if not isinstance(x, Large) and not isinstance(y, Large):
        return x * y
    signs = sign_of(x), sign_of(y)
    if 0 in signs:
        return arb(0)
    return arb("nan") if None in signs else large((signs[0] or 0) * (signs[1] or 0), _size(x) + _size(y))


def _divide(x: Value, y: Value) -> Value:
    return multiply(x, large(y.sign, -y.size) if isinstance(y, Large) else 1 / y)


def _negate(x: Value) -> Value:
    return Large(-x.sign, x.size) if isinstance(x, Large) else -x


def _power(x: Value, y: Value) -> Value:
    plain = not isinstance(x, Large) and not isinstance(y, Large)
    if plain and (not x > 0 or abs(y * x.log()) < _PLAIN):
        return ball_power(x, y)
    return _exp(multiply(_size(x), y)) if sign_of(x) == 1 else arb("nan")


def _exp(x: Value) -> Value:
    size = _ball(x)
    if isinstance(x, Large) and x.sign < 0 and not size.is_finite():
        return arb("nan")
    return large(1, size) if size.is_finite() else arb("nan")


def _log(x: Value) -> Value:
    return x.log() if not isinstance(x, Large) else x.size if x.sign > 0 else arb("nan")


def _sqrt(x: Value) -> Value:
    return x.sqrt() if not isinstance(x, Large) else large(1, x.size / 2) if x.sign > 0 else arb("nan")


def _wave(function: Callable[[arb], arb]) -> Callable[[Value], Value]:
    return lambda x: function(x) if not isinstance(x, Large) or x.size < 0 else arb(0, 1)


def _floor(x: Value) -> Value:
    if not isinstance(x, Large):
        return x.floor()
    return add(x, arb(-1).union(arb(0))) if x.size > 0 else arb(0) if x.sign > 0 else arb(-1)


def _choose(wanted: int) -> Callable[[Value, Value], Value]:
    def choice(x: Value, y: Value) -> Value:
        sign = sign_of(add(x, _negate(y)))
        if sign is not None:
            return x if sign in (0, wanted) else y
        if isinstance(x, Large) or isinstance(y, Large):
            return arb("nan")
        return x.max(y) if wanted > 0 else x.min(y)

    return choice


class _Logarithmic(Algebra):
    operations: Mapping[str, Callable[..., Any]] = reading("checker's logarithmic scale", {
        "+": add, "-": lambda x, y: add(x, _negate(y)), "*": multiply, "/": _divide, "neg": _negate, "**": _power,
        "exp": _exp, "log": _log, "sqrt": _sqrt, "floor": _floor, "sin": _wave(lambda x: _ball(x).sin()),
        "cos": _wave(lambda x: _ball(x).cos()), "abs": lambda x: Large(1, x.size) if isinstance(x, Large) else abs(x),
        "min": _choose(-1), "max": _choose(1),
    })  # fmt: skip

    def number(self, value: Fraction) -> Value:
        return to_ball(value)

    def constant(self, name: str) -> Value:
        return arb.pi() if name == "pi" else arb("-inf")

    def integer(self, value: Value) -> int | None:
        whole = value.unique_fmpz() if not isinstance(value, Large) and value.is_exact() else None
        return None if whole is None else int(whole)

    def where(self, node: Node, names: Mapping[str, Any]) -> Value:
        left, right = (evaluate(a, names, self) for a in node.args[:2])
        sign = sign_of(add(left, _negate(right)))
        if sign is None:
            return arb("nan")
        chosen = {"<": sign < 0, "<=": sign <= 0, ">": sign > 0, ">=": sign >= 0}[str(node.value)]
        return evaluate(node.args[2 if chosen else 3], names, self)

    def sum(self, node: Node, names: Mapping[str, Any]) -> Value:
        first, last = (self.integer(evaluate(b, names, self)) for b in node.args[1:])
        if first is None or last is None:
            return arb("nan")
        total: Value = arb(0)
        for j in range(first, last + 1):
            total = add(total, evaluate(node.args[0], {**names, str(node.value): arb(j)}, self))
        return total


_LOGARITHMIC = _Logarithmic()
