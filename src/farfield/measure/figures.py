"""The figures of the measurements, in the common style, readable in black and white."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from farfield.theory.figures import in_tokens, look, plain, save, style
from farfield.words import tokens

if TYPE_CHECKING:
    from farfield.measure.attended import ByAttention
    from farfield.measure.delta import Truncation
    from farfield.measure.gradient import ByGradient
    from farfield.measure.needle import Needle
    from farfield.measure.perplexity import Evaluation
    from farfield.measure.speed import Speed


def perplexity_figure(evaluations: Mapping[str, Evaluation], path: str | Path) -> list[Path]:
    """Perplexity against length by each protocol, and the loss by tokens seen that explains it, with error bars.

    Those of perplexity are paired: of the change from 1x, in which the difficulty of the text cancels.
    """
    with style() as pyplot:
        figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.6))
        number = 0
        for label, evaluation in evaluations.items():
            for protocol in ("non-overlapping", "sliding", "windowed"):
                rows = evaluation.of(protocol)
                if rows:
                    name = protocol if len(evaluations) == 1 else f"{label}, {protocol}"
                    x, y = [row.length for row in rows], [row.perplexity for row in rows]
                    base = next((row for row in rows if row.length == evaluation.training_length), rows[0])
                    bars = [row.perplexity * (row.against(base)[1] or 0.0) for row in rows]
                    left.errorbar(x, y, bars, label=plain(name), capsize=2, elinewidth=0.6, **look(number))
                    number += 1
        for i, (label, evaluation) in enumerate(evaluations.items()):
            seen = evaluation.by_tokens_seen()
            middle = [(p["from"] * p["to"]) ** 0.5 for p in seen]
            losses, errors = [p["loss"] for p in seen], [p["error"] for p in seen]
            right.errorbar(middle, losses, errors, label=plain(label), capsize=2, elinewidth=0.6, **look(i))
            right.axvline(evaluation.training_length, color="#7f7f7f", linestyle=":", linewidth=1)
        in_tokens(left.xaxis, right.xaxis)
        left.set(xlabel="length (tokens)", ylabel="perplexity", title="perplexity against length (bars: of the change)")
        right.set(xlabel="tokens seen", ylabel="loss", title="loss by tokens seen (dotted: training length)")
        left.legend(fontsize=7)
        if len(evaluations) > 1:
            right.legend(fontsize=7)
        return _written(figure, pyplot, path)


def needle_figure(needles: Sequence[Needle], path: str | Path) -> list[Path]:
    """The share of values that was found by distance, a panel for each length, and the share of the weights beyond."""
    lengths = sorted({cell.length for one in needles for cell in one.cells})
    with style() as pyplot:
        figure, panels = pyplot.subplots(1, len(lengths), figsize=(3.2 * len(lengths), 3.8), sharey=True, squeeze=False)
        for axes, length in zip(panels[0], lengths, strict=True):
            for i, one in enumerate(needles):
                cells, looks, cut = [cell for cell in one.cells if cell.length == length], look(i), one.cut
                beyond = "" if cut is None else f"; cut at {tokens(cut)} ({'window' if one.window else 'TRF(0.01)'})"
                x, y = [cell.distance for cell in cells], np.array([cell.share for cell in cells])
                bars = np.abs(np.array([cell.interval for cell in cells]).reshape(-1, 2).T - y)
                axes.errorbar(x, y, bars, label=plain(f"{one.encoding}: found{beyond}"), capsize=2, **looks)
                bare = {"color": looks["color"], "linestyle": ":", "linewidth": 1}
                leaks = [np.nan if cell.leak is None else cell.leak for cell in cells]
                axes.plot(x, leaks, label=plain(f"{one.encoding}: leak beyond t"), **bare)
                if cut is not None and cut <= length:
                    axes.axvline(cut, color=looks["color"], linestyle="-.", linewidth=1)
                axes.axvline(one.training_length, color="#7f7f7f", linestyle=":", linewidth=1)
                axes.plot(x, [cell.chance for cell in cells], color="#7f7f7f", linestyle="--", linewidth=0.8)
            in_tokens(axes.xaxis)
            axes.set(xlabel="tokens back", title=f"in texts of {length} tokens")
        panels[0, 0].set(ylabel="share found (bars: 95 %; dashed: chance)", ylim=(-0.02, 1.04))
        panels[0, -1].legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
        return _written(figure, pyplot, path)


def receptive_figure(
    measured: Sequence[ByAttention], path: str | Path, gradients: Sequence[ByGradient] = ()
) -> list[Path]:
    """The mass within the last j tokens, by attention (mean over heads) and gradient, and ERF against TRF by head."""
    with style() as pyplot:
        figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.6))
        for i, one in enumerate(measured):
            mean = one.mass.mean((0, 1)).cumsum()
            left.plot(np.arange(1, len(mean) + 1), mean, label=plain(one.encoding), **_bare(i))
            pairs = one.pairs(len(one.epsilons) - 1)
            if pairs:
                x, y = [p[1] for p in pairs], [p[2] for p in pairs]
                right.plot(x, y, label=plain(one.encoding), **{**look(i), "linestyle": ""})
        for i, grad in enumerate(gradients):
            curve = grad.cumulative()
            label = plain(f"{grad.encoding}, gradient")
            left.plot(np.arange(1, len(curve) + 1), curve, label=label, **{**_bare(i), "linewidth": 2.2, "alpha": 0.5})
        in_tokens(left.xaxis, right.xaxis, right.yaxis)
        ends = right.get_xlim()
        right.plot(ends, ends, color="#7f7f7f", linestyle=":", linewidth=1, marker="")
        left.set(
            xlabel="window j (tokens)",
            ylabel="share within the last j",
            title="attention, mean over heads",
            ylim=(0, 1.02),
        )
        epsilon = measured[0].epsilons[-1] if measured else ""
        right.set(
            xlabel="TRF of rows this long (tokens)",
            ylabel="median ERF (tokens)",
            title=f"each head, epsilon = {epsilon}",
        )
        left.legend(fontsize=7)
        return _written(figure, pyplot, path)


def paper_figure(measured: Sequence[ByAttention], path: str | Path) -> list[Path]:
    """The paper's own view of ERF: normalised, first layer, as its appendix draws it."""
    from farfield.theory.fields.curves import paper_curve

    with style() as pyplot:
        figure, axes = pyplot.subplots(figsize=(4.6, 3.4))
        for i, one in enumerate(measured):
            fields, epsilons = paper_curve(one.mass[0].mean(0))
            axes.plot(fields, epsilons, label=plain(one.encoding), **_bare(i))
        axes.set(xlabel="ERF / length", ylabel="epsilon", title="ERF as the paper draws it (first layer)")
        axes.legend(fontsize=7)
        return _written(figure, pyplot, path)


