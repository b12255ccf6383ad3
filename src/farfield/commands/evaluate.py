"""`farfield evaluate`: perplexity against length by every protocol, and whether the model extrapolates."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from farfield.commands.options import Measuring, Whole, WholeOrNone, progress
from farfield.measure.rise import LEVEL, require_level
from farfield.table import Table
from farfield.words import percent, token_range, with_error

if TYPE_CHECKING:
    from farfield.measure import Evaluation, Score
    from farfield.measure.rise import Extrapolation

Protocol = Literal["non-overlapping", "sliding"]


def evaluate_command(
    model: str,
    *,
    lengths: str | None = None,
    tokens: Whole = 65_536,
    protocols: Annotated[list[Protocol] | None, Parameter(name="--protocol", negative="")] = None,
    stride: WholeOrNone = None,
    window: WholeOrNone = None,
    epsilon: str | None = None,
    tails: Annotated[list[str] | None, Parameter(name="--tail", negative="", allow_leading_hyphen=True)] = None,
    level: Annotated[float, Parameter(name=("--level", "--delta"))] = LEVEL,
    batch: WholeOrNone = None,
    out: Path | None = None,
    options: Measuring = Measuring(),
) -> None:
    """Measure perplexity from 1x to 18x the training length, with errors, and say whether the model extrapolates.

    Args:
        model: A run folder, a saved folder, or a model on the Hugging Face hub.
        lengths: Tokens or multiples of the training length, as "512,1024" or "1x,2x,18x"; the paper's 14 unless given.
        tokens: Tokens to score at most, the same for every length: segments of the longest, over the whole split.
        protocols: Only this protocol; may be repeated. Both unless given.
        stride: Of the sliding window: 1 is the paper's; half the length unless given.
        window: Also measure with every head cut at so many tokens.
        epsilon: Also measure with each head cut at its TRF(epsilon).
        tails: Also measure with the bias beyond the training length m replaced by this, the weights as they are: "cut",
            "constant", the name of an encoding, or a formula of t, m, r (the bias as trained), c (the bias at m - 1)
            and k, such as "r - 2*log(t/m)". May be repeated.
        level: The largest rise of perplexity above its lowest that still counts as extrapolation.
        batch: Samples read at once; halved where it does not fit.
        out: Folder of the results, written length by length; a second call goes on. In the model's folder unless given.
        options: What evaluate, receptive and speed share.
    """
    from farfield.measure import evaluate
    from farfield.measure.text import parse_lengths, possible_lengths, training_length_of

    require_level(level)
    with progress("reading the model", options.quiet) as watch:
        subject = options.model(model)
        longest = max(possible_lengths(subject, parse_lengths(lengths, training_length_of(subject)))[0])
        text = options.text(subject, tokens, segment=longest)
        result = evaluate(
            subject,
            text,
            lengths,
            protocols=protocols or ("non-overlapping", "sliding"),
            stride=stride,
            window=window,
            epsilon=epsilon,
            tails=tails or (),
            level=level,
            batch=batch,
            out=results_folder(model, out),
            watch=watch,
            say=None if options.quiet else lambda sentence: Console(stderr=True).print(Text(sentence)),
        )
    if options.figure is not None:
        from farfield.measure import perplexity_figure

        perplexity_figure({model: result}, options.figure)
    if options.as_json:
        print(json.dumps(result.json(), indent=1))
        for note in result.notes:
            Console(stderr=True).print(Text(note))
    else:
        show(Console(), model, result)


def results_folder(model: str, out: Path | None) -> Path:
    """Where results go: the folder that was given, `evaluation` in the model's own, or one in the current folder."""
    if out is not None:
        return out
    folder = Path(model).expanduser()
    return folder / "evaluation" if folder.is_dir() else Path("evaluation") / model.replace("/", "--")


