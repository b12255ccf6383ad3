"""The source uses no private name of transformers and accelerate where ruff's rule SLF001 does not look.

That is in imports, in names that are given as text, and in classes that are made of theirs.
"""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "farfield"
LIBRARIES = ("transformers", "accelerate")
BY_TEXT = ("getattr", "setattr", "hasattr", "delattr")
# What transformers asks the author of a model to define: its documentation names these for models of one's own.
ASKED_FOR = {"_init_weights", "_keep_in_fp32_modules_strict", "_no_split_modules", "_supports_sdpa"}
OURS = {"_gives_bounded_cache", "_kept"}  # what we leave on a model


def private_names(tree: ast.Module) -> set[str]:
    origin: dict[str, tuple[str, str]] = {}
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(LIBRARIES):
            origin |= {alias.asname or alias.name: (str(node.module), alias.name) for alias in node.names}
            names |= {word for alias in node.names for word in (*str(node.module).split("."), alias.name)}
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in BY_TEXT:
            names |= {str(argument.value) for argument in node.args[1:2] if isinstance(argument, ast.Constant)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for base in node.bases:
                if isinstance(base, ast.Name) and base.id in origin:
                    module, name = origin[base.id]
                    theirs = getattr(importlib.import_module(module), name)
                    names |= {name for name in names_in_class(node) if hasattr(theirs, name)}
    return {name for name in names - ASKED_FOR - OURS if name.startswith("_") and not name.startswith("__")}


def names_in_class(node: ast.ClassDef) -> Iterator[str]:
    """What a class defines, and what it asks of any object."""
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute):
            yield part.attr
        elif isinstance(part, ast.FunctionDef):
            yield part.name
        elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            yield part.id


def test_no_private_name_of_a_library_is_used() -> None:
    used = {str(path): private_names(ast.parse(path.read_text())) for path in sorted(SOURCE.rglob("*.py"))}
    assert {path: names for path, names in used.items() if names} == {}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("def f(model): return getattr(model, '_commit_hash', None)", "_commit_hash"),
        ("from accelerate.utils import _filter_args", "_filter_args"),
        ("from transformers import Trainer\nclass Ours(Trainer):\n def _inner_training_loop(self): pass",
         "_inner_training_loop"),
        ("from transformers.models.bloom.modeling_bloom import BloomAttention as B\n"
         "class Ours(B):\n def forward(self, x): return self._reshape(x)", "_reshape"),
    ],
)  # fmt: skip
def test_one_would_be_found(text: str, name: str) -> None:
    assert name in private_names(ast.parse(text))
