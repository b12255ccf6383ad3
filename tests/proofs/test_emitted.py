"""The files that Farfield writes for Coq: accepted where the verdict is true, refused where it was falsified."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import pytest
from blocks import EVERY, accepted, refusals

import farfield as ff
from farfield.formula import parse
from farfield.formula.functions import CALLS, DERIVED, OPERATIONS
from farfield.theory.checker.claims import read
from farfield.theory.coq.certificates import certificate_term
from farfield.theory.coq.fields import field_theorems
from farfield.theory.coq.files import LIBRARY_VERSION, file_text
from farfield.theory.coq.terms import weight_term
from farfield.theory.errors import OutsideCoqError

ROOT = Path(__file__).resolve().parents[2]
ORACLES = json.loads((ROOT / "tests/oracles/verdicts.json").read_text(encoding="utf-8"))
FARFIELD = Path(sys.executable).with_name("farfield")
NAMED = [name for name, encoding in ff.ENCODINGS.items() if encoding.formula is not None]
Check = Callable[[str, str], subprocess.CompletedProcess[str]]


def of_the_zoo(every: bool) -> dict[str, str]:
    """Each encoding for all its parameters, and every head of 8 and of 12, or some; printed and trained forms."""
    blocks = {name: ff.check(name).coq_block() for name in NAMED}
    for name in NAMED:
        for heads, some in ((8, (1, 8)), (12, (5, 9, 12))):  # the slopes of 12 are those of 8, and four between them
            for i, row in enumerate(ff.ENCODINGS[name].heads(heads), 1):
                if every or i in some:
                    blocks[f"{name}, head {i} of {heads}"] = ff.check(name, parameters=row).coq_block()
    return {name: block for block, name in {block: name for name, block in blocks.items()}.items()}  # each once


@EVERY
def test_the_whole_zoo_is_accepted(library: Path, tmp_path: Path, every: bool) -> None:
    blocks = of_the_zoo(every)
    assert len(blocks) > (60 if every else 35)
    accepted(library, tmp_path, blocks)


def test_oracles_are_accepted(library: Path, tmp_path: Path) -> None:
    blocks, outside = {}, []
    for case in ORACLES:
        verdict = ff.check(case["formula"], start=case["from"], weight=case["spelling"] == "weight")
        try:
            blocks[verdict.formula] = verdict.coq_block()
        except OutsideCoqError:
            outside.append(case["formula"])
        else:
            assert verdict.verdict == case["verdict"]
    negative = (
        "(1-log(t)/t)**t"  # Coq's power of a base that its shape does not show to be positive is another function
    )
    assert outside == [negative, "abs(cos(t))/t", "t**(-2-sin(t))", "cos(t)**2/(t*log(t))"]
    accepted(library, tmp_path, blocks)


def test_families_say_what_the_verdict_says() -> None:
    """The condition of the verdict, as a statement of Coq."""
    statements = {
        "alibi": "forall (k : R), ex_series (fun t : nat => exp (- k * INR t)) <-> 0 < k.",
        "kerple-log": "0 < a -> (ex_series (fun t : nat => exp (- p * ln (1 + a * INR t))) <-> 1 < p).",
        "kerple-power": "0 < a -> 0 < p -> ex_series (fun t : nat => exp (- a * power (INR t) p)).",
        "window": "forall (w : R), ex_series (fun t : nat => if Rlt_dec (INR t) w then exp 0 else 0).",
        "sandwich-paper": "forall (k r d : R) (m : nat), d = 2 * INR m -> ~ ex_series",
    }
    for name, statement in statements.items():
        assert statement in " ".join(ff.check(name).coq().split()), name


FAMILIES = [
    ("kerple-log", {"a": "1"}), ("kerple-log", {"p": "3/2"}), ("kerple-log", {"p": "1"}), ("kerple-power", {"a": "1"}),
    ("kerple-power", {"p": "1/2"}), ("sandwich", {"r": "10000"}), ("sandwich", {"d": "128"}), ("sandwich", {"s": "1"}),
    ("sandwich-paper", {"d": "8", "r": "10000"}), ("t5", {"far": "0"}), ("-c*t", {}), ("-log(1 + (w*t)**2)", {}),
    ("-log(3 + k*t)**2", {}), ("-log(1 + k*t)", {}), ("-log(3 + k*t) - log(log(3 + k*t))", {}), ("-p*log(1 + a*t)", {}),
    ("-a*t**p", {}), ("-fun*t", {}), ("-exists*sqrt(t)", {}), ("-p*log(t + 1)", {}), ("-k*t**2", {}),
    ("where(t <= head, 0, -inf)", {}), ("kerple-log", {"a": "2**(-1/2)"}),
]  # fmt: skip


def test_families_of_other_names_and_values_are_accepted(library: Path, tmp_path: Path) -> None:
    accepted(library, tmp_path, {f"{e} {p}": ff.check(e, parameters=p).coq_block() for e, p in FAMILIES})


@pytest.mark.parametrize("formula", ["-k*t - q*log(t + 1)", "-k*log(1 + k*t)", "-k*t + c*sin(t)"])
def test_open_parameters_outside_the_families_are_refused(formula: str) -> None:
    with pytest.raises(OutsideCoqError, match="families of the zoo"):
        ff.check(formula).coq()


# --------------------------------------------------------------------------------------------------- what a term means
ARGUMENTS = {
    "**": [("3/4", "2"), ("-5", "3"), ("7/2", "-5/3"), ("2", "pi"), ("2", "-2")], "log": [("3/4",), ("5",)],
    "sqrt": [("3/4",), ("5",)], "floor": [("3/4",), ("-5/2",)], "log1p": [("3/4",)], "log2": [("3/4",)],
    "log10": [("1001",)], "mod": [("3/4", "2"), ("-5", "3")],
}  # fmt: skip


def operations() -> Iterator[str]:
    """Every operation of the language at some arguments, as text; choices, sums and decimals too."""
    for op in {*OPERATIONS, *DERIVED} - {"atan", "erf", "gamma"}:  # these are refused
        unary = op == "neg" or CALLS.get(op) == 1
        for args in ARGUMENTS.get(op, [("3/4",), ("-5",)] if unary else [("3/4", "2"), ("-5", "1/3")]):
            spelt = [f"({a})" for a in args]
            yield f"-{spelt[0]}" if op == "neg" else f"{op}({', '.join(args)})" if op in CALLS else op.join(spelt)
    yield from ("where(2 < 3, 5, 7)", "where(2 > 3, 5, 7)", "where(pi <= 3, 5, 7)", "where(pi >= 3, 5, 7)")
    yield from ("sum(j**2/3, j, 1, 5)", "2 - 3 - 4", "2/3/4", "2**3**2", "-2**2", "1e-6*pi", "0.125", "1e-30*1e30")
    yield from ("1 - (2 - 3)", "8/(4/2)", "-(2 + 3)*4", "2*-3", "(2**3)**2", "-(-(3))", "2**(-0.5)", "1/3")


def test_every_operation_means_in_coq_what_it_means_here(check_file: Check) -> None:
    lines = ["From Farfield Require Import Emit.", "Open Scope R_scope."]
    texts = list(operations())
    for text in texts:
        formula = parse(f"weight: {text}")
        with mpmath.workdps(30):
            value = Fraction(str(mpmath.nstr(mpmath.mpf(formula.weight_ball(0).str(20, radius=False)), 15)))
        for sign, edge in (("<", value + Fraction(1, 10**6)), (">", value - Fraction(1, 10**6))):
            left, right = f"({weight_term(formula)})", f"({edge.numerator} / {edge.denominator})"
            left, right = (left, right) if sign == "<" else (right, left)
            lines.append(f"Goal {left} < {right}. numeric 60%positive. Qed.")
    assert len(texts) > 60
    done = check_file("meaning", "\n".join(lines) + "\n")
    failed = re.search(r"line (\d+)", done.stderr)
    assert done.returncode == 0, (lines[int(failed[1]) - 1] if failed else "") + done.stderr[-500:]


# ------------------------------------------------------------------------------------------------------ falsified files
def falsified(text: str, certificate: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The certificate with its constant, exponent, start or direction changed, where that makes it false."""
    up = -1 if certificate["claim"] == "upper" else 1
    changes: list[dict[str, str]] = [{"from": "4"}, {"from": "1"}]
    if certificate["claim"] != "finite":
        changes += [{"ln_constant": str(Fraction(certificate["ln_constant"]) + step * up)} for step in (1, 40)]
        changes += [{"exponent": str(Fraction(certificate["exponent"]) - step * up)} for step in (Fraction(1, 2), 40)]
        changes += [{"claim": "lower" if up < 0 else "upper"}]
    for change in changes:
        wrong = {**certificate, **change}
        if not (wrong["from"] == "1" and wrong.get("depth")) and is_false(text, wrong):
            yield wrong


