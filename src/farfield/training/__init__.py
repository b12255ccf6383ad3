"""One run: settings in, a trained model out, and nothing lost when it is killed."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submodules={"scaling"})
