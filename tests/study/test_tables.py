"""The tables of a study: right numbers, published ones beside them, and no user text that becomes markup."""

from __future__ import annotations

import csv
import io
import re

import pytest
from records import FALLING, LEVEL, RISING, change, study_of

from farfield.study.published import published
from farfield.study.tables import all_tables, observations, save_tables
from farfield.table import as_latex


@pytest.fixture
def study(tmp_path):
    return study_of(
        tmp_path,
        {"alibi": FALLING, "inverse": RISING, "-2*log(t + 1)": LEVEL},
        verdicts={"inverse": "diverges"},
        seeds=2,
    )


def test_each_group_has_its_table_and_the_published_one(study):
    names = [table.name for table in all_tables(study)]
    assert names == [
        "theory-against-experiment",
        "far-field",
        "sufficiency-python",
        "sufficiency-python-published",
        "necessity-python",
        "necessity-python-published",
        "paired-python",
        "configurations",
    ]


def of(study, name):
    table = next(table for table in all_tables(study) if table.name == name)
    return {str(row[0]): [str(cell) for cell in row[1:]] for row in table.rows}


def test_lengths_are_rows_and_every_perplexity_has_its_error(study):
    rows = of(study, "sufficiency-python")
    assert list(rows) == ["64 (1x)", "128 (2x)", "256 (4x)", "1,152 (18x)", "ratio to 1x", "rise", "gain from context"]
    assert rows["1,152 (18x)"] == ["96.50 ± 1.00", "100.10 ± 1.00"]
    assert rows["ratio to 1x"] == ["0.965", "1.001"]
    assert rows["gain from context"][0] == "0.50 ± 0.01"
    rise = of(study, "theory-against-experiment")["inverse"][2]
    assert float(rise.split(" ± ")[0]) == 21.2
    assert rise.endswith("%")


def test_differences_are_paired_by_text(study):
    """The texts differ by a fifth in difficulty; of the difference of two models nearly nothing is left open."""
    value, error = of(study, "paired-python")["inverse"][1].rstrip("%").split(" ± ")
    assert float(value) == pytest.approx(100 * (120 / 96.5 - 1), abs=0.5)
    assert float(error) < 0.5


def test_a_formula_of_the_user_stands_in_the_table(study):
    tables = {table.name: table for table in all_tables(study)}
    assert [str(c) for c in tables["sufficiency-python"].columns] == ["length", "alibi", "-2*log(t + 1)"]
    assert "-2*log(t + 1)" in of(study, "theory-against-experiment")


def test_published_perplexities_stand_beside_ours_where_that_was_declared(tmp_path):
    alibi = published()["sufficiency"]["wikitext-103"]["alibi"]
    assert (alibi[0], alibi[-1], published()["lengths"][-1]) == (24.22, 22.12, 9216)
    folder = tmp_path / "mynotebooks"  # not the paper's Books
    folder.mkdir()
    guess = study_of(tmp_path / "a", {"alibi": LEVEL}, corpora=[str(folder)])
    assert guess.of_encoding("alibi")[0].published is None
    told = study_of(tmp_path / "b", {"alibi": LEVEL}, corpora=[str(folder)], stands_for={"wikitext-103": str(folder)})
    assert of(told, "sufficiency-mynotebooks-published")["9,216 (18x)"] == ["22.12"]
    python = study_of(tmp_path / "c", {"alibi": LEVEL})
    assert python.of_encoding("alibi")[0].first.stands_for == "github"


def test_configurations_stand_beside_the_papers_and_credit_it_with_nothing_else(study):
    rows = of(study, "configurations")
    assert rows["sequence length"] == ["64", "512", "512"]
    assert rows["decoder layers"][1:] == ["6", "12"]
    assert rows["tokenizer"][1:] == ["BPE", "BPE"]
    assert rows["Adam epsilon"] == ["1e-08"] * 3
    assert rows["learning rate schedule"][1] == "inverse square root"
    for name in ("dropout", "precision", "largest gradient norm", "seeds"):
        assert rows[name][1:] == ["not stated", "not stated"]
        assert rows[name][0] != "not stated"


def test_each_table_is_a_file_of_csv_and_all_are_one_of_markdown_and_latex(study, tmp_path):
    tables = save_tables(study, tmp_path / "tables")
    files = {path.name: path.read_text() for path in (tmp_path / "tables").iterdir()}
    assert files.keys() == {f"{table.name}.csv" for table in tables} | {"tables.md", "tables.tex", "observations.csv"}
    assert files["far-field.csv"].startswith("encoding,TRF(0.01),")
    for table in tables:
        assert table.markdown() in files["tables.md"]
        assert table.latex() in files["tables.tex"]


def test_observations_are_tidy(study):
    rows = list(csv.DictReader(io.StringIO(observations(study).csv())))
    assert len({tuple(row.items()) for row in rows}) == len(rows)  # each once
    plain = [r for r in rows if r["protocol"] == "non-overlapping"]
    assert len(plain) == 3 * 2 * 4  # encodings, seeds, lengths
    one = next(r for r in plain if (r["encoding"], r["seed"], r["multiple"]) == ("inverse", "1", "18"))
    assert float(one["perplexity"]) == 120
    assert float(one["change_against_1x"]) == pytest.approx(0.2)
    assert {r["model"] for r in rows if r["protocol"] == "intervention"} == {"trained", "untrained"}
    assert {r["stands_for"] for r in rows} == {"github"}


def test_a_leak_that_is_not_known_is_not_that_of_another_tail(study):
    """Where the leak as trained is not known, the first intervention is a cut, whose leak is 0."""

    def edit(record, _):
        record["interventions"] = [one for one in record["interventions"] if one["tail"] != "as trained"]

    rows = csv.DictReader(io.StringIO(observations(change(study, edit)).csv()))
    assert {(r["leak"], r["verdict"]) for r in rows if r["protocol"] == "non-overlapping"} == {("", "")}


def test_latex_is_mathematics_and_has_at_most_eight_columns(tmp_path):
    names = ["alibi", "type1", "type2", "kerple-log", "kerple-power", "sandwich", "-2*log(t + 1)", "-3*log(t + 1)"]
    study = study_of(tmp_path, dict.fromkeys(names, LEVEL), corpora=[f"text{i}" for i in range(7)])
    for table in all_tables(study):
        tex = table.latex()
        for head in re.findall(r"\\begin{tabular}{(\w+)}", tex):
            assert len(head) <= 8
        body = [line for line in tex.splitlines() if line.endswith(r"\\")]
        assert all(line.count(" & ") <= 7 for line in body)
        for cell in (cell for line in body for cell in line.removesuffix(r" \\").split(" & ")):
            if re.search(r"\d\.\d", cell) and "TRF" not in cell:
                assert cell.startswith("$"), cell
    wide = next(t for t in all_tables(study) if t.name == "theory-against-experiment")
    assert wide.latex().count(r"\begin{tabular}") == 2  # seven texts do not fit
    assert r"$- 2 \log" in wide.latex() or r"$-2" in wide.latex()
    assert r"\pm" in wide.latex()
    assert [as_latex(x) for x in ("1e-08", "50,265", "0.9, 0.98", "5e-4", "1 of 2", "")] == [
        "$10^{-8}$", "$50{,}265$", "$0.9$, $0.98$", r"$5 \cdot 10^{-4}$", "1 of 2", "",
    ]  # fmt: skip
