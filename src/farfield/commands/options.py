"""Options that several commands share, and how they show a proof."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from farfield.formula import FormulaError

Formula = Annotated[str, Parameter(allow_leading_hyphen=True)]
Settings = Annotated[list[str] | None, Parameter(name="--set", negative="", allow_leading_hyphen=True)]
Tokenizer = Annotated[str | None, Parameter(name=["--tokenizer", "--tokeniser"])]
Json = Annotated[bool, Parameter(name="--json", negative="")]


def numbered(steps: Sequence[str]) -> Table:
    """The steps of a proof, numbered."""
    grid = Table.grid(padding=(0, 1))
    for number, step in enumerate(steps, 1):
        grid.add_row(Text(f"{number:4}."), Text(step))
    return grid


def values(settings: list[str] | None) -> dict[str, str]:
    """The parameters of --set k=0.1."""
    given: dict[str, str] = {}
    for one in settings or []:
        name, equals, value = one.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise FormulaError("--set takes NAME=VALUE, for example --set k=0.1", one)
        given[name.strip()] = value.strip()
    return given
