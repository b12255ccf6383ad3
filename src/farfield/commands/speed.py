"""`farfield speed`: what sliding window, non-overlapping, full-length and windowed inference cost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from farfield.commands.options import Measuring, Whole, WholeOrNone, progress, whole_numbers
from farfield.table import Table
from farfield.words import with_error

if TYPE_CHECKING:
    from farfield.measure import Speed


def speed_command(
    model: str,
    *,
    windows: str = "16,32,64,128,256,512",
    length: WholeOrNone = None,
    tokens: Whole = 4608,
    sliding_tokens: WholeOrNone = None,
    repeats: Whole = 3,
    options: Measuring = Measuring(),
) -> None:
    """Time the ways to infer with a window, as the paper's Table 1 does, and windowed attention beside them.

    Args:
        model: A run folder, a saved folder, or a model on the hub.
        windows: The windows, with commas.
        length: Tokens of one pass of full-length inference and windowed attention; 18 times the training length unless
            given.
        tokens: Tokens to score.
        sliding_tokens: Time the sliding window on so many tokens only: it reads a whole window for each. Perplexities
            are then all of these tokens.
        repeats: The fastest of so many counts.
        options: What evaluate, receptive and speed share.
    """
    from farfield.measure import measure_speed

    if tokens < 1:
        raise ValueError(f"{tokens} tokens were asked for; it must be at least 1.")
    sizes = sorted(set(whole_numbers("--windows", windows)))
    with progress("reading the model", options.quiet) as watch:
        subject = options.model(model)
        text = options.text(subject, tokens)
        done = [0]

        def step(label: str) -> None:
            watch(label, done[0], 3 * len(sizes) + 1)
            done[0] += 1

        result = measure_speed(
            subject, text, windows=sizes, length=length, sliding_tokens=sliding_tokens, repeats=repeats, watch=step
        )
    if options.figure is not None:
        from farfield.measure import speed_figure

        speed_figure(result, options.figure)
    if options.as_json:
        print(json.dumps(result.json(), indent=1))
    else:
        show(Console(), result)


def show(console: Console, result: Speed) -> None:
    """The table for a person."""
    from farfield.measure.speed import PAPER

    console.print(Text(result.sentence, style="bold"))
    base = {t.window: t.per_token for t in result.of("non-overlapping")}
    rows = []
    for w in base:
        cells = [str(w)]
        for protocol in ("non-overlapping", "sliding", "windowed"):
            t = next(t for t in result.of(protocol) if t.window == w)
            cells.append(f"{t.per_token / base[w]:.2f}x  {t.perplexity:.3f}")
        rows.append(cells)
    headings = ("window", "non-overlapping", "sliding, stride 1", "windowed attention")
    title = "time of a token relative to non-overlapping, and perplexity of the same tokens"
    console.print(Table(headings, rows, title=title).rich(console))
    averages = [
        [protocol, with_error(ratio), with_error(PAPER.get(protocol))] for protocol, ratio in result.relative().items()
    ]
    title = "average over the windows (the paper's Table 1)"
    console.print(Table(("inference", "here", "paper"), averages, title=title, left=("inference",)).rich(console))
    for t in result.of("full"):
        console.print(Text(f"full length: passes of {result.length} tokens, perplexity {t.perplexity:.3f}"))
