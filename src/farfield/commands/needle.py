"""`farfield needle`: how far back a model finds a value again, beside what the theory cuts off."""

from __future__ import annotations

import json
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from farfield.commands.options import FigurePath, Json, Whole, WholeOrNone, whole_numbers
from farfield.table import Table
from farfield.words import with_error


def needle_command(
    models: Annotated[list[str] | None, Parameter(negative="")] = None,
    *,
    train: Annotated[list[str] | None, Parameter(negative="", allow_leading_hyphen=True)] = None,
    length: Whole = 32,
    steps: Whole = 600,
    distances: str | None = None,
    lengths: str | None = None,
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
        distances: Odd numbers of tokens, as "1,17,65"; from an eighth of the training length to twice that, and the
            first pair of each text, unless given.
        lengths: Tokens of the texts or multiples of the training length, which is always among them: "1x,2x,4x" unless
            given.
        trials: Texts for each distance and length.
        window: Cut every head at so many tokens.
        training_length: For models that do not say it.
        device: Where to compute: cpu, cuda, cuda:1, ...; a GPU if there is one unless given.
        seed: Of texts and weights.
        figure: Write the share that was found by distance and length here, beside the leak and the window.
        as_json: Print JSON instead of tables.
    """
    if not models and not train:
        raise ValueError("Which model? Give a folder or a model on the hub, or --train ENCODING.")
    if length < 8 or steps < 1:
        raise ValueError(f"A length of {length} and {steps} steps were given; they must be at least 8 and 1.")
    from farfield.measure.figures import needle_figure
    from farfield.measure.loading import load_model
    from farfield.measure.needle import needle, trained_for_it
    from farfield.training.processes import chosen_device

    place = chosen_device(device)
    tried = None if distances is None else whole_numbers("--distances", distances)
    screen, results = Console(stderr=True), []
    options: dict[str, Any] = {"distances": tried, "lengths": lengths, "trials": trials, "seed": seed, "window": window}
    for name in models or []:
        results.append(needle(load_model(name, training_length, device=device), **options))
    for encoding in train or []:
        with screen.status(f"training a small model with {encoding}"):
            subject = trained_for_it(encoding, length=length, steps=steps, seed=seed, device=place)
        results.append(needle(subject, **options))
    written = [] if figure is None else needle_figure(results, figure)
    if as_json:
        print(json.dumps([one.json() for one in results], indent=1))
        return
    console = Console()
    for one in results:
        console.print(Text(one.sentence, style="bold"))
        title = f"{one.model}: found again, in percent of {one.cells[0].trials} texts, with 95 % intervals"
        sizes = sorted({cell.length for cell in one.cells})
        cells = {(cell.distance, cell.length): cell.text for cell in one.cells}
        chances = {cell.length: with_error(100 * cell.chance, digits=0) for cell in one.cells}
        rows = [[str(t), *(cells.get((t, n), "") for n in sizes)] for t in sorted({t for t, _ in cells})]
        headings = ("tokens back", *(f"in {n} ({n / one.training_length:.2g}x)" for n in sizes))
        below = [["by chance", *(chances[n] for n in sizes)]]
        console.print(Table(headings, rows, title=title, below=below).rich(console))
        about = {"TRF(0.01)": one.trf, "window": one.window, "leak": with_error(one.leak, digits=3) or None}
        fields = ", ".join(f"{name} {value}" for name, value in about.items() if value is not None)
        console.print(Text(f"series: {one.verdict}" + (f"; {fields}" if fields else "")))
    for path in written:
        console.print(Text(f"figure: {path}"))
