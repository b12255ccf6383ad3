"""Branches that change for ever, as in where(sin(t) < 1/2, ...): each branch as a formula of its own.

At every distance the weight is that of one of the variants in which the branch is fixed. If all variants converge, so
does the series, and if all diverge and bound the weight from below, it diverges. If only one diverges, and its branch
is taken where a wave lies on one side of a constant c, the share of such distances decides: a polynomial q in the wave
that is at most 1 there and not positive elsewhere has a positive mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product

from farfield.formula import Formula, Node, build, number
from farfield.formula.algebras import OPPOSITE, exact_value
from farfield.formula.functions import WAVES
from farfield.formula.sentence import joined, say
from farfield.theory.checker.wording import wording
from farfield.theory.errors import UndecidedError
from farfield.theory.verdict import oscillation
from farfield.theory.verdict.gate import Settle, Settled, weakest

MAX_CHOICES = 3
MAX_POWER = 4


def by_choices(formula: Formula, start: int, settle: Settle) -> Settled | None:
    """Judge every variant; one bound for all, or the share of the one that diverges."""
    choices = open_choices(formula)
    if not choices:
        return None
    result = [(held, settle(variant, start)) for held, variant in variants(formula, choices)]
    proof = [say("at each distance the weight is that of one of these:")]
    for held, one in result:
        words = (
            say(c.args[0], f" {c.value if yes else OPPOSITE[str(c.value)]} ", c.args[1])
            for c, yes in zip(choices, held, strict=True)
        )
        proof += [say("with ", joined(words, " and "), ": ", one.steps[0]), *one.steps[1:]]
    diverging = [(held, one) for held, one in result if one.verdict == "diverges"]
    if len(diverging) in (0, len(result)):
        verdict = "diverges" if diverging else "converges"
        claims = [one.certificate for _, one in result]
        bounds = [c for c in claims if c is None or c["claim"] != "finite"]  # what is 0 lies below any bound
        return Settled(verdict, tuple(proof), weakest(bounds or claims))
    if len(choices) > 1 or diverging[0][1].certificate is None or diverging[0][1].certificate["claim"] != "lower":
        return None
    q = share(choices[0], diverging[0][0][0])
    if q is None:
        return None
    claim = {**diverging[0][1].certificate, "claim": "mean", "factor": Formula(q[0]).text(), "mean": q[1]}
    constant = Fraction(str(claim["ln_constant"])) - Fraction(
        1, 10**4
    )  # so that q need not be at most 1 to the last bit
    claim["ln_constant"] = str(constant)
    q_of_t = build.relation(build.applied("q"), "=", q[0])
    proof.append(
        say(q_of_t, " is at most 1 where the series diverges, not positive elsewhere, and has a positive mean")
    )
    proof += [say("explicitly, ", wording(claim)), say("so the sum diverges (Dirichlet's test for q(t) less its mean)")]
    return Settled("diverges", tuple(proof), claim)


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
        yield held, replace(formula, node=_replaced(formula.node, chosen), source="")


def _replaced(node: Node, chosen: dict[Node, Node]) -> Node:
    if node in chosen:
        return _replaced(chosen[node], chosen)
    return replace(node, args=tuple(_replaced(a, chosen) for a in node.args)) if node.args else node


def share(choice: Node, holds: bool) -> tuple[Node, str] | None:
    """(q, its mean): q <= 1 where the condition holds (or does not), q <= 0 elsewhere; None if none is found."""
    wave, bound = choice.args[:2]
    below = (choice.value in ("<", "<=")) == holds
    if bound.op in WAVES:
        wave, bound, below = bound, wave, not below
    c = exact_value(bound, {})
    if wave.op not in WAVES or c is None or not -1 < c < 1:
        return None
    inside = build.total([bound, build.negative(wave)]) if below else build.total([wave, build.negative(bound)])
    q = build.quotient(inside, build.fraction(1 + c if below else 1 - c))
    narrow = build.quotient(build.total([build.ONE, build.negative(wave) if below else wave]), number(2))
    for power in range(0, 2 * MAX_POWER + 1, 2):  # ever more of q lies near the extreme of the wave
        whole = build.product([q, build.power(narrow, number(power))]) if power else q
        try:
            mean = oscillation.mean(oscillation.polynomial(whole))
        except UndecidedError:
            return None
        if mean.rational is not None and mean.rational > 0:
            return whole, str(mean.rational)
    return None
