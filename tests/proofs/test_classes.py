"""Residue classes and classes of biases in Coq: what is emitted is accepted, what was falsified is refused."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from blocks import accepted, refusals

import farfield as ff
from farfield.bounded_encodings import CLASSES
from farfield.theory.coq.files import file_text
from farfield.theory.errors import OutsideCoqError

Check = Callable[[str, str], subprocess.CompletedProcess[str]]
pytestmark = pytest.mark.xdist_group("coq")  # the library is compiled once
RESIDUES = [
    ("where(mod(t, 4) < 1, -2*log(t + 1), -inf)", 0), ("where(mod(t, 3) < 1, -log(t + 1), -2*log(t + 1))", 0),
    ("where(mod(t, 2) < 1, -inf, -3/2*log(t + 1))", 0), ("where(mod(t + 1, 3) < 1, -log(t + 2)**2, -inf)", 3),
    ("-floor(t/3)/2", 0), ("where(t < 16, 0, where(mod(t, 8) < 1, 0, -inf))", 0),
    ("weight: 1/(t + 1)**(1 + mod(t, 2))", 0), ("weight: 1/t**(2 + mod(t, 2))", 5), ("-mod(2*t, 3)*log(t)", 1),
    ("where(t < 24, where(t - 3*floor(t/3) < 1, 0, -inf), -inf)", 0),
]  # fmt: skip
VALUES = {"low": "1/10", "high": "1/2", "k": "1/4", "m": "3", "l": "64", "s": "1", "w": "8", "d": "3", "g": "7/8"}
WITHOUT = {"alibi-interpolated": "no bias of the class attains", "log-temperature": "nothing bounds"}


def of_residues() -> dict[str, str]:
    return {text: ff.check(text, start=start).coq_block() for text, start in RESIDUES}


def test_residue_classes_are_accepted(library: Path, tmp_path: Path) -> None:
    blocks = of_residues()
    assert sum("classes claims" in block or "Proof. class " in block for block in blocks.values()) >= 7
    accepted(library, tmp_path, blocks)


def falsified(block: str) -> Iterator[tuple[str, str]]:
    """Certificates and proof of a verdict by classes, changed so that the claim is false or proves nothing."""
    claims = re.findall(r"Certificate (?:Upper|Lower) .*?\)(?= ::|\.)", block)
    proof = re.findall(r"Proof\. (class.*?)\. Qed", block)[0]
    for claim in claims[:1]:
        kind, depth, exponent, constant, start = re.findall(r"\([^()]*(?:\([^()]*\))?[^()]*\)|\S+", claim)[1:]
        far, steep = ("-40", "(7 # 2)") if kind == "Upper" else ("40", "(-2)")
        yield block.replace(claim, f"Certificate {kind} {depth} {exponent} ({far}) {start}", 1), proof
        yield block.replace(claim, f"Certificate {kind} {depth} {steep} {constant} {start}", 1), proof
        other = "Lower" if kind == "Upper" else "Upper"
        yield block.replace(claim, f"Certificate {other} {depth} {exponent} {constant} {start}", 1), proof
    if "claims" in proof:
        yield block, proof.replace("claims", "(List.tl claims)")
    else:
        modulus, residue = re.findall(r"(\d+)%nat", proof)
        yield block, proof.replace(f"{residue}%nat", f"{(int(residue) + 1) % int(modulus)}%nat")


def test_falsified_residue_classes_are_refused(check_file: Check) -> None:
    lines, count = [], 0
    for block in of_residues().values():
        if "claims" not in block and "Proof. class " not in block:
            continue
        statement = re.findall(r"Theorem sum : (.*?)\.\n", block)[0]
        for changed, proof in falsified(block):
            before = changed.partition("Theorem sum")[0]
            lines.append(f"Module Wrong_{count}.\n{before}\nFail Definition wrong : {statement} := ltac:({proof}).")
            lines.append(f"End Wrong_{count}.")
            count += 1
    assert count >= 25
    done = check_file("residues", file_text(["\n".join(lines) + "\n"]))
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-1500:]
    assert refusals(done) == count


def test_classes_of_biases_are_accepted(library: Path, tmp_path: Path) -> None:
    """Each of the zoo, for all its parameters and for one choice of them."""
    blocks = {}
    for name, encoding in CLASSES.items():
        if name not in WITHOUT:
            blocks[name] = ff.check(name).coq_block()
            values = {p.name: VALUES[p.name] for p in encoding.parameters}
            blocks[f"{name} {values}"] = ff.check(name, parameters=values).coq_block()
    for text in ("between(-3*log(t + 1), -2*log(t + 1)) + sink(3)", "between(-2*log(t + 1), -log(t + 1))"):
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
def test_other_classes_get_one_sentence(text: str, why: str) -> None:
    with pytest.raises(OutsideCoqError, match=why):
        ff.check(text).coq_block()
