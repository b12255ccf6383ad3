"""`farfield zoo`: every named encoding with its formula and verdict."""

from __future__ import annotations

import json

from rich.console import Console
from rich.text import Text

from farfield.commands.options import Json
from farfield.table import Table
from farfield.theory.verdict.convergence import Verdict, check
from farfield.zoo import BOUNDED, ENCODINGS, Encoding


def zoo_command(*, as_json: Json = False) -> None:
    """List every named encoding: formula, parameters, verdict, source.

    Args:
        as_json: Print a JSON list.
    """
    rows = [(encoding, check(encoding)) for encoding in (*ENCODINGS.values(), *BOUNDED.values())]
    if as_json:
        print(json.dumps([_json(*row) for row in rows], indent=2))
        return
    console = Console()
    count = sum(encoding.text is not None for encoding, _ in rows)
    sentence = f"{len(rows)} encodings have names, {count} of them a formula r(t) of the distance t; type any other."
    console.print(Text(sentence, style="bold"))
    headings = ("", "r(t)", "verdict", "why", "parameters", "source")
    console.print(Table(headings, [_cells(*row) for row in rows], left=headings).rich(console))


def _cells(encoding: Encoding, verdict: Verdict) -> list[str]:
    words = str(verdict.condition or verdict.verdict).replace("not-applicable", "does not apply")
    words += f" ({verdict.answer})" if verdict.answer in ("disperses", "neither") else ""
    parameters = ", ".join(f"{p.name} {p.given.text}" for p in encoding.parameters)
    why = encoding.note if encoding.text is None else ""
    return [encoding.name, encoding.text or "", words, why, parameters, encoding.source]


def _json(encoding: Encoding, verdict: Verdict) -> dict[str, object]:
    return {
        "name": encoding.name,
        "formula": encoding.text,
        "parameters": [{"name": p.name, "domain": p.domain, "given": p.given.text} for p in encoding.parameters],
        "verdict": verdict.verdict,
        "answer": verdict.answer,
        "condition": verdict.condition and str(verdict.condition),
        "source": encoding.source,
        "note": encoding.note,
    }
