"""What all figures of the study share: panels, one look for each encoding, bands of seeds, texts beside points."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from farfield.study.entries import Study
from farfield.theory.figures import in_tokens, look, plain, save, style

GREY = {"color": "#7f7f7f", "linestyle": ":", "linewidth": 1.0, "marker": ""}
_LONGEST = 30  # characters of a label
_PLACES = re.compile(r'(?<= (?:d|x|y)=")[^"]*')  # of curves and markers in an SVG, in points of print
_DECIMALS = re.compile(r"(\.\d\d)\d+")


@dataclass(frozen=True)
class Figure:
    """A figure that was drawn: the stem of its files, a short title, and one sentence on what to see."""

    name: str
    title: str
    caption: str


Drawing = tuple[Any, Figure]  # what matplotlib holds, and what it shows


def draw(make: Callable[[Study], Drawing | None], study: Study, folder: Path, *, pdf: bool = False) -> Figure | None:
    """Draw a figure as SVG, and as PDF if that is wanted; None if the study has no data for it."""
    with style() as pyplot:
        drawing = make(study)
        if drawing is None:
            return None
        figure, about = drawing
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # it is laid out: once is enough for all files
        path = folder / f"{about.name}.svg"
        save(figure, path, *([path.with_suffix(".pdf")] if pdf else []))
        pyplot.close(figure)
    text = _PLACES.sub(lambda places: _DECIMALS.sub(r"\1", places[0]), path.read_text(encoding="utf-8"))
    path.write_text(text, encoding="utf-8")  # to a hundredth of a point
    return about


def panels(rows: int, columns: int, width: float = 3.3, height: float = 2.7, **options: Any) -> Any:
    """A figure with so many panels of this size in inches, and its axes as a table."""
    from matplotlib import pyplot

    size = (max(width * columns, 4.4), height * rows)
    return pyplot.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained", **options)


def grid(count: int) -> tuple[int, int]:
    """Rows and columns for so many panels: up to three beside each other, more in two or more rows."""
    columns = count if count <= 3 else -(-count // 2) if count <= 6 else 3
    return -(-count // columns), columns


def filled(axes: Any, count: int) -> list[Any]:
    """The first so many panels of a grid; the others are not shown."""
    for one in axes.flat[count:]:
        one.set_axis_off()
    return list(axes.flat[:count])


def look_of(study: Study, encoding: str, **other: Any) -> dict[str, Any]:
    """The look of an encoding, the same in every figure of a study."""
    return {**look(study.encodings.index(encoding)), **other}


def label_of(study: Study, encoding: str) -> str:
    """The label of an encoding, the same in every figure of a study; long formulas are shortened, never to the same."""
    short = [plain(e, _LONGEST) for e in study.encodings]
    i = study.encodings.index(encoding)
    return f"{short[i]} ({short[: i + 1].count(short[i])})" if short.count(short[i]) > 1 else short[i]


def stack(rows: Iterable[Sequence[float]]) -> np.ndarray:
    """The rows that are as long as the first, (seeds, points)."""
    first, *others = rows
    return np.array([first, *(row for row in others if len(row) == len(first))], dtype=float)


def middle(rows: np.ndarray) -> np.ndarray:
    """The mean over seeds, of what is finite."""
    return np.ma.masked_invalid(rows).mean(0).filled(np.nan)


def band(axes: Any, x: Sequence[float] | np.ndarray, rows: np.ndarray, **line: Any) -> None:
    """The mean over seeds as a line, and the range from the least to the largest as a band."""
    axes.plot(x, middle(rows), **line)
    if len(rows) > 1:
        sane = np.ma.masked_invalid(rows)
        low, high = sane.min(0).filled(np.nan), sane.max(0).filled(np.nan)
        axes.fill_between(x, low, high, color=line["color"], alpha=0.15, linewidth=0)


def legend_below(figure: Any, axes: Any, columns: int = 5, seeds: int = 1) -> None:
    """One legend for all panels, under them, each label once; and what the bands are if there are several seeds."""
    from matplotlib.patches import Patch

    handles: dict[str, Any] = {}
    for one in np.ravel(axes):
        for handle, label in zip(*one.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if seeds > 1:
        handles[f"range of {seeds} seeds"] = Patch(facecolor="#cccccc")
    if handles:
        columns = min(columns, len(handles), max(2, int(figure.get_figwidth() / 1.4)))
        if max(map(len, handles)) > 18:
            columns = min(columns, max(1, int(figure.get_figwidth() / 2.4)))
        rows = -(-len(handles) // columns)
        figure.set_figheight(figure.get_figheight() + 0.17 * rows)  # the panels keep theirs
        figure.legend(
            handles.values(), handles.keys(), loc="outside lower center", ncols=columns, fontsize=8, handlelength=3.2
        )


def by_length(axes: Any, lengths: Sequence[int], training_length: int) -> None:
    """A logarithmic axis of lengths with the multiples of the training length written under the tokens."""
    in_tokens(axes.xaxis)
    shown = [n for n in lengths if (n / training_length) in (1, 2, 4, 8, 16)]
    last = lengths[-1]
    shown = [n for n in shown if n * 1.5 < last] + [last]
    axes.set_xticks(shown, [f"{n}\n{n / training_length:g}x" for n in shown])


def in_steps(axis: Any) -> None:
    """A logarithmic axis with the steps 1, 2, 5, 10 written as plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    (axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale)("log")
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.9g}"))
    axis.set_minor_locator(NullLocator())


