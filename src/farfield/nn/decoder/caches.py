"""What a layer gets from the caches of transformers: dynamic, static, sliding, quantized and offloaded ones.

Shapes: B samples, H heads, M new tokens, N keys, D width of a head.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor
from transformers.cache_utils import Cache, StaticSlidingWindowLayer

from farfield.nn.attention.validation import Windows


def tokens_in(cache: Cache | None) -> int:
    """How many tokens a cache has seen."""
    return 0 if cache is None else int(cache.get_seq_length())


def keys_of(cache: Cache, k: Tensor, v: Tensor, layer: int, past: int, window: Any) -> tuple[Tensor, Tensor, Windows]:
    """All keys and values that a layer attends to, the new ones last, and its window.

    A static cache hands out all of its memory: what is not filled yet is cut away. A sliding cache keeps the tokens of
    its window, so its window holds for the new tokens too.
    """
    new = k.shape[2]
    k, v = cache.update(k, v, layer)
    kept: Any = cache.layers[layer] if layer < len(getattr(cache, "layers", [])) else None
    if getattr(kept, "is_sliding", False):
        if isinstance(kept, StaticSlidingWindowLayer):
            raise ValueError(
                "a static cache with a sliding window keeps its keys out of order; use a static or a dynamic cache"
            )
        if window is None:
            window = kept.sliding_window
    return (k[:, :, : past + new], v[:, :, : past + new], window) if k.shape[2] > past + new else (k, v, window)
