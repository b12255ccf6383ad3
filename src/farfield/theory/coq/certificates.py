"""Certificates as values of Coq: explicit bounds, and those that are made of others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from farfield.formula import Formula, Node
from farfield.formula.algebras import exact_value
from farfield.formula.functions import WAVES
from farfield.theory.checker.examination import examine
from farfield.theory.coq.cancellation import needs_cancellation
from farfield.theory.coq.terms import nat, rational
from farfield.theory.errors import OutsideCoqError

COMPOSITE = ("classes", "sum", "part")
_CLAIMS = {"upper": "Upper", "lower": "Lower", "finite": "Finite_support"}
_MISSING = {
    "mean": "its certificate compares a wave with its mean value, which the Coq library does not treat",
    "sparse": "its certificate treats a sparse set of distances apart, which the Coq library does not do",
}
_NEGATIVE = "its certificate takes one class or summand, and Coq must see that no weight is negative"


def certificate_term(certificate: Mapping[str, Any]) -> str:
    """An explicit bound."""
    kind = certificate["claim"]
    if kind not in _CLAIMS:
        raise OutsideCoqError(_MISSING.get(kind, f"certificates of the kind {kind!r} are not known to the Coq library"))
    numbers = [Fraction(certificate.get(key, 0)) for key in ("exponent", "ln_constant")]
    depth = int(certificate.get("depth", 0))
    return f"Certificate {_CLAIMS[kind]} {depth} {' '.join(map(_q, numbers))} {_place(str(certificate['from']))}"


def bound_term(formula: Formula, certificate: Mapping[str, Any]) -> str:
    """The same, if Coq can see that it holds for the formula."""
    term = certificate_term(certificate)
    if needs_cancellation(formula, certificate):
        raise OutsideCoqError("irrational constants of its slopes must cancel exactly, and Coq has them as intervals")
    return term


def tree_term(formula: Formula, verdict: str, certificate: Mapping[str, Any], start: int) -> str:
    """Any certificate, as a value of the type `tree` of proofs/Composite.v."""
    kind = certificate["claim"]
    if kind == "classes":
        return _classes(formula, verdict, certificate["modulus"], certificate["classes"])
    if kind in ("sum", "part"):
        return _summands(formula, verdict, certificate, start)
    return f"Bound ({bound_term(formula, certificate)})"


def _classes(formula: Formula, verdict: str, modulus: int, classes: list[Mapping[str, Any] | None]) -> str:
    if any(node.op in WAVES for node in formula.node.walk()):
        raise OutsideCoqError("its certificate takes residue classes in which waves stand still, and Coq knows floors")
    if verdict == "converges":
        claims = [f"(Bound ({certificate_term(c)}))" for c in classes if c is not None]
        return f"Classes {nat(modulus)} {''.join(f'(Next {claim} ' for claim in claims)}Done{')' * len(claims)}"
    if formula.weight and not _not_negative(formula.node):
        raise OutsideCoqError(_NEGATIVE)
    lower = [(r, c) for r, c in enumerate(classes) if c is not None and c["claim"] == "lower"]
    if not lower:
        raise OutsideCoqError("none of its residue classes is bounded from below as Coq would need it")
    residue, claim = lower[0]
    return f"One_class {nat(modulus)} {nat(residue)} (Bound ({certificate_term(claim)}))"


def _summands(formula: Formula, verdict: str, certificate: Mapping[str, Any], start: int) -> str:
    """Of a weight that is a sum of two; the checker says whether the parts are those of this sum."""
    node = formula.primitive.node
    parts = [replace(formula, node=part, source="") for part in node.args]
    claims = certificate["parts"] if verdict == "converges" else [None, None]
    if verdict == "diverges":
        claims[certificate["index"]] = certificate["part"]
    pairs = [(part, claim) for part, claim in zip(parts, claims, strict=False) if claim is not None]
    if node.op != "+" or not all(examine(part, verdict, claim, start=start) for part, claim in pairs):
        raise OutsideCoqError("its certificate is about the summands of another form of the weight")
    trees = " ".join(f"({tree_term(part, verdict, claim, start)})" for part, claim in pairs)
    if verdict == "converges":
        return f"Sum {trees}"
    if not _not_negative(node):
        raise OutsideCoqError(_NEGATIVE)
    return f"{('First', 'Second')[certificate['index']]} {trees}"


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


def _place(text: str) -> str:
    nesting = text.count("exp(")
    inner = text.removeprefix("exp(" * nesting).rstrip(")")
    return "(Exp_of " * nesting + f"(At {int(inner)})" + ")" * nesting
