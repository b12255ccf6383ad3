"""`farfield zoo`: every named encoding with its formula and verdict."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from farfield.bounded_encodings import CLASSES
from farfield.commands.options import Json
from farfield.theory.verdict.convergence import check
from farfield.zoo import ENCODINGS, Encoding


def zoo_command(*, as_json: Json = False) -> None:
    """List every named encoding: formula, parameters, verdict, source.

    Args:
        as_json: Print a JSON list.
    """
    rows = [_row(e) for e in (*ENCODINGS.values(), *CLASSES.values())]
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    table = Table(title="encodings: t is the distance, the formula is the bias r(t)", title_justify="left")
    for column in ("name", "r(t)", "parameters", "verdict", "source"):
        table.add_column(column, overflow="fold")
    for row in rows:
        said = row["condition"] or row["verdict"].replace("not-applicable", "does not apply")
        said += f" ({row['answer']})" if row["answer"] in ("disperses", "neither") else ""
        given = "\n".join(f"{p['name']}: {p['given']}" for p in row["parameters"])
        cells = (row["name"], row["formula"] or row["note"], given, said, row["source"])
        table.add_row(*(Text(cell) for cell in cells))
    Console().print(table)


def _row(e: Encoding) -> dict[str, Any]:
    verdict = check(e)
    given = [{"name": p.name, "domain": p.domain, "given": p.given.text} for p in e.parameters]
    return {
        "name": e.name,
        "formula": e.text,
        "parameters": given,
        "verdict": verdict.verdict,
        "answer": verdict.answer,
        "condition": verdict.condition,
        "source": e.source,
        "note": e.note,
    }
