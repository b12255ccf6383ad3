"""A verdict needs no heavy library, and the static explorer no other room."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import farfield
from farfield.explorer import static

HEAVY = ("torch", "sympy", "numpy", "matplotlib", "transformers", "scipy", "pandas")


def modules_after(code):
    """The top-level modules that a fresh Python has loaded after running the code."""
    code += "\nimport json, sys\nprint(json.dumps(sorted({m.partition('.')[0] for m in sys.modules})))"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert child.returncode == 0, child.stderr
    return set(json.loads(child.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "code",
    [
        "import farfield",
        "import farfield.formula, farfield.formula.algebras, farfield.zoo",
        "import farfield; farfield.check('alibi'); farfield.check('-2*log(t+1)'); farfield.check('sandwich')",
        "import farfield.theory.checker.examination",
        "import farfield.cli",
    ],
)
def test_a_verdict_needs_no_heavy_library(code):
    assert modules_after(code).isdisjoint(HEAVY)


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "alibi"],
        ["check", "-2*log(t+1)", "--json"],
        ["zoo"],
        ["--help"],
        ["inspect", "."],
        ["window", "alibi"],
    ],
)
def test_the_commands_of_theory_need_no_heavy_library(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bloom", **sizes}))
    code = f"""
import sys
sys.argv = ["farfield", *{arguments!r}]
from farfield.cli import main
try:
    main()
except SystemExit as end:
    assert end.code in (0, None), end.code
"""
    assert modules_after(code).isdisjoint(HEAVY)


def test_what_the_static_explorer_packs_needs_no_other_room(tmp_path):
    """The page has only some of the rooms; without one of them it would show nothing but an error."""
    root = Path(farfield.__file__).parent
    rooms = (f"{room}/**/*.py" for room in static._ROOMS)
    for pattern in (*static._FILES, *rooms):
        for path in root.glob(pattern):
            there = tmp_path / "farfield" / path.relative_to(root)
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, there)
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); "
        "from farfield.explorer.question import read; from farfield.explorer.replies import reply; "
        "import farfield.explorer.browser; print(farfield.__file__); print(farfield.check('alibi').condition)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.stdout.splitlines() == [str(tmp_path / "farfield/__init__.py"), "converges if and only if k > 0"], (
        done.stderr
    )
