"""Figures that set theory beside measurement: attention by distance, delta(i, j), leak and rise, TRF and ERF."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from farfield.measure import rank_correlation
from farfield.study.collected import CONVERGES, DIVERGES, MIXED, Entry, Study
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
    percent,
    stacked,
    write_beside,
    written,
)
from farfield.study.findings import leak_against_rise, leak_correlation
from farfield.theory.figures import in_tokens, plain

LEAST_RISE = 1e-3  # smaller ones are drawn here
_DEEPEST = 1e-5  # of the largest delta(i, j): what is below leaves the panel
_FARTHEST = 64  # times the longest ERF: receptive fields beyond it are drawn there
_SHAPES = {CONVERGES: "o", DIVERGES: "X", MIXED: "s"}
_WORDS = {CONVERGES: "all heads converge", DIVERGES: "all heads diverge", MIXED: "only some heads converge"}


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
    found = {}
    for key, entry in study.entries.items():
        rows = stacked(numbers(record, "truncation", "delta") for record in entry.records)
        windows = numbers(entry.records[0], "truncation", "windows")
        if rows is not None and windows is not None and len(windows) == rows.shape[1]:
            found[key] = windows, rows
    corpora = [c for c in study.corpora if any(key[0] == c for key in found)]
    if not corpora:
        return None
    with panels(*grid(len(corpora)), 3.6, 3.1, sharey=True) as (figure, axes):
        for one, corpus in zip(filled(axes, len(corpora)), corpora, strict=True):
            for encoding in study.encodings:
                if (corpus, encoding) in found:
                    windows, rows = found[corpus, encoding]
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
        return written(figure, folder, "hypothesis", "What a window changes: delta(i, j)", _on_delta(study, found))


def _on_delta(study: Study, found: dict[tuple[str, str], tuple[np.ndarray, np.ndarray]]) -> str:
    """The change by a window of the training length, the most and the least; and by the widest window."""
    length = next(iter(study.entries.values())).training_length
    first, last = 0, 0
    changes: dict[str, list[tuple[float, float]]] = {}
    for (_, encoding), (windows, rows) in found.items():
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


# ---------------------------------------------------------------------------------------------- leak and rise
def prediction(study: Study, folder: Path) -> Figure | None:
    """The leak that the formula predicts against the rise of perplexity that was observed, one point for each model."""
    points = leak_against_rise(study)
    if not points:
        return None
    rank = leak_correlation(points)
    with panels(1, 1, 6.2, 4.4) as (figure, axes):
        one = axes[0, 0]
        said: set[str] = set()
        for leak, rise, entry in points:
            verdict = entry.verdict if entry.verdict in _SHAPES else "undecided"
            line = look_of(study, entry.encoding, linestyle="", marker=_SHAPES.get(verdict, "D"), markersize=6)
            one.plot([leak], [max(rise, LEAST_RISE)], markeredgecolor="white", markeredgewidth=0.6, **line)
            said.add(verdict)
        for verdict in [v for v in (*_SHAPES, "undecided") if v in said]:
            label = _WORDS.get(verdict, "not decided")
            one.plot([], [], linestyle="", marker=_SHAPES.get(verdict, "D"), color="black", markersize=6, label=label)
        one.set_yscale("log")
        one.set_ylim(LEAST_RISE * 0.7, max(2e-2, 2 * max(p[1] for p in points)))
        one.margins(x=0.12)
        one.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
        one.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %")
        one.axhline(LEAST_RISE, **GREY)
        far = max(e.lengths[-1] / e.training_length for e in study.entries.values())
        one.set(
            xlabel=f"leak: share of a row of {far:g}x that lies beyond the training length (mean over heads)",
            ylabel=f"rise of perplexity at {far:g}x above its lowest",
            title="" if rank is None else f"rank correlation {rank:.2f} over {len(points)} models",
        )
        legend_below(figure, axes)
        write_beside(one, _labels(study, points), np.array([(x, max(y, LEAST_RISE)) for x, y, _ in points]))
        caption = _on_prediction(study, points, rank)
        return written(figure, folder, "prediction", "Predicted leak and observed rise", caption)


def _labels(study: Study, points: list[tuple[float, float, Entry]]) -> list[tuple[float, float, str]]:
    """Each encoding once, at its highest point."""
    labels = []
    for encoding in study.encodings:
        own = [(x, y) for x, y, entry in points if entry.encoding == encoding]
        if own:
            x, y = max(own, key=lambda p: p[1])
            labels.append((x, max(y, LEAST_RISE), label_of(study, encoding)))
    return labels


def _on_prediction(study: Study, points: list[Any], rank: float | None) -> str:
    said = []
    for verdict, words in _WORDS.items():
        own = [rise for _, rise, entry in points if entry.verdict == verdict]
        if own:
            said.append(f"by {percent(float(np.mean(own)))} where {words}")
    out = [e for e in study.encodings if study.of_encoding(e) and e not in {p[2].encoding for p in points}]
    text = f"Perplexity rises on average {', '.join(said)}" if said else "Each point is one model"
    if rank is not None:
        text += f", and the leak that the formula alone predicts orders the {len(points)} models with a rank "
        text += f"correlation of {rank:.2f}"
        single = [
            r for c in study.corpora if (r := leak_correlation([p for p in points if p[2].corpus == c])) is not None
        ]
        text += f" ({min(single):.2f} to {max(single):.2f} on single corpora)" if len(single) > 1 else ""
    return text + (f"; {named(out)}, without a formula, {'is' if len(out) == 1 else 'are'} left out." if out else ".")


# ---------------------------------------------------------------------------------------------- TRF and ERF
def fields_compared(study: Study, folder: Path) -> Figure | None:
    """The theoretical receptive field against the empirical one, each head a point."""
    epsilon = _epsilon(study)
    tables = {name: _pairs(study, name, epsilon) for name in ("trf_of_rows", "trf")}
    if not tables["trf_of_rows"] and not tables["trf"]:
        return None
    titles = {"trf_of_rows": "rows as long as those measured", "trf": "the whole series, where it converges"}
    words = {"trf_of_rows": "rows of the same length", "trf": "the whole series"}
    ranks = {}
    with panels(1, 2, 4.2, 3.9, sharey=True) as (figure, axes):
        for one, (name, table) in zip(axes[0], tables.items(), strict=True):
            edge = _FARTHEST * max(p[2] for p in table) if table else 1.0
            for encoding in study.encodings:
                own = [(min(x, edge), y) for e, x, y in table if e == encoding]
                if own:
                    line = look_of(study, encoding, linestyle="", markersize=4.5, markerfacecolor="none", alpha=0.8)
                    one.plot(*zip(*own, strict=True), label=label_of(study, encoding), **line)
            ranks[name] = rank_correlation([p[1] for p in table], [p[2] for p in table])
            in_tokens(one.xaxis, one.yaxis)
            one.axline((1, 1), (2, 2), **GREY)
            one.set(xlabel=f"TRF({epsilon}) (tokens)")
            rank = ranks[name]
            headed(one, titles[name], [] if rank is None else [f"rank correlation {rank:.2f}, {len(table)} heads"])
            if any(x > edge for _, x, _ in table):
                one.axvline(edge, **GREY)
                one.text(edge, 1, "or farther ", rotation=90, ha="right", va="bottom", fontsize=6.5)
        axes[0, 0].set_ylabel(f"ERF({epsilon}), median over queries (tokens)")
        legend_below(figure, axes)
        said = " and ".join(
            f"{rank:.2f} with the theoretical one of {words[name]} ({len(tables[name])} heads)"
            for name, rank in ranks.items()
            if rank is not None
        )
        above = [y > x for _, x, y in tables["trf_of_rows"]]
        caption = f"At epsilon = {epsilon} the empirical receptive field has "
        caption += f"a rank correlation of {said}" if said else "too few heads for a rank correlation"
        if above:
            caption += f"; it lies above the theoretical one in {percent(float(np.mean(above)))} of the heads"
        return written(figure, folder, "fields-compared", "Theoretical and empirical receptive fields", caption + ".")


def _epsilon(study: Study) -> str:
    return next((str(e) for record in study.records for head in record["heads"] for e in head["erf"]), "0.1")


def _pairs(study: Study, name: str, epsilon: str) -> list[tuple[str, float, float]]:
    """(encoding, theoretical, empirical) of every head that has both."""
    found = []
    for entry in study.entries.values():
        for head in entry.heads():
            x, y = (head.get(name) or {}).get(epsilon), head["erf"].get(epsilon)
            if isinstance(x, int | float) and isinstance(y, int | float) and 0 < x < 1e15 and y > 0:
                found.append((entry.encoding, float(x), float(y)))
    return found
