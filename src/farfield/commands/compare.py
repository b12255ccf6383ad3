"""`farfield compare`: receptive fields side by side, which one is smaller and why, and a figure."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from farfield import zoo
from farfield.commands.options import Json, SetParameters, numbered, values
from farfield.formula import Formula
from farfield.theory.errors import DivergenceError, UndecidedError
from farfield.theory.fields.comparison import Comparison, compare
from farfield.theory.fields.law import law
from farfield.theory.fields.pictures import curve, fields_figure
from farfield.theory.fields.receptive import EPSILONS, digits, exact_epsilon, reach, smallest, whole
from farfield.theory.fields.summary import shown_number
from farfield.theory.sums.series import bound_formula, series, sum_json


def compare_command(
    *encodings: Annotated[str, Parameter(allow_leading_hyphen=True)],
    epsilon: Annotated[list[str] | None, Parameter(negative="")] = None,
    parameters: SetParameters = None,
    heads: int = 8,
    head: int | None = None,
    context: int | None = None,
    figure: str | None = None,
    as_json: Json = False,
) -> None:
    """Compare encodings: receptive fields, their laws, and which is smaller as epsilon goes to 0.

    Args:
        encodings: Two or more names from the zoo, or formulas of the bias r(t).
        epsilon: The share of the weights that may lie outside; may be repeated. 0.5 ... 1e-12 if it is not given.
        parameters: Give a parameter its value in every encoding that has it, as NAME=VALUE; may be repeated.
        heads: Parameters that differ between heads, such as ALiBi's slope, are those of a model with this many heads.
        head: Which of these heads to show, from 1; the last one if it is not given.
        context: Also show the practical reach within this many tokens, which divergent encodings have too.
        figure: Write a figure, as PNG and SVG.
        as_json: Print one JSON object.
    """
    if len(encodings) < 2:
        raise ValueError("compare needs at least two encodings, such as: farfield compare alibi type1")
    epsilons = list(epsilon or EPSILONS)
    for e in epsilons:
        exact_epsilon(e)
    if context is not None:
        whole(context, "context")
    given = values(parameters)
    shown = [_member(name, given, heads, head) for name in encodings]
    _refuse_unused(given, encodings)
    rows = [_row(label, formula, epsilons, context) for label, formula in shown]
    pairs = [compare(a[1], b[1], names=(a[0], b[0])) for a, b in combinations(shown, 2)]
    written = _draw(shown, figure, context or 512) if figure is not None else []
    if as_json:
        out = {"encodings": rows, "pairs": [_pair_json(p) for p in pairs], "figures": [str(p) for p in written]}
        print(json.dumps(out, indent=2))
        return
    console = Console()
    _show(console, rows, epsilons, context)
    for pair in pairs:
        _show_pair(console, pair)
    for path in written:
        console.print(Text(f"figure: {path}"))


def _member(name: str, given: dict[str, str], heads: int, head: int | None) -> tuple[str, Formula]:
    """A label and a formula with every parameter set: what was given, else the rule of the chosen head."""
    found = zoo.find(name)
    if found.formula is None:
        raise ValueError(f"{found.name} has no bias r(t), so it cannot be compared: {found.note}")
    count = whole(heads, "number of heads")
    chosen = count if head is None else whole(head, "head")
    if chosen > count:
        raise ValueError(f"there is no head {chosen} among {count}")
    own = found.values(count)[chosen - 1]
    bound: dict[str, Any] = {**own, **{k: v for k, v in given.items() if k in found.formula.parameters}}
    label = found.name + "".join(f", {k} = {v}" for k, v in bound.items())
    return label, bound_formula(found, **bound)


def _refuse_unused(given: dict[str, str], names: tuple[str, ...]) -> None:
    formulas = [zoo.find(name).formula for name in names]
    known = {p for f in formulas if f is not None for p in f.parameters}
    for name in given:
        if name not in known:
            has = f"their parameters are {', '.join(sorted(known))}" if known else "they have no parameters"
            raise ValueError(f"none of the encodings has a parameter '{name[:20]}': {has}")


def _row(label: str, formula: Formula, epsilons: list[str], context: int | None) -> dict[str, Any]:
    row: dict[str, Any] = {"encoding": label, "formula": formula.text()}
    try:
        found = series(formula)
        row |= {"verdict": "converges", "sum": sum_json(found), "law": law(formula)}
        row["trf"] = [{"epsilon": e, "tokens": _tokens(found, e)} for e in epsilons]
    except DivergenceError:
        row |= {"verdict": "diverges", "sum": None, "law": None, "trf": []}
    if context is not None:
        row["context"] = context
        row["reach"] = [{"epsilon": e, "tokens": digits(reach(formula, e, context))} for e in epsilons]
    return row


def _tokens(found: Any, epsilon: str) -> str | None:
    try:
        return digits(smallest(found, exact_epsilon(epsilon)))
    except UndecidedError:
        return None


def _pair_json(pair: Comparison) -> dict[str, Any]:
    name = {"a": pair.a, "b": pair.b}
    return {
        "a": pair.a,
        "b": pair.b,
        "smaller": name.get(pair.smaller or "", pair.smaller),
        "reason": pair.proof,
        "crossings": [
            {
                "larger": name[c.larger],
                "first": c.first,
                "last": c.last,
                "epsilon_above": c.epsilon_low,
                "epsilon_up_to": c.epsilon_high,
            }
            for c in pair.crossings
        ],
        "looked_down_to": pair.looked_down_to,
    }


def _show(console: Console, rows: list[dict[str, Any]], epsilons: list[str], context: int | None) -> None:
    console.print(Text("receptive field in tokens, for each epsilon", style="bold"))
    table = Table(box=SIMPLE_HEAD)
    table.add_column("epsilon", justify="right")
    for row in rows:
        table.add_column(Text(row["encoding"]), justify="right", overflow="fold")
    for i, e in enumerate(epsilons):
        table.add_row(e, *(Text(_short(row["trf"][i]["tokens"]) if row["trf"] else "none") for row in rows))
        if context is not None:
            near = (Text(_short(row["reach"][i]["tokens"]), style="dim") for row in rows)
            table.add_row(Text(f"in {context}", style="dim"), *near)
    table.add_section()
    table.add_row("B", *(Text(f"{float(row['sum']['mid']):.10g}" if row["sum"] else "diverges") for row in rows))
    console.print(table)
    for row in rows:
        said = f"is {row['law']} as epsilon goes to 0" if row["law"] else "does not exist: the sum diverges"
        if (row["law"] or "").startswith("no "):
            said = f": {row['law']}"
        console.print(Text(f"the receptive field of {row['encoding']} {said}".replace(" :", ":")))


def _short(tokens: str | None) -> str:
    return "not decided" if tokens is None else shown_number(tokens)


def _show_pair(console: Console, pair: Comparison) -> None:
    console.print(Text(pair.sentence(), style="bold"))
    console.print(numbered(pair.proof))
    for said in pair.turns():
        console.print(Padding(Text(said), (0, 0, 0, 6)))


def _draw(shown: list[tuple[str, Formula]], path: str, context: int) -> list[Path]:
    fields_figure([curve(label, formula, context) for label, formula in shown], path, context=context)
    return [Path(path).with_suffix(suffix) for suffix in (".png", ".svg")]
