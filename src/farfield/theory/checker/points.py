"""Relations between constants, decided exactly: whether a condition on parameters holds at one point."""

from __future__ import annotations

from collections.abc import Mapping

from flint import arb, ctx

from farfield.formula import Formula, Node
from farfield.formula.functions import primitive
from farfield.formula.tree import substitute
from farfield.theory.checker.constants import UnknownError
from farfield.theory.checker.expansions import Calculus
from farfield.theory.checker.monomials import Domain
from farfield.theory.checker.readings import Reading


def relation_holds(relation: Node, point: Mapping[str, Node]) -> bool | None:
    """Whether a relation such as p > 1 holds at a point; False where a side has no value, None if it is not known."""
    gap = primitive(substitute(Node("-", relation.args), point))
    try:
        with ctx.workprec(128):
            reading = Reading(Calculus(Domain.between(3, 3), 2, 8))
            side = reading.calculus.sign(reading.value(gap))
    except UnknownError:
        side = None
    if side is None:
        with ctx.workprec(256):
            return None if Formula(gap).ball(arb(0)).is_finite() else False
    return {"<": side < 0, "<=": side <= 0, ">": side > 0, ">=": side >= 0, "=": side == 0, "!=": side != 0}[
        relation.op
    ]
