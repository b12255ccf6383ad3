"""Dose and response: the leak of what was done to a trained model against its perplexity; and leak against rise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from farfield.study.entries import CONVERGES, DIVERGES, MIXED, UNDECIDED, Study
from farfield.study.evidence import Evidence, Observation, by_leak, correlated
from farfield.study.figures import canvas
from farfield.study.figures.canvas import Drawing, Figure
from farfield.study.record import AS_TRAINED
from farfield.theory.figures import plain
from farfield.words import listing, percent

LEAST_RISE = 1e-3  # smaller ones are drawn here
_SHAPES = {CONVERGES: "o", DIVERGES: "X", MIXED: "s"}
_WORDS = {CONVERGES: "all heads converge", DIVERGES: "all heads diverge", MIXED: "only some heads converge"}


def dose_response(study: Study) -> Drawing | None:
    """Far-field damage against the leak of what was done, one line for each trained model."""
    evidence = Evidence(study)
    points = evidence.interventions
    corpora = [c for c in study.corpora if any(p.corpus == c for p in points)]
    if not corpora:
        return None
    figure, axes = canvas.panels(*canvas.grid(len(corpora)), 6.2 if len(corpora) == 1 else 4.8, 3.6, sharey=True)
    shown = canvas.filled(axes, len(corpora))
    for one, corpus in zip(shown, corpora, strict=True):
        for encoding in study.encodings:
            _lines(study, one, [p for p in points if p.corpus == corpus and p.encoding == encoding])
        one.axhline(1, **canvas.GREY)
        far = study.of_corpus(corpus)[0].farthest
        one.set(
            xlabel=f"leak: share of a row of {far:g}x beyond the training length",
            ylabel=f"perplexity at {far:g}x over that\nwith heads cut at the training length",
            title=plain(corpus, 30),
        )
    if max(p.seen for p in points) > 2:
        canvas.in_steps(shown[0].yaxis)
    shown[0].plot([], [], marker="o", linestyle="", markerfacecolor="none", color="black", label="as trained")
    canvas.legend_below(figure, axes, 4)
    title = "Dose and response: another tail, the same weights"
    return figure, Figure("dose-response", title, dose_caption(evidence))


def _lines(study: Study, axes: Any, points: Sequence[Observation]) -> None:
    """The interventions on the models of one encoding: a line for each seed, the model as it was trained ringed."""
    for seed in sorted({p.seed for p in points}):
        own = sorted((p for p in points if p.seed == seed), key=lambda p: p.predicted)
        label = canvas.label_of(study, own[0].encoding) if seed == min(p.seed for p in points) else None
        line = canvas.look_of(study, own[0].encoding, label=label, linewidth=0.9)
        axes.plot([0.0, *(p.predicted for p in own)], [1.0, *(1 + p.seen for p in own)], **line)  # from the cut on
        trained = [p for p in own if p.tail == AS_TRAINED]
        ring = {"marker": "o", "markersize": 8, "markerfacecolor": "none", "linestyle": "", "color": line["color"]}
        axes.plot([p.predicted for p in trained], [1 + p.seen for p in trained], **ring)


def dose_caption(evidence: Evidence) -> str:
    dose, verdict, within = evidence.dose, evidence.dose_by_verdict, evidence.within_models
    text = f"{len(evidence.interventions)} interventions: only the bias beyond the training length is changed"
    if dose is not None:
        text += f"; far-field damage and leak have a rank correlation of {dose.text}"
        text += f", {min(within):.2f} to {max(within):.2f} within single models" if within else ""
        text += f", where the verdict on the changed series gives {verdict.text}" if verdict is not None else ""
    untrained = evidence.control.interventions
    control = correlated(untrained, by_leak)
    if control is not None:
        most = max(abs(p.seen) for p in untrained)
        text += f"; untrained networks suffer at most {percent(most)} (rank correlation {control.value:.2f})"
    return text + "."


def prediction(study: Study) -> Drawing | None:
    """The leak against the rise of perplexity that was observed, one point for each model; the control beside it."""
    evidence = Evidence(study)
    points = evidence.models
    if not points:
        return None
    figure, axes = canvas.panels(1, 1, 6.2, 4.4)
    one = axes[0, 0]
    edge = {"markeredgecolor": "white", "markeredgewidth": 0.6, "markersize": 6}
    for networks, drawn in ((evidence.control.models, {"alpha": 0.25, "markersize": 4}), (points, edge)):
        for point in networks:
            line = canvas.look_of(study, point.encoding, linestyle="", marker=_SHAPES.get(point.verdict, "D"), **drawn)
            one.plot([point.predicted], [max(point.seen, LEAST_RISE)], **line)
    for verdict in (*_SHAPES, UNDECIDED):
        if any(p.verdict == verdict for p in points):
            style = {"linestyle": "", "marker": _SHAPES.get(verdict, "D"), "color": "black", "markersize": 6}
            one.plot([], [], label=_WORDS.get(verdict, "not decided"), **style)
    one.plot([], [], linestyle="", marker="o", color="black", alpha=0.25, markersize=4, label="untrained control")
    one.set_yscale("log")
    one.set_ylim(LEAST_RISE * 0.4, max(2e-2, 5 * max(p.seen for p in points)))  # room for names
    one.margins(x=0.15)
    one.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
    one.axhline(LEAST_RISE, **canvas.GREY)
    far = f"{study.farthest:g}x"
    one.set(
        xlabel=f"leak: share of a row of {far}\nbeyond the training length",
        ylabel=f"rise of perplexity at {far} above its lowest",
    )
    canvas.legend_below(figure, axes)
    everything = np.array([(p.predicted, max(p.seen, LEAST_RISE)) for p in points])
    canvas.write_beside(one, _labels(study, points), everything)
    about = Figure("prediction", "Leak and observed rise", prediction_caption(study, evidence))
    return figure, about


def _labels(study: Study, points: Sequence[Observation]) -> list[tuple[float, float, str]]:
    """Each encoding once, at its highest point."""
    labels = []
    for encoding in study.encodings:
        own = [p for p in points if p.encoding == encoding]
        if own:
            top = max(own, key=lambda p: p.seen)
            labels.append((top.predicted, max(top.seen, LEAST_RISE), canvas.label_of(study, encoding)))
    return labels


def prediction_caption(study: Study, evidence: Evidence) -> str:
    parts = []
    for verdict, words in _WORDS.items():
        own = [p.seen for p in evidence.models if p.verdict == verdict]
        if own:
            parts.append(f"by {percent(float(np.mean(own)))} where {words}")
    text = f"Perplexity rises on average {', '.join(parts)}" if parts else "Each point is one model"
    if evidence.leak is not None:
        text += f"; leak and rise have a rank correlation of {evidence.leak.text} over {evidence.leak.points} models"
    out = [e for e in study.encodings if study.of_encoding(e) and e not in {p.encoding for p in evidence.models}]
    return text + (
        f"; {listing(out, 4)}, without a formula, {'is' if len(out) == 1 else 'are'} left out." if out else "."
    )
