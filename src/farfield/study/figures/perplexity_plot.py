"""Perplexity by length, ours and the paper's on one scale of ratios."""

from __future__ import annotations

from typing import Any

import numpy as np

from farfield.measure.rise import ROSE, STAYED
from farfield.study.entries import Entry, Study
from farfield.study.figures import canvas
from farfield.study.figures.canvas import Drawing, Figure
from farfield.study.published import published
from farfield.theory.figures import plain
from farfield.words import listing, number, short


def perplexity_curves(study: Study) -> Drawing | None:
    """Perplexity over that at the training length, ours beside the published ones, on the same axes."""
    corpora = [c for c in study.corpora if study.of_corpus(c)]
    theirs = {c: curves for c in corpora if (curves := _published(study.of_corpus(c)))}
    columns = 2 if theirs else 1
    figure, axes = canvas.panels(len(corpora), columns, 4.4, 3.2 if len(corpora) == 1 else 2.6, sharey=True)
    for row, corpus in zip(axes, corpora, strict=True):
        entries = study.of_corpus(corpus)
        first = entries[0]
        for entry in entries:
            _curve(study, row[0], entry)
        canvas.by_length(row[0], first.lengths, first.training_length)
        row[0].set(title=f"{plain(corpus, 30)}: ours", ylabel="perplexity over that at 1x")
        if corpus in theirs:
            lengths = published()["lengths"]
            for encoding, values in theirs[corpus].items():
                row[1].plot(lengths, np.array(values) / values[0], **canvas.look_of(study, encoding))
            canvas.by_length(row[1], lengths, lengths[0])
            row[1].set_title(f"published, on {first.first.stands_for}")
            row[1].yaxis.set_tick_params(labelleft=True)
        elif theirs:
            row[1].set_axis_off()
    for panel in axes.flat:
        panel.axhline(1, **canvas.GREY)
        canvas.in_steps(panel.yaxis)
    for panel in axes[-1]:
        panel.set_xlabel("length (tokens)")
    canvas.legend_below(figure, axes, 4)
    title = "Perplexity by length, ours and the paper's"
    return figure, Figure("perplexity", title, caption(study))


def _curve(study: Study, axes: Any, entry: Entry) -> None:
    """One encoding: the ratio to 1x as a line, two standard errors as a canvas.band."""
    line = canvas.look_of(study, entry.encoding, label=canvas.label_of(study, entry.encoding))
    ratio = np.array([1 + length.change for length in entry.extrapolation.lengths])
    error = np.array([2 * (length.change_error or 0.0) for length in entry.extrapolation.lengths])
    axes.plot(entry.lengths, ratio, **line)
    axes.fill_between(entry.lengths, ratio - error, ratio + error, color=line["color"], alpha=0.15, linewidth=0)


def _published(entries: list[Entry]) -> dict[str, list[float]]:
    return {entry.encoding: values for entry in entries if (values := entry.published)}


def caption(study: Study) -> str:
    """What stays level, and where the two that rise most end."""
    entries = [entry for corpus in study.corpora for entry in study.of_corpus(corpus)]
    risen = sorted((e for e in entries if e.answer == ROSE), key=lambda e: -e.rise)
    names = {entry.encoding for entry in risen}
    level = list(dict.fromkeys(e.encoding for e in entries if e.answer == STAYED and e.encoding not in names))
    parts = [f"Bands are two standard errors over text{' and seeds' if study.seeds > 1 else ''}"]
    if level:
        parts.append(f"{listing(level, 4)} {'stay' if len(level) > 1 else 'stays'} level at {study.farthest:g}x")
    for entry in risen[:2]:
        theirs = entry.published
        beside = f", published {number(theirs[-1] / theirs[0])}" if theirs else ""
        where = f" on {short(entry.corpus, 40)}" if len({e.corpus for e in entries}) > 1 else ""
        ratio = number(float(entry.relative[-1]))
        parts.append(f"{short(entry.encoding)} ends at {ratio} times its value at 1x{where}{beside}")
    return "; ".join(parts) + "."
