"""README, pages, notebooks and docstrings import only public names: `farfield`, `farfield.nn`, `farfield.measure`."""

from __future__ import annotations

import ast
import importlib
import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PUBLIC = ("farfield", "farfield.nn", "farfield.measure")
FENCE = re.compile(r"^```python[^\n]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)


def codes() -> Iterator[tuple[str, str]]:
    """Every piece of Python that a reader may copy, with the file in which it stands."""
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for block in FENCE.finditer(page.read_text(encoding="utf-8")):
            yield str(page.relative_to(ROOT)), block[1]
    for notebook in sorted((ROOT / "examples").glob("*.ipynb")):
        for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                yield str(notebook.relative_to(ROOT)), "".join(cell["source"])
    for module in sorted((ROOT / "src").rglob("*.py")):
        tree = ast.parse(module.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                for example in examples(ast.get_docstring(node) or ""):
                    yield str(module.relative_to(ROOT)), example


def examples(docstring: str) -> Iterator[str]:
    """The indented blocks and prompts of a docstring that are Python and speak of Farfield."""
    lines = [re.sub(r"^\s*(>>>|\.\.\.) ?", "    ", line) for line in docstring.splitlines()]
    for block in re.findall(r"(?:^    .*\n?)+", "\n".join(lines), re.MULTILINE):
        code = textwrap.dedent(block)
        try:
            ast.parse(code)
        except SyntaxError:
            continue
        if re.search(r"\bfarfield\b|\bff\.", code):
            yield code


def not_public(code: str) -> list[str]:
    """Modules and names of Farfield in a piece of Python that are not public."""
    wrong, known = [], {"ff": "farfield", "farfield": "farfield"}
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                if name.name.partition(".")[0] == "farfield":
                    known[name.asname or name.name] = name.name
                    wrong += [name.name] * (name.name not in PUBLIC)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "farfield":
            if node.module not in PUBLIC:
                wrong.append(str(node.module))
            else:
                wrong += [f"{node.module}.{n.name}" for n in node.names if not is_public(node.module, n.name)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in known:
            module = known[node.value.id]
            if module in PUBLIC and not is_public(module, node.attr):
                wrong.append(f"{module}.{node.attr}")
    return wrong


def is_public(module: str, name: str) -> bool:
    return name in (*importlib.import_module(module).__all__, "__version__")


def test_pages_import_only_public_names() -> None:
    seen: dict[str, set[str]] = {}
    for page, code in codes():
        for name in not_public(code):
            seen.setdefault(page, set()).add(name)
    assert seen == {}


def test_pages_speak_only_of_public_names() -> None:
    """A name in backquotes is one that a reader can type; the log tells of what was."""
    spoken = re.compile(r"`(farfield(?:\.\w+)+)[^`\n]*`")
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if page.name == "log.md":
            continue
        for name in spoken.findall(page.read_text(encoding="utf-8")):
            room = next((room for room in reversed(PUBLIC) if f"{name}.".startswith(f"{room}.")), "")
            rest = name.removeprefix(room).removeprefix(".").partition(".")[0]
            assert room, f"{page.name}: {name}"
            assert not rest or is_public(room, rest), f"{page.name}: {name}"


@pytest.mark.parametrize(
    "code",
    [
        "from farfield.theory.sums.series import series",
        "import farfield.zoo",
        "from farfield import no_such_name",
        "import farfield as ff\nff.no_such_name(1)",
        "import farfield as f\nf.no_such_name(1)",
        "from farfield.nn import cache",
    ],
)
def test_what_is_not_public_is_seen(code: str) -> None:
    assert not_public(code)


def test_what_is_public_is_let_through() -> None:
    assert not not_public("import farfield as ff\nfrom farfield.nn import Bias\nff.check('alibi')\nff.nn.attention")
    assert list(examples("One.\n\nText:\n\n    import farfield as ff\n    ff.check('x')\n"))
    assert list(examples("One.\n\n>>> farfield.check('x')\n"))
