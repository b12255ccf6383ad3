"""Causal attention with a bias by distance, in O(n) memory.

What it is: `api.py` (the call), `validation.py` (what is refused), `reference.py` (the definition in a dozen lines).
How it is computed: `dispatch.py` chooses `flash/` on a CPU, `triton/` on a GPU, `flex.py` elsewhere; `operators.py` is what
compilers see. `farfield.nn.attention(...)` calls `api.attention`.
"""

import sys
from types import ModuleType

from farfield.nn.attention.api import attention as attention


class _CallableModule(ModuleType):
    """`farfield.nn.attention` is this module and the function at once, whichever a person imports."""

    __call__ = staticmethod(attention)


sys.modules[__name__].__class__ = _CallableModule
