"""A cache for models that have windows of their own: it keeps no key beyond them, and loses nothing.

No key outside a layer's window has any weight there, so leaving it out changes no output: the bound is exactly 0.
Layers without a window keep every key, and their row says so.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from transformers.cache_utils import DynamicCache

from farfield.nn.cache.certificate import CertificateRow, CertificateTable
from farfield.theory.fields.receptive import exact_epsilon


def own_windows(config: Any) -> list[int | None] | None:
    """The window of each layer in the model's own cache, None where it keeps all; None if no layer has a window."""
    if config is None or not hasattr(config, "get_text_config"):
        return None
    layers = DynamicCache(config=config.get_text_config(decoder=True)).layers
    windows = [(getattr(layer, "sliding_window", None) or 0) for layer in layers]
    return [w if w > 0 else None for w in windows] if any(w > 0 for w in windows) else None


class WindowedCache(DynamicCache):
    """The cache of a model with windows, with the table of a bounded one.

    Args:
        model: A model of transformers in which at least one layer has a window.
        epsilon: The share of attention that a token may lose in any one head; it loses none.
        options: Of `BoundedCache`, none of which applies but the policy.
    """

    def __init__(self, model: Any, epsilon: float | str | Fraction = 1e-3, **options: Any) -> None:
        windows = own_windows(model.config)
        if windows is None:
            raise ValueError(f"no layer of this {model.config.model_type!r} model has a window")
        if other := sorted(name for name, value in options.items() if value is not None and name != "policy"):
            raise ValueError(f"the windows of this model are its own; {other[0]} does not apply")
        self.windows, self.limit = windows, float(exact_epsilon(epsilon))
        config = model.config.get_text_config(decoder=True)
        self.heads = config.num_attention_heads
        super().__init__(config=config)

    def certificate(self) -> CertificateTable:
        """For each layer and head the window, or the tokens so far where it keeps all; no share is ever lost."""
        tokens = self.get_seq_length()
        rows = [
            CertificateRow(layer + 1, head + 1, tokens if window is None else window, 0.0, 0.0, 0)
            for layer, window in enumerate(self.windows)
            for head in range(self.heads)
        ]
        return CertificateTable(self.limit, tokens, rows)

    def bytes(self) -> int:
        """Memory of keys and values."""
        tensors = [x for layer in self.layers if layer.is_initialized for x in (layer.keys, layer.values)]
        return sum(x.numel() * x.element_size() for x in tensors)
