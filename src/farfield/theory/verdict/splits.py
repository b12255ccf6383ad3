"""Routes that cut a series into series of their own: summands, residue classes, branches.

*Summands:* a sum of weights converges if each does, and diverges if one does.

*Residue classes* t = m*n + r in which steps and waves of a whole period stand still: floor(t/4), t - 3*floor(t/3),
cos(pi*t/2) and the like repeat after a few distances. In each class such a part is a constant, or a line in n, and the
class is a series of its own. The sum converges if all classes do.

*Branches* that change for ever, as in where(sin(t) < 1/2, ...): at every distance the weight is that of one of the
variants in which the branch is fixed. If all variants converge, so does the series, and if all diverge and bound the
weight from below, it diverges. If only one diverges, and its branch is taken where a wave lies on one side of a
constant c, the density of such distances decides: a polynomial q in the wave that is at most 1 there and not positive
elsewhere has a positive mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product

from farfield.formula import Formula, Node, number, tree
from farfield.formula.algebras import OPPOSITE, exact_value
from farfield.formula.functions import WAVES
from farfield.formula.spelling import join, say
from farfield.formula.tree import T, collect_factors, substitute
from farfield.theory.checker.claims import Certificate, Claim, ClassesClaim, PartClaim, SumClaim, wording
from farfield.theory.checker.families import linear
from farfield.theory.checker.monomials import constant_node
from farfield.theory.checker.waves import mean_value
from farfield.theory.errors import UndecidedError
from farfield.theory.exact import constants
from farfield.theory.exact.constants import Constant
from farfield.theory.verdict.corners import weakest
from farfield.theory.verdict.verdict import B, Settle, Verdict, conclusion

MAX_MODULUS = 24
MAX_CHOICES = 3
MAX_POWER = 4
ROUNDING = Fraction(1, 10**4)  # so that q need not be at most 1 to the last bit


def by_summands(formula: Formula, start: int, settle: Settle) -> Verdict | None:
    """The sum of two weights converges if both do, and diverges if one does."""
    if not formula.weight or formula.node.op != "+":
        return None
    first, second = formula.node.args
    one, other = (settle(formula.with_node(node), start) for node in (first, second))
    steps = [say(B, " is a sum of two weights, and the first of them, ", first, ":"), *one.steps]
    steps += [say("the other, ", second, ":"), *other.steps]
    diverging = next((i for i, v in enumerate((one, other)) if v.verdict == "diverges"), None)
    claims = tuple(v.certificate for v in (one, other) if v.certificate is not None)
    assert len(claims) == 2, "what is settled has a certificate"
    claim = SumClaim(claims) if diverging is None else PartClaim(diverging, claims[diverging])
    verdict = "converges" if diverging is None else "diverges"
    return Verdict(formula.text(), verdict, None, (*steps, conclusion(verdict, start)), claim, start=start)


def by_common_factors(formula: Formula, start: int, settle: Settle) -> Verdict | None:
    """The same weight with the factors that both sides of a sum have taken out."""
    node = collect_factors(formula.node)
    return None if node == formula.node else settle(formula.with_node(node), start)


# ---------------------------------------------------------------------------------------------------- residue classes
def by_residues(formula: Formula, start: int, settle: Settle) -> Verdict | None:
    """Judge every class: the series converges if all do, and diverges if one does."""
    m = modulus(formula)
    if m == 1:  # what repeats at every distance, such as cos(2*pi*t), stands still as it is
        still = _still(formula.node)
        return None if still == formula.node else settle(formula.with_node(still), start)
    steps = [say(f"what repeats stands still in the classes of t modulo {m}")]
    certificates: list[Certificate | None] = []
    verdicts = set()
    for r, one in enumerate(residue_classes(formula, m)):
        try:
            result = settle(one, max(0, -((r - start) // m)))
        except UndecidedError:
            certificates.append(None)
            verdicts.add("undecided")
            continue
        verdicts.add(result.verdict)
        certificates.append(result.certificate)
        line = tree.relation(T, "=", tree.total([tree.product([number(m), tree.name("n")]), number(r)]))
        steps += [say("with ", line, ": ", result.steps[0]), *result.steps[1:]]
    verdict = "diverges" if "diverges" in verdicts else "converges" if verdicts == {"converges"} else None
    if verdict is None:
        return None
    claim = ClassesClaim(m, tuple(certificates))
    return Verdict(formula.text(), verdict, None, (*steps, conclusion(verdict, start)), claim, start=start)


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


def residue_classes(formula: Formula, modulus: int) -> Iterator[Formula]:
    """The formula along t = modulus*n + r for each r, with n called t, and what stands still written as a constant."""
    for r in range(modulus):
        line = tree.total([tree.product([number(modulus), T]), number(r)])
        yield formula.with_node(_still(substitute(formula.node, {"t": line})))


def _still(node: Node) -> Node:
    """The expression with floors of whole lines and waves of whole turns written out."""
    if not node.args or "t" not in node.free():
        return node
    node = replace(node, args=tuple(_still(a) for a in node.args))
    if node.op != "floor" and node.op not in WAVES:
        return node
    line = _linear(node.args[0])
    slope = _slope(node)
    if line is None or slope is None or slope.denominator != 1:
        return node
    if node.op == "floor" and (shift := line[1].fraction) is not None:
        return tree.total([tree.product([tree.fraction(slope), T]), tree.fraction(math.floor(shift))])
    if node.op in WAVES and slope % 2 == 0:
        return constant_node(constants.cos(line[1]) if node.op == "cos" else constants.sin(line[1]))
    return node


def _slope(node: Node) -> Fraction | None:
    """The slope of a floor's line, or that of a wave in units of pi; None if it is not rational."""
    line = _linear(node.args[0])
    if line is None:
        return None
    return line[0].fraction if node.op == "floor" else (line[0] / constants.pi()).fraction


