"""Farfield: how far a transformer can see, from the formula of its positional encoding, with a proof.

    import farfield as ff
    ff.check("-2*log(t + 1)")          # verdict and proof
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# Everything is imported when it is first used: `import farfield` costs next to nothing, and never brings torch.
_PLACES = {
    "check": "farfield.theory.convergence",
    "Verdict": "farfield.theory.convergence",
    "parse": "farfield.formula",
    "Formula": "farfield.formula",
    "FormulaError": "farfield.formula",
    "ENCODINGS": "farfield.zoo",
    "find": "farfield.zoo",
    "BoundedCache": "farfield.nn.cache",
    "bound": "farfield.nn.bounded",
}

__all__ = [*_PLACES]


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(importlib.import_module(_PLACES[name]), name)
    if name in ("nn", "theory", "zoo"):
        return importlib.import_module(f"farfield.{name}")
    raise AttributeError(f"module 'farfield' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_PLACES, "nn"])
