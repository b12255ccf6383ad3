"""Every figure of the study, in the order of its report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from farfield.study.entries import Study
from farfield.study.figures.canvas import Drawing, Figure, draw
from farfield.study.figures.field_plots import fields_compared, hypothesis, receptive_fields
from farfield.study.figures.inference import ways_of_inference
from farfield.study.figures.leak import dose_response, prediction
from farfield.study.figures.perplexity_plot import perplexity_curves
from farfield.study.figures.training import training_loss

FIGURES: tuple[Callable[[Study], Drawing | None], ...] = (
    perplexity_curves,
    dose_response,
    prediction,
    ways_of_inference,
    receptive_fields,
    hypothesis,
    fields_compared,
    training_loss,
)


def draw_all(study: Study, folder: Path, *, pdf: bool = False) -> list[Figure]:
    """Draw what the study has data for as SVG in a folder, and as PDF if that is wanted."""
    folder.mkdir(parents=True, exist_ok=True)
    return [figure for make in FIGURES if (figure := draw(make, study, folder, pdf=pdf)) is not None]


__all__ = ["FIGURES", "Figure", "draw_all"]