def _linear(node: Node) -> tuple[Constant, Constant] | None:
    """(a, b) with node = a*t + b, a not 0."""
    if "t" not in node.free():
        return None
    try:
        slope, shift = linear(node)
    except UndecidedError:
        return None
    return (slope, shift) if slope.terms else None


# ---------------------------------------------------------------------------------------------------- branches
def by_branches(formula: Formula, start: int, settle: Settle) -> Verdict | None:
    """Judge every variant; one bound for all, or the density of the one that diverges."""
    choices = open_choices(formula)
    if not choices:
        return None
    results = [(held, settle(variant, start)) for held, variant in variants(formula, choices)]
    steps = [say("at each distance the weight is that of one of these:")]
    for held, one in results:
        words = (
            say(c.args[0], f" {c.value if yes else OPPOSITE[str(c.value)]} ", c.args[1])
            for c, yes in zip(choices, held, strict=True)
        )
        steps += [say("with ", join(words, " and "), ": ", one.steps[0]), *one.steps[1:]]
    diverging = [(held, one) for held, one in results if one.verdict == "diverges"]
    if len(diverging) in (0, len(results)):
        verdict = "diverges" if diverging else "converges"
        claims = [one.certificate for _, one in results]
        bounds = [c for c in claims if not (isinstance(c, Claim) and c.kind == "finite")]  # 0 lies below any bound
        claim = weakest(bounds or claims)
        last = (*steps, conclusion(verdict, start))
        return None if claim is None else Verdict(formula.text(), verdict, None, last, claim, start=start)
    lower = diverging[0][1].certificate
    q = density(choices[0], diverging[0][0][0]) if len(choices) == 1 else None
    if q is None or not isinstance(lower, Claim) or lower.kind != "lower":
        return None
    factor, mean = q
    claim = replace(lower, kind="mean", factor=Formula(factor), mean=mean, ln_constant=lower.ln_constant - ROUNDING)
    q_of_t = tree.relation(tree.apply("q"), "=", factor)
    steps += [
        say(q_of_t, " is at most 1 where the series diverges, not positive elsewhere, and has a positive mean"),
        say("explicitly, ", wording(claim)),
        say("so the sum diverges (Dirichlet's test for q(t) less its mean)"),
    ]
    return Verdict(formula.text(), "diverges", None, (*steps, conclusion("diverges", start)), claim, start=start)


def open_choices(formula: Formula) -> list[Node]:
    """The outermost branches whose condition oscillates."""
    result: list[Node] = []
    todo = [formula.node]
    while todo:
        node = todo.pop()
        if node.op == "where" and any(_oscillates(a) for a in node.args[:2]):
            if node not in result:
                result.append(node)
        else:
            todo += node.args
    return result if len(result) <= MAX_CHOICES else []


def _oscillates(node: Node) -> bool:
    return any(n.op in (*WAVES, "floor") and "t" in n.free() for n in node.walk())


def variants(formula: Formula, choices: list[Node]) -> Iterator[tuple[tuple[bool, ...], Formula]]:
    """The formula with every such branch fixed: (whether each condition holds, formula)."""
    for held in product((True, False), repeat=len(choices)):
        chosen = {node: node.args[2 if yes else 3] for node, yes in zip(choices, held, strict=True)}
        yield held, formula.with_node(_replaced(formula.node, chosen))


def _replaced(node: Node, chosen: dict[Node, Node]) -> Node:
    if node in chosen:
        return _replaced(chosen[node], chosen)
    return replace(node, args=tuple(_replaced(a, chosen) for a in node.args)) if node.args else node


def density(choice: Node, holds: bool) -> tuple[Node, Fraction] | None:
    """(q, its mean): q <= 1 where the condition holds (or does not), q <= 0 elsewhere; None if none is found."""
    wave, bound = choice.args[:2]
    below = (choice.value in ("<", "<=")) == holds
    if bound.op in WAVES:
        wave, bound, below = bound, wave, not below
    c = exact_value(bound, {})
    if wave.op not in WAVES or c is None or not -1 < c < 1:
        return None
    inside = tree.total([bound, tree.negative(wave)]) if below else tree.total([wave, tree.negative(bound)])
    q = tree.quotient(inside, tree.fraction(1 + c if below else 1 - c))
    narrow = tree.quotient(tree.total([tree.ONE, tree.negative(wave) if below else wave]), number(2))
    for power in range(0, 2 * MAX_POWER + 1, 2):  # ever more of q lies near the extreme of the wave
        whole = tree.product([q, tree.power(narrow, number(power))]) if power else q
        try:
            mean = mean_value(whole).fraction
        except UndecidedError:
            return None
        if mean is not None and mean > 0:
            return whole, mean
    return None
