"""Causal attention with a bias by distance, in O(n) memory.

What it is: `api.py` (the call), `validation.py` (what is refused), `contract.py` (what is computed in which type),
`reference.py` (the definition in a dozen lines). How it is computed: `flash/` on a CPU, `flex.py` elsewhere;
`operators.py` is what compilers see. `farfield.nn.attention(...)` calls `api.attention`.
"""

import importlib
import inspect
import sys
from types import ModuleType
from typing import Any

from farfield.nn.attention import operators as operators  # a compiler must not be the first to import them
from farfield.nn.attention.api import attention as attention


class _CallableModule(ModuleType):
    """A module that can be called as its function, and pickled by name."""

    __call__ = staticmethod(attention)
    __signature__ = inspect.signature(attention)  # inspect takes the first argument for self otherwise

    def __reduce__(self) -> tuple[Any, ...]:
        return importlib.import_module, (self.__name__,)


# torch.compile cannot call a module, but follows whatever has these marks (torch.jit.script_if_tracing's) into the
# function they name (and there sees no other attribute). They stand in the class: functools.wraps copies what stands in
# the module itself.
setattr(_CallableModule, "__script_if_tracing_wrapper", True)
setattr(_CallableModule, "__original_fn", staticmethod(attention))
sys.modules[__name__].__class__ = _CallableModule
