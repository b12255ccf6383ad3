"""A table and its cells, numbers with errors and formulas among them: as text, CSV, Markdown and LaTeX."""

from __future__ import annotations

import csv as csv_writer
import io
import re
from dataclasses import dataclass
from pathlib import Path

from farfield import zoo
from farfield.study import escaping

WIDEST = 8  # columns of a table in LaTeX
_NUMBER = re.compile(r"-?\d{1,3}(,\d{3})+|-?\d+(\.\d+)?(e-?\d+)?")
_POWER = re.compile(r"(\S+)e(-?\d+)")


@dataclass(frozen=True)
class Number:
    """A number as a table shows it, with its standard error if there is one; `share` as a percentage."""

    value: float | None
    error: float | None = None
    digits: int = 2
    share: bool = False

    def __str__(self) -> str:
        if self.value is None:
            return ""
        scale = 100 if self.share else 1
        error = "" if self.error is None else f" ± {scale * self.error:.{self.digits}f}"
        return f"{scale * self.value:.{self.digits}f}{error}{'%' if self.share else ''}"

    def latex(self) -> str:
        text = str(self)
        return "" if not text else "$" + text.replace("±", r"\pm").replace("%", r"\,\%") + "$"


@dataclass(frozen=True)
class EncodingName:
    """The name of an encoding, or the formula that somebody typed: mathematics in LaTeX."""

    name: str

    def __str__(self) -> str:
        return escaping.short(self.name)

    def latex(self) -> str:
        formula = None if self.name in zoo.ENCODINGS else zoo.find(self.name).formula
        return escaping.latex(str(self)) if formula is None else f"${formula.latex()}$"


TableCell = str | Number | EncodingName


def as_latex(cell: TableCell) -> str:
    """A cell in LaTeX; plain numbers, and lists of them, in mathematics mode too."""
    if not isinstance(cell, str):
        return cell.latex()
    parts = cell.split(", ")
    if not all(_NUMBER.fullmatch(part) for part in parts):
        return escaping.latex(cell)
    return ", ".join(f"${_POWER.sub(_power, part).replace(',', '{,}')}$" for part in parts)


def _power(number: re.Match[str]) -> str:
    factor = "" if number[1] == "1" else number[1] + r" \cdot "
    return f"{factor}10^{{{int(number[2])}}}"


@dataclass(frozen=True)
class Table:
    """A table; the first `names` columns are names, the rest are numbers or short answers."""

    name: str
    title: str
    caption: str
    columns: tuple[TableCell, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    names: int = 1

    def csv(self) -> str:
        return csv_text([str(c) for c in self.columns], [[str(cell) for cell in row] for row in self.rows])

    def markdown(self) -> str:
        bars = ["---"] * self.names + ["---:"] * (len(self.columns) - self.names)
        lines = [[escaping.markdown(c) for c in self.columns], bars]
        lines += [[escaping.markdown(cell) for cell in row] for row in self.rows]
        body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        return f"{body}\n\n{escaping.markdown(self.caption)}\n"

    def latex(self) -> str:
        """A `table` that needs no package; one with more than eight columns is cut into several of at most eight."""
        room = WIDEST - self.names
        count = len(self.columns) - self.names
        parts = [range(a, min(a + room, count)) for a in range(0, max(count, 1), room)]
        lines = [r"\begin{table}", r"\centering\footnotesize", rf"\caption{{{escaping.latex(self.caption)}}}"]
        for part in parts:
            chosen = [*range(self.names), *(self.names + i for i in part)]
            body = [" & ".join(as_latex(row[i]) for i in chosen) + r" \\" for row in (self.columns, *self.rows)]
            lines += [
                rf"\begin{{tabular}}{{{'l' * self.names}{'r' * len(part)}}}",
                r"\hline",
                body[0],
                r"\hline",
                *body[1:],
                r"\hline",
                r"\end{tabular}",
                *([r"\par\medskip"] if part is not parts[-1] else []),
            ]
        return "\n".join([*lines, r"\end{table}"]) + "\n"

    def save(self, folder: Path) -> list[Path]:
        """Write it in three forms; which ones."""
        written = []
        for suffix, text in ((".csv", self.csv()), (".md", self.markdown()), (".tex", self.latex())):
            path = folder / f"{self.name}{suffix}"
            path.write_text(text, encoding="utf-8")
            written.append(path)
        return written


def csv_text(columns: list[str], rows: list[list[str]]) -> str:
    """Rows as CSV in which no cell is a formula to a spreadsheet."""
    text = io.StringIO()
    writer = csv_writer.writer(text, lineterminator="\n")
    writer.writerow([escaping.csv(c) for c in columns])
    writer.writerows([[escaping.csv(cell) for cell in row] for row in rows])
    return text.getvalue()
