"""The expression behind a formula: an immutable tree, and what is done to any tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any


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

    op: str  # "number", "name", "pi", "-inf", "where", "sum", or one of functions.OPERATORS and functions.CALLS
    args: tuple[Node, ...] = ()
    value: Fraction | str = ""  # of a number; a name; the comparison of a where; the index of a sum
    column: int = field(default=1, compare=False, repr=False)
    _free: frozenset[str] = field(init=False, compare=False, repr=False)
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.op == "name":
            free = frozenset((str(self.value),))
        else:
            free = frozenset().union(*(a._free for a in self.args))
            if self.op == "sum" and self.value in free:
                body, *bounds = self.args
                free = (body._free - {str(self.value)}).union(*(b._free for b in bounds))
        object.__setattr__(self, "_free", free)
        object.__setattr__(self, "_hash", hash((self.op, self.args, self.value)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return Node, (self.op, self.args, self.value, self.column)  # hashes of texts differ between processes

    def walk(self) -> Iterator[Node]:
        """This node and everything below it, without recursion."""
        todo = [self]
        while todo:
            node = todo.pop()
            yield node
            todo.extend(node.args)

    def free(self) -> frozenset[str]:
        """The names in it that no sum binds."""
        return self._free


T = Node("name", (), "t")


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


def fold(node: Node, leaf: Callable[[Node], Any], join: Callable[[Node, list[Any]], Any]) -> Any:
    """Combine a tree bottom-up: `leaf` for what has no parts, `join` for an operation and its combined parts."""
    if not node.args:
        return leaf(node)
    return join(node, [fold(a, leaf, join) for a in node.args])


def substitute(node: Node, nodes: Mapping[str, Node]) -> Node:
    """The tree with free names replaced by other trees."""
    if node.free().isdisjoint(nodes):
        return node
    if node.op == "name":
        return nodes[str(node.value)]
    if node.op == "sum":
        inner = {name: n for name, n in nodes.items() if name != node.value}
        body, *bounds = node.args
        return replace(node, args=(substitute(body, inner), *(substitute(b, nodes) for b in bounds)))
    return replace(node, args=tuple(substitute(a, nodes) for a in node.args))
