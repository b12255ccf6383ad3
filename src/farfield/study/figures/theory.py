"""Figures of what the formulas say: reweighting, receptive fields, heat maps, and the sums that level off or do not.

Each head has the parameters that its model learned (first corpus, first seed, first layer). Sums are in double
precision; receptive fields are proven to the token.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from farfield import zoo
from farfield.formula import Formula, FormulaError, expanded_size
from farfield.study.collected import CONVERGES, DIVERGES, Study
from farfield.study.figures.canvas import (
    Figure,
    filled,
    label_of,
    legend_below,
    look_of,
    mark,
    named,
    number,
    panels,
    percent,
    written,
)
from farfield.theory.errors import DivergenceError, UndecidedError
from farfield.theory.fields.drawn import paper_curve
from farfield.theory.fields.layers import Mixture
from farfield.theory.fields.receptive import exact_epsilon, smallest, trf
from farfield.theory.figures import in_tokens
from farfield.theory.sums.series import series
from farfield.theory.verdict import horizon

EPSILONS = ("0.5", "0.2", "0.1", "0.03", "0.01", "3e-3", "1e-3", "3e-4", "1e-4", "1e-5", "1e-6")
LONGEST = 1 << 17  # tokens of the partial sums
_MOST_PARTS = 6e8  # parts of a formula times tokens times heads that are evaluated for one curve
_PATIENCE = 3.0  # seconds for the receptive fields of one encoding
_HIGHEST = 1e10  # tokens; a receptive field beyond it leaves the panel


def heads_of(study: Study, encoding: str) -> list[tuple[dict[str, Any], Formula]]:
    """The heads of the first layer of an encoding's first model, each with its formula; none without a formula."""
    entries = study.of_encoding(encoding)
    try:
        formula = zoo.find(encoding).formula if entries else None
    except FormulaError:
        return []
    if formula is None:
        return []
    bound = []
    for head in entries[0].records[0]["heads"]:
        values = head.get("parameters")
        if isinstance(values, dict) and set(values) >= set(formula.parameters) and head.get("layer", 1) == 1:
            with suppress(ValueError, TypeError):  # what is no number
                bound.append((head, formula.bind({name: values[name] for name in formula.parameters})))
    return bound


def weights(formula: Formula, length: int) -> np.ndarray:
    """b(t) = exp(r(t)) at the distances 0 to length - 1; 0 where it is undefined."""
    return np.nan_to_num(horizon.weights(formula, 0, length), nan=0.0, posinf=np.inf)


def shares(formulas: list[Formula], length: int) -> np.ndarray:
    """The mean over heads of their weights, each divided by its sum over a row of this length."""
    rows = [weights(formula, length) for formula in formulas]
    rows = [row / row.sum() for row in rows if 0 < row.sum() < np.inf]
    return np.mean(rows, 0) if rows else np.full(length, np.nan)


