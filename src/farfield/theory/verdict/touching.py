"""Weights that touch zero again and again: a trigonometric factor times something that is decided without it.

b(t) = |p(t)|**e * h(t), p a trigonometric polynomial. Above, |p| <= the sum of its amplitudes. Below,
|p|**e >= p**(2m) / max|p|**(2m - e) with 2m >= e, and q = p**(2m) has a mean over the integers that can be computed
exactly: a wave of frequency w averages to 0 unless w is a multiple of 2 pi. If the mean is positive and s(t) decreases
slowly enough that sum of s(t) diverges, then so does the sum of q(t)*s(t) (Dirichlet's test for q - mean).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from flint import arb, ctx

from farfield.formula import Formula, Node, number, tree
from farfield.formula.algebras import exact_value
from farfield.formula.functions import WAVES
from farfield.formula.spelling import say
from farfield.theory.checker.claims import Claim, wording
from farfield.theory.checker.monomials import constant_node
from farfield.theory.checker.waves import Waves, mean_value, polynomial
from farfield.theory.exact.constants import ZERO, Constant, ball, log, sign
from farfield.theory.verdict.ladder import explicit_step, safe_decimal
from farfield.theory.verdict.verdict import B, Settle, Verdict, conclusion


@dataclass(frozen=True)
class Factored:
    """b(t) = product of p_i**e_i times `rest`; each p_i comes with whether it stands inside abs."""

    waves: tuple[tuple[Node, Fraction, bool], ...]
    rest: Formula


def by_waves(formula: Formula, start: int, settle: Settle) -> Verdict | None:
    """Weights with a trigonometric factor that touches zero: decided by their mean."""
    parts = factor(formula)
    if parts is None:
        return None
    rest = settle(parts.rest, start)
    if not isinstance(rest.certificate, Claim) or rest.certificate.kind not in ("upper", "lower"):
        return None
    waves = []
    for node, e, absolute in parts.waves:
        p = polynomial(node)
        if not absolute and not _never_negative(p):
            return None
        waves.append((node, e, p))
    h = tree.apply("h")
    factors = [tree.power(tree.call("abs", node), tree.fraction(e)) for node, e, _ in waves]
    steps = [say(tree.relation(B, "=", tree.product([h, *factors])), " with ", tree.relation(h, "=", parts.rest.node))]
    with ctx.workprec(128):
        if rest.verdict == "converges":
            shift = sum((ball(log(size(p))) * _ball(e) for _, e, p in waves), arb(0))
            claim = _shifted(rest.certificate, shift)
            steps += [say(step, " (for h)") for step in rest.steps[:-2]]
            steps += [explicit_step(claim), conclusion("converges", start)]
            return Verdict(formula.text(), "converges", None, tuple(steps), claim, start=start)
        shift, nodes = arb(0), []
        for node, e, p in waves:
            twice = 2 * max(1, math.ceil(e / 2))
            nodes.append(Node("**", (node, number(twice))))
            shift -= ball(log(size(p))) * _ball(twice - e)
        q = tree.product(nodes)
        average = mean_value(q)
        if sign(average) <= 0:
            return None
        least = average.fraction if average.fraction is not None else Fraction(safe_decimal(ball(average), up=False))
    claim = replace(_shifted(rest.certificate, shift), kind="mean", factor=Formula(q), mean=least)
    steps += [
        say(tree.relation(tree.apply("q"), "=", q), " has the mean ", constant_node(average), " over the integers"),
        say("explicitly, ", wording(claim)),
        say("with s(t) for the bound, the sum of (q(t) - mean)*s(t) converges (Dirichlet), that of s(t) diverges"),
        say("so the sum of q(t)*s(t) diverges, and the sum of ", B, " diverges"),
    ]
    return Verdict(formula.text(), "diverges", None, tuple(steps), claim, start=start)


def _ball(q: Fraction) -> arb:
    return arb(q.numerator) / q.denominator


def _shifted(claim: Claim, shift: arb) -> Claim:
    end = ball(claim.ln_constant) + shift
    return replace(claim, ln_constant=Fraction(safe_decimal(end, claim.kind == "upper")))


def factor(formula: Formula) -> Factored | None:
    """Split off the trigonometric factors of a weight, or None if there are none."""
    waves: list[tuple[Node, Fraction, bool]] = []
    rest: list[tuple[Node, Fraction]] = []

    def visit(node: Node, e: Fraction, absolute: bool = False) -> None:
        """node ** e as a factor of the weight."""
        if node.op in ("*", "/"):
            visit(node.args[0], e, absolute)
            visit(node.args[1], e if node.op == "*" else -e, absolute)
        elif node.op == "abs":
            visit(node.args[0], e, True)
        elif node.op == "sqrt":
            visit(node.args[0], e / 2, absolute)
        elif node.op == "**" and (power := exact_value(node.args[1], {})) is not None:
            visit(node.args[0], e * power, absolute or power % 2 == 0)
        elif node.op == "exp":
            visit_log(node.args[0], e)
        elif e > 0 and any(n.op in WAVES and "t" in n.free() for n in node.walk()):
            waves.append((node, e, absolute))
        else:
            rest.append((Node("abs", (node,)) if absolute else node, e))

    def visit_log(node: Node, e: Fraction) -> None:
        """exp(e * node) as a factor of the weight."""
        if node.op in ("+", "-"):
            visit_log(node.args[0], e)
            visit_log(node.args[1], e if node.op == "+" else -e)
        elif node.op == "neg":
            visit_log(node.args[0], -e)
        elif node.op == "log":
            visit(node.args[0], e)
        elif node.op == "*" and (scale := exact_value(node.args[0], {})) is not None:
            visit_log(node.args[1], e * scale)
        else:
            rest.append((Node("exp", (node,)), e))

    visit(formula.node if formula.weight else Node("exp", (formula.node,)), Fraction(1))
    if not waves:
        return None
    product = tree.product([tree.power(node, tree.fraction(e)) for node, e in rest])
    return Factored(tuple(waves), Formula(product, weight=True))


def size(waves: Waves) -> Constant:
    """The sum of the amplitudes: an upper bound of |p|."""
    total = ZERO
    for amplitude in waves.values():
        total = total + (amplitude if sign(amplitude) >= 0 else -amplitude)
    return total


def _never_negative(waves: Waves) -> bool:
    """Whether the constant part outweighs all waves."""
    still = sum((a for (w, p), a in waves.items() if not w.terms and not p.terms), ZERO)
    moving = size({k: a for k, a in waves.items() if k[0].terms or k[1].terms})
    return sign(still - moving) >= 0
