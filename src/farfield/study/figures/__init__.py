"""Every figure of the study, in the order of its report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from farfield.study.collected import Study
from farfield.study.figures.by_head import attention_by_distance, fields_compared, hypothesis
from farfield.study.figures.canvas import Figure, one_panel_a_row
from farfield.study.figures.curves import close_up, perplexity_curves
from farfield.study.figures.doses import dose_response, prediction
from farfield.study.figures.inference import ways_of_inference
from farfield.study.figures.theory import heat_maps, partial_sums, receptive_fields, reweighting
from farfield.study.figures.training import training_loss

FIGURES: tuple[Callable[[Study, Path], Figure | None], ...] = (
    perplexity_curves,
    dose_response,
    prediction,
    close_up,
    ways_of_inference,
    reweighting,
    receptive_fields,
    attention_by_distance,
    heat_maps,
    hypothesis,
    partial_sums,
    fields_compared,
    training_loss,
)


def draw_all(study: Study, folder: Path, say: Callable[[str], None] | None = None) -> list[Figure]:
    """Draw what the study has data for, as PNG, SVG and PDF in a folder, and once more for a phone.

    Args:
        study: What was measured.
        folder: Where the files go.
        say: Called with the name of each figure before it is drawn.
    """
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for draw in FIGURES:
        if say is not None:
            say(draw.__name__.replace("_", " "))
        figure = draw(study, folder)
        if figure is not None:
            with one_panel_a_row():
                narrow = draw(study, folder)
            drawn.append(replace(figure, narrow=narrow.narrow if narrow else None))
    return drawn


__all__ = ["FIGURES", "Figure", "draw_all"]
