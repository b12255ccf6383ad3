"""`farfield design`: the parameter that gives an encoding a wanted reach."""

from __future__ import annotations

import json
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from farfield.commands.options import Json, SetParameters, Whole, WholeOrNone, values
from farfield.table import Table
from farfield.theory.budget import answer_in_time
from farfield.theory.fields.design import design
from farfield.words import tokens


def design_command(
    family: Annotated[str, Parameter(allow_leading_hyphen=True)],
    *,
    reach: Whole,
    epsilon: str = "0.01",
    heads: WholeOrNone = None,
    shortest: WholeOrNone = None,
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
    with answer_in_time():
        result = design(family, reach, epsilon, heads, shortest=shortest, parameters=values(parameters))
    if as_json:
        print(json.dumps({"family": result.family, "epsilon": epsilon, "heads": result.json()}, indent=2))
        return
    console = Console()
    fixed = "".join(f", {name} = {value}" for name, value in result.fixed.items())
    count = f", {len(result.heads)} heads" if len(result.heads) > 1 else ""
    wanted = f"{result.parameter} = {result.text} has a receptive field of {tokens(result.tokens)} tokens"
    console.print(Text(f"{result.family}{fixed}{count}: {wanted} at epsilon {epsilon}, proven.", style="bold"))
    rows = [
        [str(i), tokens(head.tokens), head.text, f"{head.low:.10g}", f"{head.high:.10g}"]
        for i, head in enumerate(result.heads, 1)
    ]
    headings = ["head", "reach", result.parameter, "gives it from about", "to about"]
    console.print(Table(headings, rows).rich(console))
    console.print(Text("each reach was computed back from its value, and is proven"))