def is_false(text: str, claim: dict[str, Any]) -> bool:
    """Whether the claim fails at some distance, by doubles and with a margin that keeps rounding out."""
    formula, start = parse(text), int(claim["from"])
    for t in [*range(start, start + 100), *(int(start * 1.5**n) + 1 for n in range(1, 120))]:
        bias = formula.float(t)
        if claim["claim"] == "finite":
            if bias != -math.inf:
                return True
            continue
        level, scale = float(t), 0.0
        for _ in range(claim["depth"]):
            scale, level = scale + math.log(level), math.log(level)
        gap = (
            bias + scale + float(Fraction(claim["exponent"])) * math.log(level) - float(Fraction(claim["ln_constant"]))
        )
        if gap > 1e-3 if claim["claim"] == "upper" else gap < -1e-3:
            return True
    return False


TRUE = [
    "-t/256", "-2*log(t+1)", "-log(t+1)**2", "-log(t+1)", "-log(1+(t/16)**2)", "-log(3+t/16)-log(log(3+t/16))", "0",
    "where(t < 512, 0, -inf)", "max(-t, -10)", "-1.01*log(1+t)", "-sqrt(t)", "-t**2", "-1/(t+1)", "-2**(-7/2)*t",
    "-log(1 + (2**(-1/2)*t)**2)", "cos(t)-1", "-2*log(1+t/3)", "-log(t+2)-log(log(t+2))",
]  # fmt: skip


