"""Receptive fields: of the formulas, beside those of the trained heads, and what a window changes, delta(i, j).

A head's formula has the parameters that its model learned (first corpus, first seed, first layer). Receptive fields are
proven to the token.
"""

from __future__ import annotations

import time
from contextlib import suppress

import numpy as np

from farfield import zoo
from farfield.formula import Formula, FormulaError
from farfield.measure.predictions import Head
from farfield.study.entries import CONVERGES, DIVERGES, Study
from farfield.study.evidence import Evidence, by_leak, correlated
from farfield.study.figures import canvas
from farfield.study.figures.canvas import Drawing, Figure
from farfield.theory.errors import DivergenceError, UndecidedError
from farfield.theory.fields.curves import paper_curve
from farfield.theory.fields.layers import Mixture
from farfield.theory.fields.receptive import exact_epsilon, smallest
from farfield.theory.figures import in_tokens, plain
from farfield.theory.sums.series import series
from farfield.theory.verdict import horizon
from farfield.words import listing, number, percent, short

EPSILONS = ("0.5", "0.2", "0.1", "0.03", "0.01", "3e-3", "1e-3", "3e-4", "1e-4", "1e-5", "1e-6")
_PATIENCE = 3.0  # seconds for the receptive fields of one encoding
_HIGHEST = 1e10  # tokens; a receptive field beyond it leaves the panel
_DEEPEST = 1e-5  # of the largest delta(i, j): what is below leaves the panel


def heads_of(study: Study, encoding: str) -> list[tuple[Head, Formula]]:
    """The heads of the first layer of an encoding's first model, each with its formula; none without a formula."""
    entries = study.of_encoding(encoding)
    try:
        formula = zoo.find(encoding).formula if entries else None
    except FormulaError:
        return []
    if formula is None:
        return []
    bound = []
    for head in entries[0].first.heads:
        values = head.parameters
        if values is not None and set(values) >= set(formula.parameters) and head.layer == 1:
            with suppress(ValueError):  # a value that the formula does not allow
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


# ---------------------------------------------------------------------------------------------- receptive fields
def receptive_fields(study: Study) -> Drawing | None:
    """TRF in tokens against epsilon, and the paper's normalised view, which hides what diverges."""
    by_encoding = {e: heads for e in study.encodings if (heads := heads_of(study, e))}
    fields = {e: _trf_curve([f for head, f in heads if head.verdict == CONVERGES]) for e, heads in by_encoding.items()}
    fields = {e: curve for e, curve in fields.items() if curve}
    if not fields:
        return None
    length = study.records[0].training_length
    figure, axes = canvas.panels(1, 2, 4.3, 3.6)
    left, right = axes[0]
    for encoding, heads in by_encoding.items():
        line = canvas.look_of(study, encoding)
        label = canvas.label_of(study, encoding)
        good = sum(head.verdict == CONVERGES for head, _ in heads)
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
    canvas.legend_below(figure, axes, 3)
    caption = _on_fields(by_encoding, fields)
    return figure, Figure("receptive-fields", "Theoretical receptive fields", caption)


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


def _on_fields(by_encoding: dict[str, list[tuple[Head, Formula]]], fields: dict[str, list[tuple[float, float]]]) -> str:
    at = next((e for e in (0.001, 0.01, 0.1) if all(e in dict(c) for c in fields.values())), 0.5)
    tokens = {e: dict(curve).get(at, np.inf) for e, curve in fields.items()}
    low, high = (choose(tokens, key=lambda e: tokens[e]) for choose in (min, max))
    text = f"Fewer than {percent(at)} of the weights lie beyond {number(tokens[low])} tokens for {short(low)}"
    if high != low:
        text += f", and beyond {number(tokens[high])} for {short(high)}"
    none = [e for e, heads in by_encoding.items() if all(head.verdict == DIVERGES for head, _ in heads)]
    if none:
        verbs = ("has", "diverges") if len(none) == 1 else ("have", "diverge")
        text += (
            f"; {listing(none, 4)} {verbs[0]} no receptive field, as the series {verbs[1]}, and the normalised view on "
            "the right hides it"
        )
    return text + "."


