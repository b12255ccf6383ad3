"""`farfield receptive`: how far a trained model looks, by attention, by gradient, and by what a window changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from farfield.commands.options import Flag, Measuring, Watch, Whole, WholeOrNone, progress, whole_numbers

if TYPE_CHECKING:
    from farfield.measure import ByAttention, ByGradient, Truncation


def receptive_command(
    models: Annotated[list[str], Parameter(negative="")],
    *,
    truncate: Flag = False,
    length: str | None = None,
    epsilon: Annotated[list[str] | None, Parameter(negative="")] = None,
    burn_in: WholeOrNone = None,
    chunks: Whole = 4,
    outputs: Whole = 16,
    windows: str | None = None,
    options: Measuring = Measuring(),
) -> None:
    """Measure the empirical receptive field of every head and of the whole network, beside the theoretical one.

    Args:
        models: One or more: run folders, saved folders, or models on the Hugging Face hub.
        truncate: Measure delta(i, j) instead: the change of each attention output, and of the network, when only the
            last j tokens are kept, beside the paper's bound and the sharper ones.
        length: Tokens read at once, or a multiple such as "8x"; 4 times the training length unless given.
        epsilon: The share of attention outside the field; may be repeated. 0.1 and 0.01 unless given.
        burn_in: Queries at the start of each chunk that do not count; half the length unless given.
        chunks: Chunks of the text to read.
        outputs: Positions whose gradient is taken; 0 leaves it out.
        windows: The windows j of --truncate, as "16,64,256"; powers of two unless given.
        options: What evaluate, receptive and speed share.
    """
    from farfield.measure.lengths import check_text, parse_lengths, possible_lengths, training_length_of

    if not models:
        raise ValueError("Which model? Give a run folder, a saved folder, or a model on the hub.")
    if chunks < 1:
        raise ValueError(f"{chunks} chunks were asked for; it must be at least 1.")
    results: list[Any] = []
    gradients: list[Any] = []
    epsilons = tuple(epsilon or ("0.1", "0.01"))
    with progress("reading the model", options.quiet) as watch:
        for number, name in enumerate(models):
            model = options.model(name)
            wanted = parse_lengths(length, training_length_of(model))[:1] if length else [_usual(model)]
            n = possible_lengths(model, wanted)[0][0]
            text = options.text(model, chunks * n, segment=n)
            check_text(text.span, [n], f"The {options.split} text")
            step = _stepper(watch, name, number / len(models), model.layers * chunks * len(models))

            if truncate:
                from farfield.measure import truncation

                js = None if windows is None else whole_numbers("--windows", windows)
                results.append(truncation(model, text, n, windows=js, burn_in=burn_in, chunks=chunks, watch=step))
                continue
            from farfield.measure import by_attention, by_gradient
            from farfield.measure.transformers_models import HiddenAttentionError

            shown = True
            try:
                found = by_attention(model, text, n, epsilons=epsilons, burn_in=burn_in, chunks=chunks, watch=step)
                results.append(found)
            except HiddenAttentionError as error:
                shown = False
                Console(stderr=True).print(Text(f"{error} Only the gradient is measured."))
            if outputs or not shown:
                gradients.append(by_gradient(model, text, n, epsilons=epsilons, outputs=outputs or 16, watch=step))
    if options.figure is not None:
        from farfield.measure import receptive_figure, truncation_figure

        if truncate:
            truncation_figure(results, options.figure)
        else:
            receptive_figure(results, options.figure, gradients)
    if options.as_json:
        print(json.dumps(_json(results, gradients, truncate, list(epsilons)), indent=1))
    elif truncate:
        for one in results:
            _show_truncation(Console(), one)
    else:
        _show(Console(), results, gradients)


def _stepper(watch: Watch, label: str, before: float, steps: int) -> Callable[[], None]:
    """A function that moves the bar by one step of `steps` each time, from the share `before` on."""
    done = [int(before * steps)]

    def step() -> None:
        done[0] = min(done[0] + 1, steps)
        watch(label, done[0], steps)

    return step


def _usual(model: Any) -> int:
    from farfield.measure.lengths import training_length_of

    known = training_length_of(model)
    return min(4 * known, model.longest or 4 * known)


def _json(results: list[Any], gradients: list[Any], truncate: bool, epsilons: list[str]) -> dict[str, Any]:
    if truncate:
        return {"truncation": [one.json() for one in results]}
    from farfield.measure import agreement

    return {
        "attention": [one.json() for one in results],
        "gradient": [one.json() for one in gradients],
        "rank_correlation": {epsilon: agreement(results, e) for e, epsilon in enumerate(epsilons)},
    }


def _show(console: Console, results: list[ByAttention], gradients: list[ByGradient]) -> None:
    from farfield.measure import agreement

    for one in results:
        title = f"{one.model} ({one.encoding}): ERF by attention, {one.queries} queries a head, rows up to {one.length}"
        console.print(Text(title, style="bold"))
        console.print(_heads(one))
        if one.learned:
            console.print(Text("what each head learned, and the verdict on its series", style="bold"))
            console.print(_learned(one))
    for grad in gradients:
        for field in grad.json()["fields"]:
            spread = f"{field['erf']['0.1']} to {field['erf']['0.9']}"
            line = f"{grad.encoding}, by gradient through {grad.layers} layers: "
            line += f"{field['median']} tokens hold all but {field['epsilon']} (10 % to 90 %: {spread})"
            console.print(Text(line))
    for e, epsilon in enumerate(results[0].epsilons if results else []):
        ranks = agreement(results, e)
        if ranks["trf_of_rows"] is not None:
            said = "not defined" if ranks["trf"] is None else f"{ranks['trf']:.3f}"
            text = f"epsilon = {epsilon}: rank correlation of ERF with TRF {said}, "
            console.print(Text(text + f"with the TRF of rows this long {ranks['trf_of_rows']:.3f}"))
    console.print(
        Text(
            "The paper draws one normalised curve of the first layer: it divides by the length, so divergent "
            "encodings look like others, and averages queries before it cuts (docs/measurement.md).",
            style="dim",
        )
    )


def _heads(one: ByAttention) -> Table:
    table = Table()
    for column in ("layer", "head"):
        table.add_column(column, justify="right")
    for epsilon in one.epsilons:
        for column in (f"ERF({epsilon})", "10 % to 90 %", "TRF", "TRF of rows"):
            table.add_column(column, justify="right")
    fields = one.quantiles((0.1, 0.5, 0.9))
    for layer in range(fields.shape[1]):
        for head in range(fields.shape[2]):
            cells = [str(layer + 1), str(head + 1)]
            for e in range(len(one.epsilons)):
                low, middle, high = fields[e, layer, head]
                rows = "" if one.row_trf is None else str(one.row_trf[e, layer, head])
                cells += [str(middle), f"{low} to {high}", _tokens(one.trf[e][layer][head]), rows]
            table.add_row(*(Text(cell) for cell in cells))
    return table


def _learned(one: ByAttention) -> Table:
    table = Table()
    for column in ("layer", "head", *one.learned[0].values, "verdict"):
        table.add_column(column, justify="left" if column == "verdict" else "right")
    for head in one.learned:
        table.add_row(*(Text(cell) for cell in head.cells()))
    return table


def _tokens(n: int | None) -> str:
    return "none" if n is None else str(n) if n < 10**12 else f"about 2^{n.bit_length() - 1}"


def _show_truncation(console: Console, one: Truncation) -> None:
    import numpy as np

    title = f"{one.model} ({one.encoding}): delta(i, j), the change when only the last j tokens are kept"
    console.print(Text(title, style="bold"))
    table = Table(
        title="queries past the burn-in; median over heads of the median, and the largest", title_justify="left"
    )
    names = [n for n in ("delta", "lost", "sharper", "radius", "paper", "spread", "certificate") if n in one.median]
    for column in ("j", *names, "log-probabilities", "loss"):
        table.add_column(column, justify="right")
    for w, j in enumerate(one.windows):
        cells = [str(j)]
        for name in names:
            middle, most = np.median(one.median[name][:, :, w]), one.largest[name][:, :, w].max()
            cells.append(f"{middle:.2g} / {most:.2g}")
        net = one.network[w]
        cells += [f"{net['median_logit_change']:.2g} / {net['largest_logit_change']:.2g}", f"{net['loss_change']:+.4f}"]
        table.add_row(*(Text(cell) for cell in cells))
    console.print(table)
    against = Table(title=f"at the fixed window j = {one.fixed}, against the position i (means)", title_justify="left")
    for column in ("i", "lost share of attention", "delta"):
        against.add_column(column, justify="right")
    for p, (low, high) in enumerate(one.positions):
        lost, delta = (one.by_position[name][:, :, p].mean() for name in ("lost", "delta"))
        against.add_row(Text(f"{low} to {high}"), Text(f"{lost:.4f}"), Text(f"{delta:.4f}"))
    console.print(against)
