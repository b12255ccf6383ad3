"""Figures in one style: readable in black and white, written as PDF, PNG or SVG.

Curves differ in line and marker before they differ in colour. matplotlib is imported when a figure is drawn.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from farfield.formula import Formula

_LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)), (0, (8, 2)))
_MARKERS = ("o", "s", "^", "D", "v", "x", "+", "P", "*", "<", ">", "h")
_COLOURS = (
    *("#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#7f7f7f", "#8c5a2b"),
    *("#e69f00", "#6a3d9a", "#8b1a1a", "#808000"),
)
_NO_MATPLOTLIB = "figures need matplotlib: pip install 'farfield[figures]'"
_UNDATED = {".png": None, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}  # the same figure, the same file
_STYLE: dict[str, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "legend.frameon": False,
    "figure.dpi": 150,
    "svg.fonttype": "none",
    "svg.hashsalt": "farfield",
}


@contextmanager
def style() -> Iterator[Any]:
    """pyplot in the common style, without a window."""
    try:
        import matplotlib
    except ImportError:
        raise ImportError(_NO_MATPLOTLIB) from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        # a sign that the font lacks is a box in the PNG, and itself in the SVG
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield pyplot


def look(i: int) -> dict[str, Any]:
    """Line, marker and colour of the i-th curve; the first 12 differ in colour and in marker."""
    return {
        "linestyle": _LINES[i % len(_LINES)],
        "marker": _MARKERS[i % len(_MARKERS)],
        "color": _COLOURS[i % len(_COLOURS)],
    }


def figure_path(path: str | Path) -> Path:
    """The place of a figure, checked before any work is done.

    Raises:
        ValueError: if it does not end in .png, .svg or .pdf, or its folder does not exist.
        ImportError: if matplotlib is not installed.
    """
    target = Path(path)
    if target.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ValueError(f"a figure is written as .png, .svg or .pdf, not '{target.suffix or target.name}'")
    if not target.parent.is_dir():
        raise ValueError(f"the folder {target.parent} does not exist")
    if find_spec("matplotlib") is None:
        raise ImportError(_NO_MATPLOTLIB)
    return target


def save(figure: Any, *paths: str | Path) -> list[Path]:
    """Write a figure to each of these places, as PDF, PNG or SVG by its ending."""
    targets = [figure_path(path) for path in paths]
    for target in targets:
        kind = target.suffix.lower()
        drawn = io.BytesIO()  # where a disk is full, matplotlib's own files end in errors of other kinds
        figure.savefig(drawn, format=kind[1:], bbox_inches="tight", metadata=_UNDATED[kind])
        try:
            target.write_bytes(drawn.getvalue())
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(target)) from None
    return targets


def weights_figure(formula: Formula, title: str, path: str | Path | None, *, start: int, terms: int) -> Any:
    """The weights of a formula by distance, and their partial sums, in double precision.

    Returns:
        The figure; with a path it is also written, as its ending says.
    """
    import numpy as np

    distances = np.unique(np.geomspace(1, terms, 400).astype(int)) - 1 + start
    with np.errstate(all="ignore"):
        weights = np.exp(formula.array(np.arange(start, start + terms, dtype=float)))
        sums = np.cumsum(weights)
    with style() as pyplot:
        figure, (left, right) = pyplot.subplots(1, 2, figsize=(8, 3))
        left.loglog(distances + 1, weights[distances - start], **look(0) | {"marker": ""})
        left.set(xlabel="t + 1", ylabel="weight b(t)", title="weights")
        draw = right.loglog if sums[-1] > 100 * sums[0] else right.semilogx
        draw(distances + 1, sums[distances - start], **look(1) | {"marker": ""})
        right.set(xlabel="tokens", ylabel="sum of the weights", title="partial sums")
        figure.suptitle(plain(title, 100), fontsize=9)
        figure.tight_layout()
        return finished(figure, path)


def finished(figure: Any, path: str | Path | None) -> Any:
    """The figure, written if there is a path, and out of pyplot's hands."""
    from matplotlib import pyplot

    if path is not None:
        save(figure, path)
    pyplot.close(figure)
    return figure


def plain(label: str, most: int = 200) -> str:
    """A label as it is drawn: one line of at most so many characters, none of which matplotlib takes for a command."""
    text = one_line(label, most)
    text = f" {text}" if text.startswith("_") else text  # matplotlib hides labels that begin with it
    return text.replace("$", r"\$")


def one_line(text: str, most: int = 200) -> str:
    """A text on one line, without characters that cannot be seen, and with its middle left out if it is too long."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    begin = most * 2 // 3
    return line if len(line) <= most else f"{line[:begin]}…{line[len(line) + 1 - most + begin :]}"


def in_tokens(*axes: Any, ticks: int = 9) -> None:
    """Powers of two on a logarithmic axis, written as whole numbers, at most so many."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    for axis in axes:
        scale = axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale
        scale("log", base=2)
        axis.set_major_locator(LogLocator(base=2, numticks=ticks))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_locator(NullLocator())
