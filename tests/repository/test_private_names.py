"""The source uses public interfaces of transformers and accelerate only: every private name in it is accounted for."""

import ast
import importlib
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "farfield"
LIBRARIES = ("transformers", "accelerate")

# Private names that are not of those two libraries, and whose they are.
OTHERS = {
    "_C": "torch", "_are_functorch_transforms_active": "torch", "_len_torch_dispatch_stack": "torch",
    "_dispatch_tls_local_exclude_set": "torch", "_dispatch_tls_local_include_set": "torch",
    "_ForceDispatchKeyGuard": "torch", "_scaled_dot_product_flash_attention_for_cpu": "torch",
    "_scaled_dot_product_flash_attention_for_cpu_backward": "torch", "_version": "torch", "_base": "torch",
    "_replace": "named tuples", "_exit": "os", "_kept": "our models", "_gives_bounded_cache": "ours, on a model",
}  # fmt: skip
# What transformers asks the author of a model to define: its documentation names these for models of one's own.
ASKED_FOR = {"_init_weights", "_no_split_modules", "_supports_sdpa"}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_"


def private_uses(tree: ast.AST) -> set[str]:
    """The private names that are asked of an object other than `self` and `cls`, or imported from the libraries."""
    result = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                result.add(node.attr)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) > 1:
            named = node.args[1]
            if node.func.id in ("getattr", "setattr", "hasattr", "delattr") and isinstance(named, ast.Constant):
                result |= {str(named.value)} if is_private(str(named.value)) else set()
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(LIBRARIES):
            words = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            result |= {word for word in words if is_private(word)}
    return result


def own_names(tree: ast.AST) -> set[str]:
    """The private names that a file defines itself: functions, attributes of `self`, fields, slots, classes."""
    result = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            result.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                result.add(node.attr)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            result.add(node.id)
        for place in _named_in_text(node):
            result |= {part.value for part in ast.walk(place) if isinstance(part, ast.Constant)}
    return {name for name in result if isinstance(name, str) and is_private(name)}


def _named_in_text(node: ast.AST) -> list[ast.AST]:
    """Where names stand as text: `__slots__ = ("_hash",)`, `object.__setattr__(self, "_hash", ...)`."""
    if isinstance(node, ast.Assign):
        return [node.value] if any(isinstance(t, ast.Name) and t.id == "__slots__" for t in node.targets) else []
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "__setattr__"
    return node.args[1:2] if called else []


def inherited_uses(tree: ast.Module) -> set[str]:
    """The private names that classes made of a library's take over from it, or put in the place of its own."""
    origin = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(LIBRARIES)
        for alias in node.names
    }
    result = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        for base in node.bases:
            if not (isinstance(base, ast.Name) and base.id in origin):
                continue
            module, name = origin[base.id]
            theirs = getattr(importlib.import_module(str(module)), name)
            used = {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
            used |= {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
            assigned = [target for part in node.body if isinstance(part, ast.Assign) for target in part.targets]
            used |= {target.id for target in assigned if isinstance(target, ast.Name)}
            result |= {name for name in used if is_private(name) and hasattr(theirs, name)}
    return result


def of_the_libraries(text: str) -> set[str]:
    tree = ast.parse(text)
    return (private_uses(tree) - own_names(tree) - OTHERS.keys()) | (inherited_uses(tree) - ASKED_FOR)


def test_no_private_name_of_a_library_is_used() -> None:
    files = sorted(SOURCE.rglob("*.py"))
    assert len(files) > 200
    used = {str(path.relative_to(SOURCE)): of_the_libraries(path.read_text()) for path in files}
    assert {path: names for path, names in used.items() if names} == {}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("def f(network): return network.config._attn_implementation", "_attn_implementation"),
        ("def f(model): return getattr(model, '_commit_hash', None)", "_commit_hash"),
        ("from accelerate.utils import _filter_args", "_filter_args"),
        (
            "from transformers import Trainer\nclass Ours(Trainer):\n def _inner_training_loop(self): pass",
            "_inner_training_loop",
        ),
        (
            "from transformers.models.bloom.modeling_bloom import BloomAttention as B\n"
            "class Ours(B):\n def forward(self, x): return self._reshape(x)",
            "_reshape",
        ),
        ("def f(model, work): model._prepare_cache_for_generation = work", "_prepare_cache_for_generation"),
    ],
)
def test_one_would_be_found(text: str, name: str) -> None:
    assert name in of_the_libraries(text)
