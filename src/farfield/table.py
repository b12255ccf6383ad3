"""One table: for the terminal, as CSV, Markdown, LaTeX and HTML. Text that would be markup there becomes plain text.

What the report's templates hold is escaped by their engine, SVG by matplotlib; the rest is here.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Protocol

from farfield.words import percent, plain, with_error

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

WIDEST = 8  # columns of a table in LaTeX
_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "±": r"\ensuremath{\pm}",
    "≥": r"\ensuremath{\geq}",
    "×": r"\ensuremath{\times}",
    "−": "-",
}
_MARKDOWN = set("\\`*_{}[]<>()#+!|~&$")
_NUMBER = re.compile(r"-?\d{1,3}(,\d{3})+|-?\d+(\.\d+)?(e-?\d+)?")


class TableCell(Protocol):
    """What a table holds: it is written by `str`, but in LaTeX."""

    def latex(self) -> str: ...


@dataclass(frozen=True)
class Number:
    """A number as a table writes it, with its standard error if there is one; `share` as a percentage."""

    value: float | None
    error: float | None = None
    digits: int = 2
    share: bool = False

    def __str__(self) -> str:
        if self.value is None:
            return ""
        return (percent if self.share else with_error)(self.value, self.error, digits=self.digits)

    def latex(self) -> str:
        text = str(self)
        return "" if not text else "$" + text.replace("±", r"\pm").replace(" %", r"\,\%") + "$"


@dataclass(frozen=True)
class Mathematics:
    """A formula or a name as plain text, and what LaTeX sets in mathematics mode."""

    text: str
    tex: str

    def __str__(self) -> str:
        return self.text

    def latex(self) -> str:
        return f"${self.tex}$"


@dataclass(frozen=True)
class Table:
    """Rows under headings.

    Attributes:
        columns: The headings.
        rows: The cells, as many in each row.
        title: Stands above it.
        names: So many first columns name the row.
        left: Headings of the columns that a terminal aligns to the left.
        below: More rows, set apart.
        name: Of its files.
        caption: Stands below it in Markdown, above it in LaTeX.
    """

    columns: Sequence[str | TableCell]
    rows: Sequence[Sequence[str | TableCell]]
    title: str = ""
    names: int = 1
    left: Sequence[str] = ()
    below: Sequence[Sequence[str | TableCell]] = ()
    name: str = ""
    caption: str = ""

    def csv(self) -> str:
        """Rows in which no cell is a formula to a spreadsheet."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([[csv_cell(cell) for cell in row] for row in (self.columns, *self.rows, *self.below)])
        return text.getvalue()

    def markdown(self) -> str:
        bars = ["---"] * self.names + ["---:"] * (len(self.columns) - self.names)
        lines = [[markdown(cell) for cell in row] for row in (self.columns, *self.rows, *self.below)]
        body = "\n".join("| " + " | ".join(line) + " |" for line in (lines[0], bars, *lines[1:]))
        return f"{body}\n" + (f"\n{markdown(self.caption)}\n" if self.caption else "")

    def latex(self) -> str:
        """A `table` for the package booktabs; one with more than eight columns is cut into several of at most eight."""
        room = WIDEST - self.names
        count = len(self.columns) - self.names
        parts = [range(a, min(a + room, count)) for a in range(0, max(count, 1), room)]
        lines = [r"\begin{table}", r"\centering\footnotesize", rf"\caption{{{latex(self.caption or self.title)}}}"]
        for part in parts:
            chosen = [*range(self.names), *(self.names + i for i in part)]
            head, rows, below = (
                [" & ".join(as_latex(row[i]) for i in chosen) + r" \\" for row in some]
                for some in ([self.columns], self.rows, self.below)
            )
            lines += [rf"\begin{{tabular}}{{{'l' * self.names}{'r' * len(part)}}}", r"\toprule", *head, r"\midrule"]
            lines += [*rows, *([r"\midrule", *below] if below else []), r"\bottomrule", r"\end{tabular}"]
            lines += [r"\par\medskip"] * (part is not parts[-1])
        return "\n".join([*lines, r"\end{table}"]) + "\n"

    def html(self) -> str:
        """The table for a notebook."""
        rows = [[escape(str(cell)) for cell in row] for row in (*self.rows, *self.below)]
        head = "".join(f"<th>{escape(str(column))}</th>" for column in self.columns)
        body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
        return f"<table><caption>{escape(self.title)}</caption><tr>{head}</tr>{body}</table>"

    def rich(self, console: Console) -> RenderableType:
        """The table for a terminal; a list where that is too narrow, so that no heading and no number is cut."""
        from rich.box import SIMPLE_HEAD
        from rich.console import Group
        from rich.table import Table as RichTable
        from rich.text import Text

        headings = [str(column) for column in self.columns]
        rows, below = ([[str(cell) for cell in row] for row in some] for some in (self.rows, self.below))
        cells = [[len(row[i]) for row in (*rows, *below)] for i in range(len(headings))]
        widths = [max([*map(len, h.split()), *sizes], default=0) for h, sizes in zip(headings, cells, strict=True)]
        above: list[RenderableType] = [Text(self.title, style="bold")] if self.title else []
        room = console.width - sum(widths) - 2 * len(widths) - 1
        if room < 0:
            return Group(*above, *_list(headings, rows, self.names), *_list(["", *headings[1:]], below, self.names))
        table = RichTable(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for heading, width in zip(headings, widths, strict=True):
            extra = min(room, max(0, len(heading) - width))  # a heading on one line, as long as there is room
            room -= extra
            table.add_column(Text(heading), justify="left" if heading in self.left else "right", width=width + extra)
        for row in rows:
            table.add_row(*map(Text, row))
        if below:
            table.add_section()
            for row in below:
                table.add_row(*map(Text, row))
        return Group(*above, table)


def _list(headings: Sequence[str], rows: Sequence[Sequence[str]], names: int) -> list[RenderableType]:
    """Each row by its name, and under it what it has."""
    from rich.padding import Padding
    from rich.text import Text

    lines: list[RenderableType] = []
    for row in rows:
        title = [f"{h} {cell}".strip() for h, cell in zip(headings[:names], row, strict=False) if cell]
        lines += [Text(", ".join(title), style="bold")] * bool(title)
        cells = "; ".join(f"{h}: {cell}" for h, cell in zip(headings[names:], row[names:], strict=True) if cell)
        lines.append(Padding(Text(cells), (0, 0, 0, 4), expand=False))
    return lines


def latex(text: object) -> str:
    """Text that LaTeX sets as it stands."""
    return "".join(_LATEX.get(c, c) for c in plain(text))


def as_latex(cell: str | TableCell) -> str:
    """A cell in LaTeX; plain numbers, and lists of them, in mathematics mode too."""
    if not isinstance(cell, str):
        return cell.latex()
    parts = cell.split(", ")
    if not all(_NUMBER.fullmatch(part) for part in parts):
        return latex(cell)
    return ", ".join(f"${latex_number(part)}$" for part in parts)


def latex_number(text: str) -> str:
    """A number in mathematics mode: 1e-3 is a power of ten, and thousands are set apart."""
    mantissa, e, exponent = text.partition("e")
    if e:
        return f"10^{{{int(exponent)}}}" if mantissa == "1" else rf"{mantissa} \cdot 10^{{{int(exponent)}}}"
    groups = re.sub(r"(?<=\d)(?=(\d{3})+$)", ",", text) if text.isdigit() and len(text) > 4 else text
    return groups.replace(",", "{,}")


def markdown(text: object) -> str:
    """Text that Markdown shows as it stands, also inside of a table."""
    return "".join(f"\\{c}" if c in _MARKDOWN else c for c in plain(text))


def csv_cell(text: object) -> str:
    """A cell that a spreadsheet does not take for a formula; numbers stay numbers."""
    cell = plain(text)
    if cell[:1] not in ("=", "+", "-", "@"):
        return cell
    try:
        float(cell.rstrip(" %"))
    except ValueError:
        return "'" + cell
    return cell
