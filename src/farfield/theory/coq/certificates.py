"""Certificates as values of Coq: explicit bounds, and those that are made of others.

The Coq library keeps rational numbers, their powers and their logarithms exactly and holds other constants in
intervals: log(pi*t + 1) is ln t + [ln pi] + ... So the difference of log(pi*t + 2)**2 and log(pi*t + 1)**2 is not known
to be small there, and no claim about it holds: a certificate that needs such constants to cancel is not written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from flint import arb, ctx

from farfield.formula import Formula, Node, tree
from farfield.formula.algebras import exact_value, to_ball
from farfield.formula.functions import WAVES
from farfield.formula.tree import ONE, ZERO
from farfield.theory.checker.claims import Certificate, Claim, ClassesClaim, PartClaim, Place, SumClaim
from farfield.theory.checker.examination import examine
from farfield.theory.coq.terms import nat, rational
from farfield.theory.errors import OutsideCoqError

_CLAIMS = {"upper": "Upper", "lower": "Lower", "finite": "Finite_support"}
_NEGATIVE = "its certificate takes one class or summand, and Coq must see that no weight is negative"
_BITS = 36  # of a constant; somewhat fewer than Coq's
_PRECISION = 3000
_DIGITS = (9, 40, 300)  # of the distances that are tried
_SLACK = "slack"
Line = tuple[Node, Node]  # c and d of c + d*t


def certificate_term(claim: Certificate) -> str:
    """An explicit bound."""
    if not isinstance(claim, Claim):
        raise OutsideCoqError("its certificate is nested deeper than the Coq library reads")
    if claim.kind not in _CLAIMS:
        raise OutsideCoqError("its certificate uses the mean of a wave, which the Coq library does not treat")
    numbers = f"{_q(claim.exponent)} {_q(claim.ln_constant)}"
    return f"Certificate {_CLAIMS[claim.kind]} {claim.depth} {numbers} {_place(claim.start)}"


def bound_term(formula: Formula, claim: Certificate) -> str:
    """The same, if Coq can see that it holds for the formula."""
    term = certificate_term(claim)
    assert isinstance(claim, Claim)
    if needs_cancellation(formula, claim):
        raise OutsideCoqError("irrational constants of its slopes must cancel exactly, and Coq has them as intervals")
    return term


def tree_term(formula: Formula, claim: Certificate, start: int) -> str:
    """Any certificate, as a value of the type `tree` of proofs/Composite.v."""
    if isinstance(claim, ClassesClaim):
        return _classes(formula, claim)
    if isinstance(claim, SumClaim | PartClaim):
        return _summands(formula, claim, start)
    return f"Bound ({bound_term(formula, claim)})"


def _classes(formula: Formula, claim: ClassesClaim) -> str:
    if any(node.op in WAVES for node in formula.node.walk()):
        raise OutsideCoqError("its certificate takes residue classes in which waves stand still, and Coq knows floors")
    if claim.proves == "converges":
        terms = [f"(Bound ({certificate_term(c)}))" for c in claim.classes if c is not None]
        return f"Classes {nat(claim.modulus)} {''.join(f'(Next {term} ' for term in terms)}Done{')' * len(terms)}"
    if formula.weight and not _not_negative(formula.node):
        raise OutsideCoqError(_NEGATIVE)
    lower = [(r, c) for r, c in enumerate(claim.classes) if isinstance(c, Claim) and c.kind == "lower"]
    if not lower:
        raise OutsideCoqError("none of its residue classes is bounded from below as Coq would need it")
    residue, one = lower[0]
    return f"One_class {nat(claim.modulus)} {nat(residue)} (Bound ({certificate_term(one)}))"


def _summands(formula: Formula, claim: SumClaim | PartClaim, start: int) -> str:
    """Of a weight that is a sum of two; the checker says whether the parts are those of this sum."""
    node = formula.primitive.node
    parts = [formula.with_node(part) for part in node.args]
    if isinstance(claim, PartClaim):
        pairs = [(parts[claim.index], claim.part)] if claim.index < len(parts) else []
    else:
        pairs = list(zip(parts, claim.parts, strict=False))
    if node.op != "+" or not all(examine(part, claim.proves, one, start=start) for part, one in pairs):
        raise OutsideCoqError("its certificate is about the summands of another form of the weight")
    trees = " ".join(f"({tree_term(part, one, start)})" for part, one in pairs)
    if isinstance(claim, SumClaim):
        return f"Sum {trees}"
    if not _not_negative(node):
        raise OutsideCoqError(_NEGATIVE)
    return f"{('First', 'Second')[claim.index]} {trees}"


def _not_negative(node: Node) -> bool:
    """Whether a weight is seen to be 0 or more by its shape, as `nonneg` of proofs/Composite.v sees it."""
    value = node.value
    if node.op == "**":
        exponent = exact_value(node.args[1], {})
        return exponent is None or exponent.denominator != 1 or _not_negative(node.args[0])
    if node.op in ("+", "*", "/", "where"):
        return all(map(_not_negative, node.args[-2:]))
    if node.op == "log":
        return _above(node.args[0], Fraction(1))
    return node.op in ("name", "pi", "exp", "sqrt", "abs") or (isinstance(value, Fraction) and value >= 0)


def _above(node: Node, least: Fraction) -> bool:
    """Whether it is at least so much at every distance, by its shape: a line with positive numbers."""
    if node.op == "+":
        return any(_above(a, least) and _above(b, Fraction(0)) for a, b in (node.args, node.args[::-1]))
    if node.op in ("*", "/"):
        return least == 0 and all(_above(a, least) for a in node.args)
    if isinstance(node.value, Fraction):
        return node.value >= least and (least == 0 or node.value.denominator == 1)
    return node.op == "name" and least == 0


def _q(value: Fraction) -> str:
    text = rational(value)
    return f"({text})" if text.startswith("-") else text


def _place(place: Place) -> str:
    return "(Exp_of " * place.nesting + f"(At {place.whole})" + ")" * place.nesting


# ---------------------------------------------------------------------------------------------------- cancellation
def needs_cancellation(formula: Formula, certificate: Claim) -> bool:
    """Whether the claim holds at some distance, and no longer if each irrational constant has an error of its own."""
    inexact = formula.with_node(_with_slack(formula.node))
    place = certificate.start
    if certificate.kind == "finite" or inexact.node == formula.node or place.nesting:
        return False
    with ctx.workprec(_PRECISION):
        slack = {_SLACK: arb(0, arb((1, -_BITS)))}
        tried = (10**n for n in _DIGITS if 10**n >= place.whole)
        return any(_holds(formula, certificate, t, {}) and not _holds(inexact, certificate, t, slack) for t in tried)


def _holds(formula: Formula, certificate: Claim, t: int, names: Mapping[str, arb]) -> bool:
    level, scale = arb(t), arb(0)
    for _ in range(certificate.depth):
        level = level.log()
        scale += level
    constant, exponent = to_ball(certificate.ln_constant), to_ball(certificate.exponent)
    bound = constant - scale - exponent * level.log()
    bias = formula.ball(t, names)
    if certificate.kind == "lower":
        return bool(bias >= bound)
    return bool(bias <= bound) or bool(abs(formula.weight_ball(t, names)) <= bound.exp())


def _with_slack(node: Node) -> Node:
    """The formula with an error of its own in each constant that a logarithm or a root of an affine argument makes."""
    if not node.args or node.op == "sum":
        return node
    slack, out = tree.name(_SLACK), replace(node, args=tuple(_with_slack(a) for a in node.args))
    if node.op == "log" and _irrational(node.args[0]):
        return Node("+", (out, slack))
    exponent = exact_value(node.args[1], {}) if node.op == "**" else Fraction(1, 2) if node.op == "sqrt" else 1
    if exponent is not None and exponent.denominator != 1 and _irrational(node.args[0]):
        return Node("*", (out, Node("+", (tree.ONE, slack))))
    return out


def _irrational(node: Node) -> bool:
    """Whether it is a*t + b with a slope whose logarithm and roots the library does not keep exactly."""
    line = line_of(node)
    return line is not None and "t" in node.free() and not _product_of_powers(line[1])


def _product_of_powers(node: Node) -> bool:
    """Whether it is made of rational numbers by products and powers."""
    parts = node.op in ("*", "/", "neg", "sqrt", "**") and all(map(_product_of_powers, node.args))
    return parts or exact_value(node, {}) is not None


# ---------------------------------------------------------------------------------------------------- lines
def line_of(node: Node) -> Line | None:
    """c and d of an expression c + d*t."""
    if "t" not in node.free():
        return node, ZERO
    if node.op == "name":
        return ZERO, ONE
    lines = [line for a in node.args if (line := line_of(a)) is not None]
    if len(lines) < len(node.args):
        return None
    if node.op == "neg":
        return tree.negative(lines[0][0]), tree.negative(lines[0][1])
    if node.op in ("+", "-"):
        (a, b), (c, d) = lines
        if node.op == "-":
            c, d = tree.negative(c), tree.negative(d)
        return tree.total([a, c]), tree.total([b, d])
    if node.op in ("*", "/"):
        (a, b), (c, d) = lines
        if d == ZERO and node.op == "/":
            return tree.quotient(a, c), tree.quotient(b, c)
        if node.op == "*" and ZERO in (b, d):
            return tree.product([a, c]), tree.product([a, d] if b == ZERO else [b, c])
    return None
