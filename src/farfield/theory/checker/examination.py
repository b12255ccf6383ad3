"""The examination of a certificate: it is accepted only if its claims are proven for all distances.

Whether a claim implies the verdict is a matter of its exponent: the sum of 1/S(t) converges if and only if s > 1
(Bertrand). So an upper bound with s > 1 proves convergence and a lower bound with s <= 1 divergence. A factor q of
positive mean value changes nothing: with s(t) = 1/S(t), which is monotone, the sum of (q - mean) s is smaller than that
of s, by summation by parts, because the partial sums of q - mean are bounded.

The inequality itself is proven for every integer from its start on (proof.py), and so is that the formula has a value
there and from the start of the series on. Nothing is sampled: what cannot be proven is not accepted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from flint import ctx

from farfield.formula import Formula, Node, number
from farfield.formula.tree import substitute
from farfield.theory.checker import constants, monomials
from farfield.theory.checker.claims import (
    Certificate,
    Claim,
    ClassesClaim,
    PartClaim,
    Place,
    SparseClaim,
    SumClaim,
    read,
)
from farfield.theory.checker.constants import UnknownError, rational, sign
from farfield.theory.checker.expansions import Effort
from farfield.theory.checker.members import OutsideError, apart
from farfield.theory.checker.monomials import exponentials
from farfield.theory.checker.proof import RefutedError, prove
from farfield.theory.checker.waves import mean_value
from farfield.theory.checker.wording import wording

__all__ = ["Examination", "examine", "proves"]


@dataclass(frozen=True)
class Examination:
    """What the checker says of a certificate: accepted with the steps of its proof, or refused with the reason."""

    accepted: bool
    proof: tuple[str, ...] = ()
    refused: str = ""

    def __bool__(self) -> bool:
        return self.accepted


class RefusedError(Exception):
    """The certificate is not accepted, and why."""


def examine(formula: Formula, verdict: str, certificate: Certificate | Any, *, start: int = 0) -> Examination:
    """Accept a certificate if it proves the verdict on the series from `start` on; ValueError if it is malformed.

    Of a class of biases, convergence is proven for every member: by one bound that none of them exceeds.
    """
    if formula.parameters:
        raise ValueError(f"a certificate is about a formula without parameters, not one in {formula.parameters}")
    claim = read(certificate)
    formula = formula.primitive
    constants.forget()
    monomials.forget()
    try:
        formula = _members(formula, verdict)
        if claim.proves != verdict:
            raise RefusedError(f"the certificate proves that the series {claim.proves}, but the verdict is {verdict}")
        effort = Effort()
        proof = [*_examine(formula, claim, start, effort), *_defined(formula, claim, start, effort)]
    except RefusedError as refused:
        return Examination(False, refused=str(refused))
    return Examination(True, tuple(proof))


def _members(formula: Formula, verdict: str) -> Formula:
    """A class of biases read for all its members at once; one bias as it is."""
    if not formula.is_class:
        return formula
    if verdict != "converges":
        raise RefusedError("of a class of biases only convergence is examined, for all its members at once")
    try:
        return apart(formula)
    except OutsideError as why:
        raise RefusedError(str(why)) from None


def proves(certificate: Certificate | Any) -> str | None:
    """The verdict that follows if the claims are true, or None if nothing does."""
    claim = read(certificate)
    try:
        for one in _claims(claim):
            _logic(one)
    except RefusedError:
        return None
    return claim.proves


def _claims(claim: Certificate) -> Iterator[Claim]:
    if isinstance(claim, Claim):
        yield claim
    for inner in () if isinstance(claim, Claim) else _inner(claim):
        yield from _claims(inner)


def _inner(claim: SumClaim | PartClaim | ClassesClaim | SparseClaim) -> list[Certificate]:
    if isinstance(claim, SparseClaim):
        return [c for c in (claim.on, claim.off) if c is not None]
    if isinstance(claim, SumClaim):
        return list(claim.parts)
    return [claim.part] if isinstance(claim, PartClaim) else [c for c in claim.classes if c is not None]


# ---------------------------------------------------------------------------------------------------- claims
def _examine(formula: Formula, claim: Certificate, start: int, effort: Effort) -> Iterator[str]:
    """Prove a certificate; yields the steps, raises RefusedError."""
    if isinstance(claim, Claim):
        _logic(claim)
        yield _proven(formula, claim, effort)
    elif isinstance(claim, ClassesClaim):
        yield from _examine_classes(formula, claim, start, effort)
    elif isinstance(claim, SparseClaim):
        yield from _examine_sparse(formula, claim, start, effort)
    else:
        parts = [replace(formula, node=n, source="") for n in summands(formula)]
        if isinstance(claim, SumClaim):
            if len(parts) != len(claim.parts):
                raise RefusedError(f"the weight has {len(parts)} summands, the certificate {len(claim.parts)}")
            for part, one in zip(parts, claim.parts, strict=True):
                if one.proves != "converges":
                    raise RefusedError("a sum converges only if every summand does")
                yield from _examine(part, one, start, effort)
        else:
            if claim.index >= len(parts) or claim.part.proves != "diverges":
                raise RefusedError("the certificate names no summand that diverges")
            yield from _examine(parts[claim.index], claim.part, start, effort)
            for part in parts:
                yield _proven(part, Claim("defined", Place(start)), effort)


def summands(formula: Formula) -> tuple[Node, ...]:
    """The two sides of a weight that is a sum."""
    if not formula.weight or formula.node.op != "+":
        raise RefusedError("the weight is not a sum of weights")
    return formula.node.args


def _examine_classes(formula: Formula, claim: ClassesClaim, start: int, effort: Effort) -> Iterator[str]:
    if claim.proves == "converges" and None in claim.classes:
        raise RefusedError("the series converges only if every class does")
    for r, one in enumerate(claim.classes):
        if one is None or one.proves != claim.proves:
            continue
        first = max(0, -((r - start) // claim.modulus))
        for step in _examine(residue_class(formula, claim.modulus, r), one, first, effort):
            yield f"with t = {claim.modulus}*n + {r}: {step}"


def _examine_sparse(formula: Formula, claim: SparseClaim, start: int, effort: Effort) -> Iterator[str]:
    one, said = claim.where, Formula(claim.where.node)
    if claim.proves == "converges" and (claim.on is None or claim.off is None):
        raise RefusedError("the series converges only if it does on the set and off it")
    if claim.on is not None and claim.on.proves == claim.proves:
        for step in _examine(one.along(formula), claim.on, one.first(start), effort):
            yield f"on the set, with {said} for t: {step}"
        if claim.proves == "diverges":
            return
    assert claim.off is not None
    rest = one.resolved(formula, False)
    if claim.proves == "converges":
        yield from (f"off the set: {step}" for step in _examine(rest, claim.off, start, effort))
        return
    m, r = one.outside
    for step in _examine(residue_class(rest, m, r), claim.off, max(1, -((r - start) // m)), effort):
        yield f"off the set, with t = {m}*n + {r}: {step}"


def residue_class(formula: Formula, modulus: int, r: int) -> Formula:
    """The formula along t = modulus * n + r, with n called t."""
    line = Node("+", (Node("*", (number(modulus), Node("name", (), "t"))), number(r)))
    return replace(formula, node=substitute(formula.node, {"t": line}), source="")


def _logic(claim: Claim) -> None:
    """RefusedError if a claim, true or not, would prove nothing."""
    if claim.kind == "finite":
        return
    if claim.kind == "upper" and not claim.exponent > 1:
        raise RefusedError(f"an upper bound with the exponent {claim.exponent} proves nothing: it must exceed 1")
    if claim.kind != "upper" and not claim.exponent <= 1:
        raise RefusedError(f"a lower bound with the exponent {claim.exponent} proves nothing: it must not exceed 1")
    if claim.kind == "mean":
        _logic_of_mean(claim)
    if claim.depth or (claim.exponent and claim.start == Place(0)):
        with ctx.workprec(128):
            levels = exponentials(claim.start.whole, claim.start.nesting)
        if claim.depth >= len(levels) or not levels[claim.depth].low > 0:
            raise RefusedError(f"the scale is not positive from t = {claim.start} on")


def _logic_of_mean(claim: Claim) -> None:
    assert claim.factor is not None
    if not claim.mean > 0 or not claim.exponent >= 0:
        raise RefusedError("a mean value and an exponent that prove nothing: they must be positive, and not negative")
    try:
        with ctx.workprec(128):
            gap = sign(mean_value(claim.factor.node) - rational(claim.mean))
    except UnknownError as error:
        raise RefusedError(f"the mean value of the factor is not known: {error}") from None
    if gap < 0:
        raise RefusedError(f"the factor's mean value is less than {claim.mean}")


def _proven(formula: Formula, claim: Claim, effort: Effort) -> str:
    """The proof of one claim as a step; RefusedError if there is none."""
    said = "the formula has a value" if claim.kind == "defined" else str(wording(claim))
    try:
        proof = prove(formula, claim, effort)
    except RefutedError as error:
        raise RefusedError(f"it is false {error} that {said}") from None
    except UnknownError as error:
        raise RefusedError(f"it could not be proven that {said} ({error})") from None
    return f"proven for all t >= {claim.start}: {said} ({proof})"


def _defined(formula: Formula, claim: Certificate, start: int, effort: Effort) -> list[str]:
    """Show that the formula has a value from the start of the series on, where the claims do not say so."""
    if isinstance(claim, Claim) and claim.start.nesting == 0 and claim.start.whole <= start:
        return []
    return [_proven(formula, Claim("defined", Place(start)), effort)]
