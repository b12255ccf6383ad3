"""The formula in PyTorch: the bias of each head, and attention that takes it in O(n) memory.

What it offers stands in `__init__.pyi`, and is imported when it is first used.
"""

import importlib
import sys
from types import ModuleType
from typing import Any

import lazy_loader

_lazily, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name == "attention":
        return importlib.import_module("farfield.nn.attention").attention
    return _lazily(name)


class _Package(ModuleType):
    """Here `attention` is the function, also after the import system has put the module of that name in its place."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value.attention if name == "attention" and isinstance(value, ModuleType) else value)


sys.modules[__name__].__class__ = _Package
globals().pop("__lazy_shadowed__", None)  # lazy_loader's own way of doing this, which loses the submodules
