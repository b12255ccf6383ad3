"""Perplexity by length, ours and the paper's on one scale of ratios; and close to 1, what stays level."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from farfield.measure.rise import LEVEL, ROSE, STAYED
from farfield.study.collected import Entry, Study
from farfield.study.figures.canvas import (
    GREY,
    Figure,
    by_length,
    filled,
    grid,
    in_steps,
    label_of,
    legend_below,
    look_of,
    named,
    number,
    panels,
    percent,
    written,
)
from farfield.study.published import published
from farfield.theory.figures import one_line, plain

_CLOSE = 1.10  # the ratio at which the close view ends


def perplexity_curves(study: Study, folder: Path) -> Figure | None:
    """Perplexity over that at the training length, ours beside the published ones, on the same axes."""
    corpora = [c for c in study.corpora if study.of_corpus(c)]
    theirs = {c: known for c in corpora if (known := _published(study.of_corpus(c)))}
    columns = 2 if theirs else 1
    with panels(len(corpora), columns, 4.4, 3.2 if len(corpora) == 1 else 2.6, sharey=True) as (figure, axes):
        for row, corpus in zip(axes, corpora, strict=True):
            entries = study.of_corpus(corpus)
            first = entries[0]
            for entry in entries:
                _curve(study, row[0], entry)
            by_length(row[0], first.lengths, first.training_length)
            row[0].set(title=f"{plain(corpus, 30)}: ours", ylabel="perplexity over that at 1x")
            if corpus in theirs:
                lengths = published()["lengths"]
                for encoding, values in theirs[corpus].items():
                    row[1].plot(lengths, np.array(values) / values[0], **look_of(study, encoding))
                by_length(row[1], lengths, lengths[0])
                row[1].set_title(f"published, on {first.stands_for}")
                row[1].yaxis.set_tick_params(labelleft=True)
            elif theirs:
                row[1].set_axis_off()
        for one in axes.flat:
            one.axhline(1, **GREY)
            in_steps(one.yaxis)
        for one in axes[-1]:
            one.set_xlabel("length (tokens)")
        legend_below(figure, axes, 4)
        title = "Perplexity by length, ours and the paper's"
        return written(figure, folder, "perplexity", title, _on_curves(study, corpora))


def _curve(study: Study, axes: Any, entry: Entry) -> None:
    """One encoding: the ratio to 1x as a line, two standard errors as a band."""
    line = look_of(study, entry.encoding, label=label_of(study, entry.encoding))
    ratio = np.array([1 + one.change for one in entry.extrapolation.lengths])
    error = np.array([2 * (one.change_error or 0.0) for one in entry.extrapolation.lengths])
    axes.plot(entry.lengths, ratio, **line)
    axes.fill_between(entry.lengths, ratio - error, ratio + error, color=line["color"], alpha=0.15, linewidth=0)


def _published(entries: list[Entry]) -> dict[str, list[float]]:
    return {entry.encoding: values for entry in entries if (values := entry.published)}


def _on_curves(study: Study, corpora: list[str]) -> str:
    entries = [entry for corpus in corpora for entry in study.of_corpus(corpus)]
    level = list(dict.fromkeys(e.encoding for e in entries if e.answer == STAYED))
    risen = [e for e in entries if e.answer == ROSE]
    level = [e for e in level if e not in {entry.encoding for entry in risen}]
    said = [f"Bands are two standard errors over text{' and seeds' if study.seeds > 1 else ''}"]
    if level:
        said.append(f"{named(level)} {'stay' if len(level) > 1 else 'stays'} level at {study.farthest:g}x")
    for entry in sorted(risen, key=lambda e: -e.rise)[:2]:
        theirs = entry.published
        beside = f", published {number(theirs[-1] / theirs[0])}" if theirs else ""
        where = f" on {one_line(entry.corpus, 40)}" if len(corpora) > 1 else ""
        ratio = number(float(entry.relative[-1]))
        said.append(f"{named([entry.encoding])} ends at {ratio} times its value at 1x{where}{beside}")
    return "; ".join(said) + "."


def close_up(study: Study, folder: Path) -> Figure | None:
    """The same close to 1: the encodings that stay level, and where others leave the panel."""
    corpora = [c for c in study.corpora if any(e.answer != ROSE for e in study.of_corpus(c))]
    if not corpora:
        return None
    with panels(*grid(len(corpora)), 4.2, 3.0, sharey=True) as (figure, axes):
        shown = filled(axes, len(corpora))
        tops = []
        for one, corpus in zip(shown, corpora, strict=True):
            entries = study.of_corpus(corpus)
            for entry in entries:
                _curve(study, one, entry)
            by_length(one, entries[0].lengths, entries[0].training_length)
            one.axhline(1, **GREY)
            one.set(title=plain(corpus, 30), xlabel="length (tokens)", ylabel="perplexity over that at 1x")
            tops += [min(float(e.relative.min()), 1.0) for e in entries if e.answer != ROSE]
        shown[0].set_ylim(min(tops) - 0.02, _CLOSE)
        legend_below(figure, axes, 4)
        return written(figure, folder, "level", "What stays level, from close by", _on_close(study, corpora))


def _on_close(study: Study, corpora: list[str]) -> str:
    entries = [e for c in corpora for e in study.of_corpus(c) if e.answer != ROSE]
    worst, best = max(entries, key=lambda e: e.rise), min(entries, key=lambda e: float(e.relative[-1]))
    return (
        f"{named([worst.encoding])} rises most of these, {percent(worst.rise)} above its lowest (level is up to "
        f"{percent(LEVEL)}); {named([best.encoding])} falls to {number(float(best.relative[-1]))} of its value at 1x, "
        "since longer rows have fewer tokens with little context."
    )
