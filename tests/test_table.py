"""One table in every form: the same cells, and no user text that becomes markup."""

from __future__ import annotations

import csv
import io

import pytest
from rich.console import Console

from farfield.table import Number, Table

HOSTILE = [
    "=cmd|' /C calc'!A0",
    "-2*log(t+1)",
    "<script>alert(1)</script>",
    "a|b\nc",
    "$x^2_1 & 5% #1 {~}\\",
    "\x1b[31mred",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_text_stays_text(text):
    table = Table(("encoding", "value"), [(text, "-1.5")], "title", caption=text)
    cells = list(csv.reader(io.StringIO(table.csv())))[1]
    assert not cells[0].startswith(("=", "+", "-", "@"))
    assert cells[1] == "-1.5"  # a number stays one
    markdown = table.markdown()
    rows = [line for line in markdown.splitlines() if line.startswith("|")]
    assert len(rows) == 3
    bare = rows[2].replace("\\\\", "").replace("\\|", "")
    assert bare.count("|") == 3
    assert "<" not in markdown.replace("\\<", "")
    latex = table.latex().replace("$-1.5$", "")
    for sign in "#$%^_~":
        assert sign not in latex.replace("\\" + sign, "")
    assert "\x1b" not in table.csv() + markdown + latex


def screen(table, width):
    console = Console(file=io.StringIO(), width=width)
    console.print(table.rich(console))
    return console.file.getvalue()


TABLE = Table(
    ("encoding", "rise"),
    [("alibi", Number(0.2, 0.01, 1, share=True)), ("type1", Number(None))],
    "What rises",
    below=[("mean", Number(2.5))],
    caption="A rise.",
)


def test_every_form_has_all_cells():
    assert list(csv.reader(io.StringIO(TABLE.csv()))) == [
        ["encoding", "rise"], ["alibi", "20.0 ± 1.0 %"], ["type1", ""], ["mean", "2.50"],
    ]  # fmt: skip
    assert TABLE.markdown().splitlines()[:3] == ["| encoding | rise |", "| --- | ---: |", "| alibi | 20.0 ± 1.0 % |"]
    assert TABLE.markdown().endswith("\n\nA rise.\n")
    for line in (
        r"\caption{A rise.}",
        r"alibi & $20.0 \pm 1.0\,\%$ \\",
        r"\midrule",
        r"mean & $2.50$ \\",
        r"\bottomrule",
    ):
        assert line in TABLE.latex().splitlines()
    assert TABLE.latex().count(r"\midrule") == 2  # what is set apart


def test_a_terminal_shows_a_table_or_where_it_is_too_narrow_a_list():
    wide, narrow = screen(TABLE, 60), screen(TABLE, 18)
    assert [line.split() for line in wide.splitlines() if "alibi" in line] == [["alibi", "20.0", "±", "1.0", "%"]]
    assert [line.rstrip() for line in narrow.splitlines()][:3] == ["What rises", "encoding alibi", "    rise: 20.0 ±"]


@pytest.mark.parametrize("columns", range(8, 60, 3))
def test_no_cell_is_ever_cut(columns):
    headings, rows = ("name of it", "first number", "x"), [["alpha", "12345678", "1"], ["b", "9", "22222"]]
    text = screen(Table(headings, rows, "t", below=[["sum", "", "7"]]), columns)
    words = text.replace(";", " ").replace(",", " ").split()
    for cell in (*headings[0].split(), *headings[1].split(), "alpha", "12345678", "9", "22222", "sum", "7"):
        if len(cell) + 4 <= columns:
            assert any(word.strip(":") == cell for word in words), (cell, words)
