"""How far training went: the loss by step of every model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from farfield.study.entries import Study
from farfield.study.figures import canvas
from farfield.study.figures.canvas import Drawing, Figure
from farfield.study.record import Record
from farfield.theory.figures import plain
from farfield.words import number, short

Curve = tuple[Sequence[float], Sequence[float]]  # steps and losses


def training_loss(study: Study) -> Drawing | None:
    """The loss by step of every model: on the validation text with markers, on the batches as a thin line."""
    corpora = [c for c in study.corpora if any(curve_of(e.first, "loss") for e in study.of_corpus(c))]
    if not corpora:
        return None
    figure, axes = canvas.panels(*canvas.grid(len(corpora)), 3.6, 3.0, sharey=True)
    for panel, corpus in zip(canvas.filled(axes, len(corpora)), corpora, strict=True):
        for entry in study.of_corpus(corpus):
            line = canvas.look_of(study, entry.encoding, label=canvas.label_of(study, entry.encoding))
            batches, valid = (
                [curve for record in entry.records if (curve := curve_of(record, *names))]
                for names in (("loss",), ("valid_loss", "eval_loss"))
            )
            if batches:
                losses = canvas.middle(canvas.stack(loss for _, loss in batches))
                panel.plot(*_thin(batches[0][0], losses), color=line["color"], linewidth=0.5, alpha=0.5)
            if valid:
                canvas.band(panel, valid[0][0], canvas.stack(loss for _, loss in valid), **line)
            elif batches:
                panel.plot([], [], **line)
        panel.set(xlabel="step (updates)", title=plain(corpus, 30))
    for panel in axes[:, 0]:
        panel.set_ylabel("loss (nats for each token)")
    axes[0, 0].plot([], [], color="#555555", linewidth=0.5, label="thin: batches")
    canvas.legend_below(figure, axes, seeds=study.seeds)
    return figure, Figure("training", "Loss by step of training", caption(study))


def _thin(steps: Sequence[float], losses: np.ndarray) -> list[np.ndarray]:
    """A curve of at most 120 points, each the mean of as many."""
    size = -(-len(losses) // 120)
    count = len(losses) // size
    return [np.array(values)[: count * size].reshape(count, size).mean(1) for values in (steps, losses)]


def curve_of(record: Record, *names: str) -> Curve | None:
    """Steps and losses of one of these names; None if there are none."""
    points = sorted((line["step"], loss) for line in record.training for name, loss in line.items() if name in names)
    return ([step for step, _ in points], [loss for _, loss in points]) if points else None


def caption(study: Study) -> str:
    """How far training went, in one sentence."""
    falls: list[float] = []
    texts: set[str] = set()
    ends: dict[str, list[float]] = {}
    last = 0
    for record in study.records:
        valid = curve_of(record, "valid_loss", "eval_loss")
        validated = valid is not None and len(valid[0]) > 2
        curve = valid if validated else curve_of(record, "loss")
        if curve is None:
            continue
        texts.add("validation text" if validated else "training batches")
        last, losses = max(last, int(record.training[-1]["step"])), np.array(curve[1])
        part = max(1, len(losses) // 5)
        falls.append(float(losses[-2 * part : -part].mean() - losses[-part:].mean()) if len(losses) > 1 else 0.0)
        ends.setdefault(record.encoding, []).append(float(losses[-part:].mean()))
    low, high = (choose(ends, key=lambda e: np.mean(ends[e])) for choose in (min, max))
    fall = float(np.mean(falls))
    moving = f"was still falling by {number(fall, 2)}" if fall > 0 else "had stopped falling"
    least, most = (number(float(np.mean(ends[e]))) for e in (low, high))
    return (
        f"After {last} steps the loss on the {' or '.join(sorted(texts))} {moving} over the last fifth of training, "
        f"on average, and ends between {least} ({short(low)}) and {most} ({short(high)})."
    )
