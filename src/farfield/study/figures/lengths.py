"""Figures of what models do: ways of inference, perplexity by length beside the paper's, and how far they trained."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from farfield.measure import LEVEL
from farfield.measure.rise import ROSE
from farfield.study.collected import PLAIN, SLIDING, Entry, Study
from farfield.study.figures.canvas import (
    GREY,
    Figure,
    band,
    by_length,
    filled,
    grid,
    headed,
    in_steps,
    label_of,
    legend_below,
    look_of,
    middle,
    named,
    number,
    panels,
    percent,
    stacked,
    written,
)
from farfield.study.published import published
from farfield.theory.figures import in_tokens, look, one_line, plain

FULL, WINDOWED = "full", "windowed"
REFERENCE = "type1"  # stands for those that extrapolate, beside those that do not
_STEEP = 1.1  # a curve whose rise is so many times that of the others leaves the panel


def inference(study: Study, folder: Path) -> Figure | None:
    """Sliding against non-overlapping inference by window (the paper's first figure), and what each costs."""
    by_way = _timings(study)
    if not by_way.get(PLAIN) or not by_way.get(SLIDING):
        return None
    assert study.speed is not None
    name, length = plain(str(study.speed.get("encoding", "the model")), 30), study.speed.get("length", "?")
    with panels(1, 2, 4.2, 3.3) as (figure, axes):
        left, right = axes[0]
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
        legend_below(figure, axes)
        return written(
            figure, folder, "inference", "Sliding and non-overlapping inference", _on_inference(study, by_way)
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


# ---------------------------------------------------------------------------------------------- perplexity by length
def sufficiency(study: Study, folder: Path) -> Figure | None:
    """Perplexity by length of the encodings whose series the paper says converges, and of sinusoidal."""
    title = "Perplexity by length: the encodings that should extrapolate"
    return _by_length(study, folder, study.grouped("sufficiency"), "perplexity-sufficiency", title, clip=True)


def necessity(study: Study, folder: Path) -> Figure | None:
    """Perplexity by length of the encodings whose series diverges, beside one that extrapolates."""
    chosen = study.grouped("necessity")
    if not chosen:
        return None
    shown = [REFERENCE, *chosen] if REFERENCE in study.encodings and REFERENCE not in chosen else chosen
    title = "Perplexity by length: the encodings that should not extrapolate"
    return _by_length(study, folder, shown, "perplexity-necessity", title, clip=False)


def _by_length(study: Study, folder: Path, encodings: list[str], name: str, title: str, clip: bool) -> Figure | None:
    """For a group of encodings: perplexity, its ratio to that at the training length, and the paper's ratio."""
    table = {c: [entry for e in encodings if (entry := study.entry(c, e)) is not None] for c in study.corpora}
    table = {corpus: entries for corpus, entries in table.items() if entries}
    if not table:
        return None
    theirs = any(study.published(e.corpus, e.encoding) for entries in table.values() for e in entries)
    rows = 3 if theirs else 2
    flat = len(table) == 1  # one corpus: its panels beside each other
    width = 3.3 if len(table) < 4 else 2.7
    with panels(*((1, rows, 3.4, 3.0) if flat else (rows, len(table), width, 2.3))) as (figure, axes):
        axes = axes.T if flat else axes
        for column, (corpus, entries) in zip(axes.T, table.items(), strict=True):
            ours = {e.encoding: e.perplexity for e in entries}
            ratio = {e.encoding: e.perplexity / e.perplexity[:, :1] for e in entries}
            first, lengths = entries[0], entries[0].lengths
            for entry in entries:
                line = look_of(study, entry.encoding, label=label_of(study, entry.encoding))
                band(column[0], entry.lengths, ours[entry.encoding], **line)
                band(column[1], entry.lengths, ratio[entry.encoding], **line)
            paper = {e.encoding: row for e in entries if (row := study.published(corpus, e.encoding))}
            for encoding, values in paper.items():
                x = np.array(published()["lengths"]) / published()["lengths"][0] * first.training_length
                column[2].plot(x, np.array(values) / values[0], **look_of(study, encoding))
            published_ratio = {e: np.array([values]) / values[0] for e, values in paper.items()}
            for one in column:
                by_length(one, lengths, first.training_length)
            leaving = _leaving(ratio) if clip else set()
            _fit(column[0], study, plain(corpus, 30), ours, leaving)
            _fit(column[1], study, "", ratio, leaving)
            if paper:
                _fit(column[2], study, "", published_ratio, _leaving(published_ratio) if clip else set())
            elif theirs:
                column[2].set_axis_off()
            for one in column if flat else column[-1 if paper else 1 :]:
                one.set_xlabel("length (tokens)")
            if paper:
                column[2].set_xlabel("length (1x is 512 tokens in the paper)")
        for one, label in zip(axes[:, 0], ("perplexity", "over that at 1x", "over that at 1x, paper"), strict=False):
            one.set_ylabel(label)
        legend_below(figure, axes, seeds=study.seeds)
        return written(figure, folder, name, title, _on_lengths(study, table))


def _leaving(ratio: dict[str, np.ndarray]) -> set[str]:
    """The encodings whose perplexity rises so far above what the others do that they would hide them."""
    tops = {e: float(np.nanmax(rows)) for e, rows in ratio.items() if np.isfinite(rows).any()}
    order = sorted(tops, key=lambda e: tops[e])
    steep = next((i for i, (a, b) in enumerate(pairwise(order), 1) if tops[b] > _STEEP * tops[a]), len(order))
    return set(order[steep:])


def _fit(axes: Any, study: Study, title: str, curves: dict[str, np.ndarray], leaving: set[str]) -> None:
    """Fit an axis to the curves that do not leave it, logarithmic if it must be; a note says how far the others go."""
    known = {e: rows for e, rows in curves.items() if np.isfinite(rows).any()}
    kept = [rows for e, rows in known.items() if e not in leaving]
    if kept:
        top, least = max(float(np.nanmax(rows)) for rows in kept), min(float(np.nanmin(rows)) for rows in kept)
        if top > 3 * least:
            in_steps(axes.yaxis)
            axes.set_ylim(least / 1.1, top * 1.1)
        else:
            room = max(top - least, 1e-3 * top)
            axes.set_ylim(least - 0.06 * room, top + (0.25 if leaving else 0.08) * room)
    notes = [f"{label_of(study, e)}: up to {number(float(np.nanmax(known[e])))}" for e in known if e in leaving]
    headed(axes, title, notes)


def _on_lengths(study: Study, table: dict[str, list[Entry]]) -> str:
    entries = [entry for found in table.values() for entry in found]
    names = list(dict.fromkeys(entry.encoding for entry in entries))
    fail = [e for e in names if any(entry.answer == ROSE for entry in entries if entry.encoding == e)]
    hold = [e for e in names if e not in fail]
    far = max(entry.lengths[-1] / entry.training_length for entry in entries)
    said = f"Up to {far:g} times the training length, "
    if hold:
        most = max((rise for e in entries if e.encoding in hold for rise in e.rises), default=0.0)
        said += f"{named(hold)} {'stay' if len(hold) > 1 else 'stays'} within {percent(LEVEL)} of the lowest "
        said += f"perplexity (ending at most {percent(most)} above it)"
    if fail:
        worst = max((e for e in entries if e.encoding in fail), key=lambda e: np.nan_to_num(e.rise, nan=np.inf))
        theirs = study.published(worst.corpus, worst.encoding)
        said += f"{'; ' if hold else ''}{named(fail)} "
        said += "does not stay low and" if len(fail) == 1 else f"do not stay low: {named([worst.encoding])}"
        said += f" ends at {number(worst.relative[-1])} times its value at the training length"
        said += f" on {one_line(worst.corpus, 60)}" if len(table) > 1 else ""
        said += f" (published: {number(theirs[-1] / theirs[0])})" if theirs else ""
    return said + "."


# ---------------------------------------------------------------------------------------------- training
def training(study: Study, folder: Path) -> Figure | None:
    """The loss by step of every model: on the validation text with markers, on the batches as a thin line."""
    curves = {
        (c, e): [pair for record in entry.records if (pair := _curves(record))]
        for (c, e), entry in study.entries.items()
    }
    corpora = [c for c in study.corpora if any(curves.get((c, e)) for e in study.encodings)]
    if not corpora:
        return None
    with panels(*grid(len(corpora)), 3.6, 3.0, sharey=True) as (figure, axes):
        for one, corpus in zip(filled(axes, len(corpora)), corpora, strict=True):
            for encoding in study.encodings:
                found = curves.get((corpus, encoding), [])
                if not found:
                    continue
                line = look_of(study, encoding, label=label_of(study, encoding))
                batches = stacked(train[1] for train, _ in found)
                if batches is not None:
                    steps = found[0][0][0]
                    one.plot(steps, middle(batches), color=line["color"], linewidth=0.5, alpha=0.5)
                valid = stacked(v[1] for _, v in found if v is not None)
                if valid is not None:
                    steps = next(v[0] for _, v in found if v is not None)
                    band(one, steps, valid, **line)
                else:
                    one.plot([], [], **line)
            one.set(xlabel="step (updates)", title=plain(corpus, 30))
        for one in axes[:, 0]:
            one.set_ylabel("loss (nats for each token)")
        axes[0, 0].plot([], [], color="#555555", linewidth=0.5, label="thin: batches")
        legend_below(figure, axes, seeds=study.seeds)
        return written(figure, folder, "training", "Loss by step of training", _on_training(study, curves))


def _curves(record: dict[str, Any]) -> tuple[Any, Any] | None:
    """(steps, losses) of the batches, and of the validation text if there are any; None without the first."""
    lines = record.get("training")
    lines = [line for line in lines if isinstance(line, dict) and "step" in line] if isinstance(lines, list) else []
    pairs = []
    for names in (("loss",), ("valid_loss", "eval_loss")):
        found = [(line["step"], line[n]) for line in lines for n in names if n in line]
        pairs.append(np.array(sorted(found), dtype=float).T if found else None)
    return None if pairs[0] is None else (pairs[0], pairs[1])


def _on_training(study: Study, curves: dict[tuple[str, str], list[Any]]) -> str:
    """How far training went, in one sentence."""
    falls: list[float] = []
    ends: dict[str, list[float]] = {}
    for (_, encoding), found in curves.items():
        for (steps, losses), valid in found:
            steps, losses = valid if valid is not None and len(valid[0]) > 2 else (steps, losses)
            part = max(1, len(losses) // 5)
            falls.append(float(losses[-2 * part : -part].mean() - losses[-part:].mean()) if len(losses) > 1 else 0.0)
            ends.setdefault(encoding, []).append(float(losses[-part:].mean()))
    low, high = (choose(ends, key=lambda e: np.mean(ends[e])) for choose in (min, max))
    fall = float(np.mean(falls))
    moving = f"was still falling by {number(fall, 2)}" if fall > 0 else "had stopped falling"
    steps = max(int(found[0][0][0][-1]) for found in curves.values() if found)
    least, most = (number(float(np.mean(ends[e]))) for e in (low, high))
    return (
        f"After {steps} steps the loss {moving} over the last fifth of training, on average, and ends between "
        f"{least} ({named([low])}) and {most} ({named([high])})."
    )
