"""Prints the axioms behind each theorem of the library that docs/proofs.md names, or that are given.

    python proofs/assumptions.py                      all theorems of docs/proofs.md
    python proofs/assumptions.py Ladder.bertrand      these

One line for each theorem, its axioms as letters:

    C  Classical_Prop.classic                         every proposition is true or false
    D  ClassicalDedekindReals.sig_not_dec             a double negation can be decided       (Coq's real numbers)
    E  functional_extensionality_dep                  functions with equal values are equal  (Coq's real numbers)
    F  ClassicalDedekindReals.sig_forall_dec          a decidable "for all n" can be decided (Coq's real numbers)

Any other axiom is printed by its full name. The library must have been compiled (make -C proofs).
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

LIBRARY = Path(__file__).resolve().parent
PAGE = LIBRARY.parent / "docs" / "proofs.md"
LETTERS = {
    "Classical_Prop.classic": "C",
    "ClassicalDedekindReals.sig_not_dec": "D",
    "FunctionalExtensionality.functional_extensionality_dep": "E",
    "ClassicalDedekindReals.sig_forall_dec": "F",
}
STATED = r"none|(?:[CDEF]|\w+\.[\w.]+)(?: (?:[CDEF]|\w+\.[\w.]+))*"  # letters, or axioms by their full names
ROW = re.compile(rf"^\|.*\|\s*((?:`[A-Z]\w*\.\w+`,?\s*)+)\|\s*({STATED})\s*\|\s*$", re.MULTILINE)
NAME = re.compile(r"`([A-Z]\w*\.\w+)`")


def table(text: str) -> dict[str, str]:
    """The theorems in the tables of docs/proofs.md, each with the axioms that the page states."""
    stated: dict[str, str] = {}
    for row in ROW.finditer(text):
        for name in NAME.findall(row[1]):
            stated[name] = row[2]
    return stated


def assumptions(names: list[str], library: Path = LIBRARY) -> dict[str, str]:
    """The axioms of each theorem, as Coq's `Print Assumptions` finds them in the compiled library; two at a time."""
    halves = [half for half in (names[::2], names[1::2]) if half]
    with ThreadPoolExecutor(2) as pool:
        parts = pool.map(lambda half: joint_assumptions([[name] for name in half], library), halves)
        axioms = dict(pair for half, part in zip(halves, parts, strict=True) for pair in zip(half, part, strict=True))
    return {name: axioms[name] for name in names}


def joint_assumptions(groups: list[list[str]], library: Path = LIBRARY) -> list[str]:
    """The axioms of all theorems of each group together: Coq walks through what they share once, not once for each."""
    modules = sorted({name.partition(".")[0] for group in groups for name in group})
    lines = ['Set Warnings "-ambiguous-paths".', f"From Farfield Require {' '.join(modules)}."]
    for i, group in enumerate(groups):
        theorems = " ".join(f"let _ := @Farfield.{name} in" for name in group)
        lines += [f"Definition group_{i} := {theorems} tt.", 'Goal True. idtac "@". Abort.']
        lines.append(f"Print Assumptions group_{i}.")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "assumptions.v"
        source.write_text("\n".join(lines) + "\n", encoding="utf-8")
        command = ["coqc", "-R", str(library), "Farfield", str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"coqc could not print the assumptions: {done.stderr.strip()[-500:]}")
    return [_letters(text) for text in done.stdout.split("@\n")[1:]]


def _letters(text: str) -> str:
    """What `Print Assumptions` printed, as letters."""
    listed = re.split(r"axioms:", text, maxsplit=1, flags=re.IGNORECASE)[1:]
    axioms = re.findall(r"^([A-Za-z_][\w.']*)\s*(?::|$)", "".join(listed), re.MULTILINE)
    return " ".join(sorted(LETTERS.get(axiom, axiom) for axiom in axioms)) or "none"


if __name__ == "__main__":
    chosen = sys.argv[1:] or list(table(PAGE.read_text(encoding="utf-8")))
    for theorem, letters in assumptions(chosen).items():
        print(f"{theorem}: {letters}")
