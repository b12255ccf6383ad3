"""`farfield compare`: receptive fields side by side, which one is smaller and why, and a figure."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Sequence
from csv import writer as csv_writer
from fractions import Fraction
from itertools import combinations
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from farfield import zoo
from farfield.commands.options import (
    FigurePath,
    Flag,
    Json,
    SetParameters,
    Watch,
    Whole,
    WholeOrNone,
    numbered,
    one_format,
    progress,
    values,
)  # fmt: skip
from farfield.commands.tables import fitting
from farfield.formula import Formula, parse
from farfield.formula.latex import latex as latex_of
from farfield.theory.budget import answer_in_time
from farfield.theory.errors import DivergenceError, UndecidedError
from farfield.theory.fields.comparison import Comparison, compare
from farfield.theory.fields.law import law
from farfield.theory.fields.pictures import curve, fields_figure
from farfield.theory.fields.receptive import EPSILONS, digits, exact_epsilon, field_of, reach, whole
from farfield.theory.fields.summary import shown_number, shown_sum
from farfield.theory.sums.series import series, sum_json
from farfield.zoo.head_parameters import said_slopes


@answer_in_time()
def compare_command(
    *encodings: Annotated[str, Parameter(allow_leading_hyphen=True)],
    epsilon: Annotated[list[str] | None, Parameter(negative="")] = None,
    parameters: SetParameters = None,
    heads: Whole = 8,
    head: WholeOrNone = None,
    context: WholeOrNone = None,
    proof: Flag = False,
    figure: FigurePath = None,
    csv: Flag = False,
    latex: Flag = False,
    as_json: Json = False,
) -> None:
    """Compare encodings: which sees further as epsilon goes to 0, receptive fields, and their laws.

    Example: farfield compare alibi type1 "-2*log(t + 1)" --figure fields.pdf

    Args:
        encodings: Two or more names from the zoo, or formulas of the bias r(t).
        epsilon: The share of the weights that may lie outside; may be repeated. 0.5 ... 1e-12 if it is not given.
        parameters: Give a parameter its value in every encoding that has it, as NAME=VALUE; may be repeated.
        heads: Parameters that differ between heads, such as ALiBi's slope, are those of a model with this many heads.
        head: Which of these heads to show, from 1; the last one if it is not given.
        context: Also show the practical reach within this many tokens, which divergent encodings have too.
        proof: Also print why, pair by pair; of two encodings this is always printed.
        figure: Write a figure here: .pdf, .png or .svg.
        csv: Print the receptive fields as CSV.
        latex: Print the receptive fields as a LaTeX table.
        as_json: Print one JSON object.
    """
    if len(encodings) < 2:
        raise ValueError("compare needs at least two encodings, such as: farfield compare alibi type1")
    epsilons = list(epsilon or EPSILONS)
    for e in epsilons:
        exact_epsilon(e)
    if context is not None:
        whole(context, "context")
    one_format(csv=csv, latex=latex, json=as_json)
    given = values(parameters)
    shown = [_member(name, given, heads, head) for name in encodings]
    _refuse_unused(given, encodings)
    with progress("receptive fields", quiet=False) as watch:
        rows = [_row(a, f, epsilons, context) for a, f in _watched(shown, "receptive field", watch)]
        if figure is not None:
            near = context or 512
            curves = [curve(a, f, near) for a, f in _watched(shown, "curve", watch)]
            fields_figure(curves, figure, context=near)
        if not csv and not latex:
            both = list(combinations(shown, 2))
            pairs = [compare(a[1], b[1], names=(a[0], b[0])) for a, b in _watched(both, "pair", watch)]
    if csv or latex:
        print(_csv(rows, epsilons) if csv else _latex(rows, epsilons))
        return
    if as_json:
        drawn = [] if figure is None else [str(figure)]
        out = {"encodings": rows, "pairs": [_pair_json(p) for p in pairs], "figures": drawn}
        print(json.dumps(out, indent=2))
        return
    console = Console()
    for sentence in ranking(rows, pairs):
        console.print(Text(sentence, style="bold"))
    _show(console, rows, epsilons, context)
    for pair in pairs if proof or len(pairs) == 1 else []:
        _show_pair(console, pair, several=len(pairs) > 1)
    typed = [encoding for name in encodings if (encoding := zoo.find(name)).name == encoding.text]
    if said := next(filter(None, (said_slopes(encoding, heads, given) for encoding in typed)), ""):
        console.print(Text(f"{said}; shown is head {heads if head is None else head} of {heads}"))
    if figure is not None:
        console.print(Text(f"figure: {figure}"))


def _watched(things: Sequence[Any], what: str, watch: Watch) -> Iterator[Any]:
    """Things one by one; the bar tells which it is."""
    for done, one in enumerate(things):
        watch(f"{what} {done + 1} of {len(things)}", done, len(things))
        yield one


def _member(name: str, given: dict[str, str], heads: int, head: int | None) -> tuple[str, Formula]:
    """A label and a formula with every parameter set: what was given, else the rule of the chosen head."""
    encoding = zoo.find(name)
    if encoding.formula is None:
        raise ValueError(f"{encoding.name} has no bias r(t), so it cannot be compared: {encoding.note}")
    rows = encoding.heads(heads, {k: v for k, v in given.items() if k in encoding.formula.parameters})
    chosen = len(rows) if head is None else whole(head, "head")
    if chosen > len(rows):
        raise ValueError(f"there is no head {chosen} among {len(rows)}")
    bound = rows[chosen - 1]
    label = encoding.name + "".join(f", {k} = {v}" for k, v in bound.items())
    return label, zoo.bound_formula(encoding, bound)


def _refuse_unused(given: dict[str, str], names: tuple[str, ...]) -> None:
    formulas = [zoo.find(name).formula for name in names]
    known = {p for f in formulas if f is not None for p in f.parameters}
    for name in given:
        if name not in known:
            has = f"their parameters are {', '.join(sorted(known))}" if known else "they have no parameters"
            raise ValueError(f"none of the encodings has a parameter '{name[:20]}': {has}")


def _row(label: str, formula: Formula, epsilons: list[str], context: int | None) -> dict[str, Any]:
    row: dict[str, Any] = {"encoding": label, "formula": formula.text(), "sum": None, "law": None, "trf": []}
    try:
        field = field_of(formula)
        row["verdict"] = "converges"
        if not formula.is_class:
            row |= {"sum": sum_json(series(formula)), "law": law(formula)}
        row["trf"] = [{"epsilon": e, "tokens": _tokens(field, e)} for e in epsilons]
    except DivergenceError:
        row["verdict"] = "diverges"
    if context is not None:
        row["context"] = context
        row["reach"] = [{"epsilon": e, "tokens": digits(reach(formula, e, context))} for e in epsilons]
    return row


def _tokens(field: Callable[[Fraction], int], epsilon: str) -> str | None:
    try:
        return digits(field(exact_epsilon(epsilon)))
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
    cells = []
    for i, e in enumerate(epsilons):
        cells.append([e, *(_short(row["trf"][i]["tokens"]) if row["trf"] else "none" for row in rows)])
        if context is not None:
            cells.append([f"{e} in {context}", *(_short(row["reach"][i]["tokens"]) for row in rows)])
    sums = ["B", *(shown_sum(row["sum"]["mid"], 10) if row["sum"] else _no_sum(row) for row in rows)]
    headings = ["epsilon", *(row["encoding"] for row in rows)]
    title = "receptive field in tokens, for each epsilon"
    console.print(fitting(console, headings, cells, title=title, below=[sums]))
    for row in rows:
        said = f"is {row['law']} as epsilon goes to 0" if row["law"] else "does not exist: the sum diverges"
        if row["law"] is None and row["verdict"] == "converges":
            said = "is the worst case over a class of biases"
        if (row["law"] or "").startswith("no "):
            said = f": {row['law']}"
        console.print(Text(f"the receptive field of {row['encoding']} {said}".replace(" :", ":")))


def _no_sum(row: dict[str, Any]) -> str:
    return "a class" if row["verdict"] == "converges" else "diverges"


def _short(tokens: str | None) -> str:
    return "not decided" if tokens is None else shown_number(tokens)


def ranking(rows: list[dict[str, Any]], pairs: list[Comparison]) -> list[str]:
    """Which sees how far as epsilon goes to 0, in one or two sentences; nothing beyond what was decided."""
    if len(pairs) == 1:
        return [pairs[0].sentence()]
    fields = [row["encoding"] for row in rows if row["verdict"] == "converges"]
    none = [row["encoding"] for row in rows if row["verdict"] != "converges"]
    among = [pair for pair in pairs if pair.a in fields and pair.b in fields]
    if any(pair.smaller is None for pair in among):
        said = [f"not every pair was decided: {len([p for p in among if p.smaller])} of {len(among)} (see --proof)"]
    elif fields:
        below = {name: sum(_smaller(pair) == name for pair in among) for name in fields}  # how many see further
        groups: dict[int, list[str]] = {}
        for name in sorted(fields, key=lambda name: -below[name]):
            groups.setdefault(below[name], []).append(name)
        said = [
            f"as epsilon -> 0, from the nearest to the farthest: {' < '.join(' = '.join(g) for g in groups.values())}"
        ]
    else:
        said = []
    return said + ([f"without a receptive field, because the sum diverges: {'; '.join(none)}"] if none else [])


def _smaller(pair: Comparison) -> str | None:
    return {"a": pair.a, "b": pair.b}.get(pair.smaller or "")


def _cells(row: dict[str, Any]) -> list[str]:
    return [one["tokens"] or "not decided" for one in row["trf"]]


def _csv(rows: list[dict[str, Any]], epsilons: list[str]) -> str:
    """One line for each encoding: exact receptive fields, empty where there is none."""
    out = io.StringIO()
    writer = csv_writer(out, lineterminator="\n")
    writer.writerow(["encoding", "formula", "verdict", *epsilons])
    for row in rows:
        writer.writerow([row["encoding"], row["formula"], row["verdict"], *(_cells(row) or [""] * len(epsilons))])
    return out.getvalue().rstrip("\n")


def _latex(rows: list[dict[str, Any]], epsilons: list[str]) -> str:
    """A table in mathematics mode, for booktabs."""
    lines = [
        rf"\begin{{tabular}}{{l{'r' * len(epsilons)}}}",
        r"\toprule",
        " & ".join([r"$r(t)$", *(rf"$\epsilon = {latex_number(e)}$" for e in epsilons)]) + r" \\",
        r"\midrule",
    ]
    for row in rows:
        cells = [f"${latex_number(c)}$" if c[0].isdigit() else c for c in _cells(row)] or ["diverges"] + [""] * (
            len(epsilons) - 1
        )
        lines.append(" & ".join([f"${latex_of(parse(row['formula']).node)}$", *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def latex_number(text: str) -> str:
    """A number as a person writes it, in mathematics mode: 1e-3 is a power of ten, long ones have thin spaces."""
    mantissa, e, exponent = text.partition("e")
    if e:
        return f"10^{{{int(exponent)}}}" if mantissa == "1" else rf"{mantissa} \cdot 10^{{{int(exponent)}}}"
    return f"{int(text):,}".replace(",", r"\,") if text.isdigit() else text


def _show_pair(console: Console, pair: Comparison, several: bool) -> None:
    if several:
        console.print(Text(pair.sentence(), style="bold"))
    console.print(numbered(pair.proof))
    for said in pair.turns():
        console.print(Padding(Text(said), (0, 0, 0, 6)))
