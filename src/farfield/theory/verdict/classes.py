"""Residue classes: distances t = m*n + r in which steps and waves of a whole period stand still.

floor(t/4), t - 3*floor(t/3), cos(pi*t/2) and the like repeat after a few distances. In each class of them such a part
is a constant, or a line in n, and the class is a series of its own. The whole converges if all classes do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

from farfield.formula import Formula, Node, build, number
from farfield.formula.functions import WAVES
from farfield.formula.sentence import say
from farfield.formula.tree import T, substitute
from farfield.theory.budget import Work
from farfield.theory.errors import MoreTermsError, UndecidedError, UndefinedError
from farfield.theory.exact import constants
from farfield.theory.exact.constants import PI, Const, rational
from farfield.theory.verdict.engines import Asymptotic
from farfield.theory.verdict.gate import PartVerdict, Settle, Settled
from farfield.theory.verdict.oscillation import linear_phase
from farfield.theory.verdict.reader import Reader
from farfield.theory.verdict.regions import Region

MAX_MODULUS = 24


def modulus(formula: Formula) -> int:
    """After how many distances every such part repeats; 1 if there is none, or if it takes too many."""
    result = 1
    for node in formula.node.walk():
        if node.op == "floor" or node.op in WAVES:
            slope = _slope(node)
            if slope is not None:
                period = slope.denominator if node.op == "floor" or slope.numerator % 2 == 0 else 2 * slope.denominator
                result = math.lcm(result, period)
    return result if result <= MAX_MODULUS else 1


def by_classes(formula: Formula, start: int, settle: Settle) -> PartVerdict | None:
    """Judge every class: the series converges if all do, and diverges if one does."""
    m = modulus(formula)
    if m == 1:  # what repeats at every distance, such as cos(2*pi*t), stands still as it is
        still = _stilled(formula.node)
        return None if still == formula.node else settle(replace(formula, node=still, source=""), start)
    proof = [say(f"what repeats stands still in the classes of t modulo {m}")]
    certificates: list[dict[str, Any] | None] = []
    verdicts = set()
    for r, one in enumerate(classes(formula, m)):
        try:
            result = settle(one, max(0, -((r - start) // m)))
        except UndecidedError:
            certificates.append(None)
            verdicts.add("undecided")
            continue
        verdicts.add(result.verdict)
        certificates.append(result.certificate)
        line = build.relation(T, "=", build.total([build.product([number(m), build.name("n")]), number(r)]))
        proof += [say("with ", line, ": ", result.steps[0]), *result.steps[1:]]
    verdict = "diverges" if "diverges" in verdicts else "converges" if verdicts == {"converges"} else None
    if verdict is None:
        return None
    return Settled(verdict, tuple(proof), {"claim": "classes", "modulus": m, "classes": certificates})


def classes(formula: Formula, modulus: int) -> Iterator[Formula]:
    """The formula along t = modulus*n + r for each r, with n called t, and what stands still written as a constant."""
    for r in range(modulus):
        line = build.total([build.product([number(modulus), T]), number(r)])
        yield replace(formula, node=_stilled(substitute(formula.node, {"t": line})), source="")


def _stilled(node: Node) -> Node:
    """The expression with floors of whole lines and waves of whole turns written out."""
    if not node.args or "t" not in node.free():
        return node
    node = replace(node, args=tuple(_stilled(a) for a in node.args))
    if node.op != "floor" and node.op not in WAVES:
        return node
    parts = _linear(node.args[0])
    slope = _slope(node)
    if parts is None or slope is None or slope.denominator != 1:
        return node
    if node.op == "floor" and parts[1].rational is not None:
        return build.total([build.product([build.fraction(slope), T]), build.fraction(math.floor(parts[1].rational))])
    if node.op in WAVES and slope % 2 == 0:
        return constants.node(constants.trigonometric(node.op, parts[1]))
    return node


def _slope(node: Node) -> Fraction | None:
    """The slope of a floor's line, or that of a wave in units of pi; None if it is not rational."""
    parts = _linear(node.args[0])
    if parts is None:
        return None
    return parts[0].rational if node.op == "floor" else (parts[0] / PI).rational


def _linear(node: Node) -> tuple[Const, Const] | None:
    """(a, b) with node = a*t + b, a not 0."""
    if "t" not in node.free():
        return None
    try:
        slope, shift = linear_phase(Reader(Asymptotic(Region(), 3, Work(1))), node)
    except (UndecidedError, UndefinedError, MoreTermsError):
        return None
    return (slope, shift) if slope != rational(0) else None
