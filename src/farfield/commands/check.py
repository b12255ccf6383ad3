"""`farfield check`: the verdict on an encoding, its proof, and what each head of a model would see."""

from __future__ import annotations

import json
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from farfield.commands.options import Formula, Json, Settings, values
from farfield.theory.convergence import Verdict, check
from farfield.zoo import Encoding, find

_COLOURS = {
    "converges": "bold green",
    "diverges": "bold red",
    "undecided": "bold yellow",
    "not-applicable": "bold cyan",
}


def check_command(
    encoding: Formula,
    /,
    *,
    heads: int | None = None,
    width: int = 64,
    parameters: Settings = None,
    weight: Annotated[bool, Parameter(negative="")] = False,
    start: Annotated[int, Parameter(name="--from")] = 0,
    as_json: Json = False,
    latex: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Decide whether the sum of exp(bias) converges, and prove it.

    Parameters
    ----------
    encoding
        A name from the zoo (`farfield zoo`), or a formula of the bias r(t) such as "-k*t" or "-2*log(t + 1)".
    heads
        Also judge every head of a model with this many heads.
    width
        Width of one head, for encodings that depend on it.
    parameters
        Give a parameter its value, as NAME=VALUE; may be repeated. Others stay open.
    weight
        The formula gives the weight b(t) = exp(r(t)) instead of the bias.
    start
        First distance of the series, for formulas that are undefined at 0.
    as_json
        Print one JSON object.
    latex
        Print the proof as LaTeX.
    """
    found = find(encoding, weight=weight)
    given = values(parameters)
    verdict = check(found, start=start, parameters=given)
    rows = per_head(found, heads, width, start, given)
    if as_json:
        print(json.dumps({**verdict.json(), **({"heads": rows} if rows else {})}, indent=2))
    elif latex:
        print(verdict.latex())
    else:
        show(Console(), found, verdict, rows)


def per_head(found: Encoding, heads: int | None, width: int, start: int, given: dict[str, str]) -> list[dict[str, Any]]:
    """The verdict on each head, for encodings whose heads differ."""
    if heads is None or found.formula is None:
        return []
    rows: list[dict[str, Any]] = []
    for h, known in enumerate(found.values(heads, width), 1):
        own = {name: value for name, value in known.items() if name not in given}
        verdict = check(found, start=start, parameters={**given, **own})
        shown = {name: str(value) for name, value in {**given, **own}.items()}
        far = None if verdict.horizon is None else verdict.horizon.json()
        rows.append(
            {"head": h, "parameters": shown, "verdict": verdict.verdict, "condition": verdict.condition, "horizon": far}
        )
    return rows


def show(console: Console, found: Encoding, verdict: Verdict, rows: list[dict[str, Any]]) -> None:
    """The verdict for a person."""
    name = found.name if found.name in ("sinusoidal", "rope") else f"{found.name}: {found.text}"
    console.print(Text(name if found.text != found.name else f"r(t) = {found.text}", style="bold"))
    line = Text("  ")
    said = {"not-applicable": "the theorem does not apply"}.get(verdict.verdict, verdict.condition or verdict.verdict)
    line.append(said, style=_COLOURS[verdict.verdict])
    console.print(line)
    console.print(Text("proof" if verdict.verdict in ("converges", "diverges") else "why", style="bold"))
    steps = Table.grid(padding=(0, 1))
    for number, step in enumerate(verdict.proof, 1):
        steps.add_row(Text(f"{number:4}."), Text(step))
    console.print(steps)
    if rows:
        console.print(_table(rows))


def _table(rows: list[dict[str, Any]]) -> Table:
    horizon = any(r["horizon"] for r in rows)
    table = Table(title="each head", title_justify="left")
    for column in ("head", "parameters", "verdict", *(["looks convergent up to"] if horizon else [])):
        table.add_column(column, justify="right" if column == "head" else "left")
    for r in rows:
        cells = [str(r["head"]), ", ".join(f"{n} = {v}" for n, v in r["parameters"].items())]
        cells.append(r["condition"] or r["verdict"])
        if horizon:
            cells.append(f"{r['horizon']['tokens']} tokens" if r["horizon"] else "")
        table.add_row(*(Text(c) for c in cells))
    return table
