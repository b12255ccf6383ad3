"""The file tree at the end of the README is complete, and the forms for issues ask for the formula."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent


def tree() -> list[str]:
    """Every path in the tree of the section "## Files": two more spaces are one folder deeper."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = re.search(r"^## Files$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    block = re.search(r"^```\w*\n(.*?)^```", section[1], re.MULTILINE | re.DOTALL) if section else None
    if block is None:
        pytest.skip('README.md has no section "## Files" with a tree yet')
    paths, folders = [], [""]
    for line in block[1].splitlines():
        if line.strip():
            depth = (len(line) - len(line.lstrip())) // 2
            folders = [*folders[: depth + 1], line.split()[0]]
            paths.append("".join(folders))
    return paths


def test_every_entry_of_the_tree_exists() -> None:
    missing = [path for path in tree() if not (ROOT / path).exists()]
    assert not missing


def test_every_file_of_the_package_is_in_the_tree() -> None:
    shown = set(tree())
    package = ROOT / "src" / "farfield"
    files = [path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    missing = sorted(str(path.relative_to(ROOT)) for path in files if str(path.relative_to(ROOT)) not in shown)
    assert not missing


def test_the_table_of_results_is_that_of_the_study() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"<!-- results-table -->\n(.*?)\n<!-- /results-table -->", text, re.DOTALL)
    table = (ROOT / "results" / "tables" / "theory-against-experiment.md").read_text(encoding="utf-8")
    assert shown is not None
    assert shown[1] == table.split("\n\n")[0]


@pytest.mark.parametrize("name", ["wrong-answer", "new-encoding", "something-broke"])
def test_a_form_for_issues_asks_for_the_formula_first(name: str) -> None:
    form = yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / f"{name}.yml").read_text(encoding="utf-8"))
    questions = [part for part in form["body"] if part["type"] != "markdown"]
    assert questions[0]["id"] == "formula"
    assert questions[0]["validations"]["required"] is True
    assert len({part["id"] for part in questions}) == len(questions)
    assert {"name", "description"} <= set(form)
