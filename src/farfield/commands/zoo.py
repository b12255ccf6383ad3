"""`farfield zoo`: every named encoding with its formula and verdict."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console
from rich.text import Text

from farfield.commands.options import Json
from farfield.commands.tables import fitting
from farfield.theory.verdict.convergence import check
from farfield.zoo import ENCODINGS, Encoding
from farfield.zoo.bounded_encodings import CLASSES


def zoo_command(*, as_json: Json = False) -> None:
    """List every named encoding: formula, parameters, verdict, source.

    Args:
        as_json: Print a JSON list.
    """
    rows = [_row(e) for e in (*ENCODINGS.values(), *CLASSES.values())]
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    console, cells = Console(), []
    for row in rows:
        said = row["condition"] or row["verdict"].replace("not-applicable", "does not apply")
        said += f" ({row['answer']})" if row["answer"] in ("disperses", "neither") else ""
        given = ", ".join(f"{p['name']} {p['given']}" for p in row["parameters"])
        why = row["note"] if row["formula"] is None else ""
        cells.append([row["name"], row["formula"] or "", said, why, given, row["source"]])
    count = sum(row["formula"] is not None for row in rows)
    said = f"{len(rows)} encodings have names, {count} of them a formula r(t) of the distance t; type any other."
    console.print(Text(said, style="bold"))
    headings = ("", "r(t)", "verdict", "why", "parameters", "source")
    console.print(fitting(console, headings, cells, left=headings))


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
