"""Farfield: how far a transformer can see, from the formula of its positional encoding, with a proof.

In Python:

    import farfield as ff
    ff.check("-2*log(t + 1)")          # verdict and proof
    ff.trf("type1", 1e-3, k="1/16")    # how many tokens hold all but a thousandth of the weight
    ff.design("alibi", 4096, 0.01)     # which slope sees 4,096 tokens

Everything else is found by name in this package; README.md has a tour.
"""

from __future__ import annotations

import importlib
from typing import Any

from farfield.nn.decoder import registration

__version__ = "0.1.0"

# Everything is imported when it is first used: `import farfield` costs next to nothing, and never brings torch.
_PLACES = {
    "check": "farfield.theory.verdict.convergence",
    "Verdict": "farfield.theory.verdict.convergence",
    "parse": "farfield.formula",
    "Formula": "farfield.formula",
    "FormulaError": "farfield.formula",
    "series": "farfield.theory.sums.series",
    "trf": "farfield.theory.fields.receptive",
    "reach": "farfield.theory.fields.receptive",
    "leak": "farfield.theory.fields.receptive",
    "layer": "farfield.theory.fields.layers",
    "model_reach": "farfield.theory.fields.layers",
    "law": "farfield.theory.fields.law",
    "compare": "farfield.theory.fields.comparison",
    "design": "farfield.theory.fields.design",
    "ENCODINGS": "farfield.zoo",
    "find": "farfield.zoo",
    "BoundedCache": "farfield.nn.cache.cache",
    "bound": "farfield.nn.cache.bounded",
}

__all__ = [*_PLACES]


registration.install()  # AutoModelForCausalLM.from_pretrained finds our models after `import farfield`


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(importlib.import_module(_PLACES[name]), name)
    if name in ("nn", "theory", "zoo"):
        return importlib.import_module(f"farfield.{name}")
    raise AttributeError(f"module 'farfield' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_PLACES, "nn"])
