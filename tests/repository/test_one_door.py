"""Files of JSON come in by one door, `farfield/reading.py`; whoever reads JSON otherwise has a reason."""

import ast
from pathlib import Path

import pytest

from farfield.reading import UnreadableError, parse_json, read_json

SOURCE = Path(__file__).parents[2] / "src" / "farfield"
OTHERS = {
    "reading.py": "the door itself",
    "data/textfiles.py": "lines of a corpus, one at a time, of a bounded length",
    "data/tokenizing.py": "what the tokenizer itself wrote, and texts from the process that started this one",
    "explorer/browser.py": "a question from the page, in the browser's own Python",
    "explorer/static.py": "a file of Pyodide's, checked by its sha256",
    "measure/results.py": "what was written in the line before",
    "study/published.py": "a table of our own",
    "training/assembly.py": "what was written in the same line",
}


def test_json_is_read_by_one_door() -> None:
    used = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr in ("load", "loads")
        and isinstance(node.value, ast.Name)
        and node.value.id == "json"
    }
    assert used == OTHERS.keys()


def test_exact_whole_numbers_are_read_where_they_are_meant(tmp_path: Path) -> None:
    large = 10**60 + 7
    path = tmp_path / "record.json"
    path.write_text(f'{{"trf": [{large}, -{large}]}}')
    assert read_json(path, exact=True) == {"trf": [large, -large]}
    with pytest.raises(UnreadableError, match="does not fit in 64 bits"):
        read_json(path)
    with pytest.raises(ValueError, match="more than 4000 digits"):
        parse_json("1" * 100_000, exact=True)
    assert parse_json(str(2**63 - 1)) == 2**63 - 1
    for digits in (str(2**63), "9" * 100_000):
        with pytest.raises(ValueError, match="does not fit in 64 bits"):
            parse_json(digits)
