"""`farfield design`: the parameter that gives an encoding a wanted reach."""

from __future__ import annotations

import json
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from farfield.commands.options import Json, SetParameters, values
from farfield.theory.fields.design import Design, design
from farfield.theory.fields.receptive import digits


def design_command(
    family: Annotated[str, Parameter(allow_leading_hyphen=True)],
    *,
    reach: int,
    epsilon: str = "0.01",
    heads: int | None = None,
    shortest: int | None = None,
    parameters: SetParameters = None,
    as_json: Json = False,
) -> None:
    """Find the parameter for which the receptive field is exactly the wanted number of tokens.

    Args:
        family: A name from the zoo, or a formula with one open parameter, such as "-k*sqrt(t)".
        reach: The wanted receptive field, in tokens.
        epsilon: The share of the weights that may lie outside.
        heads: A whole set of values for this many heads, with reaches in geometric progression.
        shortest: The reach of the first of these heads; the wanted reach over 128 if it is not given.
        parameters: Give the other parameters of the family their values, as NAME=VALUE; may be repeated.
        as_json: Print one JSON object.
    """
    found = design(family, reach, epsilon, heads, shortest=shortest, **values(parameters))
    rows = found if isinstance(found, list) else [found]
    if as_json:
        out = {"family": rows[0].family, "epsilon": epsilon, "heads": [_json(i, d) for i, d in enumerate(rows, 1)]}
        print(json.dumps(out, indent=2))
        return
    console = Console()
    first = rows[0]
    fixed = "".join(f", {name} = {value}" for name, value in first.fixed.items())
    console.print(Text(f"{first.family}{fixed}: {first.parameter} for a receptive field at epsilon {epsilon}"))
    table = Table()
    for column in ("head", "reach", first.parameter, "gives it from about", "to about"):
        table.add_column(column, justify="right")
    for i, d in enumerate(rows, 1):
        table.add_row(*(Text(c) for c in (str(i), digits(d.tokens), d.text, f"{d.low:.10g}", f"{d.high:.10g}")))
    console.print(table)
    console.print(Text("each reach was computed back from its value, and is proven"))


def _json(head: int, d: Design) -> dict[str, Any]:
    return {
        "head": head,
        "parameter": d.parameter,
        "value": d.text,
        "low": d.low,
        "high": d.high,
        "tokens": digits(d.tokens),
    }
