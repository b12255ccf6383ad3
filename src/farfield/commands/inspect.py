"""`farfield inspect`: how far a model looks, layer by layer, from its configuration, and what of that is proven."""

from __future__ import annotations

import json
import math
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from farfield.commands.options import FigurePath, Flag, Json, Whole
from farfield.models.inspection import Inspection, inspect
from farfield.models.presentation import cache_table, layer_table, sentences


def inspect_command(
    model: str,
    *,
    logit_bound: str | None = None,
    epsilon: str = "0.01",
    weights: Flag = False,
    corpus: str | None = None,
    tokenizer: str | None = None,
    length: Whole = 512,
    device: str | None = None,
    figure: FigurePath = None,
    as_json: Json = False,
) -> None:
    """Tell how far a model looks, from its configuration alone: no weights are fetched, and none of its code is run.

    Args:
        model: A folder, a file config.json, or a model on the Hugging Face hub.
        logit_bound: The largest |q.k|*scale, where it is known; then windows are certified where there are any.
        epsilon: The share of attention that such a window may lose.
        weights: Load the model and take the largest logit on a text (--corpus) for the bound; it holds for that text.
        corpus: The text of --weights: `python`, a path, or a data set of the hub.
        tokenizer: For models without one: `bytes`, a tokenizer.json, or a name on the hub.
        length: Tokens of that text.
        device: Where to compute with --weights: cpu, cuda, cuda:1, ...; a GPU if there is one unless given.
        figure: Write a figure of the layers here: .pdf, .png or .svg.
        as_json: Print one JSON object.
    """
    from farfield.data.configurations import configuration_of

    if length < 2:
        raise ValueError(f"a length of {length} was given; it must be at least 2")
    config = configuration_of(model)
    measured = None
    if weights:
        if logit_bound is not None:
            raise ValueError("give either --logit-bound or --weights, not both")
        measured = _measured(model, corpus, tokenizer, length, device)
        logit_bound = f"{math.ceil(1000 * max(measured)) / 1000:.3f}"
    inspection = inspect(config, logit_bound=logit_bound, epsilon=epsilon, name=model.rstrip("/"))
    if measured is not None:
        said = f"the bound {logit_bound} is the largest logit on {length} tokens of {corpus}: other texts may exceed it"
        inspection = replace(inspection, notes=(*inspection.notes, said))
    if figure is not None:
        inspection.figure(figure)
    if as_json:
        print(json.dumps(inspection.json(), indent=1))
    else:
        show(Console(), inspection)


def _measured(model: str, corpus: str | None, tokenizer: str | None, length: int, device: str | None) -> list[float]:
    from farfield.measure.attended import largest_logits
    from farfield.measure.loading import load_model, load_text

    subject = load_model(model, device=device)
    text = load_text(subject, corpus, split="train", tokens=length, segment=length, tokenizer=tokenizer)
    return largest_logits(subject, text, min(length, text.span, subject.longest or length))


def show(console: Console, inspection: Inspection) -> None:
    """The answer on a terminal: one sentence, then the layers, the cache and what else there is to know."""
    console.print(Text(inspection.sentence, style="bold"))
    console.print(layer_table(inspection).rich(console))
    if inspection.model is not None:
        for sentence in sentences(inspection):
            console.print(Text(sentence))
        console.print(cache_table(inspection).rich(console))
    for note in inspection.notes:
        console.print(Text(f"Note: {note}."))
