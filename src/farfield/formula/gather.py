"""Common factors of sums: x/c + y/c written as (x + y)/c, so that it shows when x + y is simple and x, y are not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from farfield.formula import build
from farfield.formula.tree import Node


def gathered(node: Node) -> Node:
    """The same function, defined for the same t, with the factors that both sides of a sum have taken out."""
    if node.args:
        node = replace(node, args=tuple(gathered(a) for a in node.args))
    if node.op not in ("+", "-"):
        return node
    left, right = (Counter(_factors(a)) for a in node.args)
    common = Counter({f: n for f, n in (left & right).items() if "t" in f[0].free()})
    if not common:
        return node
    inside = Node(node.op, (_product(left - common), _product(right - common)), column=node.column)
    return _product(common + Counter({(inside, True): 1}))


def _factors(node: Node, above: bool = True) -> list[tuple[Node, bool]]:
    """The factors of a product or quotient, each with whether it stands above the line; signs are factors of -1."""
    if node.op in ("*", "/"):
        left, right = node.args
        return _factors(left, above) + _factors(right, above == (node.op == "*"))
    if node.op == "neg":
        return [(build.negative(build.ONE), True), *_factors(node.args[0], above)]
    return [(node, above)]


def _product(factors: Counter[tuple[Node, bool]]) -> Node:
    """The product, with nothing left out but ones: 0*log(t - 5) stays as it is."""
    sides: dict[bool, Node] = {}
    for (factor, above), count in factors.items():
        for _ in range(count):
            sides[above] = Node("*", (sides[above], factor)) if above in sides else factor
    top = sides.get(True, build.ONE)
    return Node("/", (top, sides[False])) if False in sides else top