def mark(axes: Any, at: float, text: str) -> None:
    """A dotted vertical line with its name over it, under the title."""
    axes.axvline(at, **GREY)
    axes.set_title(axes.get_title(), pad=13)
    axes.annotate(
        text, (at, 1), xycoords=("data", "axes fraction"), xytext=(0, 1), textcoords="offset points",
        va="bottom", ha="center", fontsize=6.5, color="#555555", annotation_clip=False,
    )  # fmt: skip


def headed(axes: Any, title: str, notes: Sequence[str]) -> None:
    """A title with smaller notes under it, a line for each."""
    axes.set_title(title, pad=4 + 8 * len(notes))
    axes.annotate(
        "\n".join(notes), (0.5, 1), xycoords="axes fraction", xytext=(0, 1), textcoords="offset points",
        va="bottom", ha="center", fontsize=6.5, color="#333333", annotation_clip=False,
    )  # fmt: skip


def write_beside(axes: Any, points: Sequence[tuple[float, float, str]], others: np.ndarray) -> None:
    """Write a text beside each point where it meets neither another text nor a point; all in data coordinates.

    others: all points of the panel, (n, 2), that texts must not cover.
    """
    from adjustText import adjust_text

    middle = sum(axes.get_xlim()) / 2
    texts = [
        axes.text(x, y, text, fontsize=7, in_layout=False, ha="right" if x > middle else "left")
        for x, y, text in points
    ]
    axes.figure.draw_without_rendering()  # it must know where the axes stand
    for number, text in enumerate(texts):  # what begins in one place is not parted: each starts above those before it
        while any(text.get_window_extent().overlaps(other.get_window_extent()) for other in texts[:number]):
            x, y = axes.transData.transform(text.get_position())
            text.set_position(axes.transData.inverted().transform((x, y + text.get_window_extent().height)))
    adjust_text(
        texts, *others.T, ax=axes, target_x=[x for x, *_ in points], target_y=[y for _, y, _ in points],
        expand=(1.2, 1.6), iter_lim=400, arrowprops={"arrowstyle": "-", "linewidth": 0.5, "color": "#777777"},
    )  # fmt: skip
    frame = axes.get_window_extent()
    for text in texts:  # what still reaches over the edge would be cut off there
        box, (x, y) = text.get_window_extent(), axes.transData.transform(text.get_position())
        moved = x + max(0, frame.x0 - box.x0) + min(0, frame.x1 - box.x1)
        text.set_position(axes.transData.inverted().transform((moved, y)))
