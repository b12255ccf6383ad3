"""The expression behind a formula: an immutable tree, and what is done to any tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

MAX_TERMS = 1024  # of one sum


class FormulaError(ValueError):
    """A text that is no formula: one sentence, the column, and a caret under the text."""

    def __init__(self, sentence: str, text: str = "", column: int = 1):
        self.sentence, self.text, self.column = sentence, text, column
        super().__init__(f"{sentence} (column {column})")

    def pointer(self) -> str:
        """The text around the column and a caret under it, safe to print on any terminal."""
        first = max(0, self.column - 41)
        shown = self.text[first : first + 80]
        shown = "".join(c if c.isprintable() and c.isascii() else "?" for c in shown)
        return f"  {shown}\n  {' ' * (self.column - 1 - first)}^"


@dataclass(frozen=True, slots=True)
class Node:
    """One part of a formula: an operation and what it is applied to."""

    op: str  # "number", "name", "pi", "-inf", "neg", "+", ..., a function, "where", "sum"
    args: tuple[Node, ...] = ()
    value: Fraction | str = ""  # of a number; a name; the comparison of a where; the index of a sum
    column: int = field(default=1, compare=False, repr=False)

    def walk(self) -> Iterator[Node]:
        """This node and everything below it, without recursion."""
        todo = [self]
        while todo:
            node = todo.pop()
            yield node
            todo.extend(node.args)

    def free(self) -> frozenset[str]:
        """The names in it that no sum binds."""
        if self.op == "name":
            return frozenset((str(self.value),))
        inside = frozenset().union(*(a.free() for a in self.args[:1]))
        outside = frozenset().union(*(a.free() for a in self.args[1:]))
        return (inside - {str(self.value)} if self.op == "sum" else inside) | outside


def number(value: Fraction | int, column: int = 1) -> Node:
    """A rational constant as the text would spell it: decimals as numbers, other fractions as quotients."""
    value = Fraction(value)
    if value < 0:
        return Node("neg", (number(-value, column),), column=column)
    rest = value.denominator
    for p in (2, 5):
        while rest % p == 0:
            rest //= p
    if rest == 1:
        return Node("number", (), value, column)
    top, bottom = Node("number", (), Fraction(value.numerator)), Node("number", (), Fraction(value.denominator))
    return Node("/", (top, bottom), column=column)


def index_range(node: Node, names: Mapping[str, Fraction] | None = None) -> range | None:
    """The indices of a sum node, or None while a parameter leaves its bounds open."""
    from farfield.formula import algebras as readings

    bounds = []
    for bound in node.args[1:]:
        if bound.free() - set(names or {}):
            return None
        value = readings.exact_value(bound, names or {})
        if value is None or value.denominator != 1:
            raise FormulaError("the bounds of a sum must be whole numbers", column=bound.column)
        bounds.append(int(value))
    if bounds[1] - bounds[0] + 1 > MAX_TERMS:
        terms = bounds[1] - bounds[0] + 1
        terms_text = str(terms) if terms < 10**12 else "too many"
        raise FormulaError(f"the sum has {terms_text} terms; at most {MAX_TERMS} are allowed", column=node.column)
    return range(bounds[0], bounds[1] + 1)


def expanded_size(node: Node) -> int:
    """How many parts the expression has when every sum is written out."""
    inside = [expanded_size(a) for a in node.args]
    if node.op != "sum":
        return 1 + sum(inside)
    indices = index_range(node)
    return inside[0] * (1 if indices is None else max(1, len(indices)))


def fold(node: Node, leaf: Callable[[Node], Any], join: Callable[[Node, list[Any]], Any]) -> Any:
    """Combine a tree bottom-up: `leaf` for what has no parts, `join` for an operation and its combined parts."""
    if not node.args:
        return leaf(node)
    return join(node, [fold(a, leaf, join) for a in node.args])


def substitute(node: Node, nodes: Mapping[str, Node]) -> Node:
    """The tree with free names replaced by other trees."""
    if node.op == "name":
        return nodes.get(str(node.value), node)
    if node.op == "sum":
        inner = {name: n for name, n in nodes.items() if name != node.value}
        body, *bounds = node.args
        return replace(node, args=(substitute(body, inner), *(substitute(b, nodes) for b in bounds)))
    return replace(node, args=tuple(substitute(a, nodes) for a in node.args)) if node.args else node
