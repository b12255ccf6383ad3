"""Causal attention with a bias by distance, in O(n) memory.

What it is: `api.py` (the call), `validation.py` (what is refused), `reference.py` (the definition in a dozen lines).
How it is computed: `dispatch.py` chooses `flash/` on a CPU, `triton/` on a GPU, `flex.py` elsewhere; `operators.py` is
what compilers see. `farfield.nn.attention(...)` calls `api.attention`.
"""

import sys
from types import ModuleType
from typing import Any

from farfield.nn.attention import api
from farfield.nn.attention.api import attention as attention


class _CallableModule(ModuleType):
    """The module under the name of its function: as `farfield.nn.attention` the function stands, with the submodules.

    A compiler can follow a function, not a module that is called.
    """

    __call__ = staticmethod(attention)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if isinstance(value, ModuleType):
            setattr(attention, name, value)


sys.modules[__name__].__class__ = _CallableModule
for _name, _value in list(vars(sys.modules[__name__]).items()):
    if isinstance(_value, ModuleType):
        setattr(attention, _name, _value)
attention.attention, attention.api = attention, api  # type: ignore[attr-defined]
