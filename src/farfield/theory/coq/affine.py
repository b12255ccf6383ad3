"""Affine expressions of the distance: c and d of c + d*t."""

from __future__ import annotations

from farfield.formula import Node, build

ZERO, ONE = build.ZERO, build.ONE
Line = tuple[Node, Node]  # c and d of c + d*t


def line_of(node: Node) -> Line | None:
    """c and d of an expression c + d*t."""
    if "t" not in node.free():
        return node, ZERO
    if node.op == "name":
        return ZERO, ONE
    parts = [line_of(a) for a in node.args]
    if any(part is None for part in parts):
        return None
    lines = [part for part in parts if part is not None]
    if node.op == "neg":
        return build.negative(lines[0][0]), build.negative(lines[0][1])
    if node.op in ("+", "-"):
        (a, b), (c, d) = lines
        sign = build.negative if node.op == "-" else _same
        return build.total([a, sign(c)]), build.total([b, sign(d)])
    if node.op in ("*", "/"):
        (a, b), (c, d) = lines
        if d == ZERO:
            join = build.quotient if node.op == "/" else _product
            return join(a, c), join(b, c)
        if node.op == "*" and b == ZERO:
            return _product(a, c), _product(a, d)
    return None


def _same(node: Node) -> Node:
    return node


def _product(a: Node, b: Node) -> Node:
    return ZERO if ZERO in (a, b) else build.product([a, b])
