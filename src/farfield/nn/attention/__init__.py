"""Causal attention with a bias by distance, in O(n) memory.

`api.py` says what it is and refuses what cannot be meant, `reference.py` is its definition in a dozen lines; `flash.py`
(CPU) and `flex.py` (other devices) are implementations. `farfield.nn.attention(...)` calls `api.attention`.
"""

import sys
from types import ModuleType

from farfield.nn.attention.api import attention as attention


class _CallableModule(ModuleType):
    """`farfield.nn.attention` is this module and the function at once, whichever a person imports."""

    __call__ = staticmethod(attention)


sys.modules[__name__].__class__ = _CallableModule
