"""Figures that set theory beside measurement: attention by distance, delta(i, j), TRF and ERF."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from farfield.study.collected import Entry, Study
from farfield.study.evidence import Correlation, Evidence, Observation, by_leak, correlated
from farfield.study.figures.canvas import (
    GREY,
    Figure,
    band,
    filled,
    grid,
    headed,
    label_of,
    legend_below,
    look_of,
    mark,
    middle,
    named,
    number,
    numbers,
    panels,
    stacked,
    written,
)
from farfield.theory.figures import in_tokens, plain

_DEEPEST = 1e-5  # of the largest delta(i, j): what is below leaves the panel


# ---------------------------------------------------------------------------------------------- attention by distance
def attention_by_distance(study: Study, folder: Path) -> Figure | None:
    """The share of attention within the last j tokens (ERF is where it reaches 1 - epsilon), and the paper's view."""
    masses = {key: m for key, entry in study.entries.items() if (m := _mass(entry)) is not None}
    corpora = [c for c in study.corpora if any(key[0] == c for key in masses)]
    if not corpora:
        return None
    flat = len(corpora) == 1  # its panels beside each other
    width = 3.3 if len(corpora) < 4 else 2.7
    with panels(*((1, 2, 4.2, 3.2) if flat else (2, len(corpora), width, 2.6))) as (figure, axes):
        axes = axes.T if flat else axes
        for (top, below), corpus in zip(axes.T, corpora, strict=True):
            for encoding in study.encodings:
                rows = masses.get((corpus, encoding))
                if rows is None:
                    continue
                x = np.arange(1, rows.shape[1] + 1)
                every = np.unique(np.round(2 ** np.arange(0, np.log2(len(x)) + 0.01, 1)).astype(int)) - 1
                line = look_of(study, encoding, label=label_of(study, encoding))
                band(top, x, rows.cumsum(1), markevery=list(every), **line)
                records = study.entries[corpus, encoding].records
                fields = stacked(numbers(r, "receptive", "paper", "field") for r in records)
                epsilons = numbers(records[0], "receptive", "paper", "epsilon")
                if fields is not None and epsilons is not None and len(epsilons) == fields.shape[1]:
                    below.plot(middle(fields), epsilons, markevery=(study.encodings.index(encoding) % 8, 8), **line)
            in_tokens(top.xaxis, ticks=6)
            top.set(xlabel="last j tokens", title=plain(corpus, 30), ylim=(0, 1.02))
            mark(top, study.of_corpus(corpus)[0].training_length, "training length")
            below.set(xlabel="ERF over the row's length", ylim=(0, 1.02))
        axes[0, 0].set_ylabel("share of attention within")
        axes[1, 0].set_ylabel("epsilon (first layer)")
        legend_below(figure, axes, seeds=study.seeds)
        return written(figure, folder, "attention-by-distance", "Empirical receptive fields", _on_mass(masses))


def _mass(entry: Entry) -> np.ndarray | None:
    """The share of attention at each distance, (seeds, distances)."""
    return stacked(numbers(record, "receptive", "mass") for record in entry.records)


def _on_mass(masses: dict[tuple[str, str], np.ndarray]) -> str:
    reach: dict[str, list[int]] = {}
    for (_, encoding), rows in masses.items():
        reach.setdefault(encoding, []).append(1 + int(np.searchsorted(middle(rows).cumsum(), 0.9)))
    low, high = (choose(reach, key=lambda e: np.mean(reach[e])) for choose in (min, max))
    rows = max(rows.shape[1] for rows in masses.values())
    said = f"90 % of the attention lies within {round(float(np.mean(reach[low])))} tokens for {named([low])}"
    if high != low:
        said += f", the least, and within {round(float(np.mean(reach[high])))} for {named([high])}, the most"
    return f"{said}, in rows of {rows} tokens (mean over layers, heads and queries)."


