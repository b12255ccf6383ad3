"""The layers of a model as a figure: how many tokens each sees."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from farfield.theory.figures import save, style
from farfield.theory.models.presentation import bars

if TYPE_CHECKING:
    from farfield.theory.models.inspection import Inspection

_LOOKS = {"windowed": ("#0072b2", ""), "disperses": ("#d9d9d9", "///"), "neither": ("#e69f00", "..."),
          "undecided": ("#ffffff", "xx")}  # fmt: skip


def layers_figure(inspection: Inspection, path: str | Path | None) -> Any:
    """A bar for each layer: its window, the widest certified one, or the whole text."""
    m = inspection.model
    assert m is not None
    whole, layers = bars(inspection)
    with style() as pyplot:
        figure, axes = pyplot.subplots(figsize=(7, min(9, 1.6 + 0.16 * len(m.layers))))
        seen = set()
        for bar in layers:
            colour, hatch = _LOOKS[bar.kind]
            axes.barh(bar.layer, bar.tokens, color=colour, hatch=hatch, edgecolor="#444444", linewidth=0.4, height=0.8,
                      label=None if bar.label in seen else bar.label)  # fmt: skip
            seen.add(bar.label)
        if m.training_length:
            axes.axvline(m.training_length, color="#d55e00", linestyle="--", label="training length")
        axes.set_xscale("log")
        axes.set_xlim(1, whole * 1.3)
        axes.set_ylim(len(m.layers) + 0.6, 0.4)
        axes.set_axisbelow(True)
        axes.set_xlabel("tokens that the layer sees")
        axes.set_ylabel("layer")
        axes.set_title(f"{inspection.name}: what each layer sees")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.28 if len(m.layers) < 12 else -0.12), ncols=2)
        if path is not None:
            save(figure, path)
        pyplot.close(figure)
    return figure
