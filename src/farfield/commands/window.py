"""`farfield window`: how many tokens each head must keep, so that what it drops holds at most a share epsilon."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from farfield.commands.options import Formula, Json, SetParameters, Whole, WholeOrNone, head_values
from farfield.commands.tables import fitting
from farfield.theory.budget import answer_in_time
from farfield.theory.fields.receptive import digits
from farfield.theory.fields.windows import Windows, windows
from farfield.zoo import find
from farfield.zoo.head_parameters import said_slopes

SCOPE = "The bound is for each attention layer by itself, not for a network as a whole."


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
        encoding: A name from the zoo (`farfield zoo`), a formula of the bias r(t) such as "-k*t" or "-2*log(t + 1)", or
            the folder of a model, whose configuration gives the heads and layers.
        heads: Heads of the model.
        logit_bound: The largest |q.k|/sqrt(d) that may occur.
        epsilon: The share of attention that may be lost.
        context: Windows for texts of at most this many tokens (divergent encodings need it); without it, for every
            length.
        width: Width of one head, for encodings that depend on it.
        parameters: Give a parameter its value, as NAME=VALUE, or one for each head: k=1/2,1/4; may be repeated.
        as_json: Print one JSON object.
    """
    if is_model(encoding):
        _of_model(encoding, logit_bound, epsilon, as_json)
        return
    named = find(encoding)
    given = head_values(parameters)
    screen = Console(stderr=True)
    with answer_in_time(), screen.status("adding up the weights of each head"):
        result = windows(named, epsilon, logit_bound, heads, context=context, width=width, parameters=given)
    if as_json:
        print(json.dumps(_json(result, epsilon, logit_bound)))
    else:
        _show(Console(), named.name, result, epsilon, logit_bound)
        if named.name == named.text and (said := said_slopes(named, heads, given)):
            Console().print(Text(said))


def is_model(text: str) -> bool:
    """Whether a text names a folder or file that holds the configuration of a model."""
    place = Path(text).expanduser()
    try:
        return (place / "config.json").is_file() or (place.suffix == ".json" and place.is_file())
    except (OSError, ValueError):  # no path at all
        return False


def _of_model(model: str, logit_bound: str, epsilon: str, as_json: bool) -> None:
    """The windows of a model's layers, from its configuration."""
    from farfield.commands.inspect import show
    from farfield.theory.models.inspection import inspect

    inspection = inspect(model, logit_bound=logit_bound, epsilon=epsilon, name=model.rstrip("/"))
    if as_json:
        print(json.dumps(inspection.json(), indent=1))
    else:
        show(Console(), inspection)
        Console().print(Text(f"Certified windows hold at every length. {SCOPE}"))


def _json(result: Windows, epsilon: str, logit_bound: str) -> dict[str, Any]:
    return {
        "windows": [_number(h.tokens) for h in result.heads],
        "cache_tokens": result.cache_tokens,
        "full_tokens": result.full_tokens,
        "context": result.context,
        "every_length": not result.limited,
        "epsilon": epsilon,
        "logit_bound": logit_bound,
        "why": [h.why for h in result.heads],
        "scope": SCOPE,
    }


def _number(tokens: int | None) -> int | str | None:
    """A number, or its digits where Python would refuse to print so many."""
    return digits(tokens) if tokens is not None and tokens.bit_length() > 14_000 else tokens


def _show(console: Console, name: str, result: Windows, epsilon: str, logit_bound: str) -> None:
    known = [h.tokens for h in result.heads if h.tokens is not None]
    each = f"each of the {len(result.heads)} heads" if len(result.heads) > 1 else "the head"
    length = f" in texts of up to {result.context:,} tokens" if result.limited else ""
    said = f"the last {_shown(max(known))} tokens are enough for {each}{length}" if known else "no window is enough"
    if known and len(known) < len(result.heads):
        said = f"{len(known)} of {len(result.heads)} heads have a window, of at most {_shown(max(known))} tokens"
    console.print(Text(f"{name}: {said}.", style="bold"))
    console.print(f"windows for |q.k|/sqrt(d) <= {logit_bound} and a share of at most {epsilon} lost:")
    rows = [
        [str(h.number), ", ".join(f"{n} = {v}" for n, v in h.parameters.items()),
         "none" if h.tokens is None else _shown(h.tokens)]
        for h in result.heads
    ]  # fmt: skip
    console.print(fitting(console, ("head", "parameters", "window"), rows, left=("parameters",)))
    share = result.full_tokens / result.cache_tokens
    console.print(
        f"A layer keeps {result.cache_tokens:,} of {result.full_tokens:,} keys in a text of {result.context:,} tokens"
        + (f" ({share:.1f} times less)." if share > 1 else ".")
    )
    for sentence in _plainly(result):
        console.print(Text(sentence, style="yellow"))
    if any(h.tokens is not None for h in result.heads):
        length = f"for texts of up to {result.context:,} tokens" if result.limited else "at every length"
        console.print(f"Proven {length}. {SCOPE}")


def _shown(tokens: int) -> str:
    if tokens < 10**15:
        return f"{tokens:,}"
    text = digits(tokens)
    return f"{text[0]}.{text[1:3]}e{len(text) - 1}"


def _plainly(result: Windows) -> list[str]:
    """Where no window helps, say so."""
    said = []
    for why in dict.fromkeys(h.why for h in result.heads if h.tokens is None):
        who = ", ".join(str(h.number) for h in result.heads if h.why == why)
        said.append(f"No window exists for head {who}: {why}.")
    wide = [h for h in result.useless if h.tokens is not None]
    if wide:
        who = ", ".join(str(h.number) for h in wide)
        said.append(
            f"No useful window for head {who}: its weights fall so slowly that it must keep every key of a text of "
            f"{result.context:,} tokens."
        )
    return said
