"""`farfield check`: the verdict on an encoding, its proof, its sum and its receptive fields."""

from __future__ import annotations

import json
import os
import re
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
    Whole,
    WholeOrNone,
    head_values,
    numbered,
    one_format,
)  # fmt: skip
from farfield.theory.fields.answer import Answer, answer
from farfield.theory.fields.receptive import EPSILONS
from farfield.zoo import find

_COLOURS = {
    "converges": "bold green",
    "diverges": "bold red",
    "undecided": "bold yellow",
    "not-applicable": "bold cyan",
}


def check_command(
    encoding: Formula | None = None,
    /,
    *,
    upper: Formula | None = None,
    lower: Formula | None = None,
    sink: Formula | None = None,
    heads: WholeOrNone = None,
    width: Whole = 64,
    layers: WholeOrNone = None,
    parameters: SetParameters = None,
    assume: str | None = None,
    epsilon: Annotated[list[str] | None, Parameter(negative="")] = None,
    context: WholeOrNone = None,
    train_length: WholeOrNone = None,
    test_length: WholeOrNone = None,
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
        encoding: A name from the zoo (`farfield zoo`), or a formula of the bias r(t) such as "-k*t" or "-2*log(t + 1)",
            or of the weight b(t) = exp(r(t)) after "weight:".
        upper: Of a bounded family, the bias that no member exceeds, instead of one formula.
        lower: Of a bounded family, the bias that no member is below.
        sink: The logit of one more key, which every row has.
        heads: Judge every head of a model with this many heads.
        width: Width of one head, for encodings that depend on it.
        layers: Also tell how far a model with this many layers reaches.
        parameters: Give a parameter its value, as NAME=VALUE, or one for each head: k=1/2,1/4; may be repeated. Others
            stay open.
        assume: What may be assumed of open parameters, such as "a > 0, b > 0".
        epsilon: Receptive fields for this share of the weights left outside; may be repeated. 0.5 ... 1e-12 if not
            given.
        context: Also show the practical reach within a context of this many tokens, which divergent encodings have too.
        train_length: With --test-length: the leak, the share of a test row that lies beyond the training length.
        test_length: See --train-length.
        start: First distance of the series, for formulas that are undefined at 0.
        as_json: Print one JSON object.
        latex: Print the proof as LaTeX.
        coq: Write a file for the proof assistant Coq whose theorem is the verdict; of every head with --heads, and with
            --epsilon the receptive fields too.
        verify: Let Coq check these theorems now, if it is installed.
        library: Folder of the Coq library that the file needs; it is written there if it is not. In the user's cache
            unless given.
        time: How long sums and receptive fields may take, in seconds of the processor: what is not ready then is left
            out. 2, or the environment variable FARFIELD_TIME, unless given.
    """
    seconds = float(os.environ.get("FARFIELD_TIME", "2")) if time is None else time
    if not 0 < seconds <= 86_400:
        raise ValueError(f"the time must be more than 0 and at most 86400 seconds, not {seconds:g}")
    lengths = None
    if train_length is not None and test_length is not None:
        lengths = train_length, test_length
    elif train_length is not None or test_length is not None:
        raise ValueError("the leak needs both lengths: --train-length 512 --test-length 9216")
    one_format(latex=latex, json=as_json)
    wants_file = coq is not None or verify
    result = answer(
        find(_text(encoding, upper, lower, sink)), heads=heads, width=width, layers=layers,
        parameters=head_values(parameters), assume=assume,
        epsilons=epsilon or EPSILONS, context=context, lengths=lengths, start=start,
        seconds=None if wants_file and epsilon and time is None else seconds,
    )  # fmt: skip
    proof = _coq_file(result.coq(fields=epsilon is not None), coq, library, verify) if wants_file else None
    if as_json:
        print(json.dumps(result.json() if proof is None else {**result.json(), "coq": proof}, indent=2))
        return
    if latex:
        print(result.latex())
    else:
        show(Console(), result)
    if proof is not None:
        _show_coq(Console(stderr=latex), proof)


def _text(encoding: str | None, upper: str | None, lower: str | None, sink: str | None) -> str:
    """The formula, or a bounded family as one text."""
    if (encoding is None) == (upper is None):
        raise ValueError("give one formula, as in farfield check alibi, or --upper and --lower (farfield check --help)")
    parts = ((name, part) for name, part in (("lower", lower), ("sink", sink)) if part is not None)
    first = f"upper: {upper}" if encoding is None else encoding
    return "; ".join([first, *(f"{name}: {part}" for name, part in parts)])


def show(console: Console, result: Answer) -> None:
    """The answer on a terminal: one sentence, the proof, the table, and what else there is to say."""
    if result.encoding.asked:
        console.print(Text(f"{result.encoding.asked}:"))
    colour = _COLOURS[result.verdict.verdict]
    console.print(Text.assemble((result.subject, "bold"), (result.claim, colour), f"{result.how_far}."))
    console.print(Text(result.heading, style="bold"))
    console.print(numbered(result.verdict.proof))
    if result.single is not None and result.single.enclosure is not None:
        console.print(Text(f"B = {result.single.enclosure}"))
    if (table := result.table()) is not None:
        console.print(table.rich(console))
    for note in result.notes:
        console.print(Text(note))


def _coq_file(text: str, path: Path | None, library: Path | None, verify: bool) -> dict[str, object]:
    """Write the file for Coq, and let Coq check it if asked: what was done, as plain data."""
    from farfield.theory.coq.library import command, verify_coq, write_library

    done: dict[str, object] = {"file": None if path is None else str(path), "theorems": text.count("\nTheorem ")}
    if path is not None:
        if not re.fullmatch(r"[A-Za-z]\w*\.v", path.name, re.ASCII):
            allowed = "letters, digits and _, beginning with a letter, and .v at the end"
            raise ValueError(f"Coq wants another name for its file than {path.name!r}: {allowed}")
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise ValueError(f"{path} cannot be written: {error.strerror}") from None
        done["command"] = command(write_library(library), path)
    if verify:
        with Console(stderr=True).status("Coq is checking; the first time, the library too"):
            done |= {"accepted": True, "seconds": round(verify_coq(text, library).seconds, 2)}
    return done


def _show_coq(console: Console, done: dict[str, object]) -> None:
    if done["file"] is not None:
        console.print(Text(f"{done['file']}: {done['theorems']} theorems for Coq; to check them:"), soft_wrap=True)
        console.print(Text(f"  {done['command']}"), soft_wrap=True)
    if "accepted" in done:
        console.print(Text(f"Coq accepts it ({done['seconds']:.1f} s)", style="bold green"))
