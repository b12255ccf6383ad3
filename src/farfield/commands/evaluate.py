"""`farfield evaluate`: perplexity against length by every protocol, and whether the model extrapolates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from farfield.commands.options import Measuring, Whole, WholeOrNone, progress

if TYPE_CHECKING:
    from farfield.measure import Evaluation, Score

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
    level: Annotated[float, Parameter(name=("--level", "--delta"))] = 0.02,
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
    from farfield.measure.lengths import parse_lengths, possible_lengths, training_length_of

    if level <= 0:
        raise ValueError(f"The level is {level}; it must be a positive number, such as 0.02 for 2 %.")
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
    """The results for a person: perplexity by length, the loss by tokens seen, the verdict."""
    console.print(Text(f"{name}: training length {result.training_length}", style="bold"))
    console.print(_by_length(result))
    windowed = result.of("windowed")
    if windowed:
        console.print(_windowed(result, windowed))
    if result.of("tail"):
        console.print(_tails(result))
    if result.of("non-overlapping"):
        console.print(_by_tokens_seen(result))
    for protocol in ("non-overlapping", "sliding"):
        over_lengths = result.extrapolation(protocol)
        if over_lengths is not None:
            console.print(Text(f"{protocol}: {over_lengths.sentence}"))
    for note in result.notes:
        console.print(Text(note))
    if result.saved is not None:
        console.print(Text(f"saved in {result.saved}", style="dim"))


def _by_length(result: Evaluation) -> Table:
    table = Table(title="perplexity by length (± standard error)", title_justify="left")
    protocols = [p for p in ("non-overlapping", "sliding") if result.of(p)]
    for column in ("length", "", *protocols, "change", "rise", "answer"):
        table.add_column(column, justify="right")
    over_lengths = result.extrapolation(protocols[0]) if protocols else None
    changes = {one.length: one for one in over_lengths.lengths} if over_lengths else {}
    for length in sorted({row.length for row in result.rows}):
        cells = [str(length), f"{length / result.training_length:g}x"]
        for protocol in protocols:
            row = next((r for r in result.of(protocol) if r.length == length), None)
            cells.append("" if row is None else _number(row))
        one = changes.get(length)
        if one is not None:
            rise = _percent(one.rise, one.rise_error)
            cells += [f"{one.change:+.2%}", rise, "" if length == result.training_length else one.answer]
        table.add_row(*(Text(cell) for cell in cells))
    return table


def _number(row: Score) -> str:
    return f"{row.perplexity:.3f}" + ("" if row.stderr is None else f" ± {row.stderr:.2g}")


def _percent(share: float, error: float | None) -> str:
    return f"{share:.2%}" + (f" ± {error:.2%}" if error else "")


def _windowed(result: Evaluation, rows: list[Score]) -> Table:
    from farfield.measure.windows import shortest_text

    title = "each head cut at a window (lost share of attention: largest over all rows, and mean)"
    table = Table(title=title, title_justify="left")
    for column in ("length", "windows", "perplexity", "lost mass, certified", "lost mass, true", "time"):
        table.add_column(column, justify="right")
    full = {row.length: row for row in result.of("non-overlapping")}
    for row in rows:
        window = row.extra["window"]
        cells = [
            str(row.length),
            shortest_text([window] if isinstance(window, int) else window),
            _number(row),
            f"{row.extra['certified_lost_mass']:.2g}, {row.extra['mean_certified_lost_mass']:.2g}",
            f"{row.extra['lost_mass']:.2g}, {row.extra['mean_lost_mass']:.2g}",
            f"{row.seconds / full[row.length].seconds:.2f} of full" if row.length in full else "",
        ]
        table.add_row(*(Text(cell) for cell in cells))
    return table


def _tails(result: Evaluation) -> Table:
    table = Table(title="the bias beyond the training length replaced, nothing else", title_justify="left")
    for column in ("length", "tail", "series", "leak", "perplexity", "change"):
        table.add_column(column, justify="left" if column in ("tail", "series") else "right")
    trained = {row.length: row for row in result.of("non-overlapping")}
    for row in result.of("tail"):
        before = trained[row.length]
        leak = "" if row.extra["leak"] is None else f"{row.extra['leak']:.3f}"
        cells = [str(row.length), row.extra["tail"], row.extra["verdict"], leak, f"{row.perplexity:.3f}"]
        change, error = row.against(before)
        cells.append(f"{change:+.1%}" + (f" ± {error:.1%}" if error else ""))
        table.add_row(*(Text(cell) for cell in cells))
    return table


def _by_tokens_seen(result: Evaluation) -> Table:
    shares = {row.length: row for row in result.of("non-overlapping")}
    ends = sorted({min(shares), max(shares)})
    table = Table(title="loss by tokens seen: why perplexity falls with the length", title_justify="left")
    for column in ("tokens seen", "loss", *(f"share at {n}" for n in ends)):
        table.add_column(column, justify="right")
    for p in result.by_tokens_seen():
        low, high = int(p["from"]), int(p["to"])
        cells = [str(low) if low == high else f"{low} to {high}", f"{p['loss']:.3f}"]
        for n in ends:
            inside = [q for q in shares[n].positions or [] if low <= q["from"] and q["to"] <= high]
            cells.append(f"{sum(q['tokens'] for q in inside) / shares[n].tokens:.2%}")
        table.add_row(*(Text(cell) for cell in cells))
    return table
