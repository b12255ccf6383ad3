"""`farfield check`: the verdict on an encoding, its proof, its sum and its receptive fields."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from farfield.commands.options import (
    Flag,
    Formula,
    Json,
    SetParameters,
    Slopes,
    Whole,
    WholeOrNone,
    numbered,
    one_format,
    values,
)  # fmt: skip
from farfield.commands.proofs import ProofFile, proof_text
from farfield.commands.tables import fitting
from farfield.theory.fields.receptive import EPSILONS, exact_epsilon, whole
from farfield.theory.fields.summary import HeadSummary, Summary, fields, shown_number
from farfield.theory.verdict.convergence import BUDGET, Verdict, check
from farfield.zoo import Encoding, find
from farfield.zoo.head_parameters import said_slopes, with_slopes

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
    heads: WholeOrNone = None,
    width: Whole = 64,
    layers: WholeOrNone = None,
    parameters: SetParameters = None,
    slopes: Slopes = None,
    epsilon: Annotated[list[str] | None, Parameter(negative="")] = None,
    context: WholeOrNone = None,
    train_length: WholeOrNone = None,
    test_length: WholeOrNone = None,
    weight: Flag = False,
    start: Annotated[Whole, Parameter(name="--from")] = 0,
    as_json: Json = False,
    latex: Flag = False,
    coq: Path | None = None,
    verify: Flag = False,
    library: Path | None = None,
    time: float | None = None,
) -> None:
    """Decide whether the sum of exp(bias) converges, prove it, and tell how far the encoding sees.

    Args:
        encoding: A name from the zoo (`farfield zoo`), or a formula of the bias r(t) such as "-k*t" or "-2*log(t + 1)".
        heads: Judge every head of a model with this many heads.
        width: Width of one head, for encodings that depend on it.
        layers: Also tell how far a model with this many layers reaches.
        parameters: Give a parameter its value, as NAME=VALUE; may be repeated. Others stay open.
        slopes: What k is in each head: alibi (the default), or one for each head: 1/2,1/4,1/8,1/16.
        epsilon: Receptive fields for this share of the weights left outside; may be repeated. 0.5 ... 1e-12 if not
            given.
        context: Also show the practical reach within a context of this many tokens, which divergent encodings have too.
        train_length: With --test-length: the leak, the share of a test row that lies beyond the training length.
        test_length: See --train-length.
        weight: The formula gives the weight b(t) = exp(r(t)) instead of the bias.
        start: First distance of the series, for formulas that are undefined at 0.
        as_json: Print one JSON object.
        latex: Print the proof as LaTeX.
        coq: Write a file for the proof assistant Coq whose theorem is the verdict; of every head with --heads, and with
            --epsilon the receptive fields too.
        verify: Let Coq check these theorems now, if it is installed.
        library: Folder of the Coq library that the file needs; it is written there if it is not. In the user's cache
            unless given.
        time: How long sums and receptive fields may take, in seconds of the processor: what is not ready then is left
            out. 2, or the environment variable FARFIELD_TIME, unless given. It also allows the verdict more work.
    """
    seconds = float(os.environ.get("FARFIELD_TIME", "2")) if time is None else time
    if not 0 < seconds <= 86_400:
        raise ValueError(f"the time must be more than 0 and at most 86400 seconds, not {seconds:g}")
    if (train_length is None) != (test_length is None):
        raise ValueError("the leak needs both lengths: --train-length 512 --test-length 9216")
    if context is not None:
        whole(context, "context")
    whole(width, "width of a head")
    one_format(latex=latex, json=as_json)
    named = find(encoding, weight=weight)
    given = values(parameters)
    if slopes is not None:
        if "k" in given:
            raise ValueError("k is given twice, by --set and by --slopes")
        named, heads = with_slopes(named, slopes, heads)
    verdict = check(named, start=start, parameters=given, budget=BUDGET * (1 if time is None else time / 2))
    summary = fields(
        named, verdict, given, heads=heads, width=width, layers=layers, epsilons=epsilon or list(EPSILONS),
        context=context, lengths=None if train_length is None or test_length is None else (train_length, test_length),
        start=start, seconds=seconds,
    )  # fmt: skip
    if heads is not None and (said := said_slopes(named, heads, given)):
        summary.notes.append(said)
    proof = None
    if coq is not None or verify:
        rows = named.heads(heads, given, width=width) if heads is not None else [dict(given)]
        proof = ProofFile(proof_text(named, rows, start, epsilon), coq, library)
    if as_json:
        answer = {**verdict.json(), **summary.json()}
        print(json.dumps(answer if proof is None else {**answer, "coq": proof.json(verify)}, indent=2))
        return
    if latex:
        print(verdict.latex() + _latex_table(summary))
    else:
        show(Console(), named, verdict, summary)
    if proof is not None:
        proof.show(Console(stderr=latex), verify)


def show(console: Console, named: Encoding, verdict: Verdict, summary: Summary) -> None:
    """The answer for a person."""
    if named.asked:
        console.print(Text(f"{named.asked}:"))
    console.print(first_sentence(named, verdict, summary))
    console.print(Text(_heading(verdict), style="bold"))
    console.print(numbered(verdict.proof))
    if len(summary.heads) == 1 and summary.heads[0].exact_total is not None:
        console.print(Text(f"B = {summary.heads[0].exact_total}"))
    _show_heads(console, summary)
    for note in summary.notes:
        console.print(Text(note))


def _heading(verdict: Verdict) -> str:
    """What stands above the steps: which part is proven for all distances, and which is only compared at points."""
    if verdict.verdict not in ("converges", "diverges"):
        return "why"
    if verdict.proven:
        return "proof (checked: its bounds are proven for every t, nothing is sampled)"
    return "proof (its condition is compared with verdicts at points: sampled)" if verdict.sampled else "proof"


def first_sentence(named: Encoding, verdict: Verdict, summary: Summary) -> Text:
    """The whole answer in one sentence: the verdict, and how far it sees."""
    subject = named.name if named.text is None else f"{named.name}: {_equation(named.text)}"
    subject = _equation(named.text) if named.text == named.name else subject
    said = f" {verdict.condition or verdict.verdict}"
    if verdict.verdict == "not-applicable":
        said = ": the theorem does not apply"
    elif verdict.verdict == "undecided":
        said = ": undecided"
    elif verdict.envelope is not None and verdict.answer is not None:
        said = f": {verdict.answer}: {'the class' * (verdict.condition is None)}{said}".replace("  ", " ")
    return Text.assemble((subject, "bold"), (said, _COLOURS[verdict.verdict]), _how_far(verdict, summary) + ".")


def _equation(text: str) -> str:
    weight = text.removeprefix("weight:")
    return f"r(t) = {text}" if weight == text else f"b(t) = {weight.strip()}"


def _how_far(verdict: Verdict, summary: Summary) -> str:
    """What follows the verdict in the first sentence: the tokens that hold nearly all of the weight, where proven."""
    ready = [h for h in summary.heads if h.tokens]
    if verdict.verdict == "diverges" and verdict.envelope is None:
        return ", so no window is enough for every text"
    if not ready or len(ready) < len(summary.heads):
        return ""
    i = next(
        (i for i, e in enumerate(summary.epsilons) if exact_epsilon(e) <= Fraction(1, 100)), len(summary.epsilons) - 1
    )
    if any(len(h.tokens) <= i for h in ready):
        return ""
    widest = shown_number(max((h.tokens[i] for h in ready), key=lambda n: (len(n), n)))
    share = exact_epsilon(summary.epsilons[i]) * 100
    part = f"{float(share):g} %" if share >= Fraction(1, 1000) else summary.epsilons[i]
    word = "token" if widest == "1" else "tokens"
    where = f"; of {len(ready)} heads the widest has" if ready[0].head is not None else ", with"
    return f"{where} all but {part} of the weight within {widest} {word}"


def _latex_table(summary: Summary) -> str:
    """The receptive fields as a table, one row for each head, or nothing if there are none."""
    from farfield.commands.compare import latex_number

    rows = [h for h in summary.heads if h.tokens]
    if not rows:
        return ""
    names = [] if rows[0].head is None else ["head"]
    head = [*names, *(rf"$\epsilon = {latex_number(e)}$" for e in summary.epsilons)]
    lines = [rf"\begin{{tabular}}{{{'r' * len(head)}}}", r"\toprule", " & ".join(head) + r" \\", r"\midrule"]
    for h in rows:
        tokens = [f"${latex_number(str(n))}$" for n in h.tokens or ()]
        lines.append(" & ".join([*([str(h.head)] if names else []), *tokens]) + r" \\")
    return "\n" + "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def _show_heads(console: Console, summary: Summary) -> None:
    """One row for each head (or one for the formula), columns for what was asked."""
    single = len(summary.heads) == 1 and summary.heads[0].head is None
    columns: list[tuple[str, Callable[[HeadSummary], str]]] = []
    if any(h.total is not None for h in summary.heads) and not single:
        columns.append(("B", lambda h: h.total_text()))
    for i, e in enumerate(summary.epsilons):
        if any(h.tokens for h in summary.heads):
            columns.append((e, partial(_nth, "tokens", i)))
        if any(h.reach for h in summary.heads):
            columns.append((f"{e} in {summary.context}", partial(_nth, "reach", i)))
    if any(h.horizon for h in summary.heads):
        columns.append(("looks convergent up to", lambda h: h.horizon_text()))
    if summary.lengths is not None:
        columns.append(("leak", lambda h: "" if h.leak is None else f"{h.leak:.3f}"))
    if not columns or not summary.heads:
        return
    if not single:
        names = list(summary.heads[0].parameters)
        columns = [("head", lambda h: str(h.head)), *((n, partial(_parameter, n)) for n in names), *columns]
        if len({h.said for h in summary.heads}) > 1:
            columns.append(("verdict", lambda h: h.said))
    below = []
    for label, rows in (summary.layer or {}).items():
        tokens = {r["epsilon"]: shown_number(r["tokens"]) for r in rows}
        below.append([label if name == "head" else tokens.get(name, "") for name, _ in columns])
    cells = [[cell(h) for _, cell in columns] for h in summary.heads]
    title = "receptive field in tokens, for each epsilon" if any(h.tokens for h in summary.heads) else "each head"
    headings = [name for name, _ in columns]
    console.print(fitting(console, headings, cells, title=title, names=0 if single else 1, below=below))


def _nth(what: str, i: int, h: HeadSummary) -> str:
    numbers = getattr(h, what)
    return shown_number(numbers[i]) if i < len(numbers) else ""


def _parameter(name: str, h: HeadSummary) -> str:
    return h.parameters.get(name, "")