def show(console: Console, name: str, result: Evaluation) -> None:
    """The results for a person: does it extrapolate, perplexity by length, the loss by tokens seen."""
    told = {p: result.extrapolation(p) for p in ("non-overlapping", "sliding")}
    said = next((one.sentence for one in told.values() if one is not None), "")
    console.print(Text(f"{name}: {said or f'perplexity without that at 1x, {result.training_length} tokens.'}"))
    for protocol, over_lengths in told.items():
        _show_lengths(console, result, protocol, over_lengths)
        if over_lengths is not None and over_lengths.sentence != said:
            console.print(Text(f"{protocol}: {over_lengths.sentence}"))
    windowed = result.of("windowed")
    if windowed:
        _show_windowed(console, result, windowed)
    if result.of("tail"):
        _show_tails(console, result)
    if result.of("non-overlapping"):
        _show_tokens_seen(console, result)
    for note in result.notes:
        console.print(Text(note))
    if result.saved is not None:
        console.print(Text(f"saved in {result.saved}", style="dim"))


def _show_lengths(console: Console, result: Evaluation, protocol: str, over_lengths: Extrapolation | None) -> None:
    """Perplexity by length; change and rise with paired errors, in which the difficulty of the text cancels."""
    changes = {one.length: one for one in over_lengths.lengths} if over_lengths else {}
    rows = []
    for row in sorted(result.of(protocol), key=lambda row: row.length):
        perplexity = with_error(row.perplexity, row.stderr, 3)
        cells = [str(row.length), f"{row.length / result.training_length:g}x", perplexity]
        if (one := changes.get(row.length)) is not None:
            base = row.length == result.training_length
            cells += ["", "", ""] if base else [
                percent(one.change, one.change_error, digits=2, sign="+"), percent(one.rise, one.rise_error, digits=2),
                one.answer,
            ]  # fmt: skip
        rows.append(cells)
    headings = ["length", "", "perplexity", "change from 1x", "rise", "answer"][: 6 if changes else 3]
    title = f"{protocol}: perplexity by length (± standard error; of changes: paired)"
    if rows:
        console.print(Table(headings, rows, title=title).rich(console))


def _show_windowed(console: Console, result: Evaluation, rows: list[Score]) -> None:
    full = {row.length: row for row in result.of("non-overlapping")}
    cells = []
    for row in rows:
        window = row.extra["window"]
        before = full.get(row.length)
        cells.append([
            str(row.length),
            token_range([window] if isinstance(window, int) else window),
            with_error(row.perplexity, digits=3),
            "" if before is None else percent(*row.against(before), digits=2, sign="+"),
            f"{row.extra['certified_lost_mass']:.2g}, {row.extra['mean_certified_lost_mass']:.2g}",
            f"{row.extra['lost_mass']:.2g}, {row.extra['mean_lost_mass']:.2g}",
            "" if before is None else f"{row.seconds / before.seconds:.2f} of full",
        ])  # fmt: skip
    headings = ("length", "windows", "perplexity", "change", "lost mass, certified", "lost mass, true", "time")
    title = "each head cut at a window (lost share of attention: largest over all rows, and mean)"
    console.print(Table(headings, cells, title=title).rich(console))


def _show_tails(console: Console, result: Evaluation) -> None:
    trained = {row.length: row for row in result.of("non-overlapping")}
    rows = [
        [str(row.length), row.extra["tail"], row.extra["verdict"],
         with_error(row.extra["leak"], digits=3), with_error(row.perplexity, digits=3),
         percent(*row.against(trained[row.length]), digits=2, sign="+")]
        for row in result.of("tail")
    ]  # fmt: skip
    headings = ("length", "tail", "series", "leak", "perplexity", "change")
    title = "the bias beyond the training length replaced, nothing else"
    console.print(Table(headings, rows, title=title, names=2, left=("tail", "series")).rich(console))


def _show_tokens_seen(console: Console, result: Evaluation) -> None:
    shares = {row.length: row for row in result.of("non-overlapping")}
    ends = sorted({min(shares), max(shares)})
    rows = []
    for p in result.by_tokens_seen():
        low, high = int(p["from"]), int(p["to"])
        error = None if math.isnan(p["error"]) else p["error"]
        cells = [str(low) if low == high else f"{low} to {high}", with_error(p["loss"], error, 3)]
        for n in ends:
            inside = [q for q in shares[n].positions or [] if low <= q["from"] and q["to"] <= high]
            cells.append(percent(sum(q["tokens"] for q in inside) / shares[n].tokens, digits=2))
        rows.append(cells)
    title = "loss by tokens seen: why perplexity falls with the length"
    console.print(Table(("tokens seen", "loss", *(f"share at {n}" for n in ends)), rows, title=title).rich(console))
