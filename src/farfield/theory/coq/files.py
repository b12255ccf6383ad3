"""The text of a file that Farfield writes for Coq: its header, and one block of statements for each formula."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from farfield.formula import Formula, parse
from farfield.theory.checker.examination import examine
from farfield.theory.checker.wording import wording
from farfield.theory.coq.cancellation import needs_cancellation
from farfield.theory.coq.families import family_theorem
from farfield.theory.coq.terms import nat, rational, weight_term, wrapped
from farfield.theory.errors import OutsideCoqError

LIBRARY_VERSION = "1.0"  # of proofs/; Version.v says the same, and a test compares them
BITS = 40  # of the checker's intervals
_CLAIMS = {"upper": "Upper", "lower": "Lower", "finite": "Finite_support"}
_MISSING = {
    "mean": "its certificate compares a wave with its mean value, which the Coq library does not treat",
    "sum": "its certificate treats the summands of the weight one by one, which the Coq library does not do",
    "part": "its certificate treats the summands of the weight one by one, which the Coq library does not do",
    "classes": "its certificate treats residue classes of distances one by one, which the Coq library does not do",
    "sparse": "its certificate treats a sparse set of distances apart, which the Coq library does not do",
}
_HEADER = f"""\
(* Written by Farfield. Needs version {LIBRARY_VERSION} of Farfield's Coq library, and Coq 8.16 with two libraries:
     apt install coq libcoq-coquelicot libcoq-interval make
     make -s -C LIBRARY emit && coqc -R LIBRARY Farfield THIS_FILE
   where LIBRARY is the folder proofs/ of Farfield, or what `farfield check ... --coq FILE` names. *)
Set Warnings "-ambiguous-paths".
From Farfield Require Import Emit.
Open Scope R_scope.

Example library : version = "{LIBRARY_VERSION}"%string := eq_refl.
"""


def file_text(blocks: list[str], names: list[str] | None = None) -> str:
    """A file with one block, or with several, each in a module of its own."""
    if names is None:
        assert len(blocks) == 1
        return f"{_HEADER}\n{blocks[0]}"
    modules = (f"Module {name}.\n{block}End {name}.\n" for name, block in zip(names, blocks, strict=True))
    return "\n".join([_HEADER, *modules])


def verdict_block(
    text: str, verdict: str, condition: str | None, certificate: Mapping[str, Any] | None, start: int
) -> str:
    """The definitions and theorems for one verdict; OutsideCoqError says in one sentence why there are none."""
    if verdict not in ("converges", "diverges"):
        said = "the theorem does not apply to it" if verdict == "not-applicable" else "it is undecided"
        raise OutsideCoqError(f"there is nothing to prove of {text[:80]} in Coq: {said}")
    formula = parse(text)
    try:
        if formula.is_class:
            raise OutsideCoqError("it is a class of biases, and a file speaks of one bias")
        if formula.parameters:
            statement, proof = family_theorem(formula, str(condition), start)
            return f"(* {text}\n   {condition} *)\n{wrapped(statement)}\n{proof}\n"
        return _concrete(formula, verdict, certificate, start)
    except OutsideCoqError as error:
        raise OutsideCoqError(f"no Coq proof can be written for {text[:80]}: {error}") from None


def _concrete(formula: Formula, verdict: str, certificate: Mapping[str, Any] | None, start: int) -> str:
    if certificate is not None and certificate["claim"] == "part":
        part = certificate["part"]  # a bound of one summand from below is one of the sum
        certificate = part if examine(formula, verdict, part, start=start) else certificate
    claim, term = certificate_term(certificate), weight_term(formula)
    assert certificate is not None
    if needs_cancellation(formula, certificate):
        raise OutsideCoqError("logarithms or roots of its slopes must cancel exactly, and Coq has them as intervals")
    series = "b" if not start else f"(fun n => b ({nat(start)} + n)%nat)"
    no = "" if verdict == "converges" else "~ "
    lines = [
        f"(* {formula.text()}{'' if not start else f', from t = {start}'}\n   {verdict}: {wording(certificate)} *)",
        wrapped(f"Definition b (t : nat) : R := {term}."),
        f"Definition claim : certificate := {claim}.",
        f"Theorem certificate_holds : certifies claim b.\nProof. certify {BITS}%positive. Qed.",
        f"Theorem sum : {no}ex_series {series}.\nProof. verdict certificate_holds. Qed.",
    ]
    if not formula.weight and not start and term.startswith("exp "):
        lines.append(f"Theorem attention : {no}windowed R_NormedModule b.\nProof. windows sum. Qed.")
    return "\n".join(lines) + "\n"


def certificate_term(certificate: Mapping[str, Any] | None) -> str:
    """The certificate as a value of Coq."""
    if certificate is None:
        raise OutsideCoqError("it has no certificate")
    kind = certificate["claim"]
    if kind not in _CLAIMS:
        raise OutsideCoqError(_MISSING.get(kind, f"certificates of the kind {kind!r} are not known to the Coq library"))
    numbers = [Fraction(certificate.get(key, 0)) for key in ("exponent", "ln_constant")]
    depth = int(certificate.get("depth", 0))
    return f"Certificate {_CLAIMS[kind]} {depth} {' '.join(map(_q, numbers))} {_place(str(certificate['from']))}"


def _q(value: Fraction) -> str:
    text = rational(value)
    return f"({text})" if text.startswith("-") else text


def _place(text: str) -> str:
    nesting = text.count("exp(")
    inner = text.removeprefix("exp(" * nesting).rstrip(")")
    return "(Exp_of " * nesting + f"(At {int(inner)})" + ")" * nesting
