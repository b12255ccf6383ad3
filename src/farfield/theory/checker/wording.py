"""The claim of a certificate as a sentence that carries its mathematics; constants are rounded to the safe side."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from flint import arb, ctx, fmpq

from farfield.formula import Node, build, number
from farfield.formula.sentence import Sentence, joined, say
from farfield.formula.tree import T, substitute
from farfield.theory.checker.claims import Certificate, Claim, PartClaim, Place, SparseClaim, SumClaim, read

_B, _Q = build.applied("b"), build.applied("q")


def wording(certificate: Certificate | Any) -> Sentence:
    """The claim, such as "b(t) <= 3.2*t**-1.5 for all t >= 17"; of several claims, each with what it is about."""
    claim = read(certificate)
    if isinstance(claim, Claim):
        return _claim(claim)
    if isinstance(claim, SumClaim):
        parts = [say(f"summand {i + 1}: ", wording(c)) for i, c in enumerate(claim.parts)]
    elif isinstance(claim, PartClaim):
        parts = [say(f"summand {claim.index + 1}: ", wording(claim.part))]
    elif isinstance(claim, SparseClaim):
        there = build.relation(T, "=", substitute(claim.where.node, {"t": build.name("n")}))
        named = [(say("at ", there), claim.on), (say("elsewhere"), claim.off)]
        parts = [say(place, ": ", wording(c)) for place, c in named if c is not None]
    else:
        classes = [(_residue(claim.modulus, r), c) for r, c in enumerate(claim.classes)]
        parts = [say(residue, ": ", wording(c)) for residue, c in classes if c is not None]
    return joined(parts, "; ")


def _residue(modulus: int, r: int) -> Node:
    return build.relation(T, "=", build.total([build.product([number(modulus), build.name("n")]), number(r)]))


def _claim(claim: Claim) -> Sentence:
    then = say(" for all ", build.relation(T, ">=", _start(claim.start)))
    if claim.kind == "finite":
        return say(build.relation(_B, "=", build.ZERO), then)
    sign = "<=" if claim.kind == "upper" else ">="
    if claim.factor is None:
        return say(build.relation(_B, sign, _bound(claim, build.ONE)), then)
    factor = build.relation(_Q, "=", claim.factor.node)
    bound = build.relation(_B, sign, _bound(claim, _Q))
    return say(bound, then, ", where ", factor, " has the mean value ", number(claim.mean))


def _start(place: Place) -> Node:
    node = number(place.whole)
    for _ in range(place.nesting):
        node = build.call("exp", node)
    return node


def _bound(claim: Claim, factor: Node) -> Node:
    constant = _constant(claim.ln_constant, claim.kind == "upper")
    if claim.depth == 0:
        scale = [] if claim.exponent == 0 else [build.power(T, number(-claim.exponent))]
        return build.product([factor, constant, *scale])
    levels = [T]
    for _ in range(claim.depth):
        levels.append(build.call("log", levels[-1]))
    last = [] if claim.exponent == 0 else [build.power(levels[-1], number(claim.exponent))]
    return build.quotient(build.product([factor, constant]), build.product([*levels[:-1], *last]))


def _constant(logarithm: Fraction, up: bool) -> Node:
    """exp(logarithm) with three digits, rounded up or down; left as exp(...) where it is far from 1."""
    if logarithm == 0:
        return build.ONE
    if abs(logarithm) > 60:
        tenths = logarithm * 10
        rounded = -((-tenths.numerator) // tenths.denominator) if up else tenths.numerator // tenths.denominator
        return build.call("exp", number(Fraction(rounded, 10)))
    with ctx.workprec(256):
        value = arb(fmpq(logarithm.numerator, logarithm.denominator)).exp()
        tens = int((value.log() / arb(10).log()).floor().mid().unique_fmpz() or 0) - 2
        scaled = value / arb(10) ** tens
        edge = scaled.upper().ceil() if up else scaled.lower().floor()
        return number(Fraction(int(edge.unique_fmpz() or 0)) * Fraction(10) ** tens)
