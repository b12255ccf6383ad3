"""The formula in PyTorch: the bias of each head, and attention that takes it in O(n) memory.

What it offers stands in `__init__.pyi`, and is imported when it is first used.
"""

import importlib
from typing import Any

import lazy_loader

_lazily, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name == "attention":  # the module, which can be called as the function
        return importlib.import_module("farfield.nn.attention")
    return _lazily(name)


globals().pop("__lazy_shadowed__", None)  # lazy_loader would put the function in the place of that module
