"""The exact value of an expression without t: one more reading of formulas, whose numbers are exact constants.

Branches and roots need signs. Whoever reads says where they come from: proven for plain numbers, or assumed of open
parameters (verdict/regions.py).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

from farfield.formula import FormulaError, Node
from farfield.formula.algebras import Algebra, Names, evaluate
from farfield.formula.functions import reading
from farfield.theory.errors import UndecidedError, UndefinedError
from farfield.theory.exact import constants, signs
from farfield.theory.exact.constants import ZERO, Const

Sign = Callable[[Const], int]


def _quotient(sign: Sign, a: Const, b: Const) -> Const:
    if sign(b) == 0:
        raise UndefinedError("a division by zero")
    return a / b


def _power(sign: Sign, a: Const, b: Const) -> Const:
    s, q = sign(a), b.rational
    if q is not None and q.denominator == 1 and (s or q >= 0):
        return constants.power(a, q)
    if s == 0 and sign(b) >= 0:
        return ZERO if sign(b) else constants.ONE
    if s < 0 and b.parameters:
        raise UndecidedError("a power of something negative, which has a value only for whole exponents")
    if s <= 0:
        raise UndefinedError("a real power of a number that is not positive")
    return constants.real_power(a, b)


def _log(sign: Sign, a: Const) -> Const:
    if sign(a) <= 0:
        raise UndefinedError("log of a number that is not positive")
    return constants.log(a)


def _sqrt(sign: Sign, a: Const) -> Const:
    s = sign(a)
    if s < 0:
        raise UndefinedError("sqrt of a number that is not positive")
    return constants.power(a, Fraction(1, 2)) if s else ZERO


def _gamma(sign: Sign, a: Const) -> Const:
    if sign(a) <= 0:
        raise UndefinedError("gamma of a number that is not positive")
    return constants.function("gamma", a)


def _abs(sign: Sign, a: Const) -> Const:
    return a if sign(a) >= 0 else -a


_RULES: dict[str, Callable[..., Const]] = reading("exact constants", {
    "+": lambda _, a, b: a + b,
    "-": lambda _, a, b: a - b,
    "*": lambda _, a, b: a * b,
    "/": _quotient,
    "neg": lambda _, a: -a,
    "**": _power,
    "exp": lambda _, a: constants.exp(a),
    "log": _log,
    "sqrt": _sqrt,
    "sin": lambda _, a: constants.trigonometric("sin", a),
    "cos": lambda _, a: constants.trigonometric("cos", a),
    "abs": _abs,
    "floor": lambda _, a: constants.floor(a),
    "atan": lambda _, a: constants.function("atan", a),
    "erf": lambda _, a: constants.function("erf", a),
    "gamma": _gamma,
    "min": lambda sign, a, b: a if sign(a - b) <= 0 else b,
    "max": lambda sign, a, b: a if sign(a - b) >= 0 else b,
})  # fmt: skip


class Constants(Algebra):
    """Exact constants, with the signs that somebody knows."""

    def __init__(self, sign: Sign = signs.sign):
        self.sign = sign
        self.operations: dict[str, Callable[..., Any]] = {op: partial(rule, sign) for op, rule in _RULES.items()}

    def number(self, value: Fraction) -> Const:
        return constants.rational(value)

    def constant(self, name: str) -> Const:
        if name == "-inf":
            raise UndefinedError("-inf stands where only a finite bias has a meaning")
        return constants.PI

    def integer(self, value: Const) -> int | None:
        if value.rational is None:
            raise UndecidedError("the bounds of a sum are open")
        return int(value.rational) if value.rational.denominator == 1 else None

    def where(self, node: Node, names: Names) -> Const:
        left, right = (evaluate(a, names, self) for a in node.args[:2])
        return evaluate(node.args[2 if holds(str(node.value), self.sign(left - right)) else 3], names, self)


_PLAIN = Constants()


def value_of(node: Node) -> Const:
    """The exact value of an expression without names."""
    return evaluate(node, {}, _PLAIN)


def known_value(node: Node) -> Const | None:
    """The exact value of an expression without names, or None if it has none that can be told."""
    try:
        return value_of(node)
    except (FormulaError, UndecidedError, UndefinedError):
        return None


def holds(comparison: str, sign: int) -> bool:
    """Whether `x comparison 0` holds for an x of this sign."""
    return {"<": sign < 0, "<=": sign <= 0, ">": sign > 0, ">=": sign >= 0}[comparison]
