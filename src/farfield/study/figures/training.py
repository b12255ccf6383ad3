"""How far training went: the loss by step of every model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from farfield.study.collected import Study
from farfield.study.figures.canvas import (
    Figure,
    band,
    filled,
    grid,
    label_of,
    legend_below,
    look_of,
    middle,
    named,
    number,
    panels,
    stacked,
    written,
)
from farfield.theory.figures import plain


def training_loss(study: Study, folder: Path) -> Figure | None:
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
                own = curves.get((corpus, encoding), [])
                if not own:
                    continue
                line = look_of(study, encoding, label=label_of(study, encoding))
                batches = stacked(train[1] for train, _ in own)
                if batches is not None:
                    steps = own[0][0][0]
                    one.plot(steps, middle(batches), color=line["color"], linewidth=0.5, alpha=0.5)
                valid = stacked(v[1] for _, v in own if v is not None)
                if valid is not None:
                    steps = next(v[0] for _, v in own if v is not None)
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
        points = [(line["step"], line[n]) for line in lines for n in names if n in line]
        pairs.append(np.array(sorted(points), dtype=float).T if points else None)
    return None if pairs[0] is None else (pairs[0], pairs[1])


def _on_training(study: Study, curves: dict[tuple[str, str], list[Any]]) -> str:
    """How far training went, in one sentence."""
    falls: list[float] = []
    ends: dict[str, list[float]] = {}
    for (_, encoding), runs in curves.items():
        for (steps, losses), valid in runs:
            steps, losses = valid if valid is not None and len(valid[0]) > 2 else (steps, losses)
            part = max(1, len(losses) // 5)
            falls.append(float(losses[-2 * part : -part].mean() - losses[-part:].mean()) if len(losses) > 1 else 0.0)
            ends.setdefault(encoding, []).append(float(losses[-part:].mean()))
    low, high = (choose(ends, key=lambda e: np.mean(ends[e])) for choose in (min, max))
    fall = float(np.mean(falls))
    moving = f"was still falling by {number(fall, 2)}" if fall > 0 else "had stopped falling"
    steps = max(int(runs[0][0][0][-1]) for runs in curves.values() if runs)
    least, most = (number(float(np.mean(ends[e]))) for e in (low, high))
    return (
        f"After {steps} steps the loss {moving} over the last fifth of training, on average, and ends between "
        f"{least} ({named([low])}) and {most} ({named([high])})."
    )
