"""`farfield speed`: what sliding window, non-overlapping, full-length and windowed inference cost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from farfield.commands.options import Measuring, Whole, WholeOrNone, progress, whole_numbers
from farfield.commands.tables import fitting

if TYPE_CHECKING:
    from farfield.measure import Speed


def speed_command(
    model: str | None = None,
    *,
    windows: str = "16,32,64,128,256,512",
    length: WholeOrNone = None,
    tokens: Whole = 4608,
    sliding_tokens: WholeOrNone = None,
    repeats: Whole = 3,
    preset: str = "small",
    options: Measuring = Measuring(),
) -> None:
    """Time the ways to infer with a window, as the paper's Table 1 does, and windowed attention beside them.

    Args:
        model: A run folder, a saved folder, or a model on the hub; without one, random weights and random tokens are
            timed.
        windows: The windows, with commas.
        length: Tokens of one pass of full-length inference and windowed attention; 18 times the training length unless
            given.
        tokens: Tokens to score.
        sliding_tokens: Time the sliding window on so many tokens only: it reads a whole window for each. Perplexities
            are then all of these tokens.
        repeats: The fastest of so many counts.
        preset: Size of the random model, if no model is given.
        options: What evaluate, receptive and speed share.
    """
    from farfield.measure import measure_speed

    if tokens < 1:
        raise ValueError(f"{tokens} tokens were asked for; it must be at least 1.")
    sizes = sorted(set(whole_numbers("--windows", windows)))
    with progress("reading the model", options.quiet) as watch:
        if model is None:
            subject, text = random_model(preset, tokens, options.device)
        else:
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
        print(json.dumps({**result.json(), "random": model is None}, indent=1))
    else:
        show(Console(), result, random=model is None)


def random_model(preset: str, tokens: int, device: str | None) -> tuple[Any, Any]:
    """A model of a preset's size with ALiBi and random weights, and random tokens: times mean something, no more."""
    import numpy as np
    import torch

    from farfield.measure import Text as Tokens
    from farfield.measure import as_model
    from farfield.nn.decoder.config import FarfieldConfig
    from farfield.nn.decoder.model import FarfieldForCausalLM
    from farfield.training.devices import chosen_device
    from farfield.training.settings import preset_settings

    s = preset_settings(preset, encoding="alibi")
    place = chosen_device(device)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = FarfieldForCausalLM(FarfieldConfig(vocab_size=s.vocabulary, **s.sizes())).to(place)
    ids = np.random.default_rng(0).integers(0, s.vocabulary, tokens + 1)
    return as_model(network, f"random weights, {preset}"), Tokens(ids, {"corpus": "random tokens"})


def show(console: Console, result: Speed, *, random: bool) -> None:
    """The table for a person."""
    from farfield.measure.speed import PAPER

    console.print(Text(result.sentence, style="bold"))
    base = {t.window: t.per_token for t in result.of("non-overlapping")}
    rows = []
    for w in base:
        cells = [str(w)]
        for protocol in ("non-overlapping", "sliding", "windowed"):
            t = next(t for t in result.of(protocol) if t.window == w)
            cells.append(f"{t.per_token / base[w]:.2f}x" + ("" if random else f"  {t.perplexity:.3f}"))
        rows.append(cells)
    headings = ("window", "non-overlapping", "sliding, stride 1", "windowed attention")
    title = "time of a token relative to non-overlapping" + ("" if random else ", and perplexity of the same tokens")
    console.print(fitting(console, headings, rows, title=title))
    averages = [
        [protocol, f"{ratio:.2f}", f"{PAPER[protocol]:.2f}" if protocol in PAPER else ""]
        for protocol, ratio in result.relative().items()
    ]
    title = "average over the windows (the paper's Table 1)"
    console.print(fitting(console, ("inference", "here", "paper"), averages, title=title, left=("inference",)))
    for t in result.of("full"):
        said = "" if random else f", perplexity {t.perplexity:.3f}"
        console.print(Text(f"full length: passes of {result.length} tokens{said}"))
    if random:
        console.print(Text("Random weights and tokens: the times mean something, perplexities would not."))
