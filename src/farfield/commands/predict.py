"""`farfield predict`: how much perplexity will rise beyond the training length, before anything is trained."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from farfield.commands.options import Flag, Formula, Json, StudySizes
from farfield.table import Table
from farfield.words import percent, short, with_error


def predict_command(
    *formulas: Formula,
    file: Annotated[Path | None, Parameter(allow_leading_hyphen=True)] = None,
    corpus: str = "python",
    sizes: StudySizes = StudySizes(),  # noqa: B008
    out: Path | None = None,
    force: Flag = False,
    as_json: Json = False,
) -> None:
    """Predict the rise of perplexity at 18 times the training length, with an interval, and write it down.

    `farfield study --check predictions.json` then trains the models and says which predictions held.

    Args:
        formulas: Names from the zoo and formulas, such as alibi "-2*log(t + 1)".
        file: A file with one of them a line; - reads standard input.
        corpus: The text that the models will be trained on.
        out: Write the predictions to this file, with a digest that tells whether they were changed later.
        force: Replace a file of predictions that exists.
        as_json: Print one JSON object.
    """
    from farfield.study.plan import make_plan
    from farfield.study.predictions import MAIN, predict

    names = list(formulas)
    if file is not None:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
        names += [line.strip() for line in text.splitlines() if line.strip()]
    if not names:
        raise ValueError('Give the formulas to predict, such as: farfield predict alibi "-2*log(t + 1)".')
    if out is not None and out.exists() and not force:
        raise ValueError(f"{str(out)!r} exists: choose another --out, or --force to replace what was predicted.")
    result = predict(make_plan(sizes.preset or "small", [corpus], names, sizes=sizes.changes()))
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        result.save(out)
    if as_json:
        print(result.model_dump_json(indent=2))
        return
    rows = []
    for prediction in result.predictions:
        by, main = prediction.by, prediction.main
        leaks = [
            with_error(by[name].value if name in by else None, digits=3) for name in ("leak", "network leak", MAIN)
        ]
        rise = "not known before training" if main is None else f"{percent(main.rise)}"
        interval = "" if main is None else f"{percent(main.low)} to {percent(main.high)}"
        rows.append([short(prediction.encoding), *leaks, rise, interval])
    title = f"From {result.training_length:,} to {result.test_length:,} tokens, {result.settings['layers']} layers"
    console = Console()
    headings = ["encoding", "leak", "network leak", "by head", "predicted rise", "nine of ten lie in"]
    console.print(Table(headings, rows, title, left=("encoding",)).rich(console))
    if out is not None:
        console.print(Text(f"Written to {out}. To see whether it holds: farfield study --check {out}"), soft_wrap=True)
