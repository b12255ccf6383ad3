"""`farfield window`: how many tokens each head must keep, so that what it drops holds at most a share epsilon."""

from __future__ import annotations

import json

from rich.console import Console
from rich.text import Text

from farfield.commands.options import Formula, Json, SetParameters, Whole, WholeOrNone, head_values
from farfield.table import Table
from farfield.theory.budget import answer_in_time
from farfield.theory.fields.windows import SCOPE, Windows, windows
from farfield.words import tokens
from farfield.zoo import find
from farfield.zoo.encoding import slopes_sentence


def window_command(
    encoding: Formula,
    *,
    heads: Whole = 8,
    logit_bound: str = "5",
    epsilon: str = "0.01",
    context: WholeOrNone = None,
    width: Whole = 64,
    parameters: SetParameters = None,
    as_json: Json = False,
) -> None:
    """Tell how many tokens a head must keep so that at most a share epsilon of its attention is lost, with proof.

    Args:
        encoding: A name from the zoo (`farfield zoo`), or a formula of the bias r(t) such as "-k*t" or "-2*log(t + 1)".
            Of a model, `farfield inspect MODEL --logit-bound 5` tells it.
        heads: Heads of the model.
        logit_bound: The largest |q.k|/sqrt(d) that may occur.
        epsilon: The share of attention that may be lost.
        context: Windows for texts of at most this many tokens (divergent encodings need it); without it, for every
            length.
        width: Width of one head, for encodings that depend on it.
        parameters: Give a parameter its value, as NAME=VALUE, or one for each head: k=1/2,1/4; may be repeated.
        as_json: Print one JSON object.
    """
    named, given = find(encoding), head_values(parameters)
    with answer_in_time(), Console(stderr=True).status("adding up the weights of each head"):
        result = windows(named, epsilon, logit_bound, heads, context=context, width=width, parameters=given)
    if as_json:
        print(json.dumps(result.json()))
        return
    _show(Console(), named.name, result)
    if named.name == named.text and (note := slopes_sentence(named, heads, given)):
        Console().print(Text(note))


def _show(console: Console, name: str, result: Windows) -> None:
    console.print(Text(f"{name}: {result.sentence}", style="bold"))
    console.print(f"windows for |q.k|/sqrt(d) <= {result.logit_bound} and a share of at most {result.epsilon} lost:")
    rows = [
        [str(h.number), ", ".join(f"{n} = {v}" for n, v in h.parameters.items()), tokens(h.tokens)]
        for h in result.heads
    ]
    console.print(Table(("head", "parameters", "window"), rows, left=("parameters",)).rich(console))
    times = f" ({result.saving:.1f} times less)" if result.saving > 1 else ""
    kept, full, length = (tokens(n) for n in (result.cache_tokens, result.full_tokens, result.context))
    console.print(f"A layer keeps {kept} of {full} keys in a text of {length} tokens{times}.")
    for sentence in result.reasons():
        console.print(Text(sentence, style="yellow"))
    if any(h.tokens is not None for h in result.heads):
        console.print(
            f"Proven {f'for texts of up to {length} tokens' if result.limited else 'at every length'}. {SCOPE}"
        )
