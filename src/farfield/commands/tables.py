"""Tables that fit the terminal: one that is too wide becomes a list, so that no heading and no number is cut."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text


def fitting(
    console: Console,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str = "",
    names: int = 1,
    left: Sequence[str] = (),
    below: Sequence[Sequence[str]] = (),
) -> RenderableType:
    """Rows under headings as a table, or as a list where the terminal is too narrow for it.

    Args:
        console: Where it will be shown.
        headings: One for each column; they may be broken between words.
        rows: The cells, which are never broken.
        title: Stands above it.
        names: In a list, so many first cells name the row.
        left: Headings of the columns that are aligned to the left.
        below: More rows, set apart.
    """
    cells = [[len(row[i]) for row in (*rows, *below)] for i in range(len(headings))]
    widths = [max([*map(len, h.split()), *own], default=0) for h, own in zip(headings, cells, strict=True)]
    above: list[RenderableType] = [Text(title, style="bold")] if title else []
    room = console.width - sum(widths) - 2 * len(widths) - 1
    if room < 0:
        return Group(*above, *_list(headings, rows, names), *_list(["", *headings[1:]], below, names))
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading, width in zip(headings, widths, strict=True):
        more = min(room, max(0, len(heading) - width))  # a heading on one line, as long as there is room
        room -= more
        table.add_column(Text(heading), justify="left" if heading in left else "right", width=width + more)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    if below:
        table.add_section()
        for row in below:
            table.add_row(*(Text(cell) for cell in row))
    return Group(*above, table)


def _list(headings: Sequence[str], rows: Sequence[Sequence[str]], names: int) -> list[RenderableType]:
    """Each row by its name, and under it what it has."""
    lines: list[RenderableType] = []
    for row in rows:
        named = [f"{h} {cell}".strip() for h, cell in zip(headings[:names], row, strict=False) if cell]
        lines += [Text(", ".join(named), style="bold")] * bool(named)
        has = "; ".join(f"{h}: {cell}" for h, cell in zip(headings[names:], row[names:], strict=True) if cell)
        lines.append(Padding(Text(has), (0, 0, 0, 4), expand=False))
    return lines


def percent(share: float, error: float | None = None, *, sign: str = "") -> str:
    """A share in percent with its standard error; large ones with fewer digits."""
    digits = 2 if abs(share) < 1 else 0
    return f"{share:{sign}.{digits}%}" + ("" if error is None else f" ± {error:.{digits}%}")
