"""Farfield: how far a transformer can see, from the formula of its positional encoding, with a proof.

In Python:

    import farfield as ff
    ff.check("-2*log(t + 1)")                         # verdict and proof
    ff.trf("type1", 1e-3, parameters={"k": "1/16"})   # how many tokens hold all but a thousandth of the weight
    ff.design("alibi", 4096, 0.01)                    # which slope sees 4,096 tokens

The public API stands in `__init__.pyi`, on one screen. Everything is imported when it is first used: `import farfield`
costs next to nothing, and never brings torch.
"""

import importlib
from typing import Any

import lazy_loader

from farfield.nn.decoder import registration

__version__ = "0.1.0"
_lazily, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name == "study":  # the package, which can be called as the function
        return importlib.import_module("farfield.study")
    return _lazily(name)


globals().pop("__lazy_shadowed__", None)  # lazy_loader would put the function in the place of that package

registration.install()  # AutoModelForCausalLM.from_pretrained finds our models after `import farfield`
