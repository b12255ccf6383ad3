"""The tables of a study: right numbers, published ones beside them, and no user text that becomes markup."""

from __future__ import annotations

import csv
import io

import pytest
from records import FALLING, LEVEL, RISING, study_of

from farfield.study import escaping
from farfield.study.published import data_set, published
from farfield.study.tables import Table, all_tables, configuration_table, perplexity_table, theory_table


@pytest.fixture
def study(tmp_path):
    return study_of(
        tmp_path,
        {"alibi": FALLING, "inverse": RISING, "-2*log(t + 1)": LEVEL},
        verdicts={"inverse": "diverges"},
        seeds=2,
    )


def test_each_group_has_its_table(study):
    names = [table.name for table in all_tables(study)]
    assert names == ["theory-against-experiment", "sufficiency-python", "necessity-python", "configurations"]


def test_ratios_are_to_the_training_length(study):
    rows = perplexity_table(study, "python", "sufficiency").rows
    assert rows[0][:3] == ("alibi", "ours", "100.00 ± 0.00")
    assert rows[1] == ("", "ratio", "1.000", "0.980", "0.970", "0.965")


def test_a_formula_of_the_user_stands_in_the_table(study):
    assert any(row[0] == "-2*log(t + 1)" for row in perplexity_table(study, "python", "sufficiency").rows)
    assert any(row[0] == "-2*log(t + 1)" for row in theory_table(study).rows)


def test_published_ratios_stand_beside_ours_where_the_lengths_are_the_papers():
    assert data_set("wikitext") == "wikitext-103"
    assert data_set("python") == "github"
    assert data_set("my own") is None
    alibi = published()["sufficiency"]["wikitext-103"]["alibi"]
    assert alibi[0] == 24.22
    assert alibi[-1] == 22.12
    assert published()["lengths"][-1] == 9216


def test_configurations_stand_beside_the_papers(study):
    rows = {row[0]: row[1:] for row in configuration_table(study).rows}
    assert rows["training length"] == ("16", "512", "512")
    assert rows["layers"] == ("2", "6", "12")


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
    table = Table("name", "title", text, ("encoding", "value"), ((text, "-1.5"),))
    cells = list(csv.reader(io.StringIO(table.csv())))[1]
    assert not cells[0].startswith(("=", "+", "-", "@"))
    assert cells[1] == "-1.5"  # a number stays one
    markdown = table.markdown()
    rows = [line for line in markdown.splitlines() if line.startswith("|")]
    assert len(rows) == 3
    bare = rows[2].replace("\\\\", "").replace("\\|", "")
    assert bare.count("|") == 3
    assert "<" not in markdown.replace("\\<", "")
    latex = table.latex()
    for sign in "#$%^_~":
        assert sign not in latex.replace("\\" + sign, "")
    assert "\x1b" not in table.csv() + markdown + latex
    assert all(ord(c) >= 32 for c in escaping.plain(text))


def test_long_names_are_shortened():
    assert len(escaping.short("-t" * 1000)) == escaping.LONGEST
