"""A type checker knows the whole public API: on a user's file it finds a misspelt name and every signature."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy", reason="types are checked with mypy")
ROOT = Path(__file__).resolve().parents[2]
NAMES = [
    "check", "trf", "reach", "leak", "layer", "model_reach", "law", "compare", "design", "windows", "find", "register",
    "Encoding", "ENCODINGS", "Formula", "FormulaError", "Verdict", "BoundedCache", "bound", "train", "evaluate",
    "study", "series", "parse",
]  # fmt: skip
USER = """
import farfield as ff

verdict = ff.check("-2*log(t + 1)", parameters={"k": "1/16"})
reveal_type(verdict.verdict)
reveal_type(ff.trf("type1", 0.01, parameters={"k": 1}))
reveal_type(ff.trf("type1", ["0.1", "0.01"], parameters={"k": 1}))
reveal_type(ff.leak("alibi", 512, 9216, heads=8))
reveal_type(ff.design("alibi", 4096).value)
reveal_type(ff.layer("alibi", 0.01, 8).heads[0].tokens)
reveal_type(ff.compare("alibi", "type1").smaller)
share: float = ff.leak("alibi", 512, 9216)
"""
WRONG = {
    'ff.chekc("-t")': 'Module has no attribute "chekc"',
    'ff.check("-t", strat=1)': 'Unexpected keyword argument "strat"',
    'ff.trf("alibi", 0.01, k=1)': 'Unexpected keyword argument "k"',
    'ff.design("alibi", "far")': 'Argument 2 to "design"',
    'ff.check("-t").verdikt': '"Verdict" has no attribute "verdikt"',
    'ff.leak("-m*t", 64, 512, m=1)': 'Unexpected keyword argument "m"',
    'ff.reach("alibi", 0.01)': 'Missing positional argument "context"',
    'ff.layer("alibi", 0.01, "8")': 'Argument 3 to "layer"',
    'ff.model_reach("alibi", 0.01)': 'Missing positional argument "layers"',
    'ff.compare("alibi")': 'Missing positional argument "b"',
    'ff.windows("alibi", 0.01)': 'Missing positional argument "logit_bound"',
    'ff.law("alibi", epsilon=1)': 'Unexpected keyword argument "epsilon"',
    "ff.find(3)": 'Argument 1 to "find"',
    'ff.register("alibi")': 'Argument 1 to "register"',
    'ff.Encoding("a", formula="-t")': 'Unexpected keyword argument "formula"',
    'ff.trf("alibi", 0.01, parameters={"k": 1}).rows': '"int" has no attribute "rows"',
    'ff.trf("alibi", [0.1], parameters={"k": 1}) + 1': "Unsupported operand types",
    'ff.ENCODINGS["alibi"].formul': '"Encoding" has no attribute "formul"',
    'ff.nn.Bias("alibi", heads="8")': 'Argument "heads" to "Bias"',
    "ff.nn.atention": 'Module has no attribute "atention"',
    "ff.measure.truncatoin": 'Module has no attribute "truncatoin"',
    'ff.Settings(encoding="alibi", lenght=3)': 'Unexpected keyword argument "lenght"',
    'ff.Settings(encoding="alibi", length="far")': 'Argument "length" to "Settings"',
    'ff.evaluate("runs/a", lenghts=[1])': 'Unexpected keyword argument "lenghts"',
    'ff.train("alibi", "runs/a")': 'Argument 1 to "train"',
    "ff.inspect(7)": 'Argument 1 to "inspect"',
    'ff.design("alibi", 4096).heads[0].valeu': '"DesignedHead" has no attribute "valeu"',
    'ff.compare("alibi", "type1").crossings[0].where': '"Crossing" has no attribute "where"',
    'ff.Parameter("d", "d > 0", 3)': 'Argument 3 to "Parameter"',
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What mypy says of a user's file, line by line."""
    folder = tmp_path_factory.mktemp("user")
    lines = [*USER.splitlines(), *(f"reveal_type(ff.{name})" for name in NAMES), *WRONG]
    (folder / "mine.py").write_text("\n".join(lines), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(ROOT / ".mypy_cache" / "user"), str(folder / "mine.py")]
    command += ["--config-file", str(ROOT / "pyproject.toml"), "--follow-imports", "silent"]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        check=False,
    )
    assert done.stderr == ""
    said: dict[str, str] = {}
    for number, text in re.findall(r"mine\.py:(\d+): (?:note|error): (.*)", done.stdout):
        said.setdefault(lines[int(number) - 1].strip(), text)
    return said


def test_every_name_has_a_type(answers):
    for name in NAMES:
        revealed = answers[f"reveal_type(ff.{name})"]
        assert "Revealed type" in revealed
        assert revealed != 'Revealed type is "Any"', name


def test_what_comes_back_is_known(answers):
    revealed = {line: text for line, text in answers.items() if line in USER}
    assert len(revealed) == 7
    assert not any('"Any"' in text for text in revealed.values()), revealed
    assert "int" in answers['reveal_type(ff.trf("type1", 0.01, parameters={"k": 1}))']
    assert "FieldTable" in answers['reveal_type(ff.trf("type1", ["0.1", "0.01"], parameters={"k": 1}))']
    assert "Leak" in answers['reveal_type(ff.leak("alibi", 512, 9216, heads=8))']


def test_mistakes_are_found(answers):
    for line, said in WRONG.items():
        assert said in answers[line], (line, answers.get(line))
