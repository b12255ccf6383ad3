"""Every figure of the study, in the order of its report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from farfield.study.collected import Study
from farfield.study.figures.canvas import Figure
from farfield.study.figures.heads import attention_by_distance, fields_compared, hypothesis, prediction
from farfield.study.figures.lengths import inference, necessity, sufficiency, training
from farfield.study.figures.theory import heat_maps, partial_sums, receptive_fields, reweighting

FIGURES: tuple[Callable[[Study, Path], Figure | None], ...] = (
    inference,
    reweighting,
    sufficiency,
    necessity,
    receptive_fields,
    attention_by_distance,
    heat_maps,
    hypothesis,
    partial_sums,
    prediction,
    fields_compared,
    training,
)


def draw_all(study: Study, folder: Path, say: Callable[[str], None] | None = None) -> list[Figure]:
    """Draw what the study has data for, as PNG and SVG in a folder; `say` is told each title before it is drawn."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for draw in FIGURES:
        if say is not None:
            say(draw.__name__.replace("_", " "))
        figure = draw(study, folder)
        if figure is not None:
            drawn.append(figure)
    return drawn


__all__ = ["FIGURES", "Figure", "draw_all"]