# ---------------------------------------------------------------------------------------------- the hypothesis
def hypothesis(study: Study, folder: Path) -> Figure | None:
    """delta(i, j), the change of an attention output when only the last j tokens are kept, against j."""
    curves = {}
    for key, entry in study.entries.items():
        rows = stacked(numbers(record, "truncation", "delta") for record in entry.records)
        windows = numbers(entry.records[0], "truncation", "windows")
        if rows is not None and windows is not None and len(windows) == rows.shape[1]:
            curves[key] = windows, rows
    corpora = [c for c in study.corpora if any(key[0] == c for key in curves)]
    if not corpora:
        return None
    with panels(*grid(len(corpora)), 3.6, 3.1, sharey=True) as (figure, axes):
        for one, corpus in zip(filled(axes, len(corpora)), corpora, strict=True):
            for encoding in study.encodings:
                if (corpus, encoding) in curves:
                    windows, rows = curves[corpus, encoding]
                    line = look_of(study, encoding, label=label_of(study, encoding))
                    band(one, windows, np.where(rows > 0, rows, np.nan), **line)
            one.set_yscale("log")
            in_tokens(one.xaxis)
            one.set(xlabel="window j (tokens)", title=plain(corpus, 30))
            mark(one, study.of_corpus(corpus)[0].training_length, "training length")
            low, high = one.get_ylim()
            one.set_ylim(max(low, high * _DEEPEST), high)
        for one in axes[:, 0]:
            one.set_ylabel("delta(i, j), median")
        legend_below(figure, axes, seeds=study.seeds)
        return written(figure, folder, "hypothesis", "What a window changes: delta(i, j)", _on_delta(study, curves))


def _on_delta(study: Study, curves: dict[tuple[str, str], tuple[np.ndarray, np.ndarray]]) -> str:
    """The change by a window of the training length, the most and the least; and by the widest window."""
    length = next(iter(study.entries.values())).training_length
    first, last = 0, 0
    changes: dict[str, list[tuple[float, float]]] = {}
    for (_, encoding), (windows, rows) in curves.items():
        at = int(np.argmin(np.abs(windows - length)))
        first, last = int(windows[at]), int(windows[-1])
        values = middle(rows)
        if np.isfinite(values[[at, -1]]).all():
            changes.setdefault(encoding, []).append((float(values[at]), float(values[-1])))
    if not changes:
        return "The change of an attention output by window."
    mean = {e: np.mean(pairs, 0) for e, pairs in changes.items()}
    low, high = (choose(mean, key=lambda e: mean[e][0]) for choose in (min, max))
    said = f"Keeping only the last {first} tokens changes an attention output by {number(mean[high][0], 2)} for "
    said += f"{named([high])}, the most" if high != low else named([high])
    said += f", and by {number(mean[low][0], 2)} for {named([low])}, the least" if high != low else ""
    if last > first:
        said += f"; keeping {last} still changes it by {number(mean[high][1], 2)} for {named([high])}"
    return said + "."


# ---------------------------------------------------------------------------------------------- TRF and ERF
def fields_compared(study: Study, folder: Path, epsilon: str = "0.01") -> Figure | None:
    """TRF against ERF, each head a point: trained, and untrained; with content logits of 0 all lie on the diagonal."""
    heads = Evidence(study).heads(epsilon)
    if not heads:
        return None
    sides = {
        "trained": (lambda p: p.seen, "trained"),
        "untrained": (lambda p: p.control, "the same networks, untrained"),
    }
    with panels(1, 2, 4.2, 3.9, sharex=True, sharey=True) as (figure, axes):
        ranks = {}
        for one, (name, (seen, title)) in zip(axes[0], sides.items(), strict=True):
            for encoding in study.encodings:
                own = [(p.predicted, seen(p)) for p in heads if p.encoding == encoding]
                if own:
                    line = look_of(study, encoding, linestyle="", markersize=4.5, markerfacecolor="none", alpha=0.8)
                    one.plot(*zip(*own, strict=True), label=label_of(study, encoding), **line)
            ranks[name] = correlated(heads, by_leak, seen)
            in_tokens(one.xaxis, one.yaxis)
            one.axline((1, 1), (2, 2), **GREY)
            one.set(xlabel=f"TRF({epsilon}) of rows this long (tokens)")
            headed(one, title, [f"rank correlation {rank.text}"] if (rank := ranks[name]) else [])
        axes[0, 0].set_ylabel(f"ERF({epsilon}), median over queries (tokens)")
        legend_below(figure, axes, 4)
        caption = _on_fields(heads, ranks, epsilon)
        return written(figure, folder, "fields-compared", "Theoretical and empirical receptive fields", caption)


def _on_fields(heads: list[Observation], ranks: dict[str, Correlation | None], epsilon: str) -> str:
    apart = np.median([abs(np.log2(p.seen / p.predicted)) for p in heads if p.seen > 0])
    said = f"With content logits of 0 every head lies on the dotted line; training moves the ERF({epsilon}) of "
    said += f"{len(heads)} heads off it by a factor of {number(2.0 ** float(apart), 2)} in the median"
    if ranks["trained"] and ranks["untrained"]:
        said += (
            f", and the rank correlation from {ranks['untrained'].value:.2f} to {ranks['trained'].value:.2f}: "
            "it is a property of the bias, not of what was learned"
        )
    return said + "."
