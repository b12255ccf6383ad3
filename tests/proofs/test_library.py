"""The Coq library compiles, assumes what docs/proofs.md says, and refuses certificates that are false."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from collections.abc import Callable
from math import cos, inf, log, sqrt
from pathlib import Path
from types import ModuleType

import pytest
from blocks import EVERY, refusals

Check = Callable[[str, str], subprocess.CompletedProcess[str]]
ROOT = Path(__file__).resolve().parents[2]
PROOFS = ROOT / "proofs"
PAGE = ROOT / "docs" / "proofs.md"


def files_of_the_library() -> list[str]:
    return re.findall(r"^\w+\.v$", (PROOFS / "_CoqProject").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("farfield_assumptions", PROOFS / "assumptions.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_file_is_compiled() -> None:
    assert sorted(path.name for path in PROOFS.glob("*.v")) == sorted(files_of_the_library())


def test_readme_names_every_file() -> None:
    named = set(re.findall(r"`(\w+\.v)`", (PROOFS / "README.md").read_text(encoding="utf-8")))
    assert named == set(files_of_the_library())


def test_nothing_is_left_unproven() -> None:
    forbidden = re.compile("admit|Admitted|Axiom|Parameter |Conjecture")
    for path in PROOFS.rglob("*"):
        if path.suffix in (".v", ".py", ".md"):
            result = [line for line in path.read_text(encoding="utf-8").splitlines() if forbidden.search(line)]
            assert not result, f"{path.name}: {result}"


def test_page_names_only_what_is_there(script: ModuleType) -> None:
    for name in script.table(PAGE.read_text(encoding="utf-8")):
        module, theorem = name.split(".")
        source = (PROOFS / f"{module}.v").read_text(encoding="utf-8")
        stated = rf"^\s*(?:Theorem|Lemma|Corollary|Definition) {theorem}\b"
        assert re.search(stated, source, re.MULTILINE), f"docs/proofs.md names {name}, which is not in {module}.v"


def test_page_has_every_erratum() -> None:
    page = PAGE.read_text(encoding="utf-8").partition("## The errata")[2]
    rows = re.findall(r"^\| (E\d+)(?:, (E\d+))?:", page, re.MULTILINE)
    assert [name for row in rows for name in row if name] == [f"E{n}" for n in range(1, 25)]


def test_no_theorem_assumes_more_than_the_page_says(library: Path, script: ModuleType) -> None:
    """The theorems for which the page states the same axioms, together: these axioms, and no other."""
    stated = script.table(PAGE.read_text(encoding="utf-8"))
    assert len(stated) > 100
    groups: dict[str, list[str]] = {}
    for name, axioms in stated.items():
        groups.setdefault(axioms, []).append(name)
    assert script.joint_assumptions(list(groups.values()), library) == list(groups)


@pytest.mark.long
def test_assumptions_are_those_of_the_page(library: Path, script: ModuleType) -> None:
    """Theorem by theorem: none is said to assume what it does not."""
    stated = script.table(PAGE.read_text(encoding="utf-8"))
    assert script.assumptions(list(stated), library) == stated


def test_examples_are_accepted(check_file: Check) -> None:
    """Each in a module of its own, where what the others import is not known."""
    names = sorted(path.stem for path in (PROOFS / "examples").glob("*.v"))
    assert len(names) > 15
    modules = (f'Module Of_{name}.\nLoad "{PROOFS / "examples" / name}".\nEnd Of_{name}.' for name in names)
    done = check_file("examples", 'Set Warnings "-require-in-module".\n' + "\n".join(modules) + "\n")
    assert done.returncode == 0, done.stdout[-800:] + done.stderr[-800:]


def test_another_version_is_refused(check_file: Check) -> None:
    text = 'From Farfield Require Import Emit.\nExample library : version = "0.9"%string := eq_refl.\n'
    assert check_file("old", text).returncode != 0


# ------------------------------------------------------------------------------------------ certificates that are false
# the weight in Coq, the logarithm of the weight, a true certificate: claim, depth, exponent, ln_constant, from
TRUE: dict[str, tuple[str, Callable[[float], float], tuple[str, int, float, float, int]]] = {
    "alibi": ("exp (- (1 / 16) * INR t)", lambda t: -t / 16, ("Upper", 0, 2.0, 0.0, 512)),
    "type1_paper": ("exp (- 2 * ln (INR t + 1))", lambda t: -2 * log(t + 1), ("Upper", 0, 1.5, 0.5754, 4)),
    "type1": (
        "exp (- ln (1 + (INR t / 16) ^ 2))",
        lambda t: -log(1 + (t / 16) ** 2),
        ("Upper", 0, 1.5, 5.6098, 64),
    ),
    "type2": ("exp (- (ln (INR t + 1)) ^ 2)", lambda t: -(log(t + 1) ** 2), ("Upper", 0, 2.0, 0.3618, 16)),
    "inverse": ("exp (- ln (INR t + 1))", lambda t: -log(t + 1), ("Lower", 0, 1.0, -0.2877, 4)),
    "inverse_log": (
        "exp (- ln (INR t + 3) - ln (ln (INR t + 3)))",
        lambda t: -log(t + 3) - log(log(t + 3)),
        ("Lower", 1, 1.0, -2.0, 16),
    ),
    "kerple_log": ("exp (- 1.5 * ln (1 + INR t / 10))", lambda t: -1.5 * log(1 + t / 10), ("Upper", 0, 1.25, 4.0, 16)),
    "rung1": ("1 / (INR t * (ln (INR t)) ^ 2)", lambda t: -log(t) - 2 * log(log(t)), ("Upper", 1, 1.5, 0.0, 4)),
    "rung2": (
        "1 / (INR t * ln (INR t) * ln (ln (INR t)))",
        lambda t: -log(t) - log(log(t)) - log(log(log(t))),
        ("Lower", 2, 1.0, 0.0, 16),
    ),
    "root": ("exp (- sqrt (INR t))", lambda t: -sqrt(t), ("Upper", 0, 2.0, 0.0, 256)),
    "wave": ("exp (cos (INR t)) / INR t", lambda t: cos(t) - log(t), ("Lower", 0, 1.0, -1.0001, 4)),
    "constant": ("exp (- 1 / (INR t + 1))", lambda t: -1 / (t + 1), ("Lower", 0, 0.0, -0.3344, 4)),
    "window": (
        "if Rlt_dec (INR t) 100 then exp 0 else 0",
        lambda t: 0.0 if t < 100 else -inf,
        ("Finite_support", 0, 0.0, 0.0, 128),
    ),
}
Certificate = tuple[str, int, float, float, int]


def holds_at(logarithm: Callable[[float], float], certificate: Certificate, t: float) -> bool:
    """The claim at one distance, in double precision; a margin keeps rounding out of it."""
    claim, depth, exponent, ln_constant, _ = certificate
    if claim == "Finite_support":
        return logarithm(t) == -inf
    scale, level = 0.0, t
    for _ in range(depth):
        level = log(level)
        scale += level
    bound = ln_constant - scale - (exponent * log(level) if exponent else 0.0)
    return logarithm(t) <= bound + 1e-6 if claim == "Upper" else logarithm(t) >= bound - 1e-6


def is_false(logarithm: Callable[[float], float], certificate: Certificate) -> bool:
    start = certificate[4]
    distances = [*range(start, start + 400), *(int(start * 1.5**k) + 1 for k in range(1, 200))]
    return any(not holds_at(logarithm, certificate, float(t)) for t in distances)


def falsified() -> list[tuple[str, str, Certificate]]:
    """Certificates changed in their constant, exponent, depth, start or direction so that they are false."""
    result = []
    for name, (_, logarithm, (claim, depth, exponent, ln_constant, start)) in TRUE.items():
        sign = -1 if claim == "Upper" else 1
        changes: dict[str, Certificate] = {
            f"constant {step}": (claim, depth, exponent, ln_constant + sign * step, start) for step in (1, 3, 40)
        }
        changes |= {
            f"exponent {step}": (claim, depth, exponent - sign * step, ln_constant, start) for step in (0.5, 1, 2)
        }
        changes |= {f"from {first}": (claim, depth, exponent, ln_constant, first) for first in (1, 2, start // 8)}
        opposite = "Lower" if claim == "Upper" else "Upper"
        changes["direction"] = (opposite, depth, exponent, ln_constant, start)
        changes["depth"] = (claim, depth + 1, exponent, ln_constant, max(start, 16))
        for change, certificate in changes.items():
            _, deep, _, _, first = certificate
            defined = first > {0: 0, 1: 1, 2: 2, 3: 15}[deep]
            if defined and is_false(logarithm, certificate):
                result.append((name, change, certificate))
    return result


def as_coq(certificate: Certificate) -> str:
    claim, depth, exponent, ln_constant, start = certificate
    exponent_coq, constant_coq = (f"({round(x * 10**4)} # 10000)" for x in (exponent, ln_constant))
    return f"(Certificate {claim} {depth} {exponent_coq} {constant_coq} (At {start}))"


def test_the_true_ones_are_true() -> None:
    for name, (_, logarithm, certificate) in TRUE.items():
        assert not is_false(logarithm, certificate), name


@EVERY
def test_false_certificates_are_refused(check_file: Check, every: bool) -> None:
    cases = falsified()
    assert len(cases) >= 60
    if not every:
        of_each = [[case for case in cases if case[0] == name] for name in TRUE]
        cases = [some[i % len(some)] for i, some in enumerate(of_each)]  # another change for each weight
    lines = ["From Farfield Require Import Emit.", "Open Scope R_scope."]
    for name, (weight, _, certificate) in TRUE.items():
        lines += [
            f"Definition {name} (t : nat) : R := {weight}.",
            f"Definition {name}_holds : certifies {as_coq(certificate)} {name} := ltac:(certify 40%positive).",
        ]
    for name, _, certificate in cases:
        lines.append(f"Fail Definition wrong : certifies {as_coq(certificate)} {name} := ltac:(certify 40%positive).")
    done = check_file("falsified", "\n".join(lines) + "\n")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr  # `Fail` is an error where the command succeeds
    assert refusals(done) == len(cases)


def test_a_certificate_on_the_wrong_side_proves_nothing(check_file: Check) -> None:
    """True inequalities whose exponent does not decide: t^-1 above the weight, t^-2 below it."""
    lines = [
        "From Farfield Require Import Emit.",
        "Open Scope R_scope.",
        "Definition b (t : nat) : R := exp (- 2 * ln (INR t + 1)).",
        "Definition up : certifies (Certificate Upper 0 1 0 (At 4)) b := ltac:(certify 40%positive).",
        "Definition low : certifies (Certificate Lower 0 3 0 (At 4)) b := ltac:(certify 40%positive).",
        "Fail Definition sum : ex_series b := ltac:(verdict up).",
        "Fail Definition none : ~ ex_series b := ltac:(verdict low).",
    ]
    done = check_file("undecided", "\n".join(lines) + "\n")
    assert done.returncode == 0, done.stdout + done.stderr
    assert refusals(done) == 2


@pytest.mark.parametrize(
    ("weight", "tactic", "epsilon", "right"),
    [
        ("exp (- (1 / 16) * INR t)", "field_of_alibi (1 / 16) 60%positive", "1 / 100", 74),
        ("exp (- 2 * ln (INR t + 1))", "field_of_power 2 1 1 2%Q 1%Q 60%nat 60%positive", "1 / 1000", 608),
        ("exp (- ln (1 + (1 / 2 * INR t) ^ 2))", "field_of_type1 (1 / 2) 4%Q 3%Z 60%nat 60%positive", "1 / 1000", 1099),
        ("if Rlt_dec (INR t) 512 then exp 0 else 0", "field_of_window", "1 / 2", 257),
    ],
)
def test_receptive_fields_are_exact(check_file: Check, weight: str, tactic: str, epsilon: str, right: int) -> None:
    """The right number is proven; its neighbours are refused."""
    lines = ["From Farfield Require Import Emit.", "Open Scope R_scope.", f"Definition b (t : nat) : R := {weight}."]
    for n in (right - 1, right + 1, 2 * right):
        lines.append(f"Fail Definition wrong : is_trf b ({epsilon}) (Z.to_nat {n}) := ltac:({tactic}).")
    lines.append(f"Definition right : is_trf b ({epsilon}) (Z.to_nat {right}) := ltac:({tactic}).")
    done = check_file("field", "\n".join(lines) + "\n")
    assert done.returncode == 0, done.stdout + done.stderr
    assert refusals(done) == 3