@EVERY
def test_falsified_files_are_refused(check_file: Check, every: bool) -> None:
    """The true text is accepted; a change of one number of its certificate is refused, by computation."""
    lines, count = [], 0
    for i, text in enumerate(TRUE):
        verdict = ff.check(text)
        assert verdict.certificate is not None
        block = verdict.coq_block()
        lines.append(f"Module True_{i}.\n{block}")
        certificate = verdict.certificate.json()
        assert not is_false(text, certificate)
        changes = list(falsified(text, certificate))
        for wrong in changes if every else changes[i % len(changes) :][:1]:  # another change for each text
            term = certificate_term(read(wrong))
            assert term not in block
            lines.append(f"Fail Definition wrong : certifies ({term}) b := ltac:(certify 40%positive).")
            count += 1
        lines.append(f"End True_{i}.")
    done = check_file("falsified", file_text(["\n".join(lines) + "\n"]))
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-1500:]
    assert refusals(done) == count
    assert count >= (60 if every else len(TRUE))


# --------------------------------------------------------------------------------------------------- receptive fields
FIELDS = [
    ("alibi", {"k": "1/16"}, ["0.5", "1e-2", "1e-12"]), ("alibi", {"k": "2**(-1/2)"}, ["1e-3"]),
    ("-t*log(3)", {}, ["0.1"]), ("type1", {"k": "1/16"}, ["0.1", "1e-3"]), ("type1", {"k": "2**(-7/2)"}, ["1e-2"]),
    ("type1-paper", {}, ["1e-2", "1e-12"]), ("-log(1 + (t/2)**2)", {}, ["1e-3"]),
    ("kerple-log", {"p": "2", "a": "1/10"}, ["1e-2", "1e-6"]), ("kerple-log", {"p": "3", "a": "1"}, ["1e-3", "1e-9"]),
    ("kerple-log", {"p": "3/2", "a": "1"}, ["1e-3"]), ("-2*log(1 + t/3)", {}, ["1e-3"]),
    ("type1", {"k": "2**(-7/2)"}, ["1e-9"]), ("type1", {"k": "1/8"}, ["1e-12", "1e-9"]),
    ("window", {"w": "512"}, ["0.5", "1e-2"]), ("window-paper", {"w": "512"}, ["0.5"]),
]  # fmt: skip


