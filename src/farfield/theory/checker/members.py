"""Classes of biases for the checker: each between(lo, hi) is a value of its own, anywhere within its bounds.

A bound that is proven for a formula read this way holds for every member of the class, whatever picks it.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from farfield.formula import Formula, Node, number
from farfield.formula.functions import ROW


class OutsideError(Exception):
    """A class that is not read here, and why."""


def apart(formula: Formula) -> Formula:
    """The formula without its sink, which no weight depends on, and with every between told apart from the others.

    Two that look alike pick for themselves: they must not cancel, nor be taken for a square.
    """
    if ROW in formula.node.free():
        raise OutsideError(f"the row {ROW} is not read by the checker")
    numbers = count(1)

    def told(node: Node) -> Node:
        if node.op == "sink":
            raise OutsideError("a sink may only be added at the top")
        args = tuple(told(a) for a in node.args)
        return replace(node, args=args, value=str(next(numbers))) if node.op == "between" else replace(node, args=args)

    return replace(formula, node=told(_without_sink(formula.node)), source="")


def _without_sink(node: Node) -> Node:
    """The summands of the top without the sink."""
    if node.op == "sink":
        return number(0)
    if node.op in ("+", "-"):
        left, right = node.args
        return replace(node, args=(_without_sink(left), _without_sink(right) if node.op == "+" else right))
    return node
