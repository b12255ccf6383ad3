"""The text of a file that Farfield writes for Coq: its header, and one block of statements for each formula."""

from __future__ import annotations

from farfield.formula import Formula, parse
from farfield.theory.checker.claims import Certificate, Claim, ClassesClaim, PartClaim, SumClaim, wording
from farfield.theory.checker.examination import examine
from farfield.theory.coq.certificates import bound_term, tree_term
from farfield.theory.coq.family_theorems import family_theorem
from farfield.theory.coq.terms import nat, weight_term, wrap
from farfield.theory.errors import OutsideCoqError

LIBRARY_VERSION = "1.1"  # of proofs/; Version.v says the same, and a test compares them
BITS = 40  # of the checker's intervals
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
    text: str,
    verdict: str,
    condition: str | None,
    certificate: Certificate | None,
    start: int,
) -> str:
    """The definitions and theorems for one verdict; OutsideCoqError says in one sentence why there are none."""
    if verdict not in ("converges", "diverges"):
        said = "the theorem does not apply to it" if verdict == "not-applicable" else "it is undecided"
        raise OutsideCoqError(f"there is nothing to prove of {text[:80]} in Coq: {said}")
    formula = parse(text)
    formula = formula if formula.parameters else formula.primitive
    try:
        write = _family if formula.is_bounded_family else _single
        return write(formula, verdict, condition, certificate, start)
    except OutsideCoqError as error:
        raise OutsideCoqError(f"no Coq proof can be written for {text[:80]}: {error}") from None


def _single(formula: Formula, verdict: str, condition: str | None, certificate: Certificate | None, start: int) -> str:
    if formula.parameters:
        statement, proof = family_theorem(formula, str(condition), start)
        return f"(* {formula.text()}\n   {condition} *)\n{wrap(statement)}\n{proof}\n"
    return _concrete(formula, verdict, certificate, start)


def _family(formula: Formula, verdict: str, condition: str | None, certificate: Certificate | None, start: int) -> str:
    """The verdict on the upper bound of a bounded family, and what follows for all members."""
    upper = formula.upper_bound
    block = _single(upper, verdict, condition, certificate, start)
    if verdict == "converges" and not upper.parameters and not start:
        block += "Theorem class : window_below b.\nProof. below sum. Qed.\n"
    member = "" if verdict == "converges" else ", and one of them attains it"
    return f"(* every bias of {formula.text()}\n   is at most {upper.text()}{member} *)\n{block}"


def _concrete(formula: Formula, verdict: str, certificate: Certificate | None, start: int) -> str:
    if isinstance(certificate, PartClaim):
        part = certificate.part  # a bound of one summand from below is one of the sum
        bounds_all = isinstance(part, Claim) and part.kind == "lower" and examine(formula, verdict, part, start=start)
        certificate = part if bounds_all else certificate
    if certificate is None:
        raise OutsideCoqError("it has no certificate")
    term = weight_term(formula)
    series = "b" if not start else f"(fun n => b ({nat(start)} + n)%nat)"
    no = "" if verdict == "converges" else "~ "
    words, *middle, tactic = (
        _by_bound(formula, certificate) if isinstance(certificate, Claim) else _by_tree(formula, certificate, start)
    )
    lines = [
        f"(* {formula.text()}{'' if not start else f', from t = {start}'}\n   {verdict}: {words} *)",
        wrap(f"Definition b (t : nat) : R := {term}."),
        *middle,
        f"Theorem sum : {no}ex_series {series}.\nProof. {tactic}. Qed.",
    ]
    if not formula.weight and not start and term.startswith("exp "):
        lines.append(f"Theorem attention : {no}windowed R_NormedModule b.\nProof. windows sum. Qed.")
    return "\n".join(lines) + "\n"


def _by_bound(formula: Formula, claim: Claim) -> tuple[str, ...]:
    """The certificate in words, what Coq must know before the verdict, and the tactic of the verdict."""
    return (
        str(wording(claim)),
        f"Definition claim : certificate := {bound_term(formula, claim)}.",
        f"Theorem certificate_holds : certifies claim b.\nProof. certify {BITS}%positive. Qed.",
        "verdict certificate_holds",
    )


def _by_tree(formula: Formula, claim: Certificate, start: int) -> tuple[str, ...]:
    """The same for a certificate that is made of certificates."""
    words = {ClassesClaim: "by residue classes", SumClaim: "by its summands", PartClaim: "by one summand"}[type(claim)]
    term = wrap(f"Definition claim : tree := {tree_term(formula, claim, start)}.")
    return words, term, f"made claim {BITS}%positive"