# ---------------------------------------------------------------------------------------------- the hypothesis
def hypothesis(study: Study) -> Drawing | None:
    """delta(i, j), the change of an attention output when only the last j tokens are kept, against j."""
    curves = {
        key: (
            np.array(entry.first.truncation.windows),
            canvas.stack(record.truncation.delta for record in entry.records),
        )
        for key, entry in study.entries.items()
        if entry.first.truncation.windows
    }
    corpora = [c for c in study.corpora if any(key[0] == c for key in curves)]
    if not corpora:
        return None
    figure, axes = canvas.panels(*canvas.grid(len(corpora)), 3.6, 3.1, sharey=True)
    for panel, corpus in zip(canvas.filled(axes, len(corpora)), corpora, strict=True):
        for encoding in study.encodings:
            if (corpus, encoding) in curves:
                windows, rows = curves[corpus, encoding]
                line = canvas.look_of(study, encoding, label=canvas.label_of(study, encoding))
                canvas.band(panel, windows, np.where(rows > 0, rows, np.nan), **line)
        panel.set_yscale("log")
        in_tokens(panel.xaxis)
        panel.set(xlabel="window j (tokens)", title=plain(corpus, 30))
        canvas.mark(panel, study.of_corpus(corpus)[0].training_length, "training length")
        low, high = panel.get_ylim()
        panel.set_ylim(max(low, high * _DEEPEST), high)
    for panel in axes[:, 0]:
        panel.set_ylabel("delta(i, j), median")
    canvas.legend_below(figure, axes, seeds=study.seeds)
    title = "What a window changes: delta(i, j)"
    return figure, Figure("hypothesis", title, _on_delta(study, curves))


def _on_delta(study: Study, curves: dict[tuple[str, str], tuple[np.ndarray, np.ndarray]]) -> str:
    """The change by a window of the training length, the most and the least; and by the widest window."""
    length = study.records[0].training_length
    first, last = 0, 0
    changes: dict[str, list[tuple[float, float]]] = {}
    for (_, encoding), (windows, rows) in curves.items():
        at = int(np.argmin(np.abs(windows - length)))
        first, last = int(windows[at]), int(windows[-1])
        values = canvas.middle(rows)
        if np.isfinite(values[[at, -1]]).all():
            changes.setdefault(encoding, []).append((float(values[at]), float(values[-1])))
    if not changes:
        return "The change of an attention output by window."
    mean = {e: np.mean(pairs, 0) for e, pairs in changes.items()}
    low, high = (choose(mean, key=lambda e: mean[e][0]) for choose in (min, max))
    text = f"Keeping only the last {first} tokens changes an attention output by {number(mean[high][0], 2)} for "
    text += f"{short(high)}, the most" if high != low else short(high)
    text += f", and by {number(mean[low][0], 2)} for {short(low)}, the least" if high != low else ""
    if last > first:
        text += f"; keeping {last} still changes it by {number(mean[high][1], 2)} for {short(high)}"
    return text + "."


# ---------------------------------------------------------------------------------------------- TRF and ERF
def fields_compared(study: Study) -> Drawing | None:
    """TRF against ERF, each head a point: trained, and untrained; with content logits of 0 all lie on the diagonal."""
    evidence = Evidence(study)
    heads = evidence.heads()
    if not heads:
        return None
    sides = {"trained": heads, "the same networks, untrained": evidence.control.heads()}
    figure, axes = canvas.panels(1, 2, 4.2, 3.9, sharex=True, sharey=True)
    for panel, (title, points) in zip(axes[0], sides.items(), strict=True):
        for encoding in study.encodings:
            if pairs := sorted({(p.predicted, p.seen) for p in points if p.encoding == encoding}):  # each once
                line = canvas.look_of(study, encoding, linestyle="", markersize=4.5, markerfacecolor="none", alpha=0.8)
                panel.plot(*zip(*pairs, strict=True), label=canvas.label_of(study, encoding), **line)
        in_tokens(panel.xaxis, panel.yaxis)
        panel.axline((1, 1), (2, 2), **canvas.GREY)
        panel.set(xlabel="TRF(0.01) of rows this long (tokens)")
        canvas.headed(panel, title, [f"rank correlation {rank.text}"] if (rank := correlated(points, by_leak)) else [])
    axes[0, 0].set_ylabel("ERF(0.01), median over queries (tokens)")
    canvas.legend_below(figure, axes, 4)
    title = "Theoretical and empirical receptive fields"
    return figure, Figure("fields-compared", title, compared_caption(evidence))


def compared_caption(evidence: Evidence) -> str:
    heads = evidence.heads()
    apart = np.median([abs(np.log2(p.seen / p.predicted)) for p in heads if p.seen > 0])
    text = "With content logits of 0 every head lies on the dotted line; training moves the ERF(0.01) of "
    text += f"{len(heads)} heads off it by a factor of {number(2.0 ** float(apart), 2)} in the median"
    return text + (f"; {evidence.fields_text}." if evidence.fields_text else ".")
