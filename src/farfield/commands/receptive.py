"""`farfield receptive`: how far a trained model looks, by attention, by gradient, and by what a window changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from farfield.commands.options import Flag, Measuring, Watch, Whole, WholeOrNone, progress, whole_numbers
from farfield.table import Table
from farfield.words import tokens

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
    from farfield.measure.text import check_text, parse_lengths, possible_lengths, training_length_of

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
            from farfield.nn.decoder.masks import HiddenAttentionError

            shown = True
            try:
                measured = by_attention(model, text, n, epsilons=epsilons, burn_in=burn_in, chunks=chunks, watch=step)
                results.append(measured)
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
    from farfield.measure.text import training_length_of

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
        console.print(Text(one.sentence, style="bold"))
        _show_fields(console, one)
        if one.learned:
            headings = ("layer", "head", *one.learned[0].values, "verdict")
            title = "what each head learned, and the verdict on its series"
            rows = [[*head.cells(), head.verdict] for head in one.learned]
            console.print(Table(headings, rows, title=title, names=2, left=("verdict",)).rich(console))
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


def _show_fields(console: Console, one: ByAttention) -> None:
    """For each epsilon a table with a row for each head."""
    import numpy as np

    fields = one.quantiles((0.1, 0.5, 0.9))
    for e, epsilon in enumerate(one.epsilons):
        rows = []
        for layer, head in np.ndindex(*fields.shape[1:3]):
            low, middle, high = fields[e, layer, head]
            of_rows = "" if one.row_trf is None else str(one.row_trf[e, layer, head])
            trf = tokens(one.trf[e][layer][head])
            rows.append([str(one.layers[layer] + 1), str(head + 1), str(middle), f"{low} to {high}", trf, of_rows])
        headings = ("layer", "head", f"ERF({epsilon})", "10 % to 90 %", "TRF", "TRF of rows")
        title = f"by attention, epsilon = {epsilon}: {one.queries} queries a head, rows up to {one.length}"
        console.print(Table(headings, rows, title=title, names=2).rich(console))


def _show_truncation(console: Console, one: Truncation) -> None:
    import numpy as np

    console.print(Text(one.sentence, style="bold"))
    names = [n for n in ("delta", "lost", "sharper", "radius", "paper", "spread", "certificate") if n in one.median]
    of: dict[str, tuple[Any, Any]] = {
        "the median head, median query": (one.median, np.median),
        "the worst head and query": (one.largest, np.max),
    }
    for title, (changes, taken) in of.items():
        rows = [[str(j), *(f"{taken(changes[n][:, :, w]):.2g}" for n in names)] for w, j in enumerate(one.windows)]
        console.print(Table(("j", *names), rows, title=f"delta(i, j) and its bounds: {title}").rich(console))
    shown = {"median_logit_change": ".2g", "largest_logit_change": ".2g", "loss_change": "+.4f"}
    changes = [
        [str(j), *(f"{net[name]:{digits}}" for name, digits in shown.items())]
        for j, net in zip(one.windows, one.network, strict=True)
    ]
    headings = ("j", "log-probabilities: median", "largest", "loss")
    console.print(Table(headings, changes, title="the change of the whole network").rich(console))
    rows = [
        [f"{low} to {high}", *(f"{one.by_position[name][:, :, p].mean():.4f}" for name in ("lost", "delta"))]
        for p, (low, high) in enumerate(one.positions)
    ]
    title = f"at the fixed window j = {one.fixed}, against the position i (means)"
    console.print(Table(("i", "lost share of attention", "delta"), rows, title=title).rich(console))
