"""`farfield compare`: receptive fields side by side, which one is smaller and why, and a figure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Annotated, TypeVar

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
from farfield.table import Mathematics, Table, TableCell
from farfield.theory.budget import answer_in_time
from farfield.theory.fields.answer import Answer, answer, epsilon_cell
from farfield.theory.fields.comparison import compare, ranking
from farfield.theory.fields.curves import curve, fields_figure
from farfield.theory.fields.receptive import EPSILONS, digits, exact_epsilon, whole
from farfield.words import tokens
from farfield.zoo.encoding import slopes_sentence

T = TypeVar("T")


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
    epsilons = tuple(epsilon or EPSILONS)
    for e in epsilons:
        exact_epsilon(e)
    one_format(csv=csv, latex=latex, json=as_json)
    given = values(parameters)
    named = [zoo.find(name) for name in encodings]
    _refuse_unused(given, named)
    settings = [_parameters_of_head(encoding, given, heads, head) for encoding in named]
    with progress("receptive fields", quiet=False) as watch:
        rows = [
            answer(encoding, parameters=setting, epsilons=epsilons, context=context)
            for encoding, setting in _watched(list(zip(named, settings, strict=True)), "receptive field", watch)
        ]
        if figure is not None:
            near = context or 512
            curves = [curve(row.label, row.heads[0].formula, near) for row in _watched(rows, "curve", watch)]
            fields_figure(curves, figure, context=near)
        pairs = [
            compare(a.heads[0].formula, b.heads[0].formula, names=(a.label, b.label))
            for a, b in _watched([] if csv or latex else list(combinations(rows, 2)), "pair", watch)
        ]
    if csv or latex:
        table = _exact_table(rows, epsilons, about=csv)
        print((table.csv() if csv else table.latex()).rstrip("\n"))
        return
    if as_json:
        drawn = [] if figure is None else [str(figure)]
        out = {"encodings": [_json(row) for row in rows], "pairs": [pair.json() for pair in pairs], "figures": drawn}
        print(json.dumps(out, indent=2))
        return
    console = Console()
    converging = [row.label for row in rows if row.converges]
    for sentence in ranking(converging, [row.label for row in rows if not row.converges], pairs):
        console.print(Text(sentence, style="bold"))
    console.print(_table(rows, epsilons, context).rich(console))
    for row in rows:
        console.print(Text(_law(row)))
    for pair in pairs if proof or len(pairs) == 1 else []:
        if len(pairs) > 1:
            console.print(Text(pair.sentence(), style="bold"))
        console.print(numbered(pair.proof))
        for turn in pair.turns():
            console.print(Padding(Text(turn), (0, 0, 0, 6)))
    notes = (slopes_sentence(encoding, heads, given) for encoding in named if encoding.name == encoding.text)
    if note := next(filter(None, notes), ""):
        console.print(Text(f"{note}; shown is head {heads if head is None else head} of {heads}"))
    if figure is not None:
        console.print(Text(f"figure: {figure}"))


def _json(row: Answer) -> dict[str, object]:
    head = row.heads[0]
    out = {"encoding": row.label, "formula": head.formula.text(), "verdict": row.verdict.verdict}
    context = {} if row.context is None else {"context": row.context}
    return {**out, **head.json(row.epsilons), "law": row.law, **context}


def _law(row: Answer) -> str:
    """How a receptive field grows, in one sentence."""
    if not row.converges:
        end = " does not exist: the sum diverges"
    elif row.law is None:
        end = " is the worst case over a bounded family"
    else:
        end = f": {row.law}" if row.law.startswith("no ") else f" is {row.law} as epsilon goes to 0"
    return f"the receptive field of {row.label}{end}"


def _watched(things: Sequence[T], what: str, watch: Watch) -> Iterator[T]:
    """Things one by one; the bar tells which it is."""
    for done, thing in enumerate(things):
        watch(f"{what} {done + 1} of {len(things)}", done, len(things))
        yield thing


def _parameters_of_head(
    encoding: zoo.Encoding, given: dict[str, str], heads: int, head: int | None
) -> dict[str, zoo.Value]:
    """Every parameter of an encoding: what was given, else the rule of the chosen head."""
    if encoding.formula is None:
        raise ValueError(f"{encoding.name} has no bias r(t), so it cannot be compared: {encoding.note}")
    rows = encoding.heads(heads, {name: given[name] for name in given if name in encoding.formula.parameters})
    chosen = len(rows) if head is None else whole(head, "head")
    if chosen > len(rows):
        raise ValueError(f"there is no head {chosen} among {len(rows)}")
    zoo.bound_formula(encoding, rows[chosen - 1])  # refuses what is left open
    return rows[chosen - 1]


def _refuse_unused(given: dict[str, str], encodings: list[zoo.Encoding]) -> None:
    known = {name for encoding in encodings if encoding.formula is not None for name in encoding.formula.parameters}
    for name in given:
        if name not in known:
            has = f"their parameters are {', '.join(sorted(known))}" if known else "they have no parameters"
            raise ValueError(f"none of the encodings has a parameter '{name[:20]}': {has}")


def _table(rows: list[Answer], epsilons: tuple[str, ...], context: int | None) -> Table:
    """A column for each encoding, for the terminal."""

    def cell(row: Answer, numbers: list[int], i: int) -> str:
        return tokens(numbers[i]) if i < len(numbers) else "not decided" if row.converges else "none"

    cells = []
    for i, epsilon in enumerate(epsilons):
        cells.append([epsilon, *(cell(row, row.heads[0].fields, i) for row in rows)])
        if context is not None:
            cells.append([f"{epsilon} in {context}", *(cell(row, row.heads[0].reach, i) for row in rows)])
    sums = [row.heads[0].total_text(10) or ("a family" if row.converges else "diverges") for row in rows]
    title = "receptive field in tokens, for each epsilon"
    return Table(["epsilon", *(row.label for row in rows)], cells, title=title, below=[["B", *sums]])


def _exact_table(rows: list[Answer], epsilons: tuple[str, ...], *, about: bool) -> Table:
    """A row for each encoding, with all digits; `about` says more of each, where a spreadsheet has room for it."""
    cells: list[list[str | TableCell]] = []
    for row in rows:
        head, absent = row.heads[0], "not decided" if row.converges else "" if about else "none"
        fields = [*map(digits, head.fields), *[absent] * (len(epsilons) - len(head.fields))]
        formula = Mathematics(head.formula.text(), head.formula.latex())
        cells.append([row.label, formula, row.verdict.verdict, *fields] if about else [formula, *fields])
    name = Mathematics("formula", "r(t)")
    headings: list[str | TableCell] = ["encoding", name, "verdict"] if about else [name]
    return Table([*headings, *map(epsilon_cell, epsilons)], cells, title="Receptive fields in tokens")
