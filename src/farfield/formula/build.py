"""Expressions made by hand, as a person would write them: sums with signs, products without ones."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from farfield.formula.tree import Node, number

ONE, ZERO = number(1), number(0)
DOTS = Node("...")


def name(word: str) -> Node:
    """A parameter, or t."""
    return Node("name", (), word)


def call(function: str, *args: Node) -> Node:
    """A function of the language applied to something."""
    return Node(function, args)


def applied(function: str, argument: str = "t") -> Node:
    """A function that only has a name, such as b(t)."""
    return Node("apply", (name(argument),), function)


def order(inside: Node) -> Node:
    """O(...)."""
    return Node("order", (inside,))


def relation(left: Node, sign: str, right: Node) -> Node:
    """left = right, left <= right, ..."""
    return Node(sign, (left, right))


def fraction(value: Fraction | int) -> Node:
    """A rational number as a quotient of whole numbers."""
    value = Fraction(value)
    return negative(fraction(-value)) if value < 0 else quotient(number(value.numerator), number(value.denominator))


def negative(node: Node) -> Node:
    """Minus something; the sign of a product stands before its first factor, as in -2*log(t)."""
    if node.op == "neg" or node == ZERO:
        return node.args[0] if node.op == "neg" else ZERO
    if node.op in ("*", "/"):
        first, second = negative(node.args[0]), node.args[1]
        return second if node.op == "*" and first == ONE else Node(node.op, (first, second))
    return Node("neg", (node,))


def _is_negative(node: Node) -> bool:
    return node.op == "neg" or (node.op in ("*", "/") and _is_negative(node.args[0]))


def total(parts: Iterable[Node]) -> Node:
    """The sum of several parts; one with a minus sign is subtracted, zeros are left out."""
    result: Node | None = None
    for part in parts:
        if part == ZERO:
            continue
        if result is None:
            result = part
        else:
            result = Node("-", (result, negative(part))) if _is_negative(part) else Node("+", (result, part))
    return ZERO if result is None else result


def product(factors: Iterable[Node]) -> Node:
    """The product of several factors; ones are left out, and minus signs go to the front."""
    result, minus = None, False
    for factor in factors:
        if _is_negative(factor):
            minus, factor = not minus, negative(factor)
        if factor == ZERO:
            return ZERO
        if factor != ONE:
            result = factor if result is None else Node("*", (result, factor))
    result = ONE if result is None else result
    return negative(result) if minus else result


def quotient(top: Node, *bottoms: Node) -> Node:
    """top/(bottom*bottom...), where top may be a quotient itself."""
    below = product(bottoms if top.op != "/" else [top.args[1], *bottoms])
    above = top if top.op != "/" else top.args[0]
    return above if below == ONE else Node("/", (above, below))


def power(base: Node, exponent: Node) -> Node:
    """base**exponent, and a square root as one."""
    if exponent == ONE:
        return base
    return call("sqrt", base) if exponent == fraction(Fraction(1, 2)) else Node("**", (base, exponent))
