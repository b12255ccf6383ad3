"""Sums and products of logarithms, powers and exponentials of affine arguments: what is emitted, Coq accepts."""

from __future__ import annotations

import itertools
import random
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from affine import cancelling, formula, ladder, verdicts
from blocks import EVERY, accepted, refusals

import farfield as ff
from farfield.formula import parse
from farfield.theory.checker.claims import Claim, read
from farfield.theory.coq.certificates import certificate_term
from farfield.theory.coq.files import file_text
from farfield.theory.coq.terms import weight_term
from farfield.theory.errors import OutsideCoqError

Check = Callable[[str, str], subprocess.CompletedProcess[str]]
WHY = ("must cancel exactly", "no weight is negative")  # what docs/proofs.md says is outside


def emitted(verdict: ff.Verdict) -> str | None:
    """The proof of a verdict, or None where it is refused for a reason that the documentation gives."""
    try:
        return verdict.coq_block()
    except OutsideCoqError as error:
        if not any(why in str(error) for why in WHY):
            raise
        return None


def test_two_of_each_rung_and_direction_are_accepted(library: Path, tmp_path: Path) -> None:
    blocks: dict[str, str] = {}
    count: Counter[tuple[int, str]] = Counter()
    for verdict in itertools.chain(itertools.islice(verdicts(1, formula), 12), verdicts(2, ladder)):
        certificate, block = verdict.certificate, emitted(verdict)
        assert certificate is not None
        kind = (certificate.json().get("depth", 0), verdict.verdict)
        if block is not None and count[kind] < 2:
            count[kind] += 1
            blocks[f"{verdict.formula} from {verdict.start}"] = block
        if len(blocks) == 12:
            break
    assert set(count.values()) == {2}
    accepted(library, tmp_path, blocks)


@pytest.mark.long
@pytest.mark.parametrize("make", [formula, cancelling])
def test_one_hundred_and_fifty_are_accepted(
    make: Callable[[random.Random], str], library: Path, tmp_path: Path
) -> None:
    blocks, refused = {}, 0
    for verdict in verdicts(3, make):
        block = emitted(verdict)
        refused += block is None
        if block is not None:
            blocks[f"{verdict.formula} from {verdict.start}"] = block
        if len(blocks) == 150:
            break
    assert refused <= 3
    accepted(library, tmp_path, blocks)


# ------------------------------------------------------------------------------------------------------ cancellation
CANCELLING = [  # logarithms and roots of slopes, of one slope and of several, cancel exactly
    "weight: log(2*t + 3) - log(2*t + 2)",
    "weight: (2*t + 3)**(1/2) - (2*t + 2)**(1/2)",
    "-(2*t + 3)*log(2*t + 3) + (2*t + 3)*log(2*t + 2)",
    "weight: 5/4*(log(1/3*t + 5/2)**2 - log(1/3*t + 1)**2)",
    "weight: (log(2*t + 3) - log(2*t + 2))*(log(3*t + 4) - log(3*t + 1))*t",
    "weight: log(6*t + 5) - log(3*t + 1) - log(2)",
    "weight: sqrt(6*t + 5)*sqrt(3*t + 1) - sqrt(2)*(3*t + 1)",
    "weight: (2*t + 3)**(-1/2) - (2*t + 7)**(-1/2)",
    "weight: sqrt(4*t + 1) - 2*sqrt(t)",
]
OTHER_CONSTANTS = [
    "weight: log(pi*t + 3) - log(pi*t + 2)",
    "weight: sqrt((1 + sqrt(2))*t + 3) - sqrt((1 + sqrt(2))*t + 2)",
]
HARMLESS = [  # exact there, or too small to matter, or no difference at all
    "weight: log(t + 3) - log(t + 2)", "weight: (t + 3)**(3/2) - (t + 2)**(3/2)", "-2*log(3*t + 1)",
    "-log(t + 3)*log(t + 2) + log(t + 2)**2", "weight: (log(2*t + 3) - log(2*t + 2))*(t + 1)**(-2)",
    "-log(t + 3)*(log(2*t + 3) - log(2*t + 2)) - log(log(2*t + 3))", "weight: 1/(2*t + 3) - 1/(2*t + 4)",
]  # fmt: skip


def changed(certificate: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The claim with another constant and with another exponent, for which it is false."""
    sign = -1 if certificate["claim"] == "upper" else 1
    yield {**certificate, "ln_constant": str(Fraction(certificate["ln_constant"]) + 40 * sign)}
    yield {**certificate, "exponent": str(Fraction(certificate["exponent"]) - Fraction(3, 4) * sign)}


@EVERY
def test_irrational_constants_cancel_exactly_and_false_claims_about_them_are_refused(
    check_file: Check, every: bool
) -> None:
    lines, count = [], 0
    for i, text in enumerate(CANCELLING):
        verdict = ff.check(text)
        assert verdict.certificate is not None
        lines.append(f"Module Cancelling_{i}.\n{verdict.coq_block()}")
        changes = list(changed(verdict.certificate.json()))
        for certificate in changes if every else changes[i % 2 :][:1]:
            claim = f"certifies ({certificate_term(read(certificate))}) b"
            lines.append(f"Fail Definition wrong : {claim} := ltac:(certify 40%positive).")
            count += 1
        lines.append(f"End Cancelling_{i}.")
    done = check_file("cancelling", file_text(["\n".join(lines) + "\n"]))
    assert done.returncode == 0, done.stderr[-800:]
    assert refusals(done) == count


def test_where_other_constants_must_cancel_nothing_is_emitted_and_coq_would_refuse(check_file: Check) -> None:
    lines = []
    for i, text in enumerate(OTHER_CONSTANTS):
        verdict = ff.check(text)
        with pytest.raises(OutsideCoqError, match="must cancel exactly"):
            verdict.coq_block()
        claim = f"certifies ({certificate_term(verdict.certificate)}) b_{i}"
        lines.append(f"Definition b_{i} (t : nat) : R := {weight_term(parse(text))}.")
        lines.append(f"Fail Definition no_{i} : {claim} := ltac:(certify 40%positive).")
    done = check_file("other_constants", file_text(["\n".join(lines) + "\n"]))
    assert done.returncode == 0, done.stderr[-800:]
    assert refusals(done) == len(OTHER_CONSTANTS)


def test_other_differences_and_a_bound_of_one_summand_are_accepted(library: Path, tmp_path: Path) -> None:
    blocks = {text: ff.check(text).coq_block() for text in HARMLESS}
    text = (
        "weight: 1/16/(2 - 7/5*t)**2/(log(t + 7)**2 - log(t + 1)**2) + 2/log(1/3*t + 4)*exp(-(2*t + 3))"
        " + 1/100*log(log(1/2*t + 5/2))**(3/2)*log(1/16*t + 5/2)"
    )
    verdict = ff.check(text, start=20)
    assert verdict.certificate is not None
    assert isinstance(verdict.certificate, Claim)  # a bound of the whole sum from below
    accepted(library, tmp_path, {**blocks, text: verdict.coq_block()})
