"""What a trained model does: perplexity by length, how far it looks, what a window costs, what inference costs.

Everything here takes a model of ours, or a causal language model of transformers, through one door (`load_model`,
`as_model`). What it offers stands in `__init__.pyi`, and is imported when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
