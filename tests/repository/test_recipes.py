"""The recipes of CONTRIBUTING.md, tried: each change is made in a copy of the package, as the page says it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import farfield

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


class Copy:
    """A copy of the package that may be changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.package = folder / "farfield"
        shutil.copytree(Path(farfield.__file__).parent, self.package, ignore=shutil.ignore_patterns("__pycache__"))

    def insert(self, name: str, after: str, line: str) -> None:
        """Put one line below the one line that begins so."""
        path = self.package / name
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        (place,) = (i for i, one in enumerate(lines) if one.startswith(after))
        path.write_text("".join([*lines[: place + 1], line + "\n", *lines[place + 1 :]]), encoding="utf-8")

    def run(self, *arguments: str) -> str:
        """What python prints in the copy."""
        environment = {**os.environ, "PYTHONPATH": str(self.folder), "COLUMNS": "200", "HF_HUB_OFFLINE": "1"}
        command = [sys.executable, *arguments]
        done = subprocess.run(command, env=environment, cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def copy(tmp_path):
    return Copy(tmp_path)


def recipe(pattern: str) -> str:
    """The line that the page gives."""
    (line,) = re.findall(pattern, PAGE, re.MULTILINE)
    return str(line)


def test_an_encoding_is_one_line(copy):
    copy.insert("zoo/named.py", "NAMED = [", f"    {recipe(r'^(Encoding[(].*[)])$')},")
    assert "root: r(t) = -sqrt(k*t) converges for every k > 0." in copy.run("-m", "farfield", "check", "root")
    (row,) = [row for row in json.loads(copy.run("-m", "farfield", "zoo", "--json")) if row["name"] == "root"]
    assert row["source"] == "tried by the authors, unpublished"
    bias = "from farfield.nn import Bias; print(Bias('root', 2)(5)[1, 4].item())"
    assert float(copy.run("-c", bias)) == pytest.approx(-((4 / 256) ** 0.5))


def test_a_verb_is_one_file_and_one_line(copy):
    copy.insert("cli.py", "VERBS = {", "    " + recipe(r'`("greet": .*,)`'))
    (copy.package / "commands" / "greet.py").write_text(
        '"""`farfield greet`: hello."""\n\n'
        "from farfield.commands.options import Formula\n\n\n"
        "def greet_command(encoding: Formula, *, loudly: bool = False) -> None:\n"
        '    """Say hello.\n\n    Args:\n        encoding: To whom.\n        loudly: With more voice.\n    """\n'
        '    if not encoding.strip():\n        raise ValueError("nobody is there")\n'
        "    print(f\"hello, {encoding}{'!' * loudly}\")\n"
    )
    assert copy.run("-m", "farfield", "greet", "-k*t", "--loudly") == "hello, -k*t!\n"
    assert "Say hello to an encoding." in copy.run("-m", "farfield", "--help")
    told = copy.run("-m", "farfield", "greet", "--help")
    assert "With more voice." in told
    assert "farfield greet alibi" in told


def test_a_setting_is_one_field(copy):
    copy.insert("training/settings.py", "class Settings", '    colour: str = "red"\n    """Of the run."""\n')
    assert re.search(r"--colour .*Of the run.*red", copy.run("-m", "farfield", "train", "--help"))
    code = "from farfield import Settings; print(Settings(encoding='alibi', colour='blue').model_dump()['colour'])"
    assert copy.run("-c", code) == "blue\n"


def test_a_corpus_of_the_hub_is_one_line(copy, tmp_path):
    pytest.importorskip("datasets")
    there = tmp_path / "dataset"
    there.mkdir()
    for split in ("train", "validation", "test"):
        (there / f"{split}.jsonl").write_text("\n".join(json.dumps({"text": f"{split} {i};"}) for i in range(3)))
    line = recipe(r'`("c4": .*,)`')
    assert '"allenai/c4", "en"' in line
    copy.insert("data/hub.py", "NAMED:", "    " + line.replace('"allenai/c4", "en"', repr(str(there))))
    code = "from farfield.data.corpus import open_corpus; c = open_corpus('c4'); "
    text = "print(''.join(p.text for p in c.passages('valid')))"
    assert copy.run("-c", code + text).splitlines()[-1] == "validation 0;validation 1;validation 2;"