# ---------------------------------------------------------------------------------------------- maps of weights
def reweighting(study: Study, folder: Path) -> Figure | None:
    """A sliding window and ALiBi as maps of weights by query and key (the paper's second figure)."""
    heads = max((len(heads_of(study, e)) for e in study.encodings), default=0)
    if not heads:
        return None
    slope = zoo.find("alibi").heads(heads)[(heads - 1) // 2]
    window = trf("alibi", "0.1", parameters=slope)
    length = 3 * window
    shown = [(f"sliding window of {window} tokens", zoo.bound_formula("window", {"w": window})),
             (f"ALiBi, k = {slope['k']}", zoo.bound_formula("alibi", slope))]  # fmt: skip
    with panels(1, 2, 3.4, 3.2, sharey=True) as (figure, axes):
        for one, (label, formula) in zip(axes[0], shown, strict=True):
            picture = _map(one, _rows(weights(formula, length), True), 1e-4)
            one.set(title=label, xlabel="key j")
        axes[0, 0].set_ylabel("query i")
        figure.colorbar(picture, ax=axes, label="share of the query's weight", extend="min")
        kept = float(shares([shown[1][1]], 1 << 16)[:window].sum())
        caption = (
            f"Both look at neighbours: the window keeps nothing beyond {window} tokens, and ALiBi with "
            f"k = {slope['k']} gives them {percent(kept)} of its weight, so that cutting it off there loses little."
        )
        return written(figure, folder, "reweighting", "Attention reweighting: a window and ALiBi", caption)


def heat_maps(study: Study, folder: Path) -> Figure | None:
    """exp(r) by query and key for every encoding with a formula, one head of each."""
    by_encoding = {e: heads for e in study.encodings if (heads := heads_of(study, e))}
    if not by_encoding:
        return None
    near = _training_length(study)
    length = 4 * near
    columns = min(4, len(by_encoding))
    rows = -(-len(by_encoding) // columns)
    held = {}
    with panels(rows, columns, 2.3, 2.3, sharex=True, sharey=True) as (figure, axes):
        shown = zip(filled(axes, len(by_encoding)), by_encoding.items(), strict=True)
        for i, (one, (encoding, heads)) in enumerate(shown):
            head, formula = heads[(len(heads) - 1) // 2]
            row = weights(formula, length)
            top = row[np.isfinite(row)].max(initial=0)
            picture = _map(one, _rows(row / top if top > 0 else row, False), 1e-3)
            label = label_of(study, encoding)
            one.set_title(label, fontsize=8 if len(label) <= 20 else 6)
            one.xaxis.set_tick_params(labelbottom=True)
            if i % columns == 0:
                one.set_ylabel("query i")
            if i + columns >= len(by_encoding):
                one.set_xlabel("key j")
            held[encoding] = float(shares([formula], length)[:near].sum())
        figure.suptitle(f"head {head.get('head', '?')} of {len(heads)}", fontsize=9)
        figure.colorbar(picture, ax=axes, label="exp(r(i - j)), over its largest", extend="min")
        ends = [choose(held, key=lambda e: held[e]) for choose in (min, max)]
        caption = (
            f"With the parameters of head {head.get('head', '?')}, the nearest {near} of {length} tokens hold "
            f"from {percent(held[ends[0]])} of the weight ({named(ends[:1])}) "
            f"to {percent(held[ends[1]])} ({named(ends[1:])})"
        )
        bad = [e for e in held if study.of_encoding(e)[0].verdict == DIVERGES]
        if bad:
            best = max(bad, key=lambda e: held[e])
            caption += f"; {named([best])}, which diverges, holds {percent(held[best])}: nearness alone proves nothing"
        return written(figure, folder, "heat-maps", "Weights exp(RPE) of every encoding", caption + ".")


def _rows(row: np.ndarray, normalised: bool) -> np.ndarray:
    """The weights of every query and key, nan for keys that are not yet there; rows that sum to 1 if wanted."""
    n = len(row)
    distance = np.arange(n)[:, None] - np.arange(n)[None]
    table = np.where(distance >= 0, row[np.abs(distance)], np.nan)
    return table / np.nansum(table, 1, keepdims=True) if normalised else table


def _map(axes: Any, table: np.ndarray, least: float) -> Any:
    from matplotlib.colors import LogNorm

    axes.grid(False)
    axes.set_facecolor("white")
    shown = np.where(np.isfinite(table), np.maximum(table, least / 10), np.nan)
    return axes.imshow(shown, cmap="viridis_r", norm=LogNorm(least, 1), interpolation="nearest")


# ---------------------------------------------------------------------------------------------- receptive fields
def receptive_fields(study: Study, folder: Path) -> Figure | None:
    """TRF in tokens against epsilon, and the paper's normalised view, which hides what diverges."""
    by_encoding = {e: heads for e in study.encodings if (heads := heads_of(study, e))}
    fields = {
        e: _trf_curve([f for head, f in heads if head["verdict"] == CONVERGES]) for e, heads in by_encoding.items()
    }
    fields = {e: curve for e, curve in fields.items() if curve}
    if not fields:
        return None
    length = _training_length(study)
    with panels(1, 2, 4.3, 3.6) as (figure, axes):
        left, right = axes[0]
        for encoding, heads in by_encoding.items():
            line = look_of(study, encoding)
            label = label_of(study, encoding)
            good = sum(head["verdict"] == CONVERGES for head, _ in heads)
            if encoding in fields:
                some = "" if good == len(heads) else f" ({good} of {len(heads)} heads)"
                left.loglog(*zip(*fields[encoding], strict=True), label=label + some, **line)
            else:
                left.plot([], [], label=f"{label} (no TRF)", **line)
            field, epsilons = paper_curve(shares([f for _, f in heads], length))
            right.plot(field, epsilons, markevery=(list(by_encoding).index(encoding), 8), **line)
        left.invert_xaxis()
        left.set_ylim(0.7, min(left.get_ylim()[1], _HIGHEST))
        left.set(xlabel="epsilon", ylabel="TRF (tokens)", title="receptive field of a layer's heads together")
        right.set(xlabel=f"receptive field over {length} tokens", ylabel="epsilon", title="as the paper draws it")
        legend_below(figure, axes, 3)
        return written(
            figure, folder, "receptive-fields", "Theoretical receptive fields", _on_fields(study, by_encoding, fields)
        )


def _trf_curve(formulas: list[Formula]) -> list[tuple[float, float]]:
    """(epsilon, tokens) for the mean over heads of their weights; it ends where no number is found in time."""
    curve: list[tuple[float, float]] = []
    if not formulas:
        return curve
    start = time.monotonic()
    try:
        mixture = Mixture([series(formula) for formula in formulas])
        for epsilon in EPSILONS:
            tokens = smallest(mixture, exact_epsilon(epsilon))
            if tokens > 10**300 or time.monotonic() - start > _PATIENCE:
                break
            curve.append((float(epsilon), float(tokens)))
    except (DivergenceError, UndecidedError, FormulaError):
        pass
    return curve


def _on_fields(study: Study, by_encoding: dict[str, Any], fields: dict[str, list[tuple[float, float]]]) -> str:
    at = next((e for e in (0.001, 0.01, 0.1) if all(e in dict(c) for c in fields.values())), 0.5)
    tokens = {e: dict(curve).get(at, np.inf) for e, curve in fields.items()}
    low, high = (choose(tokens, key=lambda e: tokens[e]) for choose in (min, max))
    said = f"Fewer than {percent(at)} of the weights lie beyond {number(tokens[low])} tokens for {named([low])}"
    if high != low:
        said += f", and beyond {number(tokens[high])} for {named([high])}"
    none = [e for e, heads in by_encoding.items() if all(head["verdict"] == DIVERGES for head, _ in heads)]
    if none:
        one = len(none) == 1
        said += (
            f"; {named(none)} {'has' if one else 'have'} no receptive field, as the series "
            f"{'diverges' if one else 'diverge'}, and the normalised view on the right hides it"
        )
    return said + "."


# ---------------------------------------------------------------------------------------------- partial sums
def partial_sums(study: Study, folder: Path) -> Figure | None:
    """The sum of the weights of the first n tokens against n: it levels off or it does not."""
    by_encoding = {e: heads for e in study.encodings if (heads := heads_of(study, e))}
    if not by_encoding:
        return None
    length = _training_length(study)
    far = max(entry.lengths[-1] for entry in study.entries.values())
    at = np.unique(np.round(2 ** np.arange(0, np.log2(LONGEST) + 0.01, 0.5)).astype(int))
    after = {}
    with panels(1, 1, 6.2, 4.0) as (figure, axes):
        one = axes[0, 0]
        for encoding, heads in by_encoding.items():
            sums = _mean_sums([formula for _, formula in heads])
            here = at[at <= len(sums)]
            shown = np.where(np.isfinite(sums), sums, np.nan)[here - 1]
            one.plot(here, shown, markevery=2, label=label_of(study, encoding), **look_of(study, encoding))
            if len(sums) == LONGEST and far < LONGEST and sums[far - 1] > 0 and np.isfinite(sums[-1]):
                after[encoding] = float(sums[-1] / sums[far - 1] - 1)
        in_tokens(one.xaxis)
        one.set_yscale("log")
        mark(one, length, "training length")
        if far > length:
            mark(one, far, f"{far / length:g}x")
        one.set(xlabel="tokens n", ylabel="sum of b(t) over the first n tokens, mean over heads")
        legend_below(figure, axes, 4)
        return written(figure, folder, "partial-sums", "Sums of the weights", _on_sums(study, after, far))


def _mean_sums(formulas: list[Formula]) -> np.ndarray:
    """The partial sums of b(t), the mean over heads; fewer of them for formulas with very many parts."""
    length = LONGEST
    while length > 4096 and sum(expanded_size(f.node) for f in formulas) * length > _MOST_PARTS:
        length //= 2
    with np.errstate(all="ignore"):
        return np.mean([weights(formula, length).cumsum() for formula in formulas], 0)


def _on_sums(study: Study, after: dict[str, float], far: int) -> str:
    said = []
    for verdict, choose, bound in ((CONVERGES, max, "at most "), (DIVERGES, min, "at least ")):
        names = [e for e in after if study.of_encoding(e)[0].verdict == verdict]
        if len(names) == 1:
            said.append(f"that of {named(names)}, which {verdict}, by {percent(after[names[0]])}")
        elif names:
            grown = choose(after[e] for e in names)
            said.append(f"those of {named(names)}, which {verdict[:-1]}, by {bound}{percent(grown)}")
    if not said:
        return "The sum of the weights by number of tokens, for each encoding."
    return f"From {far} to {LONGEST} tokens the sums still grow: {', and '.join(said)}."


def _training_length(study: Study) -> int:
    return next(iter(study.entries.values())).training_length


__all__ = ["heads_of", "heat_maps", "partial_sums", "receptive_fields", "reweighting", "shares", "weights"]
