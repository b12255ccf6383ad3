"""Whether a certificate survives constants that are known to some bits only: where they must cancel, it does not.

The Coq library keeps rational numbers, their powers and their logarithms exactly and holds other constants in
intervals: log(pi*t + 1) is ln t + [ln pi] + ... So the difference of log(pi*t + 2)**2 and log(pi*t + 1)**2 is not known
to be small there, and no claim about it holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from flint import arb, ctx

from farfield.formula import Formula, Node, build
from farfield.formula.algebras import exact_value
from farfield.theory.coq.affine import line_of

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
    """Whether it is a*t + b with a slope whose logarithm and roots the library does not keep exactly."""
    line = line_of(node)
    return line is not None and "t" in node.free() and not _product_of_powers(line[1])


def _product_of_powers(node: Node) -> bool:
    """Whether it is made of rational numbers by products and powers."""
    parts = node.op in ("*", "/", "neg", "sqrt", "**") and all(map(_product_of_powers, node.args))
    return parts or exact_value(node, {}) is not None
