"""`farfield needle`: how far back a model finds a value again, beside what the theory cuts off."""

from __future__ import annotations

import json
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from farfield.commands.options import FigurePath, Json, Whole, WholeOrNone, whole_numbers


def needle_command(
    models: Annotated[list[str] | None, Parameter(negative="")] = None,
    *,
    train: Annotated[list[str] | None, Parameter(negative="", allow_leading_hyphen=True)] = None,
    length: Whole = 32,
    steps: Whole = 300,
    distances: str | None = None,
    trials: Whole = 64,
    window: WholeOrNone = None,
    training_length: WholeOrNone = None,
    device: str | None = None,
    seed: Whole = 0,
    figure: FigurePath = None,
    as_json: Json = False,
) -> None:
    """Measure whether a model finds the value of a key again that stands t tokens back, in synthetic text.

    Args:
        models: Run folders, saved folders, or models on the Hugging Face hub.
        train: Also train a small model with this encoding for the task, on the spot; may be repeated.
        length: Training length of these.
        steps: Training steps of these.
        distances: Odd numbers of tokens, as "1,17,65"; up to four times the training length unless given.
        trials: Texts at each distance.
        window: Cut every head at so many tokens.
        training_length: For models that do not say it.
        device: Where to compute: cpu, cuda, cuda:1, ...; a GPU if there is one unless given.
        seed: Of texts and weights.
        figure: Write the share that was found by distance here, beside the leak and the window.
        as_json: Print JSON instead of tables.
    """
    if not models and not train:
        raise ValueError("Which model? Give a folder or a model on the hub, or --train ENCODING.")
    if length < 8 or steps < 1:
        raise ValueError(f"A length of {length} and {steps} steps were given; they must be at least 8 and 1.")
    from farfield.measure.figures import needle_figure
    from farfield.measure.loading import load_model
    from farfield.measure.needle import needle, trained_for_it
    from farfield.training.devices import chosen_device

    place = chosen_device(device)

    tried = None if distances is None else whole_numbers("--distances", distances)
    screen, results = Console(stderr=True), []
    for name in models or []:
        subject = load_model(name, training_length, device=device)
        results.append(needle(subject, distances=tried, trials=trials, seed=seed, window=window))
    for encoding in train or []:
        with screen.status(f"training a small model with {encoding}"):
            subject = trained_for_it(encoding, length=length, steps=steps, seed=seed, device=place)
        results.append(needle(subject, distances=tried, trials=trials, seed=seed, window=window))
    written = [] if figure is None else needle_figure(results, figure)
    if as_json:
        print(json.dumps([one.json() for one in results], indent=1))
        return
    console = Console()
    for one in results:
        console.print(Text(one.sentence, style="bold"))
        table = Table(
            title=f"{one.model}: found again, of {one.trials} (guessing: {one.chance:.0%})", title_justify="left"
        )
        for column in ("tokens back", "", "found"):
            table.add_column(column, justify="right")
        for t, share in zip(one.distances, one.accuracy, strict=True):
            table.add_row(*(Text(x) for x in (str(t), f"{t / one.training_length:.2g}x", f"{share:.0%}")))
        console.print(table)
        told = {"TRF(0.01)": one.field, "window": one.window, "leak": None if one.leak is None else f"{one.leak:.3f}"}
        said = ", ".join(f"{name} {value}" for name, value in told.items() if value is not None)
        console.print(Text(f"series: {one.verdict}" + (f"; {said}" if said else "")))
    for path in written:
        console.print(Text(f"figure: {path}"))
