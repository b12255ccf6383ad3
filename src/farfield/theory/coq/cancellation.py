"""Whether a certificate survives constants that are known to some bits only: where they must cancel, it does not.

The Coq library keeps rational coefficients exactly and holds others in intervals: log(3*t + 1) is ln t + [ln 3] + ...
So the difference of log(3*t + 2)**2 and log(3*t + 1)**2 is not known to be small there, and no claim about it holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from flint import arb, ctx

from farfield.formula import Formula, Node, build
from farfield.formula.algebras import exact_value

_BITS = 36  # of a constant; somewhat fewer than Coq's
_PRECISION = 3000
_DIGITS = (9, 40, 300)  # of the distances that are tried
_SLACK = "slack"


def needs_cancellation(formula: Formula, certificate: Mapping[str, Any]) -> bool:
    """Whether the claim holds at some distance, and no longer if each irrational constant has an error of its own."""
    blurred = replace(formula, node=_blurred(formula.node), source="")
    place = str(certificate["from"])
    if certificate["claim"] == "finite" or blurred.node == formula.node or not place.isdigit():
        return False
    with ctx.workprec(_PRECISION):
        slack = {_SLACK: arb(0, arb((1, -_BITS)))}
        tried = (10**n for n in _DIGITS if 10**n >= int(place))
        return any(_holds(formula, certificate, t, {}) and not _holds(blurred, certificate, t, slack) for t in tried)


def _holds(formula: Formula, certificate: Mapping[str, Any], t: int, names: Mapping[str, Any]) -> bool:
    level, scale = arb(t), arb(0)
    for _ in range(certificate["depth"]):
        level = level.log()
        scale += level
    constant, exponent = (_exactly(Fraction(certificate[key])) for key in ("ln_constant", "exponent"))
    bound = constant - scale - exponent * level.log()
    bias = formula.ball(t, names)
    if certificate["claim"] == "lower":
        return bool(bias >= bound)
    return bool(bias <= bound) or bool(abs(formula.weight_ball(t, names)) <= bound.exp())


def _exactly(value: Fraction) -> arb:
    return arb(value.numerator) / value.denominator


def _blurred(node: Node) -> Node:
    """The formula with an error of its own in each constant that a logarithm or a root of an affine argument makes."""
    if not node.args or node.op == "sum":
        return node
    slack, out = build.name(_SLACK), replace(node, args=tuple(_blurred(a) for a in node.args))
    if node.op == "log" and _irrational(node.args[0]):
        return Node("+", (out, slack))
    exponent = exact_value(node.args[1], {}) if node.op == "**" else Fraction(1, 2) if node.op == "sqrt" else 1
    if exponent is not None and exponent.denominator != 1 and _irrational(node.args[0]):
        return Node("*", (out, Node("+", (build.ONE, slack))))
    return out


def _irrational(node: Node) -> bool:
    """Whether it is a*t + b with another slope than 0 and 1, so that a logarithm or a root of the slope comes in."""
    if node.free() != {"t"}:
        return False
    values = [exact_value(node, {"t": Fraction(t)}) for t in (5, 6, 8)]
    if None in values:
        return False
    a, b, c = (Fraction(v) for v in values if v is not None)
    return c - b == 2 * (b - a) and b - a not in (0, 1)
