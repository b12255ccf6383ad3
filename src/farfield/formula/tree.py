"""The expression behind a formula: an immutable tree, how one is made by hand, and what is done to any tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
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


# ---------------------------------------------------------------------------------------------------- made by hand
ONE, ZERO = number(1), number(0)
DOTS = Node("...")


def name(word: str) -> Node:
    """A parameter, or t."""
    return Node("name", (), word)


def call(function: str, *args: Node) -> Node:
    """A function of the language applied to something; "order" is O(...)."""
    return Node(function, args)


def apply(function: str, argument: str = "t") -> Node:
    """A function that only has a name, such as b(t)."""
    return Node("apply", (name(argument),), function)


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


# ---------------------------------------------------------------------------------------------------- common factors
def collect_factors(node: Node) -> Node:
    """The same function, defined for the same t: x/c + y/c as (x + y)/c, where x + y may be simple and x, y are not."""
    if node.args:
        node = replace(node, args=tuple(collect_factors(a) for a in node.args))
    if node.op not in ("+", "-"):
        return node
    left, right = (Counter(_factors(a)) for a in node.args)
    common = Counter({f: n for f, n in (left & right).items() if "t" in f[0].free()})
    if not common:
        return node
    inside = Node(node.op, (_plain_product(left - common), _plain_product(right - common)), column=node.column)
    return _plain_product(common + Counter({(inside, True): 1}))


def _factors(node: Node, above: bool = True) -> list[tuple[Node, bool]]:
    """The factors of a product or quotient, each with whether it stands above the line; signs are factors of -1."""
    if node.op in ("*", "/"):
        left, right = node.args
        return _factors(left, above) + _factors(right, above == (node.op == "*"))
    if node.op == "neg":
        return [(negative(ONE), True), *_factors(node.args[0], above)]
    return [(node, above)]


def _plain_product(factors: Counter[tuple[Node, bool]]) -> Node:
    """The product, with nothing left out but ones: 0*log(t - 5) stays as it is."""
    sides: dict[bool, Node] = {}
    for (factor, above), count in factors.items():
        for _ in range(count):
            sides[above] = Node("*", (sides[above], factor)) if above in sides else factor
    top = sides.get(True, ONE)
    return Node("/", (top, sides[False])) if False in sides else top