def test_exact_receptive_fields_are_theorems(library: Path, tmp_path: Path) -> None:
    blocks = {}
    for encoding, parameters, epsilons in FIELDS:
        text = ff.trf(encoding, epsilons, parameters=parameters).coq()
        blocks[f"{encoding} {parameters}"] = text[text.index("(*", 10) :]
    accepted(library, tmp_path, blocks)


def test_a_neighbour_of_the_field_is_refused(check_file: Check) -> None:
    lines, count = [], 0
    for i, (encoding, parameters, epsilons) in enumerate(FIELDS[:4] + FIELDS[7:8] + FIELDS[-3:-2] + FIELDS[-1:]):
        table = ff.trf(encoding, epsilons[:1], parameters=parameters)
        text = table.coq()
        lines.append(f"Module Field_{i}.\n{text[text.index('(*', 10) :]}")
        ((epsilon, tokens),) = table.coq_fields()
        sentence = field_theorems(table.formula, [(epsilon, tokens)], 0)
        tactic = re.search(r"Proof\. (.*)\. Qed\.", sentence)
        assert tactic is not None
        for wrong in (tokens + 1, tokens + 2):
            claim = f"is_trf b ({epsilon.numerator} / {epsilon.denominator}) (Z.to_nat {wrong})"
            lines.append(f"Fail Definition wrong : {claim} := ltac:({tactic[1]}).")
            count += 1
        lines.append(f"End Field_{i}.")
    done = check_file("neighbours", file_text(["\n".join(lines) + "\n"]))
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-1500:]
    assert refusals(done) == count


def test_fields_outside_the_closed_forms_are_refused() -> None:
    with pytest.raises(OutsideCoqError, match="no closed form"):
        ff.trf("type2-paper", ["0.1"]).coq()
    with pytest.raises(OutsideCoqError, match="tie"):
        ff.trf("-t*log(2)", ["0.5"]).coq()
    with pytest.raises(OutsideCoqError, match="start at t = 0"):
        ff.trf("-2*log(t)", ["0.1"], start=1).coq()


# --------------------------------------------------------------------------------------------------- the command line
def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([FARFIELD, *arguments], capture_output=True, text=True, check=False, **options)


def test_the_version_is_that_of_the_library() -> None:
    assert f'"{LIBRARY_VERSION}"' in (ROOT / "proofs/Version.v").read_text(encoding="utf-8")
    assert f'version = "{LIBRARY_VERSION}"%string' in ff.check("alibi").coq()


def test_the_command_writes_and_verifies(library: Path, tmp_path: Path) -> None:
    file = tmp_path / "slopes.v"
    done = run(
        "check", "alibi", "--heads", "8", "--epsilon", "0.01", "--coq", str(file), "--verify", "--library", str(library)
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"Coq accepts it \(\d+\.\d s", done.stdout)
    assert f"coqc -R {library} Farfield {file}" in done.stdout
    text = file.read_text(encoding="utf-8")
    assert text.count("Theorem sum : ex_series b.") == text.count("is_trf b (1 / 100)") == 8


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("check", "weight: abs(cos(t))/t", "--from", "1"), "mean of a wave"),
        (("check", "rope"), "does not apply"),
        (("check", "weight: t**(-2-sin(t))", "--from", "1"), "undecided"),
        (("check", "-k*t - q*log(t + 1)"), "families"),
        (("check", "type2-paper", "--epsilon", "0.1"), "no closed form"),
    ],
)
def test_what_is_outside_gets_one_sentence_and_no_file(arguments: tuple[str, ...], why: str, tmp_path: Path) -> None:
    done = run(*arguments, "--coq", str(tmp_path / "proof.v"))
    assert done.returncode == 2
    assert not done.stdout
    assert why in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_name_that_coq_cannot_take_is_refused(tmp_path: Path) -> None:
    done = run("check", "alibi", "--coq", str(tmp_path / "my-proof.v"))
    assert done.returncode == 2
    assert "letters, digits" in done.stderr


def test_without_coq_the_packages_are_named(tmp_path: Path) -> None:
    file = tmp_path / "alibi.v"
    environment = {**os.environ, "PATH": str(tmp_path), "HOME": str(tmp_path)}
    done = run("check", "alibi", "--coq", str(file), "--verify", env=environment)
    assert done.returncode == 2
    assert "apt install coq libcoq-coquelicot libcoq-interval" in done.stderr
    assert "<-> 0 < k" in file.read_text(encoding="utf-8")
