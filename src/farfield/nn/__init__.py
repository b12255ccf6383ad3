"""The formula in PyTorch: the bias of each head, and attention that takes it in O(n) memory.

What it offers stands in `__init__.pyi`, and is imported when it is first used.
"""

import importlib
from typing import Any

import lazy_loader

_lazily, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
for _name in ("__lazy_shadowed__", "attention"):  # lazy_loader would put the function over the module of that name
    globals().pop(_name, None)
__all__ += ["replace"]


def __getattr__(name: str) -> Any:
    if name == "attention":  # a module that can be called
        return importlib.import_module("farfield.nn.attention")
    if name == "replace":  # of the room models, which is above this one
        return importlib.import_module("farfield.models.networks.replace").replace
    return _lazily(name)
