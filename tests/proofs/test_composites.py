"""Certificates made of certificates, and bounded families: accepted by Coq, and refused where they were falsified."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from blocks import EVERY, accepted, refusals

import farfield as ff
from farfield.theory.coq.files import file_text
from farfield.theory.errors import OutsideCoqError
from farfield.zoo import BOUNDED

Check = Callable[[str, str], subprocess.CompletedProcess[str]]
COMPOSITES = [
    ("where(mod(t, 4) < 1, -2*log(t + 1), -inf)", 0), ("where(mod(t, 3) < 1, -log(t + 1), -2*log(t + 1))", 0),
    ("where(mod(t, 2) < 1, -inf, -3/2*log(t + 1))", 0), ("where(mod(t + 1, 3) < 1, -log(t + 2)**2, -inf)", 3),
    ("-floor(t/3)/2", 0), ("where(t < 16, 0, where(mod(t, 8) < 1, 0, -inf))", 0),
    ("weight: 1/(t + 1)**(1 + mod(t, 2))", 0), ("weight: 1/t**(2 + mod(t, 2))", 5), ("-mod(2*t, 3)*log(t)", 1),
    ("weight: abs(sin(t))/(t + 1)**2 + exp(-t)*(1 + sin(t))", 0), ("weight: abs(sin(t))**2/t**2 + mod(t, 3)/t**3", 1),
    ("weight: where(mod(t, 2) < 1, 1/(t + 1)**2, 0) + where(mod(t, 3) < 1, 1/(t + 1)**3, 0)", 0),
    ("weight: where(mod(t, 2) < 1, 1/(t + 1), 0) + where(mod(t, 3) < 1, 1/(t + 1)**3, 0)", 0),
    ("weight: exp(-t) + where(mod(t, 2) < 1, 1/(t + 1), 0)", 0), ("weight: abs(cos(t))/t + 1/t", 1),
    ("where(t < 24, where(t - 3*floor(t/3) < 1, 0, -inf), -inf)", 0),
]  # fmt: skip
VALUES = {"low": "1/10", "high": "1/2", "k": "1/4", "m": "3", "l": "64", "s": "1", "w": "8", "d": "3", "g": "7/8"}
WITHOUT = {"log-temperature": "the theorem does not apply"}


def of_composites() -> dict[str, str]:
    return {text: ff.check(text, start=start).coq_block() for text, start in COMPOSITES}


def test_residue_classes_and_summands_are_accepted(library: Path, tmp_path: Path) -> None:
    blocks = of_composites()
    assert sum("claim : tree" in block for block in blocks.values()) >= 12
    accepted(library, tmp_path, blocks)


def falsified(block: str) -> Iterator[str]:
    """The certificate of a composite verdict, changed so that the claim is false or proves nothing."""
    claim = " ".join(block[block.index("Definition claim") : block.index("Theorem sum")].split())
    number = r"(\([^)]*\)|\S+)"
    result = re.search(rf"Certificate (Upper|Lower) (\d) {number} {number} (\(At \d+\))", claim)
    assert result is not None
    kind, depth, exponent, constant, start = result.groups()
    other, far, steep = ("Lower", "(-40)", "40") if kind == "Upper" else ("Upper", "40", "(-2)")
    for wrong in (
        f"{kind} {depth} {exponent} {far} {start}",
        f"{kind} {depth} {steep} {constant} {start}",
        f"{other} {depth} {exponent} {constant} {start}",
        f"Finite_support 0 0 0 {start}",
    ):
        yield claim.replace(result[0], f"Certificate {wrong}", 1)
    for name, change in {
        "Classes 2": "Classes 3", "Classes 3": "Classes 4", "Classes 4": "Classes 2",
        "%nat 0%nat (B": "%nat 1%nat (B", "First": "Second", "Second": "First",
    }.items():  # fmt: skip
        if name in claim:
            yield claim.replace(name, change, 1)


@EVERY
def test_falsified_composite_certificates_are_refused(check_file: Check, every: bool) -> None:
    lines, count = [], 0
    trees = [block for block in of_composites().values() if "claim : tree" in block]
    for i, block in enumerate(trees):
        before, statement = block[: block.index("Definition claim")], re.findall(r"Theorem sum : (.*?)\.\n", block)[0]
        claims = list(falsified(block))
        for claim in claims if every else claims[i % len(claims) :][:1]:  # another change for each block
            wrong = f"Fail Definition wrong : {statement} := ltac:(made claim 40%positive)."
            lines.append(f"Module Wrong_{count}.\n{before}{claim}\n{wrong}")
            lines.append(f"End Wrong_{count}.")
            count += 1
    assert count >= (50 if every else 12)
    done = check_file("composite", file_text(["\n".join(lines) + "\n"]))
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-1500:]
    assert refusals(done) == count


def test_bounded_families_are_accepted(library: Path, tmp_path: Path) -> None:
    """Each of the zoo, for all its parameters and for one choice of them."""
    blocks = {}
    for name, encoding in BOUNDED.items():
        if name not in WITHOUT:
            blocks[name] = ff.check(name).coq_block()
            values = {p.name: VALUES[p.name] for p in encoding.parameters}
            blocks[f"{name} {values}"] = ff.check(name, parameters=values).coq_block()
    for text in ("upper: -2*log(t + 1); lower: -3*log(t + 1); sink: 3", "upper: -log(t + 1); lower: -2*log(t + 1)"):
        blocks[text] = ff.check(text).coq_block()
    assert sum("window_below b" in block for block in blocks.values()) >= 8
    accepted(
        library, tmp_path, {name: block for block, name in {block: name for name, block in blocks.items()}.items()}
    )


@pytest.mark.parametrize(("text", "why"), [
    *WITHOUT.items(),
    ("-log(t + 1)*(1 + cos(pi*t)) - log(t + 1)", "waves stand still"),
    ("weight: (2 - mod(t, 2))/(t + 1)**(1 + mod(t, 2))", "negative"),
])  # fmt: skip
def test_others_get_one_sentence(text: str, why: str) -> None:
    with pytest.raises(OutsideCoqError, match=why):
        ff.check(text).coq_block()
