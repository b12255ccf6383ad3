"""What `farfield check --coq` writes: the theorems of a verdict, of all heads and of receptive fields, in one file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from farfield.theory.coq.fields import field_theorems
from farfield.theory.coq.files import file_text
from farfield.theory.fields.receptive import trf
from farfield.theory.verdict.convergence import check
from farfield.zoo import Encoding


def proof_text(encoding: Encoding, rows: Sequence[Mapping[str, Any]], start: int, epsilons: list[str] | None) -> str:
    """The text of a file with one block for each head; heads with the same theorem share one."""
    heads: dict[str, list[int]] = {}
    for i, row in enumerate(rows, 1):
        verdict = check(encoding, start=start, parameters=row)
        block = verdict.coq_block()
        if epsilons and verdict.verdict == "converges":
            table = trf(encoding, epsilons, start=start, parameters=row)
            block += field_theorems(table.formula, table.coq_fields(), start)
        heads.setdefault(block, []).append(i)
    names = ["Head_" + "_".join(map(str, numbers)) for numbers in heads.values()]
    return file_text(list(heads), names if len(heads) > 1 else None)


@dataclass(frozen=True)
class ProofFile:
    """A file for Coq, written to `path` if that is given."""

    text: str
    path: Path | None
    library: Path | None

    def __post_init__(self) -> None:
        if self.path is not None:
            if not re.fullmatch(r"[A-Za-z]\w*\.v", self.path.name, re.ASCII):
                allowed = "letters, digits and _, beginning with a letter, and .v at the end"
                raise ValueError(f"Coq wants another name for its file than {self.path.name!r}: {allowed}")
            try:
                self.path.write_text(self.text, encoding="utf-8")
            except OSError as error:
                raise ValueError(f"{self.path} cannot be written: {error.strerror}") from None

    @property
    def theorems(self) -> int:
        """How many statements are proven in it."""
        return self.text.count("\nTheorem ")

    def json(self, verify: bool) -> dict[str, Any]:
        """What was written, and what Coq says of it, as plain data."""
        said: dict[str, Any] = {"file": None if self.path is None else str(self.path), "theorems": self.theorems}
        if self.path is not None:
            said["command"] = self._command(self.path)
        if verify:
            accepted = self._verify()
            said |= {"accepted": True, "seconds": round(accepted.seconds, 2)}
        return said

    def show(self, console: Console, verify: bool) -> None:
        """The same for a person."""
        if self.path is not None:
            console.print(Text(f"{self.path}: {self.theorems} theorems for Coq; to check them:"), soft_wrap=True)
            console.print(Text(f"  {self._command(self.path)}"), soft_wrap=True)
        if verify:
            with Console(stderr=True).status("Coq is checking; the first time, the library too"):
                accepted = self._verify()
            console.print(Text(str(accepted), style="bold green"))

    def _command(self, path: Path) -> str:
        from farfield.theory.coq.library import command, write_library

        return command(write_library(self.library), path)

    def _verify(self) -> Any:
        from farfield.theory.coq.library import verify_coq

        return verify_coq(self.text, self.library)
