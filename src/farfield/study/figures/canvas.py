"""What all figures of the study share: panels, one look for each encoding, bands of seeds, texts beside points."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from farfield.study.collected import Study
from farfield.theory.figures import in_tokens, look, one_line, plain, save, style

GREY = {"color": "#7f7f7f", "linestyle": ":", "linewidth": 1.0, "marker": ""}
NARROW = "-narrow"  # at the end of the name of a figure with one panel a row
_NARROW = 4.0  # inches
_LONGEST = 30  # characters of a label


@dataclass(frozen=True)
class Figure:
    """A figure that was drawn: its file stem, a short title, one sentence on what to see, and its files.

    Attributes:
        paths: PNG, SVG and PDF.
        narrow: The same with one panel a row, for a phone, if it was drawn.
    """

    name: str
    title: str
    caption: str
    paths: tuple[Path, ...]
    narrow: Path | None = None


_one_panel_a_row: ContextVar[bool] = ContextVar("one_panel_a_row", default=False)


@contextmanager
def one_panel_a_row() -> Iterator[None]:
    """Inside of it figures are drawn for a phone: narrow, one panel under the other, as one SVG each."""
    token = _one_panel_a_row.set(True)
    try:
        yield
    finally:
        _one_panel_a_row.reset(token)


@contextmanager
def panels(
    rows: int, columns: int, width: float = 3.3, height: float = 2.7, **options: Any
) -> Iterator[tuple[Any, Any]]:
    """A figure with so many panels of this size in inches, and its axes as a table; closed in the end."""
    narrow = _one_panel_a_row.get()
    shape = (rows * columns, 1) if narrow else (rows, columns)
    size = (_NARROW, height * rows * columns) if narrow else (max(width * columns, 4.4), height * rows)
    with style() as pyplot:
        figure, axes = pyplot.subplots(*shape, figsize=size, squeeze=False, layout="constrained", **options)
        try:
            yield figure, axes.reshape(rows, columns)
        finally:
            pyplot.close(figure)


def grid(count: int) -> tuple[int, int]:
    """Rows and columns for so many panels: up to three beside each other, more in two or more rows."""
    columns = count if count <= 3 else -(-count // 2) if count <= 6 else 3
    return -(-count // columns), columns


def filled(axes: Any, count: int) -> list[Any]:
    """The first so many panels of a grid; the others are not shown."""
    for one in axes.flat[count:]:
        one.set_axis_off()
    return list(axes.flat[:count])


def written(figure: Any, folder: Path, name: str, title: str, caption: str) -> Figure:
    """Write a figure into a folder, and tell of it."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # it is laid out: once is enough for all files
    if _one_panel_a_row.get():
        return Figure(name, title, caption, (), *save(figure, folder / f"{name}{NARROW}.svg"))
    paths = save(figure, *(folder / f"{name}.{kind}" for kind in ("png", "svg", "pdf")))
    return Figure(name, title, caption, tuple(paths))


def look_of(study: Study, encoding: str, **other: Any) -> dict[str, Any]:
    """The look of an encoding, the same in every figure of a study."""
    return {**look(study.encodings.index(encoding)), **other}


def label_of(study: Study, encoding: str) -> str:
    """The label of an encoding, the same in every figure of a study; long formulas are shortened, never to the same."""
    short = [plain(e, _LONGEST) for e in study.encodings]
    i = study.encodings.index(encoding)
    return f"{short[i]} ({short[: i + 1].count(short[i])})" if short.count(short[i]) > 1 else short[i]


def named(encodings: Iterable[str], most: int = 4) -> str:
    """Encodings in a sentence: `alibi, type1 and type2`, or how many others there are."""
    names = [one_line(e, 60) for e in encodings]
    if len(names) > most:
        names = [*names[: most - 1], f"{len(names) - most + 1} others"]
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def number(value: float, digits: int = 3) -> str:
    """A number in a sentence: so many digits, or all before the point."""
    if not np.isfinite(value):
        return "infinite" if value > 0 else "unknown"
    rounded = float(f"{value:.{digits}g}")
    return f"{value:,.0f}" if 10**digits <= abs(rounded) < 1e7 else f"{rounded:.{digits}g}"


def percent(share: float) -> str:
    """A share as a percentage: 4.2 %, 0.08 %, 62 %."""
    return f"{number(100 * share, 2)} %"


def numbers(record: dict[str, Any], *keys: str) -> np.ndarray | None:
    """A list of numbers inside a record, `null` as nan; None if there is no such list."""
    inner: Any = record
    for key in keys:
        inner = inner.get(key) if isinstance(inner, dict) else None
    try:
        values = np.array([np.nan if x is None else x for x in inner], dtype=float)
    except (TypeError, ValueError):
        return None
    return values if values.ndim == 1 and len(values) else None


def stacked(rows: Iterable[np.ndarray | None]) -> np.ndarray | None:
    """The rows that are there and as long as the first, (seeds, points); None if there is none."""
    there = [row for row in rows if row is not None]
    return np.stack([row for row in there if len(row) == len(there[0])]) if there else None


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
