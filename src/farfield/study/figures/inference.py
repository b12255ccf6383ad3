"""Sliding and non-overlapping inference: what each gives and costs, by window."""

from __future__ import annotations

import numpy as np

from farfield.measure.values import Timing
from farfield.study.entries import Study
from farfield.study.figures import canvas
from farfield.study.figures.canvas import Drawing, Figure
from farfield.study.record import PLAIN, SLIDING
from farfield.theory.figures import in_tokens, look, plain
from farfield.words import number, percent, short, tokens

FULL, WINDOWED = "full", "windowed"


def ways_of_inference(study: Study) -> Drawing | None:
    """Perplexity and time by window for each way of inference."""
    speed = study.speed
    if speed is None or PLAIN not in speed.by_way or SLIDING not in speed.by_way:
        return None
    figure, axes = canvas.panels(1, 2, 4.2, 3.3)
    left, right = axes[0]
    for i, way in enumerate((PLAIN, SLIDING, WINDOWED)):
        rows = [timing for timing in speed.by_way.get(way, []) if timing.window]
        windows = [timing.window for timing in rows]
        line = {"label": "windowed attention" if way == WINDOWED else f"{way} windows", **look(i)}
        left.plot(windows, [timing.perplexity for timing in rows], **line)
        right.plot(windows, [1e6 * timing.per_token for timing in rows], **line)
    for timing in speed.by_way.get(FULL, [])[:1]:
        line = {**canvas.GREY, "linewidth": 1.4, "label": f"full length ({speed.length} tokens)"}
        left.axhline(timing.perplexity, **line)
        right.axhline(1e6 * timing.per_token, **line)
    canvas.in_steps(right.yaxis)
    in_tokens(left.xaxis, right.xaxis)
    scored = f"perplexity of the first {tokens(speed.by_way[SLIDING][0].tokens)} tokens"
    left.set(xlabel="window (tokens)", ylabel=scored, title=f"quality, {plain(speed.encoding, 30)}")
    right.set(xlabel="window (tokens)", ylabel="time for each token (µs)", title="time")
    canvas.legend_below(figure, axes)
    about = Figure("inference", "Sliding and non-overlapping inference", caption(study, speed.by_way))
    return figure, about


def caption(study: Study, by_way: dict[str, list[Timing]]) -> str:
    assert study.speed is not None
    apart = {timing.window: timing for timing in by_way[PLAIN]}
    pairs = [(timing, apart[timing.window]) for timing in by_way[SLIDING] if timing.window in apart]
    if not pairs:
        return "The two ways were measured at different windows."
    slid, fixed = min(pairs, key=lambda pair: pair[0].perplexity / pair[1].perplexity)
    gain = 1 - slid.perplexity / fixed.perplexity
    mean = [float(np.mean([timing.per_token for timing in by_way[way]])) for way in (SLIDING, PLAIN)]
    test = study.records[0].test
    text = f"On the first {tokens(slid.tokens)} test tokens, with one model (tables of perplexity: "
    text += f"{tokens(test.tokens)} in {test.segments} segments), "
    text += (
        f"a window of {slid.window} tokens that slides gives a perplexity of {number(slid.perplexity)}, "
        f"{percent(gain)} below the {number(fixed.perplexity)} of windows that do not overlap"
        if gain > 0.0005
        else "sliding the window gains nothing at any size"
    )
    text += f", and takes {number(mean[0] / mean[1], 2)} times as long for each token on average"
    for timing in by_way.get(FULL, [])[:1]:
        text += f"; {short(study.speed.encoding)} reads {study.speed.length} of them at once at "
        text += number(timing.perplexity)
    return text + "."
