"""The README shows the results of the study, and the forms for issues ask for the formula."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]


def test_the_table_of_results_is_that_of_the_study() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"<!-- results-table -->\n(.*?)\n<!-- /results-table -->", text, re.DOTALL)
    table = (ROOT / "results" / "tables" / "theory-against-experiment.md").read_text(encoding="utf-8")
    assert shown is not None
    assert shown[1] == table.split("\n\n")[0]


def test_the_readme_is_short() -> None:
    """What it is for, the picture, the two commands, a short tour, limits and rooms; the rest lives in docs/."""
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 200


@pytest.mark.parametrize("name", ["wrong-answer", "new-encoding", "something-broke"])
def test_a_form_for_issues_asks_for_the_formula_first(name: str) -> None:
    form = yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / f"{name}.yml").read_text(encoding="utf-8"))
    questions = [part for part in form["body"] if part["type"] != "markdown"]
    assert questions[0]["id"] == "formula"
    assert questions[0]["validations"]["required"] is True
    assert len({part["id"] for part in questions}) == len(questions)
    assert {"name", "description"} <= set(form)
