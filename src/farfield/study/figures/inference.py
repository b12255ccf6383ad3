"""Sliding and non-overlapping inference: how each reads (the paper's first figure, right), what it gives and costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from farfield.study.collected import PLAIN, SLIDING, Study
from farfield.study.figures.canvas import (
    GREY,
    Figure,
    in_steps,
    legend_below,
    named,
    number,
    panels,
    percent,
    written,
)
from farfield.theory.figures import in_tokens, look, plain

FULL, WINDOWED = "full", "windowed"
_TOKENS, _WINDOW = 9, 3  # of the drawing of how each way reads


def ways_of_inference(study: Study, folder: Path) -> Figure | None:
    """Perplexity and time by window for each way of inference, and a drawing of how each reads."""
    by_way = _timings(study)
    if not by_way.get(PLAIN) or not by_way.get(SLIDING):
        return None
    assert study.speed is not None
    name, length = plain(str(study.speed.get("encoding", "the model")), 30), study.speed.get("length", "?")
    with panels(1, 3, 3.6, 3.3) as (figure, axes):
        left, right, reading = axes[0]
        for i, way in enumerate((PLAIN, SLIDING, WINDOWED)):
            rows = by_way.get(way, [])
            x = [row["window"] for row in rows]
            said = "windowed attention" if way == WINDOWED else f"{way} windows"
            left.plot(x, [row["perplexity"] for row in rows], label=said, **look(i))
            right.plot(x, [1e6 * row["seconds"] / row["tokens"] for row in rows], label=said, **look(i))
        for row in by_way.get(FULL, [])[:1]:
            line = {**GREY, "linewidth": 1.4, "label": f"full length ({length} tokens)"}
            left.axhline(row["perplexity"], **line)
            right.axhline(1e6 * row["seconds"] / row["tokens"], **line)
        in_steps(right.yaxis)
        in_tokens(left.xaxis, right.xaxis)
        left.set(xlabel="window (tokens)", ylabel="perplexity", title=f"quality, {name}")
        right.set(xlabel="window (tokens)", ylabel="time for each token (µs)", title="time")
        _draw_reading(reading)
        legend_below(figure, axes)
        title = "Sliding and non-overlapping inference"
        return written(figure, folder, "inference", title, _on_inference(study, by_way))


def _draw_reading(axes: Any) -> None:
    """Nine tokens, one row for each pass of the model: what it reads, and what of that it scores."""
    from matplotlib.patches import Patch, Rectangle

    passes = [(range(a, a + _WINDOW), range(a, a + _WINDOW)) for a in range(0, _TOKENS, _WINDOW)]
    slid = [(range(_WINDOW), range(_WINDOW))]
    slid += [(range(b - _WINDOW, b), range(b - 1, b)) for b in range(_WINDOW + 1, _TOKENS + 1)]
    axes.set_axis_off()
    y = 0.0
    for title, rows in (("non-overlapping windows", passes), ("sliding window", slid)):
        axes.text(0, y - 0.35, title, fontsize=8, va="bottom")
        for read, scored in rows:
            for token in range(_TOKENS):
                colour = look(1)["color"] if token in scored else "#9dc3e6" if token in read else "white"
                axes.add_patch(Rectangle((token, y), 0.92, 0.8, facecolor=colour, edgecolor="#999999", linewidth=0.5))
            y += 1
        y += 1.4
    axes.set(xlim=(-0.2, _TOKENS + 0.2), ylim=(y + 0.9, -1.2), title=f"how {_TOKENS} tokens are read, window {_WINDOW}")
    patches = [
        Patch(facecolor=look(1)["color"]),
        Patch(facecolor="#9dc3e6"),
        Patch(facecolor="white", edgecolor="#999"),
    ]
    axes.legend(
        patches, ["scored", "read again", "not seen"], loc="lower center", ncols=3, fontsize=7, handlelength=1.2
    )


def _timings(study: Study) -> dict[str, list[dict[str, Any]]]:
    """The timings of each way of inference, by window."""
    rows = (study.speed or {}).get("timings")
    by_way: dict[str, list[dict[str, Any]]] = {}
    for row in rows if isinstance(rows, list) else []:
        values = [row.get(key) for key in ("perplexity", "seconds", "tokens")] if isinstance(row, dict) else [None]
        values += [1 if row.get("protocol") == FULL else row.get("window")] if isinstance(row, dict) else []
        if all(isinstance(v, int | float) and v > 0 for v in values):
            by_way.setdefault(str(row.get("protocol")), []).append(row)
    return {way: sorted(rows, key=lambda row: row["window"] or 0) for way, rows in by_way.items()}


def _on_inference(study: Study, by_way: dict[str, list[dict[str, Any]]]) -> str:
    apart = {row["window"]: row for row in by_way[PLAIN]}
    pairs = [(row, apart[row["window"]]) for row in by_way[SLIDING] if row["window"] in apart]
    if not pairs:
        return "The two ways were measured at different windows."
    slid, plain_ = min(pairs, key=lambda p: p[0]["perplexity"] / p[1]["perplexity"])
    gain = 1 - slid["perplexity"] / plain_["perplexity"]
    mean = [np.mean([row["seconds"] / row["tokens"] for row in by_way[way]]) for way in (SLIDING, PLAIN)]
    said = (
        f"A window of {slid['window']} tokens that slides gives a perplexity of {number(slid['perplexity'])}, "
        f"{percent(gain)} below the {number(plain_['perplexity'])} of windows that do not overlap"
        if gain > 0.0005
        else "Sliding the window gains nothing at any size"
    )
    said += f", and takes {number(mean[0] / mean[1], 2)} times as long for each token on average"
    speed = study.speed or {}
    for row in by_way.get(FULL, [])[:1]:
        name = named([str(speed.get("encoding", "the model"))])
        said += f"; {name} reads {speed.get('length', '?')} tokens at once at {number(row['perplexity'])}"
    return said + "."