def truncation_figure(measured: Sequence[Truncation], path: str | Path) -> list[Path]:
    """delta(i, j) against j with its bounds (one model) or by encoding (several), and against i at a fixed j."""
    with style() as pyplot:
        figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.6))
        shown = [("delta", "delta")] if len(measured) > 1 else [
            ("delta", "delta"),
            ("sharper", "Theorem A (ii)"),
            ("paper", "the paper's bound"),
            ("certificate", "run-time certificate"),
        ]  # fmt: skip
        number = 0
        for one in measured:
            for name, label in shown:
                values = np.median(one.median[name], axis=(0, 1))
                label = one.encoding if len(measured) > 1 else label
                left.semilogy(one.windows, np.maximum(values, 1e-12), label=plain(label), **look(number))
                number += 1
        for i, one in enumerate(measured):
            middle = [(low * high) ** 0.5 for low, high in one.positions]
            values = one.by_position["lost"].mean((0, 1))
            right.plot(middle, values, label=plain(f"{one.encoding}, j = {one.fixed}"), **look(i))
        in_tokens(left.xaxis, right.xaxis)
        left.set(xlabel="window j (tokens)", ylabel="delta(i, j)", title="median over queries and heads")
        right.set(
            xlabel="position i", ylabel="lost share of attention", title="at a fixed window, against i", ylim=(0, 1.02)
        )
        left.legend(fontsize=7)
        right.legend(fontsize=7)
        return _written(figure, pyplot, path)


def speed_figure(speed: Speed, path: str | Path) -> list[Path]:
    """Perplexity against window by each way to infer, with the line of full length; and the time of each."""
    with style() as pyplot:
        figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.6))
        for i, protocol in enumerate(("non-overlapping", "sliding", "windowed")):
            rows = speed.of(protocol)
            x = [row.window for row in rows]
            left.plot(x, [row.perplexity for row in rows], label=protocol, **look(i))
            right.semilogy(x, [1e3 * row.per_token for row in rows], label=protocol, **look(i))
        for row in speed.of("full"):
            line = {"color": "#7f7f7f", "linestyle": ":", "linewidth": 1.2, "label": f"full length ({speed.length})"}
            left.axhline(row.perplexity, **line)
            right.axhline(1e3 * row.per_token, **line)
        in_tokens(left.xaxis, right.xaxis)
        left.set(xlabel="window (tokens)", ylabel="perplexity", title="quality")
        right.set(xlabel="window (tokens)", ylabel="ms for each token", title="time")
        left.legend(fontsize=7)
        return _written(figure, pyplot, path)


def _bare(i: int) -> dict[str, object]:
    return {**look(i), "marker": ""}


def _written(figure: object, pyplot: object, path: str | Path) -> list[Path]:
    figure.tight_layout()  # type: ignore[attr-defined]
    written = save(figure, path)
    pyplot.close(figure)  # type: ignore[attr-defined]
    return written
